"""A run of the driver that is steered: from some moments on a policy sees jobs as told."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import msgspec
import numpy as np
from msgspec.structs import replace

from ronda.horizon.driver import Driver
from ronda.horizon.journal import Decision, Journal
from ronda.horizon.state import ClusterState
from ronda.instances.base import Floats
from ronda.instances.clock import Deadline
from ronda.instances.errors import RondaError
from ronda.instances.instance import Instance, Knowledge
from ronda.instances.job import JobState
from ronda.instances.outcome.metrics import job_figures
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.schedule import Schedule
from ronda.solvers.contract import Policy
from ronda.solvers.greedy.policy import TimelyPolicy
from ronda.solvers.registry import policy

MARGIN = 0.005
"""A run is given up when it is behind by this share of the time that all jobs spend."""


class Nudge(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """A change of what a policy does, from `from_s` on and for good.

    The weight of `job` is multiplied by `factor`. An elastic job gets at most `most_gpus`, if it
    can run on these (None: as many as before). While it waits, it is held back until the first
    decision from `until_s` on. If `policy` names one, that policy decides from then on.
    """

    from_s: float
    job: str = ""
    factor: float = 1.0
    most_gpus: int | None = None
    until_s: float = 0.0
    policy: str = ""


class Steered(TimelyPolicy):
    """A policy of ronda's that decides rounds in which nudges have changed the jobs.

    Only what it sees is changed: driver and checker know the jobs as they are.
    """

    name = "steered"

    def __init__(self, of: str, nudges: Sequence[Nudge]) -> None:
        self.of, self.nudges = of, sorted(nudges, key=lambda nudge: nudge.from_s)
        self.capabilities = policy(of).capabilities  # type: ignore[misc]
        self._makers = {name: policy(name) for name in {of, *(n.policy for n in nudges)} if name}
        self._known: dict[str, tuple[JobState, list[Nudge], JobState]] = {}

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Decide a round by the policy of the hour, with the jobs as nudges change them."""
        begun: dict[str, list[Nudge]] = {}
        for nudge in self.nudges:
            if nudge.from_s <= round.now_s:
                begun.setdefault(nudge.job, []).append(nudge)
        held = {job for job, own in begun.items() if any(n.until_s > round.now_s for n in own)}
        made = cast(TimelyPolicy, self._makers[begun[""][-1].policy if "" in begun else self.of])
        waiting = (state for state in round.waiting if state.job.id not in held)
        seen = replace(
            round,
            waiting=tuple(self._nudged(state, begun.get(state.job.id, [])) for state in waiting),
            running=tuple(self._nudged(s, begun.get(s.job.id, [])) for s in round.running),
        )
        return made.decide(seen, deadline=deadline, seed=seed, initial=initial)

    def _nudged(self, state: JobState, own: list[Nudge]) -> JobState:
        """Return a job's state under its nudges, the same object as long as nothing changes."""
        if not own:
            return state
        before, since, known = self._known.get(state.job.id, (None, own, state))
        if before is not state or since != own:
            job, told = state.job, [nudge.most_gpus for nudge in own if nudge.most_gpus]
            least, greatest = job.min_gpus or job.gpus, job.max_gpus or job.gpus
            if told and least <= (most := told[-1]) < greatest:
                job = replace(job, max_gpus=most, gpus=min(job.gpus, most))
            weight = job.weight * float(np.prod([nudge.factor for nudge in own]))
            known = replace(state, job=replace(job, weight=weight))
            self._known[job.id] = state, own, known
        return known


@dataclass(frozen=True)
class Run:
    """A whole run, and the decisions from any of which it can go another way."""

    policy: str
    knowledge: Knowledge
    nudges: tuple[Nudge, ...]
    schedule: Schedule
    jct_s: Floats  # of every job
    decisions: Sequence[Decision]

    @property
    def mean_jct_s(self) -> float:
        """The mean JCT in seconds; infinite if not every job was completed."""
        whole = all(outcome.state == "completed" for outcome in self.schedule.jobs)
        return float(self.jct_s.mean()) if whole else float("inf")


class _Kept(Journal):
    """The decisions of a run in memory; the first ones are those of another run."""

    def __init__(self, before: Sequence[Decision]) -> None:
        self.before, self.decisions = before, [*before]

    def replay(self) -> Iterator[Decision]:
        return iter(self.before)

    def append(self, decision: Decision) -> None:
        self.decisions.append(decision)


def drive(
    instance: Instance,
    policy: str,
    knowledge: Knowledge,
    nudges: Sequence[Nudge] = (),
    leader: Run | None = None,
) -> Run | None:
    """Run a policy under nudges; None if some job never ends, or the run is far behind a leader.

    With a leader, the nudges are further ones to its own. What it decided before the first of them
    is not decided again: a run from the beginning would do the same.
    """
    kept = _Kept(())
    if leader is not None:
        times = [decision.record.now_s for decision in leader.decisions]
        first_s = min(nudge.from_s for nudge in nudges) - instance.faults.decision_s
        kept = _Kept(leader.decisions[: bisect_left(times, first_s)])
        nudges = (*leader.nudges, *nudges)
    steered = cast(Policy, Steered(policy, nudges))
    try:
        driver = Driver(instance, steered, 0, None, instance.cadence, knowledge)
        watch = None if leader is None else _Watch(leader, driver.state)
        schedule = driver.drive(kept, watch)
    except RondaError:
        return None
    jct_s = job_figures(schedule).jct_s
    return Run(policy, knowledge, tuple(nudges), schedule, jct_s, kept.decisions)


class _Watch:
    """Stops a run whose jobs have spent too much more time than a leader's jobs until then."""

    def __init__(self, leader: Run, state: ClusterState) -> None:
        self._ends = np.sort(np.array([o.end_s for o in leader.schedule.jobs], dtype=float))
        self._sums = np.concatenate([[0.0], self._ends.cumsum()])
        self._most_s = MARGIN * float(leader.jct_s.sum())
        self._state = state

    def __call__(self, _completed: int, _jobs: int, now_s: float) -> None:
        """Compare the time for which completed jobs have been gone."""
        own = [now_s - (o.end_s or now_s) for o in self._state.outcomes if o is not None]
        gone = int(np.searchsorted(self._ends, now_s))
        if gone * now_s - self._sums[gone] - sum(own) > self._most_s:
            raise RondaError("far behind the best run")
