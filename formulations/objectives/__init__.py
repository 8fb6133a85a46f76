"""The value of speed in a round.

The package values options: by `rank` (heSRPT), its thrifty form and the other objectives, by the
switching cost, and by ageing. `ronda.formulations.allocation` has the limits of a round.
"""
