"""Options now or after waking: the delay of sleeping nodes in the allocation model.

A node that sleeps, or still wakes, cannot run jobs for w seconds, so an option comes twice (ours,
not a paper's): *now*, on GPUs of nodes that are ready, and *after waking*, on any that are awake
under the plan. Both take GPUs of the pool; only the first takes *ready* ones::

    sum of n_k x_k over options now <= ready GPUs of the pool          ``ready_gpus[pool]``

* A waiting job starts on the waking nodes as soon as they are there. Of the time L that the option
  lasts it loses w (`ronda.formulations.objectives.switching_cost.pause_share`), so it is worth ``(1
  - w/L) v``. The longest time that an allocation is expected to last is that of other pauses
  (`horizon_s` there), but at least ten times w: less is not worth waking a node.
* A running job keeps its option until then, and moves later: ``w/L v_now + (1 - w/L) v``. It takes
  the ready GPUs that it holds, and only options of more GPUs in the same pool matter.

The energy of waking needs no term: a node draws power from the order on, in the model as well.
"""

from dataclasses import dataclass, replace

import numpy as np

from ronda.formulations.allocation.model_data import Case, Waking
from ronda.formulations.allocation.rows import gpus_by_pool
from ronda.formulations.objectives.remaining_work import work_ahead
from ronda.formulations.objectives.switching_cost import horizon_s, pause_share
from ronda.formulations.options.table import ANYWHERE, OptionTable, running_rows
from ronda.formulations.watts import nodes_for
from ronda.instances.arrays import Floats, Mask, Rows
from ronda.instances.round import Round


@dataclass(frozen=True, slots=True)
class Ready:
    """The nodes (N,) that are awake, and not still waking: they can run jobs now.

    ``wait_s`` (P,) is the time in seconds until another node of the pool is ready, 0 if all are.
    """

    nodes: Mask
    wait_s: Floats


def ready(round: Round, waking: frozenset[int]) -> Ready | None:
    """Return the ready nodes, or None if all are, or waking takes no time.

    `waking` nodes were woken but are not ready yet.
    """
    topology = round.cluster.topology
    nodes = np.ones(len(topology.node_pool), dtype=bool)
    nodes[[*round.asleep, *waking]] = False
    nodes |= (topology.wake_s <= 0) | (topology.node_gpus == 0)
    if nodes.all():
        return None
    wait_s = np.zeros(len(topology.pools))
    np.maximum.at(wait_s, topology.node_pool[~nodes], topology.wake_s[~nodes])
    return Ready(nodes, wait_s)


def with_waking(case: Case, nodes: Ready) -> Case:
    """Return the case with options now and after waking."""
    table, topology = case.table, case.round.cluster.topology
    later, worth = _later(case, nodes)
    rows, value = np.concatenate([case.rows, later]), np.concatenate([case.value, worth])
    late = np.arange(len(rows)) >= len(case.rows)
    used, running = _ready_use(case.round, table, nodes), np.flatnonzero(table.current)
    held = np.zeros(len(table.jobs))
    held[table.job[running]] = used[running]
    use = np.where(late, held[table.job[rows]], used[rows])
    order = np.lexsort((late, rows))
    there = np.bincount(
        topology.node_pool[nodes.nodes], topology.node_gpus[nodes.nodes], len(table.pools)
    )
    return replace(
        case,
        rows=rows[order],
        rack=np.full(len(rows), ANYWHERE),
        value=value[order],
        waking=Waking(late[order], use[order], np.where(nodes.wait_s > 0, there, np.inf)),
    )


def _ready_use(round: Round, table: OptionTable, nodes: Ready) -> Floats:
    """Return (K,) the ready GPUs that rows take; those of the current row may be waking still."""
    use = table.gpus.astype(float)
    for k in np.flatnonzero(table.current).tolist():
        held = table.jobs[int(table.job[k])].allocation
        if held is not None:
            use[k] = sum(gpus for node, gpus in held.placement if nodes.nodes[node])
    return use


def _later(case: Case, nodes: Ready) -> tuple[Rows, Floats]:
    """Return the rows that may wait for nodes, and their values then."""
    table, round_ = case.table, case.round
    job, pool, rows = case.job, case.pool, case.rows
    wait_s, values = nodes.wait_s[pool], np.zeros(len(table))
    values[rows] = case.value
    at = running_rows(table)[job]  # -1 for none
    has = at >= 0
    before = np.where(has, values[at], 0.0)
    fits = (wait_s > 0) & ~table.must_run[job] & ~table.current[rows]
    fits &= ~has | ((pool == table.pool[at]) & (case.gpus > table.gpus[at]))
    work = work_ahead(round_)
    longest = np.maximum(horizon_s(round_), 10.0 * wait_s)
    share = pause_share(wait_s, work[job] / table.rate[rows], longest)
    worth = share * before + (1.0 - share) * case.value
    good = np.flatnonzero(fits & (worth > before))
    return rows[good], worth[good]


@dataclass(frozen=True, slots=True)
class Begun:
    """The options to run from now on, for a choice of options now and after waking.

    ``chosen`` (J,) is the row of each job from now on, -1 for none; jobs that wait for nodes keep
    running. ``worth`` (K,) are the values of rows as they were chosen, ``awake`` (P,) the nodes
    awake under the plan.
    """

    chosen: Rows
    worth: Floats
    awake: tuple[int, ...]


def begin(case: Case, values: Floats, picked: Rows) -> Begun:
    """Return the options to run from now on, for a choice of options now and after waking.

    The case has options now and after waking; `values` (K,) are those of rows now, `picked` (J,)
    the variable of each job, -1 for none.
    """
    assert case.waking is not None
    some = picked[picked >= 0]
    rows = case.rows[some]
    awake = nodes_for(case.classes, gpus_by_pool(case.table, rows))
    now = running_rows(case.table)[case.job[some]]
    rows = np.where(case.waking.late[some] & (now >= 0), now, rows)
    worth = values.copy()
    worth[rows] = case.value[some]
    chosen = np.full(len(case.table.jobs), -1, dtype=np.int64)
    chosen[case.job[some]] = rows
    return Begun(chosen, worth, tuple(awake))
