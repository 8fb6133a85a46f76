"""The part of a round that one genome of ONES decides: free GPUs of a pool, and jobs for them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ronda.formulations.clock import checkpoint
from ronda.formulations.ones.genome import IDLE
from ronda.formulations.ones.limits import REQUESTS
from ronda.formulations.options.application import Application, application_of, applications
from ronda.formulations.placement.nodes import Placement
from ronda.instances.arrays import Ints
from ronda.instances.job import Allocation, JobState, Option
from ronda.instances.round import Round

ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Ways:
    """How a live job may run as an application in a pool."""

    state: JobState
    of: Application

    def batch(self, gpus: int) -> float:
        """Return the global batch on a number of GPUs.

        The base batch on each, up to the profile's largest batch, where the learning rate reaches
        its maximum. A job whose noise is not known keeps its own batch.
        """
        profile, job = self.of.profile, self.state.job
        if self.state.noise is None or not profile.batches:
            return self.of.batch(job)
        return _batch(profile.batches, gpus * profile.base_batch)

    def samples_per_s(self, gpus: int, nodes: int, batch: float | None = None) -> float:
        """Return the samples per second on a number of GPUs and nodes."""
        return self.of.measured(gpus, nodes, batch or self.batch(gpus))[0]

    def speed(self, held: Allocation) -> float:
        """Return the samples per second on the GPUs and nodes of an allocation, at its batch."""
        return self.samples_per_s(held.option.gpus, len(held.placement), held.option.batch)

    def worth(self, batch: float) -> float:
        """Return the work that a sample is in such a batch (its statistical efficiency)."""
        return self.of.worth(self.state.noise, batch)

    def sizes(self) -> Ints:
        """Return (pool's GPUs + 1,) the largest possible size up to each number of GPUs; 0: none.

        A job may have any number of GPUs between its least and most, and at most four times those
        that its user asked for, if its profile knows a speed there.
        """
        job = self.state.job
        low, high = self.of.limits(job)
        scaled = self.state.noise is not None and bool(self.of.profile.batches)
        batch = None if scaled else self.of.batch(job)
        return _sizes(self.of, low, max(low, min(high, REQUESTS * job.gpus)), batch)

    def option(self, gpus: int, nodes: int, racks: int) -> Option | None:
        """Return the option on GPUs of so many nodes; None if that is not worth a start."""
        batch = self.batch(gpus)
        if not self.of.worth_starting(gpus, nodes, racks, batch):
            return None
        option = self.of.option(gpus, batch, self.state.noise)
        return option and self.of.spread(option, nodes, racks)


def _batch(batches: tuple[float, ...], wanted: float) -> float:
    """Return the largest of the batches up to one, or the least of all."""
    return max((b for b in batches if b <= wanted * (1 + ROUNDING)), default=min(batches))


@lru_cache(maxsize=128)
def _sizes(of: Application, low: int, high: int, batch: float | None) -> Ints:
    """Return `Ways.sizes`; a `batch` of None grows with the GPUs."""
    base, batches = of.profile.base_batch, of.profile.batches
    sizes = np.zeros(of.shape.pool.gpus + 1, dtype=np.int64)
    for gpus in range(low, min(high, of.shape.pool.gpus) + 1):
        size = _batch(batches, gpus * base) if batch is None else batch
        if of.measured(gpus, of.shape.nodes(gpus), size)[0] > 0:
            sizes[gpus] = gpus
    return np.maximum.accumulate(sizes)


@dataclass(frozen=True, slots=True)
class Board:
    """GPUs and jobs of the pool of this `index`.

    `node` (C,) is the node of each GPU, ascending, without GPUs of jobs that may not be preempted,
    and without sleeping nodes that no job waits for. `states` and `ways` (J,) are the jobs that may
    be decided on, in order of submission. `deployed` (C,) is the genome that runs.
    """

    index: int
    node: Ints
    states: tuple[JobState, ...]
    ways: tuple[Ways, ...]
    deployed: Ints

    def placements(self, genome: Ints) -> dict[int, Placement]:
        """Return by job number, in order of the genome, how many GPUs it has on which nodes."""
        found: dict[int, dict[int, int]] = {}
        for job, node in zip(genome.tolist(), self.node.tolist(), strict=True):
            if job != IDLE:
                nodes = found.setdefault(job, {})
                nodes[node] = nodes.get(node, 0) + 1
        return {job: tuple(nodes.items()) for job, nodes in found.items()}


def held(state: JobState) -> Placement:
    """Return where a job runs, by node; empty if it waits."""
    return () if state.allocation is None else tuple(sorted(state.allocation.placement))


def boards(round: Round, last: dict[str, list[list[str]]]) -> Iterator[Board]:
    """Yield the board of every pool that any job may use.

    A waiting job belongs to the first pool that suits it; ONES knows equal GPUs only. `last` has,
    by pool (text), the job ids on the GPUs of the last tick's deployed genome, node by node: in
    which order jobs lie within a node, as long as the nodes still agree.
    """
    topology = round.cluster.topology
    free = topology.node_gpus.copy()
    free[list(round.asleep)] = 0
    members: dict[int, list[tuple[JobState, Ways]]] = {}
    for state in sorted(round.jobs, key=lambda s: (s.job.submit_s, s.job.id)):
        checkpoint()
        allocation = state.allocation
        if allocation is not None and not state.job.preemptible:
            for node, gpus in allocation.placement:
                free[node] -= gpus
            continue
        ways = _ways(round, state)
        if ways is not None:
            members.setdefault(ways.of.shape.index, []).append((state, ways))
    for index, jobs in sorted(members.items()):
        nodes = np.flatnonzero(topology.node_pool == index)
        _wake(round, nodes, free, jobs)
        slots: Ints = np.repeat(nodes, free[nodes])
        if not len(slots):
            continue
        states = tuple(state for state, _ in jobs)
        deployed = _deployed(slots, states, last.get(str(index), []))
        yield Board(index, slots, states, tuple(ways for _, ways in jobs), deployed)


def _wake(round: Round, nodes: Ints, free: Ints, jobs: Sequence[tuple[JobState, Ways]]) -> None:
    """Let jobs of a pool have sleeping ones of its `nodes` if too few GPUs are `free` (N,)."""
    asked = [s.job.gpus if s.allocation is None else s.allocation.option.gpus for s, _ in jobs]
    left = sum(asked) - int(free[nodes].sum())
    for node in sorted(set(round.asleep).intersection(nodes.tolist())):
        if left <= 0:
            break
        free[node] = round.cluster.topology.node_gpus[node]
        left -= int(free[node])


def _ways(round: Round, state: JobState) -> Ways | None:
    """Return how a job may run in its pool; None if no pool suits it."""
    if state.allocation is not None:
        of = application_of(round, state, state.allocation.option.pool)
        return None if of is None else Ways(state, of)
    for of in applications(round, state.job):
        ways = Ways(state, of)
        if ways.sizes()[-1]:
            return ways
    return None


def _deployed(node: Ints, states: tuple[JobState, ...], last: list[list[str]]) -> Ints:
    """Return the genome that runs: in the order of the last one wherever a node still agrees."""
    number = {state.job.id: j for j, state in enumerate(states)}
    holds: dict[int, dict[int, int]] = {}
    for j, state in enumerate(states):
        for place, gpus in held(state):
            holds.setdefault(place, {})[j] = gpus
    genome = np.full(len(node), IDLE)
    places, begins = np.unique(node, return_index=True)
    before = {int(place): jobs for place, *jobs in last}
    for place, begin in zip(places.tolist(), begins.tolist(), strict=True):
        here = holds.get(place, {})
        if not here:
            continue
        kept = [number.get(job_id, IDLE) for job_id in before.get(place, [])]
        counts = {j: kept.count(j) for j in kept if j != IDLE}
        end = begin + int((node == place).sum())
        if counts == here and len(kept) == end - begin:
            genome[begin:end] = kept
        else:
            packed = [j for j, gpus in here.items() for _ in range(gpus)]
            genome[begin : begin + len(packed)] = packed
    return genome


def remember(board: Board, genome: Ints) -> list[list[str]]:
    """Return a genome as lists of a node (text) and the ids of the jobs on its GPUs, "" if idle."""
    found: dict[int, list[str]] = {}
    for job, node in zip(genome.tolist(), board.node.tolist(), strict=True):
        name = "" if job == IDLE else board.states[job].job.id
        found.setdefault(node, [str(node)]).append(name)
    return list(found.values())


def allocation(state: JobState, ways: Ways, placement: Placement, racks: int) -> Allocation | None:
    """Return what a job runs on at a placement: the very same object if it is there already.

    None where it is not worth a start on these nodes, which are in so many `racks`.
    """
    gpus = sum(count for _, count in placement)
    if held(state) == tuple(sorted(placement)):
        return state.allocation
    option = ways.option(gpus, len(placement), racks)
    return None if option is None else Allocation(option=option, placement=placement)
