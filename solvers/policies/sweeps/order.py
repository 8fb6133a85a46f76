"""The plan that an order of trials makes."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ronda.formulations.sweeps.trials import Trial
from ronda.instances.job import JobState
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.greedy.room import Clocks, preempt_in_order


def firm(state: JobState) -> bool:
    """Tell whether a job runs and may not be stopped."""
    return state.allocation is not None and not state.job.preemptible


def in_order(
    round: Round,
    order: Iterable[Trial],
    clocks: Clocks,
    *,
    nodes: Mapping[str, int] = MappingProxyType({}),
) -> Plan:
    """Return the plan in which jobs of no sweep, then trials in order, run as far as they can.

    Trials that are not in the order wait, but for those that may not be stopped; those that `nodes`
    names start on that node alone.
    """
    kept = [s for s in round.jobs if s.job.sweep is None or firm(s)]
    known = {s.job.id for s in kept}
    jobs = [*kept, *(t.state for t in order if t.name not in known)]
    return Plan(allocations=preempt_in_order(round, jobs, clocks=clocks, nodes=nodes))
