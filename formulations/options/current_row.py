"""The row of what a job runs on now, among those that it may choose from."""

import numpy as np

from ronda.formulations.options.grid import RATE, SPANS
from ronda.formulations.options.menu import Menu
from ronda.formulations.topology import racks_reached
from ronda.instances.arrays import Floats
from ronda.instances.cluster import Cluster
from ronda.instances.job import Allocation, JobState, Option


def current_rate(
    state: JobState, allocation: Allocation, known: Menu | None, cluster: Cluster
) -> float:
    """Return the rate of a running job on the nodes that it really has.

    If the profile does not cover them, or the pool at all (no menu): the rate that its option
    promised.
    """
    option, placement = allocation.option, allocation.placement
    if known is None:
        return option.rate
    racks = 1
    if known.minds_racks:
        racks = racks_reached(cluster, (node for node, _ in placement))
    return known.rate(option, (len(placement), racks), state.noise) or option.rate


def with_current(own: list[Floats], option: Option, rate: float) -> tuple[list[Floats], int]:
    """Return a running job's blocks with the row of what it runs on, and where that row is."""
    span = SPANS.index(option.span)
    row = [option.pool, option.gpus, span, option.width, option.clock, option.batch]
    before = 0
    for i, block in enumerate(own):
        rows = block[:RATE].T.tolist()  # a few short lists: faster to search than an array
        if row in rows:
            k = rows.index(row)
            if block[RATE, k] != rate:
                own[i] = block.copy()
                own[i][RATE, k] = rate
            return own, before + k
        before += len(rows)
    return [*own, np.array([*row, rate, option.power_w], dtype=float)[:, None]], before
