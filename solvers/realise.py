"""From chosen options to a plan's allocations: placement, which nodes sleep, and what is lost."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.allocation_case import extra_w
from ronda.formulations.allocation_reading import awake_for
from ronda.formulations.awake import may_sleep, node_classes, rack_caps
from ronda.formulations.options import OptionTable, option
from ronda.formulations.placed import Placed
from ronda.formulations.placers import place
from ronda.instances.instance import Round
from ronda.instances.job import Allocation

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

ROUNDING = 1e-9
"""Relative rounding allowed against a power limit."""


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
    unplaced, moved
        Jobs that were chosen but found no room (on nodes, or in the power limit); jobs that keep
        their option but change nodes.
    """

    allocations: dict[str, Allocation]
    asleep: tuple[int, ...] | None
    objective: float
    lost: float
    unplaced: tuple[str, ...]
    moved: tuple[str, ...]


def realise(
    round: Round, table: OptionTable, values: Floats, chosen: Rows, *, save_energy: bool
) -> Realised:
    """Put a choice on nodes and decide which nodes sleep.

    Nodes sleep only if power or energy is limited, and then no more of those that are awake than
    needed to stay within the limit, as waking takes time; with `save_energy` all that no job uses.
    Should jobs need more nodes awake than their GPUs fill, those of least value per watt are left
    out until the limit holds.

    Parameters
    ----------
    round, table, values
        The round, its options and (K,) what they are worth.
    chosen
        (J,) row of each job, -1 for none.
    save_energy
        Whether energy that is not used now is worth something later.
    """
    rows = chosen[chosen >= 0]
    order = np.lexsort((rows, -values[rows], ~table.must_run[table.job[rows]]))
    rows = rows[order]
    extra = extra_w(table)
    kept = rows
    while True:
        placed = _place(round, table, kept, float(extra[kept].sum()), save_energy=save_energy)
        done = np.array([_id(table, k) in placed.allocations for k in kept.tolist()], dtype=bool)
        over_w = _over_w(round, placed, float(extra[kept[done]].sum()))
        fewer = _shed(table, values, extra, kept[done], over_w)
        if len(fewer) == int(done.sum()):
            break
        kept = fewer
    there = kept[done]
    gone = np.setdiff1d(rows, there)
    return Realised(
        allocations=placed.allocations,
        asleep=placed.asleep,
        objective=float(values[there].sum()),
        lost=float(values[gone].sum()),
        unplaced=tuple(_id(table, k) for k in gone.tolist()),
        moved=placed.moved,
    )


def _id(table: OptionTable, k: int) -> str:
    return table.jobs[int(table.job[k])].job.id


def _place(
    round: Round, table: OptionTable, rows: Rows, extra: float, *, save_energy: bool
) -> Placed:
    """Place rows, the most important first; jobs move together as far as nodes must sleep."""
    chosen = {_id(table, k): option(table, k) for k in rows.tolist()}
    if not may_sleep(round):
        return place(round, chosen)
    gpus = np.bincount(table.pool[rows], table.gpus[rows], minlength=len(table.pools))
    awake = _awake(round, gpus.astype(int).tolist(), extra, save_energy=save_energy)
    return place(round, chosen, may_sleep=True, awake=awake)


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
    topology = round.cluster.topology
    base = topology.host_idle_w + topology.node_gpus * topology.gpu_idle_w
    asleep = list(round.asleep if placed.asleep is None else placed.asleep)
    base[asleep] = topology.sleep_w[asleep]
    return float(base.sum()) + extra - round.watts * (1 + ROUNDING)


def _shed(table: OptionTable, values: Floats, extra: Floats, rows: Rows, over_w: float) -> Rows:
    """Return rows without those of least value per watt that together free `over_w`."""
    free = np.flatnonzero(~table.must_run[table.job[rows]] & (extra[rows] > 0))
    if over_w <= 0 or not len(free):
        return rows
    at = rows[free]
    ranked = np.argsort(values[at] / extra[at], kind="stable")
    enough = int(np.searchsorted(np.cumsum(extra[at][ranked]), over_w)) + 1
    return np.delete(rows, free[ranked[:enough]])
