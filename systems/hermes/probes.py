"""Fused probes: new trials of a fusion class share GPUs as arrays, and the worse trials leave.

Whenever all trials of an array have reported, the worse half leaves. This costs the remaining
trials nothing; they run faster, and the last one has the GPU to itself. An array counts as one
trial in the order and goes before all other trials.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf
from typing import ClassVar

import msgspec

from ronda.instances.job import Allocation, JobState
from ronda.instances.models.sharing import balanced, may_stop, narrowed, whole
from ronda.instances.plan import Plan, PlanMemory
from ronda.instances.round import Round
from ronda.solvers.greedy.groups import Home, groups, longest, together
from ronda.systems.hermes.trials import Trial

Chunk = tuple[Sequence[JobState], Home]
"""The trials that share a GPU, and the mode and speed in which they do."""


class ArrayReports(PlanMemory, frozen=True):
    """The fewest reports of any trial of each array, keyed by the array's name."""

    key: ClassVar[str] = "array_reports"

    reports: dict[str, int] = {}


@dataclass(frozen=True)
class Probes:
    """A round and an order of trials in which one job stands for each array.

    Attributes
    ----------
    round, order
        The round and the order as a policy without arrays sees them.
    going
        Allocations with which the trials of a running array go on, keyed by the job of the array.
    new
        Trials that are to begin as an array, keyed by the job of the array.
    reports
        Fewest reports of any trial of each running array, keyed by array.
    """

    round: Round
    order: tuple[Trial, ...]
    going: Mapping[str, Mapping[str, Allocation]]
    new: Mapping[str, Chunk]
    reports: Mapping[str, int]

    def told(self, plan: Plan, others: Set[str]) -> Plan:
        """Return a plan for single jobs as a plan for the trials of their arrays.

        The names in `others` are taken by other arrays.
        """
        if not self.going and not self.new:
            return plan
        found: dict[str, Allocation] = {}
        given = plan.allocations
        taken = {a.array for i in self.going.keys() & given for a in self.going[i].values()}
        names = {name for name in taken if name is not None} | others
        for job_id, allocation in given.items():
            if job_id in self.going:
                found |= self.going[job_id]
            elif job_id in self.new:
                found |= together(*self.new[job_id], allocation, names)
            else:
                found[job_id] = allocation
        memory = plan.memory | ArrayReports(dict(self.reports)).noted()
        return msgspec.structs.replace(plan, allocations=found, memory=memory)


def parted(round: Round, order: Sequence[Trial], initial: Plan | None) -> Probes:
    """Return an order with arrays as single trials, without the trials that leave their arrays.

    Trials outside the order leave, and so does the worse half of an array once all its trials have
    reported again. The previous plan, `initial`, holds the earlier reports.
    """
    place = {trial.name: k for k, trial in enumerate(order)}
    before = ArrayReports.recall(initial).reports
    shown: dict[str, JobState | None] = {}
    going: dict[str, Mapping[str, Allocation]] = {}
    reports: dict[str, int] = {}
    for name, states in _arrays(round, place).items():
        reports[name] = min(0 if s.log is None else s.log.epochs for s in states)
        stay = states
        if reports[name] > before.get(name, 0) and may_stop(states):
            stay = states[: -(-len(states) // 2)]
        shown |= {s.job.id: _having(round, s, None) for s in states}
        shown |= dict.fromkeys(s.job.id for s in stay)
        held = {s.job.id: s.allocation for s in stay if s.allocation is not None}
        held |= narrowed(held, {s.job.id: s.job for s in stay}, round.profiles, round.cluster)
        job = shown[stay[0].job.id] = _as_one(round, stay, held)
        going[job.job.id] = held
    if not going:
        return Probes(round, tuple(order), {}, {}, {})
    jobs = [s for s in (shown.get(s.job.id, s) for s in round.jobs) if s is not None]
    seen = msgspec.structs.replace(
        round,
        running=tuple(s for s in jobs if s.allocation is not None),
        waiting=tuple(s for s in jobs if s.allocation is None),
    )
    now = sorted(_showing(order, shown), key=lambda trial: len(going.get(trial.name, ())) < 2)
    return Probes(seen, tuple(now), going, {}, reports)


def _arrays(round: Round, place: Mapping[str, int]) -> dict[str, list[JobState]]:
    """Return the trials of each running array that may go on, the best first."""
    found: dict[str, list[JobState]] = {}
    for state in round.running:
        assert state.allocation is not None
        name, goes = state.allocation.array, state.job.id in place or not state.job.preemptible
        if name is not None and goes:
            found.setdefault(name, []).append(state)
    for states in found.values():
        states.sort(key=lambda state: place.get(state.job.id, inf))
    return found


def _showing(order: Iterable[Trial], shown: Mapping[str, JobState | None]) -> tuple[Trial, ...]:
    """Return the trials with their states in `shown`, without trials that have None there."""
    pairs = ((trial, shown.get(trial.name, trial.state)) for trial in order)
    return tuple(replace(trial, state=state) for trial, state in pairs if state is not None)


def _as_one(round: Round, states: Sequence[JobState], held: Mapping[str, Allocation]) -> JobState:
    """Return the job that stands for an array: the one expected to end last, alone on one GPU."""
    last = max(states, key=lambda state: state.remaining_at(round.now_s) or 0.0)
    job_id, able = last.job.id, may_stop(states)
    alone = whole({job_id: held[job_id], **held})[job_id]
    one = {"gpus": 1, "min_gpus": None, "max_gpus": None}
    job = msgspec.structs.replace(last.job, preemptible=able, **one)
    return msgspec.structs.replace(_having(round, last, alone), job=job)


def _having(round: Round, state: JobState, allocation: Allocation | None) -> JobState:
    """Return a trial with another allocation from now on, as if the change took no time."""
    done, since_s = state.done_at(round.now_s), max(round.now_s, state.since_s)
    return msgspec.structs.replace(state, done=done, since_s=since_s, allocation=allocation)


def fused(probes: Probes, plan: Plan) -> Probes:
    """Return an order in which new trials share GPUs if the plan would make some of them wait.

    The new trials of a fusion class share the GPUs on which the plan starts some of them.
    """
    fresh = (t for t in probes.order if not t.runs and not t.losses)
    jobs = (t.state.job for t in fresh)
    waiting = {job.id for job in jobs if job.preemptible and job.fusible is not None}
    if waiting <= plan.allocations.keys():
        return probes
    place = {trial.name: k for k, trial in enumerate(probes.order)}
    new: dict[str, Chunk] = {}
    shown: dict[str, JobState | None] = {}
    for group in groups(probes.round):
        states = [s for s in group.waiting if s.job.id in waiting]
        states.sort(key=lambda state: place[state.job.id])
        starts = [plan.allocations[s.job.id] for s in states if s.job.id in plan.allocations]
        home = group.homes.get(starts[0].option.pool) if starts else None
        if home is None:
            continue
        for chunk in balanced(states, arrays(home, len(states), len(starts))):
            if len(chunk) > 1:
                shown |= dict.fromkeys(s.job.id for s in chunk)
                shown[chunk[0].job.id] = longest(probes.round, chunk, home)
                new[chunk[0].job.id] = chunk, home
    return replace(probes, order=_showing(probes.order, shown), new=new)


@lru_cache(maxsize=4096)
def arrays(home: Home, trials: int, gpus: int) -> int:
    """Return the number of equal arrays with which all trials have reported soonest.

    n trials in a arrays on g GPUs take ``⌈a / g⌉ T(⌈n / a⌉) / T(1)``. The largest of the best
    numbers is returned, so trials run one by one unless arrays are faster.
    """
    least = -(-trials // len(home.ways))

    def time(number: int) -> float:
        return -(-number // gpus) / home.ways[-(-trials // number) - 1][1]

    return min(range(trials, least - 1, -1), key=time)
