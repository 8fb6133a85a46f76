"""The plan that an order of trials makes."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from msgspec.structs import replace

from ronda.formulations.options.application import requested_options
from ronda.formulations.sweeps.atoms import shares, worth_resizing
from ronda.formulations.sweeps.trials import Trial
from ronda.instances.job import JobState
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.greedy.room import Clocks, preempt_in_order

NONE: Mapping[str, int] = MappingProxyType({})


def firm(state: JobState) -> bool:
    """Tell whether a job runs and may not be stopped."""
    return state.allocation is not None and not state.job.preemptible


def in_order(
    round: Round,
    order: Iterable[Trial],
    clocks: Clocks,
    *,
    nodes: Mapping[str, int] = NONE,
    sizes: Mapping[str, int] = NONE,
) -> Plan:
    """Return the plan in which jobs of no sweep, then trials in order, run as far as they can.

    Trials that are not in the order wait, but for those that may not be stopped. Those that `nodes`
    names start on that node alone; those that `sizes` names run on as many GPUs as it says. Where
    these find no room together, trials keep the GPUs that they have.
    """
    kept = [s for s in round.jobs if s.job.sweep is None or firm(s)]
    known = {s.job.id for s in kept}
    trials = [t.state for t in order if t.name not in known]
    given = [sized(state, sizes.get(state.job.id)) for state in trials]
    found = preempt_in_order(round, [*kept, *given], clocks=clocks, nodes=nodes)
    if any(a is not b for a, b in zip(given, trials, strict=True)) and not all(
        state.job.id in found for state in trials if state.allocation is not None
    ):
        found = preempt_in_order(round, [*kept, *trials], clocks=clocks, nodes=nodes)
    return Plan(allocations=found)


def sized(state: JobState, gpus: int | None) -> JobState:
    """Return a trial as one that asks for other GPUs than it has, or the very same."""
    has = state.job.gpus if state.allocation is None else state.allocation.option.gpus
    if gpus is None or gpus == has:
        return state
    return replace(state, job=replace(state.job, gpus=gpus), allocation=None)


def speed(round: Round, state: JobState, gpus: int) -> float:
    """Return the work per second of a trial on `gpus` GPUs; 0 where it cannot run on them."""
    job = state.job
    if not (job.min_gpus or job.gpus) <= gpus <= (job.max_gpus or job.gpus):
        return 0.0
    options = requested_options(round, replace(state, job=replace(job, gpus=gpus)))
    return max((option.rate for option in options), default=0.0)


def most_gpus(round: Round, state: JobState, atoms: int) -> int:
    """Return the most GPUs up to `atoms` on which a trial can run and is faster than on fewer."""
    best, most = 0.0, 0
    for gpus in range(1, min(atoms, state.job.max_gpus or state.job.gpus) + 1):
        rate = speed(round, state, gpus)
        if rate > best:
            best, most = rate, gpus
    return most or state.job.gpus


def grown(round: Round, order: Sequence[Trial], plan: Plan) -> dict[str, int]:
    """Return the trials that come to their end sooner on GPUs that nobody waits for, and how many.

    The first in the order are the first to grow; none shrinks.
    """
    if any(t.name not in plan.allocations for t in order):
        return {}
    if any(s.job.sweep is None for s in round.waiting):
        return {}
    others = [a for i, a in plan.allocations.items() if i not in {t.name for t in order}]
    atoms = sum(pool.gpus for pool in round.cluster.topology.pools)
    atoms -= sum(allocation.option.gpus for allocation in others)
    given = shares([most_gpus(round, t.state, atoms) for t in order], atoms)
    found = {}
    for trial, gpus in zip(order, given, strict=True):
        state, held = trial.state, plan.allocations[trial.name]
        left = state.remaining_at(round.now_s)
        if gpus <= held.option.gpus or firm(state) or left is None:
            continue
        now, then = held.option.rate, speed(round, state, gpus)
        pause_s = state.pause_at(round.now_s, gpus, round.costs)
        if worth_resizing(now, then, left / now, pause_s):
            found[trial.name] = gpus
    return found
