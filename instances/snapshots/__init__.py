"""A cluster as its own tools show it, and the rounds that are made of it.

A snapshot loses nothing: it has CPU jobs as well, and jobs as the pieces that they were submitted
as. A round has what ronda decides about.
"""
