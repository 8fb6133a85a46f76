"""The value of speed in a round.

Here options get values: `rank` (heSRPT), its thrifty form and the other objectives, the switching
cost, and ageing. The limits of a round are in `ronda.formulations.allocation`.
"""
