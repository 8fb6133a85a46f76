"""Turns: jobs that give way to each other, as long as their restarts are worth it.

Who restarts little is not bound. Where the restarts of live jobs have taken their share of the GPU
time, none gives way before it has progressed long enough beside its next restart: so restarts stay
below that share, whatever they cost.
"""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from msgspec.structs import replace

from ronda.formulations.placement.rack_power import keeps_limits
from ronda.instances.clock import Deadline
from ronda.instances.job import JobState
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability, Policy

SHARE, RESIZED = 0.1, 0.2
"""Of the GPU time that live jobs have had, what restarts may take; more where they change sizes,
which makes jobs faster."""

Method = TypeVar("Method", bound=Callable[..., Plan])


def taking_turns(decide: Method) -> Method:
    """Decorate `Policy.plan`: where its restarts take too much, jobs end their turns first.

    A turn that is not over is one of a job that must run, unless limits forbid these together.
    """

    @wraps(decide)
    def plan(
        self: Policy, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        made = decide(self, round, deadline=deadline, seed=seed, initial=initial)
        share = RESIZED if Capability.ELASTIC in self.capabilities else SHARE
        firm = round if _worth(round, made, share) else _until_turns_end(round, share)
        if firm is not round:
            made = decide(self, firm, deadline=deadline, seed=seed, initial=initial)
        return made

    return plan  # type: ignore[return-value]


def _worth(round: Round, plan: Plan, share: float) -> bool:
    """Return whether all restarts of live jobs, those of the plan included, are within a share."""
    then, took, had = plan.allocations, 0.0, 0.0
    changed = {i for i, held in round.held.items() if i not in then or not held.goes_on(then[i])}
    if not changed:
        return True
    for state in round.jobs:
        restarts = state.restarts + (state.job.id in changed)
        took += restarts * _gpus(state) * _restart_s(round, state)
        had += state.gpu_s_at(round.now_s)
    return took <= share * had


def _until_turns_end(round: Round, share: float) -> Round:
    """Return the round in which jobs that have not progressed for long enough must go on."""
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
