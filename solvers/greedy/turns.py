"""Turns: jobs that give way to each other, as long as their restarts are worth it.

Who restarts little is not bound. Where the restarts of live jobs have taken their share of the GPU
time, none gives way before it has progressed long enough beside its next restart: so restarts stay
below that share, whatever they cost.
"""

from msgspec.structs import replace

from ronda.formulations.placement.rack_power import keeps_limits
from ronda.instances.job import JobState
from ronda.instances.plan import Plan
from ronda.instances.round import Round

SHARE, RESIZED = 0.1, 0.2
"""Of the GPU time that live jobs have had, what restarts may take; more where they change sizes,
which makes jobs faster."""


def until_turns_end(round: Round, plan: Plan, *, elastic: bool) -> Round:
    """Return the round in which jobs whose turn is not over must go on, if restarts take too much.

    It is the round as it is where all restarts of live jobs, those of a plan included, take no more
    than their share of the GPU time that these have had, or limits forbid these jobs together.
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
    running = tuple(
        replace(state, job=replace(state.job, preemptible=False))
        if state.job.id in inside
        else state
        for state in round.running
    )
    return replace(round, running=running)


def _gpus(state: JobState) -> float:
    return state.job.gpus if state.allocation is None else state.allocation.option.own_gpus


def _restart_s(round: Round, state: JobState) -> float:
    gpus = state.job.gpus if state.allocation is None else state.allocation.option.gpus
    return (state.job.costs or round.costs).restart(gpus)
