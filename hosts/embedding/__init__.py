"""ronda inside another scheduler: a host's data become a round, and plans become changes.

The modules are the readers of rates and jobs, and the façade that keeps state between decisions. A
policy makes the decisions, and beliefs are in `ronda.horizon`.
"""
