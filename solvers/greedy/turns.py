"""The turns of jobs that give way to each other, with a limit on the cost of restarts.

The limit has no effect while restarts are few. If the restarts of live jobs have taken their share
of the GPU time, no job gives way before it has run long enough relative to its next restart. So
restarts stay below that share, whatever they cost.
"""

from ronda.formulations.placement.rack_power import keeps_limits
from ronda.formulations.site.min_run import with_firm
from ronda.instances.job import JobState
from ronda.instances.plan import Plan
from ronda.instances.round import Round

SHARE, RESIZED = 0.1, 0.2
"""The share of live jobs' GPU time that restarts may take, and the larger share if restarts change
sizes, which makes jobs faster."""


def until_turns_end(round: Round, plan: Plan, *, elastic: bool) -> Round:
    """Return the round; if restarts take too much, jobs must go on until their turns are over.

    The round is unchanged if all restarts of live jobs, including those of the plan, take no more
    than their share of these jobs' GPU time. It is also unchanged if limits forbid the jobs
    together.
    """
    share, then, took, had = RESIZED if elastic else SHARE, plan.allocations, 0.0, 0.0
    changed = {i for i, held in round.held.items() if i not in then or not held.goes_on(then[i])}
    for state in round.jobs if changed else ():
        restarts = state.restarts + (state.job.id in changed)
        took += restarts * _gpus(state) * _restart_s(round, state)
        had += state.gpu_s_at(round.now_s)
    if took <= share * had:
        return round
    inside = {
        state.job.id: state.allocation
        for state in round.running
        if state.allocation is not None
        and round.now_s < state.since_s + _restart_s(round, state) / share
    }
    if not inside or not keeps_limits(round, inside):
        return round
    return with_firm(round, inside)


def _gpus(state: JobState) -> float:
    return state.job.gpus if state.allocation is None else state.allocation.option.own_gpus


def _restart_s(round: Round, state: JobState) -> float:
    gpus = state.job.gpus if state.allocation is None else state.allocation.option.gpus
    return (state.job.costs or round.costs).restart(gpus)
