"""What a schedule comes to: metrics, use over time, which GPUs, how searches went, energy allowed.

Computed from an instance and its schedule alone. Whether a schedule is right is
`ronda.instances.check`.
"""
