"""The jobs that run under a decision in the making, the room that they leave, and their use."""

from collections import Counter
from collections.abc import Collection, Iterable

from ronda.formulations.site.disruption import Purse
from ronda.formulations.tenants.amounts import held
from ronda.instances.job import Allocation, Job, JobState, Option
from ronda.instances.round import Round
from ronda.instances.site import GPUS
from ronda.solvers.greedy.room import Room


class Floor:
    """The jobs that go on and those that start, while a rule starts and stops jobs one by one.

    Parameters
    ----------
    until_end
        As for `Room`: whether the energy budget must cover jobs until they end.

    Attributes
    ----------
    runs
        The jobs that run under the decision, with their allocations.
    room
        The room beside them.
    """

    def __init__(self, round: Round, *, until_end: bool = False) -> None:
        self.round, self._until_end, self._purse = round, until_end, Purse(round)
        self.runs = {s.job.id: (s, round.held[s.job.id]) for s in round.running}
        self.room = self.room_without(())
        self._ranks = {each.name: each.rank for each in round.site.classes}

    def rank(self, state: JobState) -> int:
        """Return the rank of a job's priority class, 0 without one."""
        return self._ranks.get(state.job.priority or "", 0)

    def room_without(self, stopped: Collection[str]) -> Room:
        """Return the room beside the jobs if those with the given ids stopped."""
        left = [pair for job, pair in self.runs.items() if job not in stopped]
        going = [state for state, given in left if given is state.allocation]
        room = Room(self.round, going, until_end=self._until_end)
        for state, given in left:
            if given is not state.allocation:
                room.take(state, given)
        return room

    def way(
        self, state: JobState, option: Option, stopped: Collection[JobState] = ()
    ) -> Allocation | None:
        """Return the allocation that a job would get if others stopped, or None without room.

        Nobody may stop beyond the disruption budget.
        """
        gone = [each for each in self.round.running if not self.goes_on(each)]
        if stopped and self._purse and not self._purse.allows([*gone, *stopped]):
            return None
        options = [each.allocation.option for each in stopped if each.allocation is not None]
        freed = sum(each.gpus for each in options if each.pool == option.pool)
        if self.room.nodes(option.pool).total + freed < option.gpus:
            return None
        room = self.room_without({each.job.id for each in stopped}) if stopped else self.room
        return room.way(state, option)

    def take(self, state: JobState, given: Allocation) -> None:
        """Start a job with an allocation that is free."""
        self.room.take(state, given)
        self.runs[state.job.id] = state, given

    def stop(self, stopped: Iterable[JobState]) -> None:
        """Stop jobs, of which some may not run."""
        for state in stopped:
            self.runs.pop(state.job.id, None)
        self.room = self.room_without(())

    def goes_on(self, state: JobState) -> bool:
        """Return whether a job goes on as it runs."""
        return state.allocation is not None and (
            self.runs.get(state.job.id, (state, None))[1] is state.allocation
        )

    def may_stop(self, state: JobState) -> bool:
        """Return whether a job goes on as it runs and may be stopped."""
        return state.job.preemptible and self.goes_on(state)

    def stopped(self) -> list[JobState]:
        """Return the jobs that run now, but not under the decision."""
        return [state for state in self.round.running if state.job.id not in self.runs]

    def go_on(self, state: JobState) -> bool:
        """Let a stopped job go on if its GPUs are still free; return whether they are."""
        given = self.round.held[state.job.id]
        free = self.room.keep(state, given)
        if free:
            self.runs[state.job.id] = state, given
        return free

    def allocations(self) -> dict[str, Allocation]:
        """Return the allocations of all jobs that run under the decision."""
        return {job: given for job, (_, given) in self.runs.items()}


def amounts(round: Round, job: Job, option: Option) -> dict[str, float]:
    """Return what a job holds with an option: GPUs, GPUs of the type, and resources of hosts."""
    pool = round.cluster.topology.pools[option.pool]
    return {of: held(pool, job, option, of) for of in (GPUS, pool.gpu_type.name, *job.needs)}


def capacity(round: Round, partition: str | None = None) -> dict[str, float]:
    """Return what the nodes in service have: GPUs, GPUs by type, and resources of hosts.

    With a partition, only its nodes count.
    """
    cluster, found = round.cluster, Counter[str]()
    topology = cluster.topology
    for node, gpus in zip(topology.node_group.tolist(), topology.node_gpus.tolist(), strict=True):
        of = cluster.node_groups[node]
        if gpus and partition in (None, of.partition):
            found.update({GPUS: gpus, of.gpu_type: gpus})
            found.update(of.has)
    found.subtract({name: amount for _, name, amount in cluster.taken})
    return dict(found)
