"""Which idle nodes sleep.

Here stands the rule of standby (ski rental). What sleeping and waking draw is in
`ronda.formulations.watts`; options that wait for a node to wake are in
`ronda.formulations.allocation`.
"""
