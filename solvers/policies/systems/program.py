"""Small linear programs of systems, some of whose variables are whole numbers."""

from typing import Any

import numpy as np

from ronda.formulations.clock import Deadline, OutOfTimeError
from ronda.instances.arrays import Floats, Mask

GAP = 1e-3
"""Relative gap at which a program with whole numbers is solved."""


def least(
    cost: Floats,
    matrix: Any,
    upper: Floats,
    ends: tuple[Floats, Floats],
    whole: Mask,
    deadline: Deadline,
) -> Floats:
    """Return x of least cost with ``matrix x <= upper`` between its ends, whole where told.

    `OutOfTimeError` if there is none in half of the time that is left.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import

    limit_s = np.inf if deadline.limit_s is None else max(deadline.left() / 2, 1e-3)
    found = milp(
        cost,
        constraints=LinearConstraint(matrix, -np.inf, upper),
        integrality=whole.astype(int),
        bounds=Bounds(*ends),
        options={"mip_rel_gap": GAP, "time_limit": limit_s},
    )
    if found.x is None:
        raise OutOfTimeError
    return np.asarray(found.x, dtype=float)
