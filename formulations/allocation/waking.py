"""The delay of sleeping nodes in the allocation model, with options now and after waking.

A node that sleeps, or is still waking, cannot run jobs for w seconds. So the model has each option
twice (our own device, not a paper's): *now*, on GPUs of ready nodes, and *after waking*, on GPUs of
any nodes that are awake under the plan. Both take GPUs of the pool, but only the first takes
*ready* GPUs::

    sum of n_k x_k over options now <= ready GPUs of the pool          ``ready_gpus[pool]``

* A waiting job starts on the waking nodes as soon as these are ready. The job loses w of the time L
  that the option lasts (`ronda.formulations.objectives.switching_cost.pause_share`), so the option
  has the value ``(1 - w/L) v``. As for other pauses, L is at most `horizon_s`, or ten times w if
  that is longer, as it does not pay to wake a node for less.
* A running job keeps its option until the nodes are ready, and then changes, which has the value
  ``w/L v_now + (1 - w/L) v``. The job takes the ready GPUs that it holds, and only options with
  more GPUs in the same pool matter.

The energy of waking needs no term, as a waking node draws power from the order on in the model too.
"""

from dataclasses import dataclass, replace

import numpy as np

from ronda.formulations.allocation.model_data import Case, Waking
from ronda.formulations.allocation.rows import gpus_by_pool
from ronda.formulations.objectives.remaining_work import work_ahead
from ronda.formulations.objectives.switching_cost import horizon_s, pause_share
from ronda.formulations.options.table import ANYWHERE, OptionTable, running_rows
from ronda.formulations.watts import nodes_for
from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.round import Round


@dataclass(frozen=True, slots=True)
class Ready:
    """The ready nodes (N,), which are awake, not waking, and can run jobs now.

    ``wait_s`` (P,) is the time in seconds that the pool's other nodes need, 0 if all are ready.
    """

    nodes: Mask
    wait_s: Floats


def ready(round: Round, waking: frozenset[int]) -> Ready | None:
    """Return the ready nodes, or None if all nodes are ready or wake at once.

    The nodes in `waking` were woken but are not ready yet.
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
    """Return the ready GPUs that rows take, shape (K,); a current row may hold waking nodes."""
    use = table.own_gpus.astype(float)
    for k in np.flatnonzero(table.current).tolist():
        held = table.jobs[int(table.job[k])].allocation
        if held is not None:
            ready = sum(gpus for node, gpus in held.placement if nodes.nodes[node])
            use[k] = ready * held.option.own_gpus / held.option.gpus if held.parts else ready
    return use


def _later(case: Case, nodes: Ready) -> tuple[Rows, Floats]:
    """Return the rows that may wait for nodes, and their values if they wait."""
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

    ``chosen`` (J,) is the row of each job from now on, -1 for none; running jobs that wait for
    nodes keep their current row. ``worth`` (K,) are the values of rows at the time of the choice,
    and ``awake`` (P,) is the number of awake nodes in each pool under the plan.
    """

    chosen: Rows
    worth: Floats
    awake: tuple[int, ...]


def begin(case: Case, values: Floats, picked: Rows) -> Begun:
    """Return the options to run from now on, for a choice of options now and after waking.

    The case has options now and after waking. `values` (K,) are the values of rows now, and
    `picked` (J,) is the chosen variable of each job, -1 for none.
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
