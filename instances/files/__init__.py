"""Files of instances, rounds, plans, schedules and demand series.

This package reads, writes and compresses files and holds the packaged instances. The rules for
consistent objects are in `ronda.instances.rules`, and `ronda.instances.traces` converts logs.
"""
