"""Small linear programs of systems, some of whose variables are whole numbers."""

from typing import Any

import numpy as np

from ronda.formulations.clock import Deadline, OutOfTimeError
from ronda.instances.arrays import Floats, Mask

GAP = 1e-3
"""Relative gap at which a program with whole numbers is solved."""

MOST_ROWS = 10_000
"""Rows up to which numbers are whole: with more of them HiGHS works for long without a look at its
clock before it searches (28,674 rows 0.6 s, 114,690 rows 5 s, measured on one slow core)."""


def least(
    cost: Floats,
    matrix: Any,
    upper: Floats,
    ends: tuple[Floats, Floats],
    whole: Mask,
    deadline: Deadline,
) -> Floats:
    """Return x of least cost with ``matrix x <= upper`` between its ends, whole where told.

    Beyond `MOST_ROWS` it is that of the relaxation, in which no number need be whole.
    `OutOfTimeError` if there is none in half of the time that is left.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import

    limit_s = np.inf if deadline.limit_s is None else max(deadline.left() / 2, 1e-3)
    found = milp(
        cost,
        constraints=LinearConstraint(matrix, -np.inf, upper),
        integrality=(whole & (len(upper) <= MOST_ROWS)).astype(int),
        bounds=Bounds(*ends),
        options={"mip_rel_gap": GAP, "time_limit": limit_s},
    )
    if found.x is None:
        raise OutOfTimeError
    return np.asarray(found.x, dtype=float)
