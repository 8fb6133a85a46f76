"""The row of what a job runs on now, among those that it may choose from."""

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.menu import RATE, SPANS, Menu
from ronda.instances.job import Allocation, JobState, Option

Floats = NDArray[np.float64]


def with_current(
    own: list[Floats], state: JobState, allocation: Allocation, racks: int, known: Menu | None
) -> tuple[list[Floats], int]:
    """Return a running job's blocks with the row of what it runs on, and where that row is.

    Its rate is that of the nodes, in so many `racks`, that it really has; if the profile does not
    cover them, or the pool at all (no menu), the rate that its option promised.
    """
    option = allocation.option
    rate = option.rate
    if known is not None:
        reach = (len(allocation.placement), racks)
        rate = known.rate(option, reach, state.noise) or rate
    row = _row(option, rate)
    before = 0
    for i, block in enumerate(own):
        same = (block[:RATE] == row[:RATE]).all(axis=0)
        k = int(same.argmax()) if len(same) else 0
        if len(same) and same[k]:
            if block[RATE, k] != rate:
                own[i] = block.copy()
                own[i][RATE, k] = rate
            return own, before + k
        before += block.shape[1]
    return [*own, row], before


def _row(option: Option, rate: float) -> Floats:
    """Return a block of one row."""
    span = SPANS.index(option.span)
    columns = (option.pool, option.gpus, span, option.width, option.clock, option.batch)
    return np.array([*columns, rate, option.power_w], dtype=float)[:, None]
