"""How instances, rounds, plans, schedules and demand series stand on disk.

Here are reading, writing, compression, the packaged catalogue and the JSON Schemas. What makes an
object consistent is in `ronda.instances.rules`; how logs become instances, in
`ronda.instances.traces`.
"""
