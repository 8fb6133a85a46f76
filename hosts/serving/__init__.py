"""Rounds decided over HTTP: what is let in, one warm process a core that decides, and the answers.

The server library and the metrics are an optional extra, loaded when a server starts. What is
decided is `ronda.horizon.solve`.
"""
