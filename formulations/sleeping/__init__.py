"""Which idle nodes sleep.

Here stands the rule of standby (ski rental). What sleeping and waking draw is in
`ronda.formulations.watts`; options that wait for a node to wake are in
`ronda.formulations.allocation`.
"""

from ronda.formulations.sleeping.standby import break_even_s, drawn_w, stand_by

__all__ = ["break_even_s", "drawn_w", "stand_by"]
