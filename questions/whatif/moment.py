"""A round from an instance: the state of the cluster at some time of a run."""

from contextlib import suppress
from typing import NamedTuple

from ronda.horizon.driver import Progress, run
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.instance import Instance
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Policy


class Moment(NamedTuple):
    """A decision of a run: the round and the previous plan."""

    round: Round
    before: Plan | None


class _ReachedError(Exception):
    """The signal that a run has reached the requested time."""


class _Watched:
    """A policy that records the last and the busiest round before it decides."""

    busiest: Moment | None = None
    last: Moment | None = None

    def __init__(self, policy: Policy) -> None:
        self.policy, self.name, self.capabilities = policy, policy.name, policy.capabilities

    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        self.last = Moment(round, initial)
        if self.busiest is None or len(round.jobs) > len(self.busiest.round.jobs):
            self.busiest = self.last
        return self.policy.plan(round, deadline=deadline, seed=seed, initial=initial)


def moment(
    instance: Instance,
    policy: Policy,
    *,
    at_s: float | None = None,
    seed: int = 0,
    time_limit_s: float | None = 10.0,
    progress: Progress | None = None,
) -> Moment:
    """Return a run's first decision at or after `at_s`; by default the one with most live jobs.

    Raise InputError if the run makes no decision then.
    """
    watched = _Watched(policy)

    def look(completed: int, jobs: int, now_s: float) -> None:
        if progress is not None:
            progress(completed, jobs, now_s)
        if at_s is not None and now_s >= at_s:
            raise _ReachedError

    with suppress(_ReachedError):
        run(instance, watched, seed=seed, time_limit_s=time_limit_s, progress=look)
    found = watched.busiest if at_s is None else watched.last
    if found is None or (at_s is not None and found.round.now_s < at_s):
        last_s = 0.0 if watched.last is None else watched.last.round.now_s
        expected = f"a time of the run, up to the last decision at {last_s:,.0f} s"
        raise InputError("--at", f"{at_s:g}" if at_s is not None else "no decision", expected)
    return found
