"""Gangs of pods as Kubernetes' own scheduler has them, and pods on their own, as jobs.

PodGroups of ``scheduling.k8s.io`` (from 1.36 on), the Workloads of 1.35, and the PodGroups of
scheduler-plugins and of Volcano. Looked up in kubernetes/enhancements (KEP-4671) and kubernetes.io.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ronda.hosts.clusters.kubernetes.classes import Classes
from ronda.hosts.clusters.kubernetes.devices import devices_of
from ronda.hosts.clusters.kubernetes.floor import Lots
from ronda.hosts.clusters.kubernetes.objects import Doc, Objects
from ronda.hosts.clusters.kubernetes.pods import Pods
from ronda.hosts.clusters.read import Text
from ronda.instances.errors import InputError
from ronda.instances.job import Slices
from ronda.instances.snapshots.snapshot import Noted, SeenJob, Snapshot

_OWN = "scheduling.k8s.io"
_SIGS = ("scheduling.x-k8s.io", "scheduling.sigs.k8s.io")
_VOLCANO = "scheduling.volcano.sh"


class _Gang(NamedTuple):
    """The object that a pod's gang is stated in."""

    kind: str
    groups: tuple[str, ...]
    name: str
    inner: str | None = None


def read_kubernetes(files: Sequence[Text], now_s: float | None) -> Snapshot:
    """Return a cluster from its nodes, pods and pod groups (``kubectl get … -A -o json``)."""
    objects = Objects(files, Noted())
    pods, lots = Pods(objects), Lots(devices=devices_of(objects))
    jobs, levels = jobs_of(objects, pods, pods.live, lots, own=True)
    lots.levels = lots.levels if not levels else lambda name: levels
    return snapshot(
        objects, "kubernetes", now_s, pods, lots, jobs, Classes(objects, "PriorityClass")
    )


def snapshot(
    objects: Objects,
    system: str,
    now_s: float | None,
    pods: Pods,
    lots: Lots,
    jobs: Sequence[SeenJob],
    classes: Classes,
    **fields: object,
) -> Snapshot:
    """Return the snapshot of jobs, whose classes are named by their priorities."""
    if now_s is None:
        now_s = objects.latest_s() or 0.0
        objects.noted.add("assumption", "the files are of the time of the latest event in them")
    jobs = [replace(job, priority=classes.name(job.priority, job.rank)) for job in jobs]
    objects.note_rest()
    return Snapshot(
        source=objects.source,
        system=system,
        now_s=now_s,
        nodes=pods.floor.seen(lots),
        jobs=tuple(jobs),
        classes=classes.all,
        noted=objects.noted,
        **fields,  # type: ignore[arg-type]
    )


def parents_first(source: str, above: Mapping[str, str | None], what: str) -> list[str]:
    """Return all names of a tree, each after the one above it."""
    order: dict[str, None] = {}
    for name in above:
        path: list[str] = []
        step: str | None = name
        while step is not None and step not in order:
            if step in path:
                cycle = " → ".join([*path[path.index(step) :], step])
                raise InputError(source, f"the cycle of {what} {cycle}", f"{what} that form a tree")
            path.append(step)
            step = above.get(step)
        order |= dict.fromkeys(reversed(path))
    return [*order]


def jobs_of(
    objects: Objects, pods: Pods, some: Sequence[Doc], lots: Lots, *, own: bool
) -> tuple[list[SeenJob], list[str]]:
    """Return the jobs that some pods are, and the levels of racks that their gangs name.

    Pods of DaemonSets and of nodes are no jobs: what they hold, their nodes do not offer.
    Beside a queue that is not Kubernetes' `own`, the same holds for running pods without GPUs, and
    those with GPUs are stopped for nobody.
    """
    gangs = defaultdict[tuple[str | None, _Gang], list[Doc]](list)
    jobs: list[SeenJob] = []
    for pod in some:
        gang = _gang(pod)
        if gang is not None:
            gangs[pod.namespace, gang].append(pod)
        else:
            jobs += _alone(pods, pod, lots, own)
    levels: dict[str, None] = {}
    for (namespace, gang), members in gangs.items():
        found = [
            e
            for e in objects.of(gang.kind, *gang.groups)
            if (e.namespace, e.name) == (namespace, gang.name)
        ]
        jobs += _together(pods, gang, found[0] if found else None, members, levels)
    return jobs, [*levels]


def _gang(pod: Doc) -> _Gang | None:
    own = pod.text("spec", "schedulingGroup", "podGroupName")
    if own is not None:
        return _Gang("PodGroup", (_OWN,), own)
    older = pod.text("spec", "workloadRef", "name")
    if older is not None:
        return _Gang("Workload", (_OWN,), older, pod.text("spec", "workloadRef", "podGroup"))
    for label in ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io"):
        name = pod.text("metadata", "labels", label)
        if name is not None:
            return _Gang("PodGroup", _SIGS, name)
    name = pod.text("metadata", "annotations", "scheduling.k8s.io/group-name")
    return None if name is None else _Gang("PodGroup", (_VOLCANO,), name)


def _alone(pods: Pods, pod: Doc, lots: Lots, own: bool) -> Iterator[SeenJob]:
    """Yield a pod as a job of one piece, or count what it holds."""
    owners = {owner.text("kind") for owner in pod.docs("metadata", "ownerReferences")}
    jobs = list(pods.jobs(pod.id, [pod], preemptible=own))
    node = pods.node(pod)
    if not owners & {"DaemonSet", "Node"} and (node is None or own or jobs[0].has_gpus):
        yield from jobs
    elif node is not None:
        pods.noted.add(
            "running pod that is no job, whose node does not offer what it holds", pod.id
        )
        lots.hold(node, pods.asks(pod.doc("spec"), pod.namespace, pod.doc("status")))


def _together(
    pods: Pods, gang: _Gang, stated: Doc | None, members: list[Doc], levels: dict[str, None]
) -> Iterator[SeenJob]:
    name = members[0].id.removesuffix(members[0].name) + "/".join(
        filter(None, (gang.name, gang.inner))
    )
    if stated is None:
        yield from pods.jobs(name, members, blocked=f"its {gang.kind} {gang.name} does not exist")
        return
    least = stated.whole("spec", "minMember")
    policy = stated.doc("spec", "schedulingPolicy")
    if gang.kind == "Workload":
        groups = [e for e in stated.docs("spec", "podGroups") if e.text("name") == gang.inner]
        policy = groups[0].doc("policy") if groups else policy
    least = least or policy.whole("gang", "minCount")
    if least is None:  # the policy "basic": its pods start one by one
        for pod in members:
            yield from pods.jobs(pod.id, [pod])
        return
    keys = [
        key.text("key") or "" for key in stated.docs("spec", "schedulingConstraints", "topology")
    ]
    levels |= dict.fromkeys(keys)
    slices = Slices(nodes=len(members), within=keys[0]) if keys and len(members) > 1 else None
    if slices is not None:
        pods.noted.add("gang within one domain, taken to have a node for each pod", f"job {name}")
    few = (
        f"it has {len(members)} of the {least} pods that it starts with"
        if len(members) < least
        else None
    )
    yield from pods.jobs(name, members, least=least, blocked=few, slices=slices)
