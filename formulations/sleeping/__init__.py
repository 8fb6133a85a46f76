"""Which idle nodes sleep: the rule of standby (ski rental).

What sleeping and waking draw is in `ronda.formulations.watts`.
"""

from ronda.formulations.sleeping.standby import break_even_s, rest, spare_of, stand_by, standing

__all__ = ["break_even_s", "rest", "spare_of", "stand_by", "standing"]
