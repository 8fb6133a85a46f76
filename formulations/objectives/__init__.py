"""What speed is worth now.

Here options get values: `rank` (heSRPT), its thrifty form and the others, the cost of switching,
and ageing. What a round's limits are is in `ronda.formulations.allocation`.
"""
