"""One application on one pool: the place where an `Option` is made, with its rate and watts."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from msgspec.structs import replace

from ronda.instances.cluster import Cluster, Pool
from ronda.instances.job import Allocation, Job, JobState, Option
from ronda.instances.models.cache import per_record
from ronda.instances.models.configuration import Configuration
from ronda.instances.models.efficiency import efficiency_at
from ronda.instances.models.power import speed_and_watts
from ronda.instances.models.throughput import model_of
from ronda.instances.profile import NoiseScale, Parametric, Profile, Rated, Rigid, Tabular
from ronda.instances.round import Round

LEAST_SPEED = 0.01
"""A job is not started where it has less than this share of its speed on the best nodes.

A hundred times as long as elsewhere is worse than to wait: the restart with which it would leave
for better nodes outweighs what it does until then.
"""


@dataclass(frozen=True)
class PoolShape:
    """A pool, its index in ``cluster.topology.pools``, and its GPUs in the rack with most.

    ``sizes`` are pairs (GPUs in service, number of such nodes), the largest first.
    """

    index: int
    pool: Pool
    rack_gpus: int
    sizes: tuple[tuple[int, int], ...]

    def __hash__(self) -> int:
        """Return the hash, computed once."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.index, self.pool, self.rack_gpus))

    def nodes(self, gpus: int) -> int:
        """Return the fewest nodes, all like the largest, that hold some GPUs.

        The rate for these GPUs is promised for so many nodes.
        """
        return -(-gpus // self.pool.gpus_per_node)

    def spreads(self, gpus: int) -> int | None:
        """Return the number of nodes for some GPUs if it is more than `nodes`, else None.

        In a pool of unequal nodes, or with GPUs out of service, the largest nodes may not suffice.
        """
        left, nodes = gpus, 0
        for size, count in self.sizes:
            some = min(count, -(-left // size))
            left, nodes = left - some * size, nodes + some
            if left <= 0:
                break
        return nodes if nodes > self.nodes(gpus) else None

    @cached_property
    def ladder(self) -> tuple[int, ...]:
        """The GPU counts to offer: powers of two in the largest node, its halves, doubled nodes.

        Halves are halved again; an odd number has the two whole numbers next to its half. In equal
        nodes whose size is a power of two, jobs of these sizes always fit side by side when their
        GPUs do (placed in descending order): the buddy property.
        """
        whole, most = self.pool.gpus_per_node, self.pool.gpus  # of these some may be out of service
        counts = {2**k for k in range(whole.bit_length())}
        part = whole
        while part > 1:
            counts |= {part // 2, -(-part // 2)}
            part //= 2
        while whole <= most:
            counts.add(whole)
            whole *= 2
        return tuple(sorted(n for n in counts if n <= most))


@per_record(maxsize=64)
def pool_shapes(cluster: Cluster) -> tuple[PoolShape, ...]:
    """Return the shapes of a cluster's pools, in their order."""
    topology, shapes = cluster.topology, []
    for index, pool in enumerate(topology.pools):
        own = topology.node_pool == index
        in_rack = np.bincount(topology.node_rack[own], topology.node_gpus[own]).astype(int)
        counts = Counter(topology.node_gpus[own & (topology.node_gpus > 0)].tolist())
        sizes = tuple(sorted(counts.items(), reverse=True))
        shapes.append(PoolShape(index, pool, int(in_rack.max()), sizes))
    return tuple(shapes)


class Application:
    """A profile in a pool; it must have a throughput model of the pool's GPU type."""

    def __init__(self, profile: Profile, shape: PoolShape) -> None:
        self.profile, self.shape = profile, shape
        model = model_of(profile, shape.pool.gpu_type)
        self.rigid = isinstance(model, Rigid)
        self.rated = model if isinstance(model, Rated) else None
        self.tabular = isinstance(model, Tabular)
        self.minds_racks = (
            shape.pool.racks > 1 and isinstance(model, Parametric) and model.minds_racks
        )

    @cached_property
    def ladder(self) -> tuple[int, ...]:
        """The GPU counts to offer, ascending: those of the pool, or of the rates handed over.

        Where a count of the pool was not measured, the measured counts up to the next one stand in
        for it.
        """
        model, most = model_of(self.profile, self.shape.pool.gpu_type), self.shape.pool.gpus
        if isinstance(model, Rated):
            return tuple(n for n in sorted(set(model.gpus)) if n <= most)
        if not isinstance(model, Tabular):
            return self.shape.ladder
        pairs = zip(model.gpus, model.nodes, strict=True)
        known = {n for n, nodes in pairs if n <= most and nodes == self.shape.nodes(n)}
        counts = set[int]()
        for n, after in pairwise((*self.shape.ladder, most + 1)):
            counts |= {n} if n in known else {k for k in known if n < k < after}
        return tuple(sorted(counts))

    def limits(self, job: Job) -> tuple[int, int]:
        """Return the fewest and the most GPUs of a job, the requested ones of a rigid profile."""
        if self.rigid:
            return job.gpus, job.gpus
        return job.min_gpus or job.gpus, job.max_gpus or job.gpus

    def sizes(self, job: Job) -> tuple[int, ...]:
        """Return the GPU counts that a job may choose from, ascending.

        They are the requested count, the fewest and the most GPUs of the job (at most those of the
        pool), and the counts of the ladder between.
        """
        low, high = self.limits(job)
        most = min(high, self.shape.pool.gpus)
        named = {low, job.gpus, most, *self.ladder}
        return tuple(sorted(n for n in named if low <= n <= most))

    def batch(self, job: Job) -> float:
        """Return the global batch that a job's user chose, or the profile's base batch."""
        return job.batch or self.profile.base_batch

    def measured(
        self, gpus: int, nodes: int, batch: float, clock: float = 1.0, racks: int = 1
    ) -> tuple[float, float]:
        """Return samples per second (rigid: 1; 0 if not feasible) and watts of all GPUs."""
        racks = racks if self.minds_racks else 1
        return _measured(self, Configuration(gpus, nodes, batch, clock, racks))

    def has_nodes(self, gpus: int, batch: float, clock: float = 1.0) -> bool:
        """Return whether the pool has nodes for a configuration on which it has a speed."""
        nodes = self.shape.spreads(gpus)
        if nodes is None:
            return True
        several = self.shape.nodes(gpus) > 1
        return several and self.measured(gpus, nodes, batch, clock)[0] > 0

    def worth_starting(
        self, gpus: int, nodes: int, racks: int, batch: float, clock: float = 1.0
    ) -> bool:
        """Return whether the speed on so many nodes in so many racks is worth a start.

        It is compared to the best nodes, the fewest that hold the GPUs, in one rack if any has as
        many.
        """
        few = 1 if gpus <= self.shape.rack_gpus else self.shape.pool.racks
        best, _ = self.measured(gpus, self.shape.nodes(gpus), batch, clock, few)
        speed, _ = self.measured(gpus, nodes, batch, clock, racks)
        return speed > 0 and speed >= LEAST_SPEED * best

    def worth(self, noise: NoiseScale | None, batch: float) -> float:
        """Return the work per sample in a batch."""
        base = self.profile.base_batch
        if noise is None or batch == base or self.rigid or self.rated is not None:
            return 1.0  # rates that are handed over include it
        return efficiency_at(noise, batch, base)

    def option(
        self,
        gpus: int,
        batch: float,
        noise: NoiseScale | None,
        *,
        clock: float = 1.0,
        span: str | None = None,
    ) -> Option | None:
        """Return a configuration on the fewest nodes, or None if the profile has no speed for it.

        Parameters
        ----------
        gpus, batch, clock
            GPUs, global batch size, clock as a fraction of the maximum.
        noise
            Gradient noise scale of the job now; without it (None) every sample counts fully.
        span
            The reach of the nodes. With "cluster" several nodes are promised the speed in several
            racks, if the pool has several. By default as far as needed, but one rack if the speed
            in several is not worth a start.
        """
        nodes = self.shape.nodes(gpus)
        if span is None and nodes == 1:
            span = "node"
        elif span is None:
            far = self.worth_starting(gpus, nodes, self.shape.pool.racks, batch, clock)
            span = "cluster" if far else "rack"
        racks = self.shape.pool.racks if span == "cluster" else 1
        speed, power_w = self.measured(gpus, nodes, batch, clock, racks)
        rate = speed * self.worth(noise, batch)
        if not rate > 0 or not self.has_nodes(gpus, batch, clock):
            return None
        return Option(
            pool=self.shape.index,
            gpus=gpus,
            span=span,
            clock=clock,
            batch=batch,
            rate=rate,
            power_w=power_w,
        )

    def spread(self, option: Option, nodes: int, racks: int) -> Option | None:
        """Return an option on so many nodes and racks, or None if it has no speed there.

        Its rate remains the promised one.
        """
        in_one = option.span == "rack" and racks == 1
        if nodes <= self.shape.nodes(option.gpus) and (in_one or option.span != "rack"):
            return option
        if not self.measured(option.gpus, nodes, option.batch, option.clock, racks)[0] > 0:
            return None
        return replace(option, span="rack" if in_one else "cluster")

    def rate_on(self, allocation: Allocation, racks: int, noise: NoiseScale | None) -> float:
        """Return the rate on the nodes of an allocation, which are in `racks` racks."""
        option, nodes = allocation.option, len(allocation.placement)
        speed, _ = self.measured(option.gpus, nodes, option.batch, option.clock, racks)
        return speed * self.worth(noise, option.batch)


@lru_cache(maxsize=2048)
def _measured(of: Application, at: Configuration) -> tuple[float, float]:
    speed, power_w = speed_and_watts(of.profile, of.shape.pool.gpu_type, at)
    return float(speed), float(power_w)


@per_record(maxsize=1024)
def application(profile: Profile, shape: PoolShape) -> Application | None:
    """Return a profile in a pool, or None without a throughput model of the pool's GPU type."""
    if shape.pool.gpu_type.name not in profile.throughput:
        return None
    return Application(profile, shape)


def application_of(round: Round, state: JobState, pool: int) -> Application | None:
    """Return a job's application in a pool of the round's cluster."""
    return application(round.profiles[state.job.profile], pool_shapes(round.cluster)[pool])


def suits(job: Job, shape: PoolShape) -> bool:
    """Return whether a job may use a pool's GPUs, if its profile knows them."""
    pool = shape.pool
    return pool.partition == job.partition and (
        not job.gpu_types or pool.gpu_type.name in job.gpu_types
    )


def applications(round: Round, job: Job) -> list[Application]:
    """Return the applications as which a job may run, in the order of the pools."""
    profile, shapes = round.profiles[job.profile], pool_shapes(round.cluster)
    found = (application(profile, shape) for shape in shapes if suits(job, shape))
    return [of for of in found if of is not None]


def requested_options(round: Round, state: JobState) -> list[Option]:
    """Return the requested options of a job (`Requested.options`)."""
    return Requested(round).options(state)


class Requested:
    """The options and times of jobs as requested, remembered for jobs that ask alike."""

    def __init__(self, round: Round) -> None:
        self.round = round
        self._known: dict[tuple[object, ...], list[tuple[Application, Option]]] = {}

    def options(self, state: JobState) -> list[Option]:
        """Return a job's requested GPUs and batch at full clock, for each pool that has them.

        They are in the order of the cluster's pools; a job that no pool suits has none.
        """
        job, noise = state.job, state.noise
        key = (job.profile, job.gpus, job.batch, job.partition, job.gpu_types)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = [
                (of, option)
                for of in applications(self.round, job)
                if job.gpus <= of.shape.pool.gpus
                and (option := of.option(job.gpus, of.batch(job), None)) is not None
            ]
        if noise is None:
            return [option for _, option in known]
        rates = [option.rate * of.worth(noise, option.batch) for of, option in known]
        pairs = zip(known, rates, strict=True)
        return [replace(option, rate=rate) for (_, option), rate in pairs if rate > 0]

    def rate(self, state: JobState) -> float:
        """Return the greatest rate of a job as requested, 0 if no pool suits it."""
        return max((option.rate for option in self.options(state)), default=0.0)

    def remaining_s(self, state: JobState) -> float:
        """Return the seconds that a job still needs as requested, restarts included.

        A running job needs the rest of its pause and of its work; a stopped job also the restart
        that it will pay, and the rest of an earlier pause that it owes. Infinite if its size is not
        known or no pool suits it.
        """
        now_s = self.round.now_s
        work = state.remaining_at(now_s)
        if work is None:
            return float("inf")
        if state.allocation is not None:
            return work / state.allocation.option.rate + state.rest_at(now_s)
        rate = self.rate(state)
        if not rate:
            return float("inf")
        return work / rate + state.pause_at(now_s, state.job.gpus, self.round.costs)
