"""What can be done within some seconds: lower clocks, and stops of jobs that are quick to stop.

The format says how long a job pauses for a restart (`ronda.instances.job.Costs`), and not how much
of this it takes to save its state. So a job can be stopped in time if its whole pause fits into
the time. Every other job goes on. A job that goes on keeps its nodes, its GPUs and its batch, and
may change its clock, which takes effect at once. Nobody starts, and nodes without a job sleep at
once.
"""

from collections.abc import Callable, Iterator

import numpy as np
from msgspec.structs import replace

from ronda.formulations.options.stated_rows import Limit
from ronda.formulations.options.table import OptionTable, runs_as
from ronda.formulations.watts import least_node_w, may_sleep
from ronda.instances.base import Mask
from ronda.instances.job import used_nodes
from ronda.instances.plan import Plan
from ronda.instances.round import Round


def swift(within_s: float) -> Callable[[Round, OptionTable], Iterator[Limit]]:
    """Return the rule that only what can be done within `within_s` seconds is done."""

    def within(round: Round, table: OptionTable) -> Iterator[Limit]:
        """Yield the limits that slow jobs go on, and that nobody takes an option too late."""
        slow, may = in_time(round, table, within_s)
        yield Limit((~may).astype(float), "<=", 0.0, name="too late")
        if slow.any():
            yield Limit(slow[table.job].astype(float), ">=", float(slow.sum()), name="goes on")

    return within


def in_time(round: Round, table: OptionTable, within_s: float | None) -> tuple[Mask, Mask]:
    """Return the jobs (J,) that cannot be stopped in time, and the options (K,) that are in time.

    Without a time, every job can be stopped, and every option is in time.
    """
    slow, may = np.zeros(len(table.jobs), dtype=bool), np.zeros(len(table), dtype=bool)
    if within_s is None:
        return slow, ~may
    held, clock = {}, np.zeros(len(slow))
    for j, state in enumerate(table.jobs):
        if state.allocation is not None:
            held[j] = state.allocation.option
            clock[j] = held[j].clock
            slow[j] = (state.job.costs or round.costs).restart(held[j].gpus) > within_s
    asked = table.gpus if table.asked is None else table.asked
    # With the clock that the job has now in place of its own, every clock runs in the same way.
    way = (table.pool, table.gpus, table.span, table.width, clock[table.job], table.batch, asked)
    may[runs_as(way, np.arange(len(table)), table.job, held)] = True
    return slow, may


def where_jobs_are(round: Round, plan: Plan) -> Plan:
    """Return a plan with all its jobs on the nodes that they have now, and other nodes asleep."""
    held = round.held
    allocations = {job: replace(held[job], option=a.option) for job, a in plan.allocations.items()}
    if plan.asleep is None:
        return replace(plan, allocations=allocations)
    topology = round.cluster.topology
    rests = (topology.node_gpus > 0) & (topology.sleep_w < topology.awake_w)
    rests[list(round.asleep)] = True
    rests[list(used_nodes(allocations.values()))] = False
    return replace(plan, allocations=allocations, asleep=tuple(np.flatnonzero(rests).tolist()))


def least_w(round: Round, table: OptionTable, within_s: float | None) -> float:
    """Return the watts of the cluster when all is stopped that may be, as slow as jobs may run.

    Nodes without a job sleep where this saves power.
    """
    topology = round.cluster.topology
    node_w = least_node_w(topology) if may_sleep(round) else topology.awake_w.copy()
    slow, may = in_time(round, table, within_s)
    extra_w, total_w = np.where(may, table.extra_w, np.inf), 0.0
    for j in np.flatnonzero(slow | table.must_run).tolist():
        held = table.jobs[j].allocation
        nodes = list(used_nodes([held] if held is not None else []))
        node_w[nodes] = topology.awake_w[nodes]
        total_w += float(extra_w[table.start[j] : table.start[j + 1]].min(initial=np.inf))
    return float(node_w.sum()) + total_w
