"""Tables and reports for a terminal, Markdown, LaTeX, notebooks and programs.

Names are data, so invisible characters in them are written out. Pictures and plotting libraries are
in `ronda.bench`, not here.
"""
