"""From chosen options to a plan's allocations: placement, which nodes sleep, and what is lost."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.allocation_case import extra_w
from ronda.formulations.allocation_reading import awake_for
from ronda.formulations.awake import may_sleep, node_classes, rack_caps
from ronda.formulations.defragment import idle_w, loss_of_moves
from ronda.formulations.options import OptionTable, option
from ronda.formulations.placed import Placed
from ronda.formulations.placers import place
from ronda.formulations.waiting import reasons
from ronda.instances.instance import Round
from ronda.instances.job import Allocation

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

ROUNDING = 1e-9
"""Relative rounding allowed against a power limit."""

OVER = "the nodes that must be awake leave too little of the power limit"
"""Why a job found a place but is left out."""


@dataclass(frozen=True, slots=True)
class Realised:
    """A choice on nodes.

    Attributes
    ----------
    allocations, asleep
        For the plan.
    objective
        Value of what is placed.
    lost
        Value of what was chosen but is not placed.
    unplaced
        Jobs that were chosen but found no room, on nodes or in the power limit, and why.
    moved, moved_gpus
        Jobs that keep their option but change nodes, and how many of their GPUs do.
    """

    allocations: dict[str, Allocation]
    asleep: tuple[int, ...] | None
    objective: float
    lost: float
    unplaced: dict[str, str]
    moved: tuple[str, ...]
    moved_gpus: int


def realise(
    round: Round, table: OptionTable, values: Floats, chosen: Rows, *, watt_value: float
) -> Realised:
    """Put a choice on nodes and decide which nodes sleep.

    Nodes sleep only if power or energy is limited, and then no more of those that are awake than
    needed to stay within the limit, as waking takes time. If energy that is not used now is worth
    something later, all nodes sleep that no job uses, and running jobs move together where that
    pays (see `ronda.formulations.defragment`). Should jobs need more nodes awake than their GPUs
    fill, those of least value per watt are left out until the limit holds.

    Parameters
    ----------
    round, table, values
        The round, its options and (K,) what they are worth.
    chosen
        (J,) row of each job, -1 for none.
    watt_value
        Value of a watt less over the time that the plan lasts; 0 if energy cannot be saved up.
    """
    rows = chosen[chosen >= 0]
    order = np.lexsort((rows, -values[rows], ~table.must_run[table.job[rows]]))
    rows = rows[order]
    extra = extra_w(table)
    kept = rows
    while True:
        placed = _place(round, table, values, kept, float(extra[kept].sum()), watt_value)
        done = np.array([_id(table, k) in placed.allocations for k in kept.tolist()], dtype=bool)
        over_w = _over_w(round, placed, float(extra[kept[done]].sum()))
        fewer = _shed(table, values, extra, kept[done], over_w)
        if len(fewer) == int(done.sum()):
            break
        kept = fewer
    there = kept[done]
    gone = np.setdiff1d(rows, there)
    why = reasons(round, {_id(table, k): option(table, k) for k in kept.tolist()}, placed)
    return Realised(
        allocations=placed.allocations,
        asleep=placed.asleep,
        objective=float(values[there].sum()),
        lost=float(values[gone].sum()),
        unplaced={_id(table, k): why.get(_id(table, k), OVER) for k in gone.tolist()},
        moved=placed.moved,
        moved_gpus=placed.moved_gpus,
    )


def _id(table: OptionTable, k: int) -> str:
    return table.jobs[int(table.job[k])].job.id


def _place(
    round: Round, table: OptionTable, values: Floats, rows: Rows, extra: float, watt_value: float
) -> Placed:
    """Place rows, the most important first; jobs move together if nodes must sleep or it pays."""
    chosen = {_id(table, k): option(table, k) for k in rows.tolist()}
    if not may_sleep(round):
        return place(round, chosen)
    gpus = np.bincount(table.pool[rows], table.gpus[rows], minlength=len(table.pools))
    awake = _awake(round, gpus.astype(int).tolist(), extra, save_energy=watt_value > 0)
    packed = place(round, chosen, may_sleep=True, awake=awake)
    if watt_value <= 0 or not packed.moved:
        return packed
    loose = place(round, chosen, may_sleep=True)
    if loose.unplaced or _over_w(round, loose, extra) > 0:
        return packed
    more_w = idle_w(round, loose.asleep) - idle_w(round, packed.asleep)
    loss = loss_of_moves(round, table, values, rows, packed.moved)
    loss -= loss_of_moves(round, table, values, rows, loose.moved)
    return packed if watt_value * more_w > loss else loose


def _awake(round: Round, gpus: list[int], extra: float, *, save_energy: bool) -> dict[int, int]:
    """Return how many nodes of each pool stay awake: those needed, then idle ones within the limit.

    Only nodes that are awake now stay awake without a job. Where racks' power is capped the number
    is left to the placement: which nodes can take a job depends on the racks.
    """
    if rack_caps(round.cluster):
        return {}
    classes = node_classes(round.cluster)
    counts = awake_for(classes, gpus)
    awake = dict.fromkeys(range(len(gpus)), 0)
    for kind, count in zip(classes, counts, strict=True):
        awake[kind.pool] += count
    if save_energy or round.watts is None:
        return awake
    drawn = sum(c.count * c.sleep_w + n * c.saves_w for c, n in zip(classes, counts, strict=True))
    spare_w = round.watts - drawn - extra
    now = np.ones(len(round.cluster.topology.node_pool), dtype=bool)
    now[list(round.asleep)] = False
    for pool in sorted(awake):
        idle = int((now & (round.cluster.topology.node_pool == pool)).sum()) - awake[pool]
        each_w = max(c.saves_w for c in classes if c.pool == pool)
        if each_w > 0:
            idle = min(idle, int(max(0.0, spare_w) // each_w))
        if idle > 0:
            awake[pool] += idle
            spare_w -= idle * each_w
    return awake


def _over_w(round: Round, placed: Placed, extra: float) -> float:
    """Return by how many watts the placed jobs exceed the round's limit."""
    if round.watts is None:
        return 0.0
    return idle_w(round, placed.asleep) + extra - round.watts * (1 + ROUNDING)


def _shed(table: OptionTable, values: Floats, extra: Floats, rows: Rows, over_w: float) -> Rows:
    """Return rows without those of least value per watt that together free `over_w`."""
    free = np.flatnonzero(~table.must_run[table.job[rows]] & (extra[rows] > 0))
    if over_w <= 0 or not len(free):
        return rows
    at = rows[free]
    ranked = np.argsort(values[at] / extra[at], kind="stable")
    enough = int(np.searchsorted(np.cumsum(extra[at][ranked]), over_w)) + 1
    return np.delete(rows, free[ranked[:enough]])
