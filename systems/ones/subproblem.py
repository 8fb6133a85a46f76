"""The part of a round that one genome decides: the free GPUs of a pool, and jobs for them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from ronda.formulations.options.application import Application, application_of, applications
from ronda.formulations.placement.nodes import Placement
from ronda.instances.base import Ints
from ronda.instances.clock import checkpoint
from ronda.instances.job import Allocation, JobState
from ronda.instances.round import Round
from ronda.instances.violation import ROUNDING
from ronda.systems.ones.genome import IDLE


@dataclass(frozen=True)
class OnesJob:
    """A live job with its application in its pool."""

    state: JobState
    of: Application

    @property
    def id(self) -> str:
        """Return the id of the job."""
        return self.state.job.id

    @property
    def gpus(self) -> int:
        """Return the number of GPUs of the job, 0 if it waits."""
        return 0 if self.state.allocation is None else self.state.allocation.option.gpus

    @property
    def held(self) -> Placement:
        """Return the placement of the job; empty if it waits."""
        return () if self.state.allocation is None else _sorted(self.state.allocation.placement)

    @property
    def _scales(self) -> bool:
        """Whether the batch may grow with the GPUs; it may not if the gradient noise is unknown."""
        return self.state.noise is not None and bool(self.of.profile.batches)

    def batch(self, gpus: int) -> float:
        """Return the global batch on a number of GPUs.

        It is the base batch on each GPU, up to the largest batch of the profile, at which the
        learning rate reaches its maximum.
        """
        return _batch(self.of, gpus) if self._scales else self.of.batch(self.state.job)

    def samples_per_s(self, gpus: int) -> float:
        """Return the samples per second on a number of GPUs on as few nodes as possible."""
        return self.of.measured(gpus, self.of.shape.nodes(gpus), self.batch(gpus))[0]

    def speed(self, held: Allocation) -> float:
        """Return the samples per second on the GPUs and nodes of an allocation, at its batch."""
        option = held.option
        return self.of.measured(option.gpus, len(held.placement), option.batch)[0]

    def worth(self, batch: float) -> float:
        """Return the work of a sample in a given batch (its statistical efficiency)."""
        return self.of.worth(self.state.noise, batch)

    @cached_property
    def sizes(self) -> Ints:
        """Return the largest possible size up to each number of GPUs, 0 for none, (GPUs + 1,).

        A job may have any number of GPUs between its fewest and most, and at most four times the
        number that its user asked for, if its profile has a speed there.
        """
        job = self.state.job
        low, high = self.of.limits(job)
        batch = None if self._scales else self.of.batch(job)
        return _sizes(self.of, low, max(low, min(high, 4 * job.gpus)), batch)

    @cached_property
    def epoch(self) -> float:
        """Return D, the samples of an epoch, or an assumed number if the job does not give it."""
        job = self.state.job
        if job.epoch is not None:
            return job.epoch
        if job.estimate is not None:
            return job.estimate.work / 30  # the mean number of epochs in the workload
        size = int(self.sizes[-1])
        return 60.0 * (self.samples_per_s(size) if size else 1.0)

    def on(self, round: Round, placement: Placement) -> Allocation | None:
        """Return the job's allocation at a placement; the same object if it already runs there.

        The result is None if the job is not worth a start on these nodes.
        """
        if self.held == _sorted(placement):
            return self.state.allocation
        gpus, nodes = sum(count for _, count in placement), len(placement)
        racks = round.cluster.topology.racks_of(node for node, _ in placement)
        batch = self.batch(gpus)
        if not self.of.worth_starting(gpus, nodes, racks, batch):
            return None
        option = self.of.option(gpus, batch, self.state.noise)
        if option is not None:
            option = self.of.spread(option, nodes, racks)
        return None if option is None else Allocation(option=option, placement=placement)


def _sorted(placement: Placement) -> Placement:
    return tuple(sorted(placement))


def _batch(of: Application, gpus: int) -> float:
    batches, wanted = of.profile.batches, gpus * of.profile.base_batch
    return max((b for b in batches if b <= wanted * (1 + ROUNDING)), default=min(batches))


@lru_cache(maxsize=128)
def _sizes(of: Application, low: int, high: int, batch: float | None) -> Ints:
    """Return `OnesJob.sizes`; with `batch` None the batch grows with the GPUs."""
    sizes = np.zeros(of.shape.pool.gpus + 1, dtype=np.int64)
    for gpus in range(low, min(high, of.shape.pool.gpus) + 1):
        size = _batch(of, gpus) if batch is None else batch
        if of.measured(gpus, of.shape.nodes(gpus), size)[0] > 0:
            sizes[gpus] = gpus
    return np.maximum.accumulate(sizes)


@dataclass(frozen=True, slots=True)
class Subproblem:
    """The GPUs and jobs of the pool with the given `index`.

    `node` (C,) is the node of each GPU, ascending. It excludes GPUs of jobs that may not be
    preempted and sleeping nodes that no job waits for. `jobs` (J,) are the jobs to decide on, in
    order of submission. `deployed` (C,) is the running genome.
    """

    index: int
    node: Ints
    jobs: tuple[OnesJob, ...]
    deployed: Ints

    def placements(self, genome: Ints) -> dict[int, Placement]:
        """Return the placement of each job, keyed by job number in the order of the genome."""
        found: dict[int, dict[int, int]] = {}
        for job, node in zip(genome.tolist(), self.node.tolist(), strict=True):
            if job != IDLE:
                nodes = found.setdefault(job, {})
                nodes[node] = nodes.get(node, 0) + 1
        return {job: tuple(nodes.items()) for job, nodes in found.items()}

    def written(self, genome: Ints) -> list[list[str]]:
        """Return a genome as one list per node: the node (text) and the job ids on its GPUs."""
        found: dict[int, list[str]] = {}
        for job, node in zip(genome.tolist(), self.node.tolist(), strict=True):
            name = "" if job == IDLE else self.jobs[job].id
            found.setdefault(node, [str(node)]).append(name)
        return list(found.values())


def subproblems(round: Round, last: dict[int, list[list[str]]]) -> Iterator[Subproblem]:
    """Yield the subproblem of every pool that a job may use.

    A waiting job belongs to the first pool that suits it, because ONES requires equal GPUs. `last`
    has the last tick's deployed genome of each pool, as from `Subproblem.written`. It gives the
    order of jobs within each node whose jobs have not changed.
    """
    topology = round.cluster.topology
    free = topology.node_gpus.copy()
    free[list(round.asleep)] = 0
    members: dict[int, list[OnesJob]] = {}
    for state in sorted(round.jobs, key=lambda s: (s.job.submit_s, s.job.id)):
        checkpoint()
        allocation = state.allocation
        if allocation is not None and not state.job.preemptible:
            for node, gpus in allocation.placement:
                free[node] -= gpus
        elif (job := _in_pool(round, state)) is not None:
            members.setdefault(job.of.shape.index, []).append(job)
    for index, jobs in sorted(members.items()):
        nodes = np.flatnonzero(topology.node_pool == index)
        _wake(round, nodes, free, jobs)
        slots: Ints = np.repeat(nodes, free[nodes])
        if len(slots):
            yield Subproblem(index, slots, tuple(jobs), _deployed(slots, jobs, last.get(index, [])))


def _in_pool(round: Round, state: JobState) -> OnesJob | None:
    """Return a job in its present pool, else in the first pool that suits it; None without one."""
    if state.allocation is not None:
        of = application_of(round, state, state.allocation.option.pool)
        return None if of is None else OnesJob(state, of)
    found = (OnesJob(state, of) for of in applications(round, state.job))
    return next((job for job in found if job.sizes[-1]), None)


def _wake(round: Round, nodes: Ints, free: Ints, jobs: Sequence[OnesJob]) -> None:
    """Let the jobs of a pool use its sleeping `nodes` if too few GPUs are `free` (N,)."""
    left = sum(job.gpus or job.state.job.gpus for job in jobs) - int(free[nodes].sum())
    for node in sorted(set(round.asleep).intersection(nodes.tolist())):
        if left <= 0:
            break
        free[node] = round.cluster.topology.node_gpus[node]
        left -= int(free[node])


def _deployed(node: Ints, jobs: Sequence[OnesJob], last: list[list[str]]) -> Ints:
    """Return the running genome, in the last order on each node whose jobs have not changed."""
    number = {job.id: j for j, job in enumerate(jobs)}
    holds: dict[int, dict[int, int]] = {}
    for j, job in enumerate(jobs):
        for place, gpus in job.held:
            holds.setdefault(place, {})[j] = gpus
    genome = np.full(len(node), IDLE)
    before = {int(place): names for place, *names in last}
    for place, here in holds.items():
        genes = np.flatnonzero(node == place)
        kept = [number.get(job_id, IDLE) for job_id in before.get(place, [])]
        if len(kept) != len(genes) or {j: kept.count(j) for j in kept if j != IDLE} != here:
            kept = [j for j, gpus in here.items() for _ in range(gpus)]
        genome[genes[: len(kept)]] = kept
    return genome
