"""Nodes that leave: jobs that would be cut there neither start nor move there, and others may.

A job is expected to have ended after its pause and the work that is left of it with a probability
of 90 % (`JobState.mostly_left_at`), or at its time limit. At option level this gives a row for each
time at which nodes of a pool leave: jobs that end later have room on the other nodes only. They
keep the GPUs that they hold now on nodes that leave, so that these do not count.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from ronda.formulations.dual_feasible import node_shares, tightening
from ronda.formulations.options.stated_rows import Sheet
from ronda.formulations.options.table import OptionTable
from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.job import Allocation, JobState, Option
from ronda.instances.models.cache import per_record
from ronda.instances.round import Round

STAYING, STAYING_NODES = "staying", "staying_nodes"
"""The families of the rows of pools and times: GPUs, and pieces of whole nodes."""

MOST_TIMES = 16
"""The most times of a pool that have rows. Nodes are asked in placement, whatever the time."""


def ends_s(round: Round, table: OptionTable) -> Floats:
    """Return when each option's job would have ended after a change to it, without waking, (K,)."""
    now_s, found = round.now_s, np.full(len(table), np.inf)
    for j, state in enumerate(table.jobs):
        rows = slice(int(table.start[j]), int(table.start[j + 1]))
        gpus, work = table.gpus[rows], state.mostly_left_at(now_s)
        pauses = {n: state.pause_at(now_s, n, round.costs) for n in set(gpus.tolist())}
        run_s = np.inf if work is None else work / table.rate[rows]
        pause_s = np.array([pauses[n] for n in gpus.tolist()])
        found[rows] = now_s + np.minimum(pause_s + run_s, round.may_hold_s(state))
    return found


def staying_rows(round: Round, table: OptionTable, values: Floats, sheet: Sheet) -> None:
    """State Σ_{k in p: ends after T} n_k x_k ≤ GPUs of p that do not leave by T, and by pieces.

    Pieces count by dual feasible functions in pools of equal nodes, as in ``whole_nodes``. The rows
    are exact for jobs of one GPU and necessary for others. A row exists if it can bind.
    """
    if not round.leaving:
        return
    topology, late = round.cluster.topology, ends_s(round, table)
    leaves_s = np.full(len(topology.node_gpus), np.inf)
    for node, at_s in round.leaving:
        leaves_s[node] = min(leaves_s[node], at_s)
    for p, pool in enumerate(table.pools):
        here = topology.node_pool == p
        times_s = np.unique(leaves_s[here & np.isfinite(leaves_s)])
        some = np.linspace(len(times_s) - 1, 0, min(len(times_s), MOST_TIMES))  # with the last
        for at_s in times_s[np.unique(some.astype(np.int64))].tolist():
            rows = np.flatnonzero((table.pool == p) & (late > at_s))
            stays = here & (leaves_s > at_s)
            held = [_held_on(state, here & ~stays) for state in table.jobs]
            free = np.array(held, dtype=np.int64)[table.job[rows]]
            gpus, inside = np.maximum(0, table.own_gpus[rows] - free), f"{pool.name},{at_s:g}"
            room = topology.node_gpus[stays]
            if table.most_together(rows, gpus) > room.sum():
                sheet.state(f"{STAYING}[{inside}]", rows, gpus, float(room.sum()))
            fresh = (gpus * (free == 0)).astype(np.int64)
            for i, shares in _pieces(fresh, room, pool.gpus_per_node):
                if table.most_together(rows, shares) > len(room):
                    name = f"{STAYING_NODES}[{inside},{i}]"
                    sheet.state(name, rows, shares, float(len(room)))


def _held_on(state: JobState, nodes: Mask) -> int:
    held = () if state.allocation is None else state.allocation.placement
    return sum(gpus for node, gpus in held if nodes[node])


def _pieces(gpus: Rows, room: Rows, size: int) -> Iterator[tuple[int, Floats]]:
    """Yield the shares of nodes that each dual feasible function gives to options."""
    if len(room) and (room != size).any():
        return
    whole, rest = np.divmod(gpus, size)
    for i in tightening(rest.tolist(), size):
        shares = node_shares(np.arange(size + 1), size, i)
        yield i, whole * shares[size] + shares[rest]


def closed_before(round: Round, state: JobState, option: Option) -> Mask | None:
    """Return the nodes (N,) that leave before the job would end there.

    A node of which it has all that it can get there stays open. Waking counts: that of the node for
    a job on one node, and the longest in the pool for others.
    """
    if not round.leaving:
        return None
    topology, work = round.cluster.topology, state.mostly_left_at(round.now_s)
    nodes, leaves_s, wake_s = _leaving(round)
    if option.span != "node":
        wake_s = np.full(len(wake_s), wake_s[topology.node_pool == option.pool].max(initial=0.0))
    pause_s = wake_s[nodes] + state.pause_at(round.now_s, option.gpus, round.costs)
    run_s = np.inf if work is None else work / option.rate + option.teardown_s
    end_s = round.now_s + np.minimum(pause_s + run_s, round.may_hold_s(state))
    found = np.zeros(len(topology.node_gpus), dtype=bool)
    found[nodes[end_s > leaves_s]] = True
    for node, gpus in () if state.allocation is None else state.allocation.placement:
        found[node] &= gpus < min(option.gpus, int(topology.node_gpus[node]))
    return found


@per_record(maxsize=2)
def _leaving(round: Round) -> tuple[Rows, Floats, Floats]:
    """Return the nodes that leave, and when (L,), and the seconds that nodes take to wake (N,)."""
    nodes, leaves_s = np.array(round.leaving, dtype=float).reshape(-1, 2).T
    topology, resting = round.cluster.topology, [*round.asleep, *round.waking]
    wake_s = np.zeros(len(topology.node_gpus))
    wake_s[resting] = topology.wake_s[resting]
    return nodes.astype(np.int64), leaves_s, wake_s


def leaving_too_early(
    round: Round, state: JobState, option: Option, given: Iterable[Allocation]
) -> str | None:
    """Return words on the free GPUs that leave too early for a job, or None if they are not why.

    `given` are the allocations of all jobs that run. The words say up to which time limit the job
    could start there.
    """
    closed = closed_before(round, state, option)
    if closed is None or not closed.any():
        return None
    topology = round.cluster.topology
    free = np.where(topology.node_pool == option.pool, topology.node_gpus, 0)
    for held in {(each.array or k, each.placement) for k, each in enumerate(given)}:
        for node, gpus in held[1]:
            free[node] -= gpus
    if free[~closed].sum() >= option.gpus or free.sum() < option.gpus:
        return None
    by_time = sorted(((s, n) for n, s in round.leaving if closed[n] and free[n] > 0), reverse=True)
    gone, room = int(free[closed].sum()), np.cumsum([free[n] for _, n in by_time])
    last_s = by_time[int(np.argmax(room + free[~closed].sum() >= option.gpus))][0] - round.now_s
    pool, first_s = topology.pools[option.pool].name, by_time[-1][0] - round.now_s
    said = f"{gone} of {free.sum()} free GPUs of {pool} leave from {_minutes(first_s)} min on"
    if not round.site.kills_at_limit or last_s <= 0:
        return said
    most_s = state.ran_at(round.now_s) + last_s
    return f"{said}; it could start with a time limit of at most {_minutes(most_s)} min"


def _minutes(seconds: float) -> int:
    return max(0, int(seconds // 60))
