"""A request that is not submitted yet, as a document of a few fields of `SeenJob`."""

from collections.abc import Collection, Iterator
from dataclasses import replace

from msgspec.structs import asdict
from msgspec.structs import replace as struct_replace

from ronda.instances.base import Count, Name, NonNegative, Positive, Record
from ronda.instances.errors import InputError
from ronda.instances.job import After, Slices
from ronda.instances.rules.problem import one_of, show
from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import CPU, MEMORY, SeenJob, Snapshot
from ronda.questions.why.words import WATTS


class JobRequest(Record, frozen=True, kw_only=True):
    """What a job would ask for.

    Every field is that of a `SeenJob`: `per` is what each of `count` equal pieces holds on its
    node, such as ``{"gpus": 4, "cpu": 32, "memory_gib": 256}``; `limit_s` is in seconds.
    """

    id: Name = "new job"
    user: Name | None = None
    tenant: Name | None = None
    partitions: tuple[Name, ...] = ()
    priority: Name | None = None
    rank: NonNegative | None = None
    eligible_s: NonNegative | None = None
    limit_s: Positive | None = None
    count: Count = 1
    least: Count | None = None
    per: dict[Name, Positive]
    own_nodes: bool = False
    exclusive: bool = False
    gpu_types: tuple[Name, ...] = ()
    features: tuple[Name, ...] = ()
    nodes: tuple[Name, ...] = ()
    not_nodes: tuple[Name, ...] = ()
    one_node: bool = False
    reservation: Name | None = None
    after: tuple[After, ...] = ()
    licences: dict[Name, Positive] = {}
    slices: Slices | None = None
    preemptible: bool = True


def submitted(snapshot: Snapshot, request: JobRequest, place: str) -> Snapshot:
    """Return a cluster after a request has been submitted; its job is the last one.

    Raise InputError if it names something that is not in the cluster; `place` is its own name then.
    """
    for problem in _strangers(snapshot, request, place):
        raise problem
    if WATTS not in request.per and any(WATTS in group.most for group in snapshot.groups):
        snapshot.noted.add("request whose watts nobody knows", request.id)
    told = {GPUS, *(of for node in snapshot.nodes for of in node.has)}
    for of in request.per.keys() - told:
        snapshot.noted.add("resource of which the cluster tells nothing, left out", of)
    request = struct_replace(request, per={k: v for k, v in request.per.items() if k in told})
    job = SeenJob(submit_s=snapshot.now_s, **asdict(request))
    return replace(snapshot, jobs=(*snapshot.jobs, job))


def _strangers(snapshot: Snapshot, request: JobRequest, place: str) -> Iterator[InputError]:
    nodes, jobs = snapshot.nodes, {job.id for job in snapshot.jobs}
    partitions = {part for node in nodes for part in node.partitions}
    partitions |= {part for group in snapshot.groups for part in group.partitions}
    if request.id in jobs:
        yield InputError(f"{place}, id", show(request.id), "an id that no job of the cluster has")
    if request.least is not None and request.least > request.count:
        yield InputError(f"{place}, least", str(request.least), f"at most count={request.count}")
    known: list[tuple[str, Collection[str], Collection[str]]] = [
        ("partitions", request.partitions, partitions),
        ("nodes", (*request.nodes, *request.not_nodes), {node.name for node in nodes}),
        ("per", request.per, {GPUS, CPU, MEMORY, *(of for node in nodes for of in node.has)}),
        ("after", [each.job for each in request.after], jobs),
        ("licences", request.licences, snapshot.licences),
    ]
    if request.reservation is not None:
        theirs = {node.reserved for node in nodes if node.reserved is not None}
        known.append(("reservation", (request.reservation,), theirs))
    if snapshot.tenants:
        names = {tenant.name for tenant in snapshot.tenants}
        known.append(("tenant", () if request.tenant is None else (request.tenant,), names))
    for field, asked, there in known:
        for name in asked:
            if name not in there:
                yield InputError(f"{place}, {field}", show(name), one_of(there, name))
