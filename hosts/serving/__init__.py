"""A server that decides rounds over HTTP, with limits on requests and one warm process per core.

The server library and the metrics are an optional extra and are loaded when a server starts.
Decisions come from `ronda.horizon.solve`.
"""
