"""Tables and reports for a terminal, Markdown, LaTeX, notebooks and programs.

Names are data: what cannot be seen is written out. No picture and no plotting library; those are in
`ronda.bench`.
"""
