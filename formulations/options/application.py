"""Applications, which make every `Option` of a profile in a pool, with its rate and watts."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from msgspec.structs import replace

from ronda.instances.cluster import Cluster, NodeGroup, Pool
from ronda.instances.job import Allocation, Job, JobState, Option, Slices
from ronda.instances.models.cache import per_record
from ronda.instances.models.configuration import Configuration
from ronda.instances.models.efficiency import efficiency_at
from ronda.instances.models.power import speed_and_watts
from ronda.instances.models.throughput import model_of
from ronda.instances.profile import NoiseScale, Parametric, Profile, Rated, Rigid, Tabular
from ronda.instances.round import Round

LEAST_SPEED = 0.01
"""The least share of its speed on the best nodes with which a job may start elsewhere.

A job that runs a hundred times as long had better wait, as the restart that later brings it to
better nodes costs more than its progress until then.
"""


@dataclass(frozen=True)
class PoolShape:
    """The shape of a pool, for the options on it.

    ``index`` is the index in ``cluster.topology.pools``, and ``rack_gpus`` is the number of the
    pool's GPUs in the rack that has most. ``sizes`` are pairs (GPUs in service, number of such
    nodes), the largest first.
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
        """Return the fewest nodes that hold the GPUs if all nodes are like the largest.

        The rate of an option is promised for this number of nodes.
        """
        return -(-gpus // self.pool.gpus_per_node)

    def spreads(self, gpus: int) -> int | None:
        """Return the number of real nodes that hold the GPUs if it is more than `nodes`, else None.

        In a pool of unequal nodes, or with GPUs out of service, there may be too few large nodes.
        """
        left, nodes = gpus, 0
        for size, count in self.sizes:
            some = min(count, -(-left // size))
            left, nodes = left - some * size, nodes + some
            if left <= 0:
                break
        return nodes if nodes > self.nodes(gpus) else None

    def held(self, gpus: int) -> int:
        """Return the GPUs of the nodes that a job has to itself if `gpus` of them compute."""
        return self.nodes(gpus) * self.pool.gpus_per_node

    def takes(self, job: Job, gpus: int) -> bool:
        """Return whether a job can have its shape with `gpus` computing GPUs.

        Slices, and jobs with nodes to themselves, take whole nodes of the largest size.
        """
        nodes, slices = self.nodes(gpus), job.slices
        if job.one_node and nodes > 1:
            return False
        if slices is None and not job.exclusive:
            return True
        held = self.held(gpus)
        if held > self.pool.gpus or self.spreads(held) is not None:
            return False
        if slices is None:
            return True
        if gpus < held and not job.exclusive:
            return False
        if slices.listed:
            return nodes == sum(slices.listed)
        return slices.nodes is None or nodes % slices.nodes == 0

    def in_slices(self, slices: Slices, most: int) -> set[int]:
        """Return the GPUs of 1, 2, 4, … slices, at most `most`; those of all listed slices."""
        one = (sum(slices.listed) or slices.nodes or 1) * self.pool.gpus_per_node
        return {one} if slices.listed else {one << k for k in range((most // one).bit_length())}

    @cached_property
    def ladder(self) -> tuple[int, ...]:
        """The GPU counts to offer: powers of two in the largest node, its halves, doubled nodes.

        Halves are halved again; an odd number gives the two integers next to its half. In equal
        nodes whose size is a power of two, jobs of these sizes, placed in descending order, always
        fit if their GPUs do (the buddy property).
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
    """Return the shapes of a cluster's pools, in the order of the pools."""
    topology, shapes = cluster.topology, []
    for index, pool in enumerate(topology.pools):
        own = topology.node_pool == index
        in_rack = np.bincount(topology.node_rack[own], topology.node_gpus[own]).astype(int)
        counts = Counter(topology.node_gpus[own & (topology.node_gpus > 0)].tolist())
        sizes = tuple(sorted(counts.items(), reverse=True))
        shapes.append(PoolShape(index, pool, int(in_rack.max()), sizes))
    return tuple(shapes)


class Application:
    """A profile in a pool, with a throughput model for the pool's GPU type."""

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
        """The ascending GPU counts to offer, from the pool or from a table of rates.

        If a count of the pool was not measured, the measured counts between it and the next count
        of the pool replace it.
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
        """Return a job's fewest and most GPUs; with a rigid profile, both are as requested."""
        if self.rigid:
            return job.gpus, job.gpus
        return job.min_gpus or job.gpus, job.max_gpus or job.gpus

    def sizes(self, job: Job) -> tuple[int, ...]:
        """Return the GPU counts that a job may choose from, ascending.

        They are the requested count, the job's fewest and most GPUs (at most those of the pool),
        and the counts of the ladder in between. Sizes that the job names replace them all. A job
        with a shape has only the counts at which it can take it.
        """
        low, high = self.limits(job)
        most = min(high, self.shape.pool.gpus)
        named = set(job.sizes) or {low, job.gpus, most, *self.ladder}
        if not job.sizes and job.slices is not None:
            named |= self.shape.in_slices(job.slices, most)
        found = sorted(n for n in named if low <= n <= most)
        return tuple([n for n in found if self.shape.takes(job, n)])

    def as_requested(self, job: Job) -> tuple[int, ...]:
        """Return the requested count of a job if the pool can give it, else nothing."""
        fits = job.gpus <= self.shape.pool.gpus and self.shape.takes(job, job.gpus)
        return (job.gpus,) if fits else ()

    def batch(self, job: Job) -> float:
        """Return the global batch that a job's user chose, or the profile's base batch."""
        return job.batch or self.profile.base_batch

    def measured(
        self, gpus: int, nodes: int, batch: float, clock: float = 1.0, racks: int = 1
    ) -> tuple[float, float]:
        """Return the samples per second (rigid: 1; infeasible: 0) and the watts of all GPUs."""
        racks = racks if self.minds_racks else 1
        return _measured(self, Configuration(gpus, nodes, batch, clock, racks))

    def has_nodes(self, gpus: int, batch: float, clock: float = 1.0) -> bool:
        """Return whether the pool has nodes on which a configuration has a speed."""
        nodes = self.shape.spreads(gpus)
        if nodes is None:
            return True
        several = self.shape.nodes(gpus) > 1
        return several and self.measured(gpus, nodes, batch, clock)[0] > 0

    def worth_starting(
        self, gpus: int, nodes: int, racks: int, batch: float, clock: float = 1.0
    ) -> bool:
        """Return whether a start on `nodes` nodes in `racks` racks is fast enough to make sense.

        The speed is compared with that on the best nodes, which are the fewest that hold the GPUs,
        in one rack if any rack is large enough.
        """
        few = 1 if gpus <= self.shape.rack_gpus else self.shape.pool.racks
        best, _ = self.measured(gpus, self.shape.nodes(gpus), batch, clock, few)
        speed, _ = self.measured(gpus, nodes, batch, clock, racks)
        return speed > 0 and speed >= LEAST_SPEED * best

    def worth(self, noise: NoiseScale | None, batch: float) -> float:
        """Return the work per sample in a batch of the given size."""
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
        exclusive: bool = False,
    ) -> Option | None:
        """Return a configuration on the fewest nodes, or None if the profile has no speed for it.

        Parameters
        ----------
        gpus, batch, clock
            The GPUs that compute, the global batch size, and the clock as a fraction of the
            maximum.
        noise
            The gradient noise scale of the job now; without it (None) every sample counts fully.
        span
            The reach of the nodes. With "cluster", the rate on several nodes is that across the
            racks of the pool. By default the span is as wide as needed, but one rack if the job is
            too slow to start across racks.
        exclusive
            Whether the job has its nodes to itself. It then holds their idle GPUs as well.
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
        held = self.shape.held(gpus) if exclusive else gpus
        if held > gpus:
            power_w += (held - gpus) * self.shape.pool.gpu_type.idle_w
        return Option(
            pool=self.shape.index,
            gpus=held,
            asked=gpus if held > gpus else None,
            span=span,
            clock=clock,
            batch=batch,
            rate=rate,
            power_w=power_w,
        )

    def requested(self, job: Job, gpus: int) -> Option | None:
        """Return the option of a job as requested, with its full efficiency."""
        if job.part is not None or job.share is not None:
            return self.part_option(job, None)
        return self.option(gpus, self.batch(job), None, exclusive=job.exclusive)

    def part_option(self, job: Job, noise: NoiseScale | None) -> Option | None:
        """Return the part or the fraction of a GPU that a job asks for; None if there is none.

        Its watts are its fraction of a busy GPU's.
        """
        gpu_type, whole = self.shape.pool.gpu_type, self.option(1, self.batch(job), noise)
        if whole is None or (job.part is not None and gpu_type.profile(job.part) is None):
            return None
        share = gpu_type.fraction(job.part, job.share) or 1.0
        return replace(
            whole,
            part=job.part,
            share=share,
            rate=whole.rate * gpu_type.speed(job.part, job.share),
            power_w=whole.power_w * share,
        )

    def spread(self, option: Option, nodes: int, racks: int) -> Option | None:
        """Return the option on `nodes` nodes in `racks` racks, or None if it has no speed there.

        The option keeps the promised rate.
        """
        in_one = option.span == "rack" and racks == 1
        if nodes <= self.shape.nodes(option.gpus) and (in_one or option.span != "rack"):
            return option
        if not self.measured(option.computing, nodes, option.batch, option.clock, racks)[0] > 0:
            return None
        return replace(option, span="rack" if in_one else "cluster")

    def rate_on(self, allocation: Allocation, racks: int, noise: NoiseScale | None) -> float:
        """Return the rate on the nodes of an allocation, which lie in `racks` racks."""
        option, nodes = allocation.option, len(allocation.placement)
        speed, _ = self.measured(option.computing, nodes, option.batch, option.clock, racks)
        speed *= self.shape.pool.gpu_type.speed(option.part, option.share)
        return speed * self.worth(noise, option.batch)


@lru_cache(maxsize=2048)
def _measured(of: Application, at: Configuration) -> tuple[float, float]:
    speed, power_w = speed_and_watts(of.profile, of.shape.pool.gpu_type, at)
    return float(speed), float(power_w)


@per_record(maxsize=1024)
def application(profile: Profile, shape: PoolShape) -> Application | None:
    """Return a profile's application in a pool, or None without a model for the GPU type."""
    if shape.pool.gpu_type.name not in profile.throughput:
        return None
    return Application(profile, shape)


def application_of(round: Round, state: JobState, pool: int) -> Application | None:
    """Return a job's application in a pool of the round's cluster."""
    return application(round.profiles[state.job.profile], pool_shapes(round.cluster)[pool])


def applications(round: Round, job: Job) -> list[Application]:
    """Return the applications that a job may run as, in the order of the pools."""
    profile, shapes = round.profiles[job.profile], pool_shapes(round.cluster)
    own = [shape for shape in shapes if job.may_use(shape.pool)]
    if job.part is not None or job.share is not None:
        offered = _groups(round.cluster)
        own = [s for s in own if any(group.offers(job.part) for group in offered[s.index])]
    found = (application(profile, shape) for shape in own)
    return [of for of in found if of is not None]


@per_record(maxsize=64)
def _groups(cluster: Cluster) -> list[list[NodeGroup]]:
    """Return the groups of nodes of each pool."""
    names = [(pool.partition, pool.gpu_type.name) for pool in cluster.topology.pools]
    groups = cluster.node_groups
    return [[g for g in groups if (g.partition, g.gpu_type) == name] for name in names]


def requested_options(round: Round, state: JobState) -> list[Option]:
    """Return the requested options of a job (`Requested.options`)."""
    return Requested(round).options(state)


class Requested:
    """The options and times of jobs as requested, remembered for jobs with equal requests."""

    def __init__(self, round: Round) -> None:
        self.round = round
        self._known: dict[tuple[object, ...], list[tuple[Application, Option]]] = {}

    def options(self, state: JobState) -> list[Option]:
        """Return a job's options with the requested GPUs and batch at full clock.

        There is at most one option per pool, in the order of the cluster's pools.
        """
        job, noise = state.job, state.noise
        shape = (job.one_node, job.exclusive, job.slices, job.part, job.share)
        key = (job.profile, job.gpus, job.batch, job.partition, job.gpu_types, shape)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = [
                (of, option)
                for of in applications(self.round, job)
                for gpus in of.as_requested(job)
                if (option := of.requested(job, gpus)) is not None
            ]
        if noise is None:
            return [option for _, option in known]
        rates = [option.rate * of.worth(noise, option.batch) for of, option in known]
        pairs = zip(known, rates, strict=True)
        return [replace(option, rate=rate) for (_, option), rate in pairs if rate > 0]

    def rate(self, state: JobState) -> float:
        """Return the highest rate of a job as requested, 0 if no pool suits it."""
        return max((option.rate for option in self.options(state)), default=0.0)

    def remaining_s(self, state: JobState) -> float:
        """Return the seconds that a job still needs as requested, restarts included.

        A running job needs the rest of its pause and of its work. A stopped job also pays the
        restart, and the rest of an earlier pause that it owes. The time is infinite if the job's
        size is unknown or no pool suits it.
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
