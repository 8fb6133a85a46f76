"""Gangs of pods as Kubernetes' own scheduler has them, and pods on their own, as jobs.

PodGroups of ``scheduling.k8s.io`` (from 1.36 on), the Workloads of 1.35, and the PodGroups of
scheduler-plugins and of Volcano. Looked up in kubernetes/enhancements (KEP-4671) and kubernetes.io.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from ronda.hosts.clusters.kubernetes.classes import Classes
from ronda.hosts.clusters.kubernetes.objects import Doc, Objects
from ronda.hosts.clusters.kubernetes.pods import Pods
from ronda.hosts.clusters.kubernetes.quantities import own_units
from ronda.hosts.clusters.read import Text
from ronda.instances.errors import InputError
from ronda.instances.site import GPUS
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
    pods = Pods(objects)
    jobs = jobs_of(objects, pods, pods.live, own=True)
    return snapshot(objects, "kubernetes", now_s, pods, jobs, Classes(objects))


def snapshot(
    objects: Objects,
    system: str,
    now_s: float | None,
    pods: Pods,
    jobs: Sequence[SeenJob],
    classes: Classes,
    **fields: Any,
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
        nodes=pods.floor.seen(),
        jobs=tuple(jobs),
        classes=classes.all,
        noted=objects.noted,
        **fields,
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


def jobs_of(objects: Objects, pods: Pods, some: Sequence[Doc], *, own: bool) -> list[SeenJob]:
    """Return the jobs that some pods are.

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
            jobs += _alone(pods, pod, own)
    levels: dict[str, None] = {}
    for (_, gang), members in gangs.items():
        stated = objects.named(gang.kind, gang.groups, members[0].id_of(gang.name))
        name = members[0].id_of("/".join(filter(None, (gang.name, gang.inner))))
        jobs += _together(pods, gang, name, stated, members, levels)
    if levels:
        pods.floor.levels = lambda name: [*levels]
    return jobs


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


def _alone(pods: Pods, pod: Doc, own: bool) -> Iterator[SeenJob]:
    """Yield a pod as a job of one piece, or count what it holds."""
    owners = {owner.text("kind") for owner in pod.docs("metadata", "ownerReferences")}
    node, asks = pods.node(pod), pods.asks(pod)
    small = not own and own_units(asks).get(GPUS, 0.0) == 0
    if node is not None and (small or owners & {"DaemonSet", "Node"}):
        pods.noted.add("running pod that is no job, and whose room its node does not offer", pod.id)
        pods.floor.hold(node, asks)
    elif not owners & {"DaemonSet", "Node"}:
        yield from pods.jobs(pod.id, [pod], preemptible=own)


def _together(
    pods: Pods,
    gang: _Gang,
    name: str,
    stated: Doc | None,
    members: list[Doc],
    levels: dict[str, None],
) -> Iterator[SeenJob]:
    if stated is None:
        yield from pods.jobs(name, members, blocked=f"its {gang.kind} {gang.name} does not exist")
        return
    inner = [e for e in stated.docs("spec", "podGroups") if e.text("name") == gang.inner]
    policy = inner[0].doc("policy") if inner else stated.doc("spec", "schedulingPolicy")
    least = stated.whole("spec", "minMember") or policy.whole("gang", "minCount")
    if least is None:  # the policy "basic": its pods start one by one
        for pod in members:
            yield from pods.jobs(pod.id, [pod])
        return
    keys = [key.text("key") for key in stated.docs("spec", "schedulingConstraints", "topology")]
    levels |= dict.fromkeys(key for key in keys if key)
    level = keys[0] if keys else None
    yield from pods.jobs(name, members, **gang_fields(pods, name, members, least, level))


def gang_fields(
    pods: Pods, name: str, members: Sequence[Doc], least: int | None, level: str | None
) -> dict[str, Any]:
    """Return what holds for a gang that starts with some pods, in one domain of a level."""
    few = least is not None and len(members) < least
    words = f"it has {len(members)} of the {least} pods that it starts with" if few else None
    slices = None
    if level:
        gpus = [own_units(pods.asks(each)).get(GPUS, 0.0) for each in members]
        slices = pods.slices(name, sum(gpus), min(gpus), level)
    return {"least": least, "blocked": words, "slices": slices}
