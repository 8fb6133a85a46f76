"""What a schedule comes to: its metrics, how its searches went, and the energy it might have used.

Computed from an instance and its schedule alone. Whether a schedule is right is
`ronda.instances.check`.
"""
