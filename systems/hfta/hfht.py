"""HFHT's rule among other jobs: full arrays start in order of submission and run to their end.

HFTA's tuner (Wang et al., MLSys 2021, ``hfta/hfht``) splits the trials of a class into arrays that
fill a GPU and one array with the rest, and runs them one after another.
"""

from dataclasses import dataclass
from typing import ClassVar

from ronda.formulations.sleeping import rest
from ronda.instances.clock import Deadline, checkpoint
from ronda.instances.job import JobState
from ronda.instances.models.sharing import first_fit
from ronda.instances.plan import Plan
from ronda.instances.profile import Mode
from ronda.instances.round import Round
from ronda.solvers.as_one import AsOne
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.groups import Home, groups, longest, together
from ronda.solvers.greedy.policy import TimelyPolicy
from ronda.solvers.greedy.room import Room

FUSED: Mode = "fused"


@dataclass(frozen=True)
class Hfht(TimelyPolicy):
    """Start jobs in order of submission, and fuse jobs of a class into the widest arrays that fit.

    An array starts when its first job is at the head of the queue, with the jobs of its class that
    have been submitted by then. No running job is stopped, and no job joins a running array.
    """

    name: ClassVar[str] = "hfht"
    capabilities: ClassVar[Capability] = Capability.SLEEPS | Capability.ARRAYS

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Start the jobs that fit, oldest first."""
        held, seen = dict(round.held), AsOne(round).round
        room = Room(seen, seen.running)
        taken = {a.array for a in held.values() if a.array is not None}
        blocked = set[str]()
        for chunk, home in _queue(round):
            checkpoint()
            first = chunk[0]
            if first.job.partition in blocked:
                continue
            given = room.fit(longest(round, chunk, home, FUSED))
            if given is None:
                blocked.add(first.job.partition)
                continue
            held |= together(chunk, home, given, taken, FUSED)
        return rest(round, Plan(policy=self.name, allocations=held), initial)


def _queue(round: Round) -> list[tuple[tuple[JobState, ...], Home | None]]:
    """Return the waiting jobs in order, with jobs of a class in arrays and the home of each array.

    Arrays are as wide as fits on a GPU of the first pool in which the jobs may be fused.
    """
    found: list[tuple[tuple[JobState, ...], Home | None]] = []
    fusible = set[str]()
    for group in groups(round):
        home = next((each for each in group.homes.values() if each.most(FUSED) > 1), None)
        if home is not None:
            fusible.update(state.job.id for state in group.waiting)
            chunks = first_fit(group.waiting, home.most(FUSED))
            found += [(tuple(chunk), home) for chunk in chunks]
    found += [((state,), None) for state in round.waiting if state.job.id not in fusible]
    place = {state.job.id: k for k, state in enumerate(round.waiting)}
    return sorted(found, key=lambda pair: place[pair[0][0].job.id])
