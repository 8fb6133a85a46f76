"""The files of instances, rounds, plans, schedules and demand series.

Here are reading, writing, compression and the packaged instances. The rules for consistent objects
are in `ronda.instances.rules`; logs become instances in `ronda.instances.traces`.
"""
