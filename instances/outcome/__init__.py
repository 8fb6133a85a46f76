"""The outcome of a schedule: metrics, usage over time, GPU numbers, sweep results and accrual.

Everything is computed from an instance and its schedule alone. Schedules are checked in
`ronda.instances.check`.
"""
