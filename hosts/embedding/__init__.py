"""A scheduler of one's own asks ronda: what a host has becomes a round, and plans become changes.

Here stand the readers of rates and jobs, and the façade that keeps state between decisions. Who
decides is a policy, what is believed is in `ronda.horizon`.
"""
