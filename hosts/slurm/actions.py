"""The steps from a cluster as it is to a plan: for each job or node the commands, and why."""

from collections.abc import Collection, Iterator, Sequence
from math import ceil
from typing import NamedTuple

from ronda.formulations.site.order import startable
from ronda.hosts.clusters.order import round_after
from ronda.hosts.slurm.commands import SlurmCommand, lease, power, ranks, ready, requeue
from ronda.hosts.slurm.model import SlurmModel
from ronda.hosts.slurm.scope import Scope
from ronda.hosts.slurm.state import SlurmState
from ronda.instances.job import Allocation
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.greedy.room import Room

TIERS = 16
"""The most tiers of waiting jobs, each with priorities above those of all later tiers."""

PATIENCE_S = 120.0
"""Seconds for which a job may wait for nodes that were chosen for it, and as long for others."""


class SlurmStep(NamedTuple):
    """A change of one job or node, or of the priorities of several jobs.

    Attributes
    ----------
    what
        The change, in a word or two.
    names
        The jobs or nodes.
    gpus
        The GPUs that a job gets.
    on
        The nodes that it gets.
    why
        The reason, as a sentence.
    commands
        The commands; none if Slurm does it by itself.
    """

    what: str
    names: tuple[str, ...]
    gpus: int | None
    on: tuple[str, ...]
    why: str
    commands: tuple[SlurmCommand, ...]


def steps(
    model: SlurmModel, plan: Plan, tiers: Sequence[Sequence[str]], scope: Scope, state: SlurmState
) -> list[SlurmStep]:
    """Return the steps to a plan, in the order in which their commands are to be given.

    Parameters
    ----------
    tiers
        The waiting jobs in the order in which the policy would start them, the first tier now.
    """
    held = model.round.held
    starts = {job: given for job, given in plan.allocations.items() if job not in held}
    waits = kept_waiting(model.round, plan)
    return [
        *_order(model, plan, tiers, state),
        *(_start(model, plan, job, given, state) for job, given in starts.items()),
        *_waiting(model, plan, starts, waits, scope, state),
        *_stops(model, plan),
        *_power(model, plan, scope),
    ]


def kept_waiting(round: Round, plan: Plan) -> set[str]:
    """Return the jobs that would fit beside a plan, each of which it makes wait on purpose."""
    after = startable(round_after(round, plan))
    room = Room(after, after.running, sleeping=False)
    return {s.job.id for s in after.waiting if any(room.way(s, each) for each in room.ways(s))}


def _order(
    model: SlurmModel, plan: Plan, tiers: Sequence[Sequence[str]], state: SlurmState
) -> Iterator[SlurmStep]:
    """Yield a step for each tier whose jobs get another priority.

    A tier keeps the priorities that it has if they are above those of all later tiers.
    """
    jobs = model.jobs
    ranked = [
        (k, [j for j in tier if model.terms[j].rank and jobs[j].rank and jobs[j].blocked is None])
        for k, tier in enumerate(tiers)
    ]
    ranked = [(k, own) for k, own in ranked if own]
    if state.band is None or len(ranked) < 2:
        return
    low, high = state.band
    below, values, anew = low, {ranked[-1][0]: low}, list[int]()
    for k, own in reversed(ranked[:-1]):
        had = [round(jobs[job].rank or 0.0) for job in own]
        if below + len(anew) < min(had) and max(had) <= high:
            step = (min(had) - below) / (len(anew) + 1)
            values |= {tier: below + int(step * at) for at, tier in enumerate(anew, 1)}
            below, anew = max(had), []
        else:
            anew.append(k)
    if high - below < len(anew):  # no room is left: all of them anew
        below, anew = low, [k for k, _ in reversed(ranked[:-1])]
    values |= {k: below + (high - below) * at // len(anew) for at, k in enumerate(anew, 1)}
    for k, own in ranked:
        other = tuple(job for job in own if k in values and jobs[job].rank != values[k])
        if other:
            when = ("starts them now", "would start them next")[k > 0]
            why = f"{plan.policy} {when}" + (f", in place {k + 1} of its order" if k > 1 else "")
            made = (*ranks(other, values[k], f"{why}."),)
            yield SlurmStep(f"priority {values[k]}", other, None, (), f"{why}.", made)


def band(model: SlurmModel, state: SlurmState) -> tuple[int, int] | None:
    """Return the lowest and the highest priority that ronda gives; None if it gives none.

    They are among those that Slurm gave to the jobs that wait now, so that these jobs as a whole
    do not move up or down; further apart if they are too few for all tiers.
    """
    own = [
        round(memory.priority or job.rank)
        for job in model.found.jobs
        if job.rank and not job.on and model.terms[job.id].rank
        for memory in [state.of(job)]
    ]
    if not own:
        return state.band
    low, high = min(own), max(*own, min(own) + 4 * TIERS)
    kept = state.band is not None and low <= state.band[0] and state.band[1] <= high
    return state.band if kept else (low, high)


def _start(
    model: SlurmModel, plan: Plan, job: str, given: Allocation, state: SlurmState
) -> SlurmStep:
    seen, own, memory = model.jobs[job], model.terms[job], state.of(model.jobs[job])
    now_s = model.found.now_s
    on, gpus = tuple(model.nodes[k] for k, _ in given.placement), given.option.computing
    why = f"{plan.policy} starts it on {_gpus(gpus)} of {', '.join(on)}."
    if not own.place:
        whose = "its place in the queue is set" if own.rank else "it is not in ronda's scope"
        return SlurmStep(
            "start", (job,), gpus, on, f"{why[:-1]}; {whose}, and Slurm starts it.", ()
        )
    if memory.chose(seen) and {*on} == {*seen.nodes} and now_s > memory.chosen_s + PATIENCE_S:
        # Something that Slurm does not show keeps it from there.
        why = f"Slurm has not started it on {', '.join(on)} for {PATIENCE_S:g} s: it may elsewhere."
        return SlurmStep("free", (job,), None, (), why, (ready(job, why, nodes=[]),))
    asked = round(seen.gpus)
    chosen = on if _may_choose(model, job, given, state) and {*on} != {*seen.nodes} else None
    command = ready(
        job,
        why,
        nodes=chosen,
        gres=None if gpus == asked else ":".join(("gpu", *seen.gpu_types, str(gpus))),
        limit_min=None if gpus == asked else _limit_min(model, job, asked, gpus),
        now=memory.delays(seen) and (seen.eligible_s or 0.0) > now_s,
    )
    commands = (command,) if len(command.words) > 2 else ()
    return SlurmStep("start", (job,), gpus, on, why, commands)


def _gpus(count: int) -> str:
    return f"{count} GPU" + "s" * (count != 1)


def _may_choose(model: SlurmModel, job: str, given: Allocation, state: SlurmState) -> bool:
    """Return whether the nodes of a job may be named.

    Slurm takes all nodes of a list, with a piece of the job on each. Where a plan has other shares,
    the job has its turn in the queue alone, and Slurm keeps room for it.
    """
    seen, memory = model.jobs[job], state.of(model.jobs[job])
    own = bool(seen.nodes) and not memory.chose(seen)
    own |= not memory.chose(seen) and model.found.now_s < memory.chosen_s + PATIENCE_S  # given up
    shares = {gpus for _, gpus in given.placement}
    pieces = len(given.placement) == seen.count and (len(shares) == 1 or seen.exclusive)
    return not own and (seen.count == 1 or seen.own_nodes) and pieces


def _limit_min(model: SlurmModel, job: str, asked: int, gpus: int) -> int | None:
    """Return the time limit, in minutes, in which a job does as much on another number of GPUs."""
    speeds, limit_s = model.terms[job].speeds, model.jobs[job].limit_s
    if limit_s is None:
        return None
    return ceil(limit_s * speeds[asked] / speeds[gpus] / 60 - 1e-9)


def _waiting(
    model: SlurmModel,
    plan: Plan,
    starts: Collection[str],
    waits: Collection[str],
    scope: Scope,
    state: SlurmState,
) -> Iterator[SlurmStep]:
    """Yield steps about jobs that go on waiting: those that must, and those that no longer must."""
    now_s = model.found.now_s
    for job, own in model.terms.items():
        seen, memory = model.jobs[job], state.of(model.jobs[job])
        held = seen.blocked is not None and not memory.spoilt(seen)
        if not own.place or seen.on or job in starts or held:
            continue
        left_s = (seen.eligible_s or 0.0) - now_s if memory.delays(seen) else 0.0
        if job in waits and not (seen.eligible_s or 0.0) > now_s + scope.lease_s / 2:
            why = f"It fits now, but {plan.policy} keeps the GPUs for others."
            command = lease(job, scope.lease_s, why)
            yield SlurmStep("wait", (job,), None, (), why, (command,))
        back = memory.chose(seen)
        if back or (left_s > 0 and job not in waits and memory.requeued_s is None):
            why = f"{plan.policy} does not start it now: Slurm may, wherever there is room."
            made = ready(job, why, nodes=[] if back else None, now=left_s > 0 and job not in waits)
            yield SlurmStep("free", (job,), None, (), why, (made,))


def _stops(model: SlurmModel, plan: Plan) -> Iterator[SlurmStep]:
    for job, held in model.round.held.items():
        then = plan.allocations.get(job)
        if then is not None and held.goes_on(then):
            continue
        if then is None:
            what, gpus, why = "stop", 0, f"{plan.policy} gives its GPUs to others."
        else:
            before, gpus = held.option.computing, then.option.computing
            what = "move" if before == gpus else "resize"
            was, on = (
                ", ".join(model.nodes[k] for k, _ in each.placement) for each in (held, then)
            )
            why = f"{plan.policy} gives it {_gpus(gpus)} of {on} in place of {before} of {was}."
        yield SlurmStep(what, (job,), gpus, (), why, (requeue(job, why),))


def _power(model: SlurmModel, plan: Plan, scope: Scope) -> Iterator[SlurmStep]:
    """Yield steps that power nodes down, if nothing is on them, or up."""
    if plan.asleep is None or not scope.power:
        return
    used = {k for job in plan.allocations.values() for k, _ in job.placement}
    used |= {k for job in model.round.held.values() for k, _ in job.placement}
    busy = {name for job in model.found.jobs for name in job.on}
    nodes = {node.name: node for node in scope.powered(model.found)}
    up = sum(node.power == "on" for node in nodes.values())
    for k, name in enumerate(model.nodes):
        node = nodes.get(name)
        if node is None:
            continue
        if k in plan.asleep and node.power == "on" and k not in used and name not in busy:
            if up <= scope.awake:
                continue
            up -= 1
            why = f"{plan.policy} needs fewer nodes."
            yield SlurmStep(
                "power down", (name,), None, (), why, (power(name, on=False, reason=why),)
            )
        elif k not in plan.asleep and node.power == "down":
            why = f"{plan.policy} needs more nodes."
            yield SlurmStep("power up", (name,), None, (), why, (power(name, on=True, reason=why),))
