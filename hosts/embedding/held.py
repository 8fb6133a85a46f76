"""What a job runs on, told by its nodes: the option that it is, and the rows that it needs."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from ronda.formulations.options.application import application, pool_shapes
from ronda.hosts.embedding.plain import plain
from ronda.instances.cluster import Cluster
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation, Job
from ronda.instances.profile import Profile, Rated
from ronda.instances.rules.problem import show

Placement = tuple[tuple[int, int], ...]


def placement_of(
    given: object, cluster: Cluster, number: Mapping[str, int], place: str
) -> Placement:
    """Return a placement from GPUs by node: ``{node: GPUs}``, or a node for each GPU.

    Nodes are names (`number` has their index) or indices.
    """
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(given, Mapping):
        pairs = given.items()
    else:
        several = isinstance(given, Iterable) and not isinstance(given, str)
        pairs = [(node, 1) for node in (given if several else [given])]  # type: ignore[attr-defined]
    gpus: dict[int, int] = {}
    for node, n in (map(plain, pair) for pair in pairs):
        index = number.get(node, -1) if isinstance(node, str) else node
        if type(index) is not int or not 0 <= index < len(cluster.topology.node_gpus):
            raise InputError(f"{place}, nodes", show(node), "a node of the cluster")
        if type(n) is not int or n < 1:
            raise InputError(f"{place}, nodes", f"{show(n)} GPUs", "at least 1 on each node")
        gpus[index] = gpus.get(index, 0) + n
    pools = {int(cluster.topology.node_pool[node]) for node in gpus}
    if len(pools) != 1:
        raise InputError(f"{place}, nodes", show(sorted(gpus)), "nodes of one pool, at least one")
    return tuple(sorted(gpus.items()))


def held(
    cluster: Cluster,
    job: Job,
    profile: Profile,
    placement: Placement,
    *,
    clock: float = 1.0,
    batch: float | None = None,
) -> Allocation | None:
    """Return what a job runs on; None if the profile has no speed for that.

    Its rate is that on these nodes. Without a `batch` it is the job's own, or the smallest of those
    that may be chosen with which it can run so.
    """
    topology = cluster.topology
    pool = int(topology.node_pool[placement[0][0]])
    of = application(profile, pool_shapes(cluster)[pool])
    if of is None:
        return None
    gpus = sum(n for _, n in placement)
    racks = topology.racks_of(node for node, _ in placement)
    batches = (of.batch(job), *sorted(profile.batches)) if batch is None else (batch,)
    options = (of.option(gpus, each, None, clock=clock) for each in batches)
    option = next((each for each in options if each is not None), None)
    spread = None if option is None else of.spread(option, len(placement), racks)
    if spread is None:
        return None
    allocation = Allocation(option=spread, placement=placement)
    rate = of.rate_on(allocation, racks, None)
    return Allocation(option=replace(spread, rate=rate), placement=placement) if rate else None


def with_way(profile: Profile, cluster: Cluster, allocation: Allocation, rate: float) -> Profile:
    """Return a profile of rates with those of what a job runs on, `rate` where it has none.

    That on the fewest nodes stands in for that on more, and the other way round.
    """
    option = allocation.option
    shape = pool_shapes(cluster)[option.pool]
    kind = shape.pool.gpu_type
    table = profile.throughput.get(kind.name)
    known: dict[tuple[int, int, float, float], tuple[float, float]] = {}  # rate and watts
    if isinstance(table, Rated):
        ways = zip(table.gpus, table.nodes, table.batch, table.clock, strict=True)
        watts = table.power_w or (0.0,) * len(table.rate)
        known = dict(zip(ways, zip(table.rate, watts, strict=True), strict=True))
    told = isinstance(table, Rated) and table.power_w
    own = [
        (option.gpus, nodes, option.batch, option.clock)
        for nodes in dict.fromkeys((shape.nodes(option.gpus), len(allocation.placement)))
    ]
    rate = next((known[way][0] for way in own if way in known), rate)
    near = min(known, key=lambda way: abs(way[0] - option.gpus), default=own[0])
    per_gpu_w = max(known[near][1] / near[0] if known else 0.0, kind.idle_w)
    known = known | {way: (rate, per_gpu_w * option.gpus) for way in own if way not in known}
    gpus, nodes, batch, clock = zip(*known, strict=True)
    rates, watts = zip(*known.values(), strict=True)
    more = Rated(gpus=gpus, nodes=nodes, batch=batch, clock=clock, rate=rates)
    batches = tuple(sorted({*profile.batches, profile.base_batch, option.batch}))
    return replace(
        profile,
        throughput=profile.throughput | {kind.name: replace(more, power_w=watts) if told else more},
        batches=batches if len(batches) > 1 else profile.batches,
    )
