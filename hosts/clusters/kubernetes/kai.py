"""A snapshot of KAI, as its plugin ``snapshot`` writes it (``/get-snapshot``; KAI 0.12 to 0.14).

Read from kai-scheduler/KAI-Scheduler: ``pkg/scheduler/plugins/snapshot``, ``pkg/apis/scheduling``,
``pkg/scheduler/api/pod_info`` and ``plugins/proportion``.
"""

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from math import inf
from typing import Any
from zipfile import BadZipFile, ZipFile

from ronda.hosts.clusters.kubernetes.classes import Classes
from ronda.hosts.clusters.kubernetes.floor import levels_of
from ronda.hosts.clusters.kubernetes.objects import Doc, Objects
from ronda.hosts.clusters.kubernetes.podgroups import gang_fields, jobs_of, parents_first, snapshot
from ronda.hosts.clusters.kubernetes.pods import Pods
from ronda.hosts.clusters.read import Text
from ronda.instances.errors import InputError
from ronda.instances.rules.problem import limits, show
from ronda.instances.site import GPUS, Quota, Tenant
from ronda.instances.snapshots.snapshot import CPU, MEMORY, Noted, SeenJob, Snapshot
from ronda.instances.traces.text import number

_KINDS = {
    "pods": ("Pod", "v1"),
    "nodes": ("Node", "v1"),
    "queues": ("Queue", "scheduling.run.ai/v2"),
    "podGroups": ("PodGroup", "scheduling.run.ai/v2alpha2"),
    "bindRequests": ("BindRequest", "scheduling.run.ai/v1alpha2"),
    "priorityClasses": ("PriorityClass", "scheduling.k8s.io/v1"),
    "topologies": ("Topology", "kai.scheduler/v1alpha1"),
    "resourceClaims": ("ResourceClaim", "resource.k8s.io/v1"),
    "resourceSlices": ("ResourceSlice", "resource.k8s.io/v1"),
}
_RUN = "scheduling.run.ai"
_RESERVING = ("kai-resource-reservation", "runai-reservation")
_UNITS = (("gpu", GPUS, 1.0), ("cpu", CPU, 1e3), ("memory", MEMORY, 2**30 / 1e6))
_FIRM_FROM, _STANDARD, _QUEUE = 100, 50, 100
_SPANS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_SPAN = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|m|s|us|µs|ns)")


class _Raw(Objects):
    """The objects of snapshots, which state no kinds, and of others beside them."""

    def add(self, document: Doc) -> None:
        if document.get("rawObjects") is None:
            super().add(document)
            return
        for field in document.doc("rawObjects").value:
            kind, version = _KINDS.get(field, (str(field), ""))
            for each in document.docs("rawObjects", str(field)):
                super().add(Doc({"kind": kind, "apiVersion": version, **each.value}, each.place))


def read_kai(files: Sequence[Text], now_s: float | None) -> Snapshot:
    """Return a cluster from a snapshot of KAI, zipped or as JSON."""
    objects = _Raw([_unzipped(file) for file in files], Noted())
    if not objects.of("Queue", _RUN):
        raise InputError(objects.source, "no queue", "a snapshot of KAI (curl …/get-snapshot)")
    pods, classes = Pods(objects), Classes(objects)
    levels = [levels_of(each) for each in objects.of("Topology", "kai.scheduler")]
    if len(levels) > 1:
        words = f"{len(levels)} topologies"
        objects.noted.add("topology beside the first, not read", words, len(levels) - 1)
    reader = _PodGroups(objects, pods, classes)
    jobs = [*reader.jobs(), *jobs_of(objects, pods, reader.others, own=False)]
    pods.floor.levels = lambda name: levels[0] if levels else []
    pods.floor.shared = True
    rules = {"firm_within_guarantee": True, "fair_shares": True}
    seen = snapshot(objects, "kai", now_s, pods, jobs, classes, rules=rules, policy="kai-like")
    total = {of: sum(node.has.get(of, 0.0) for node in seen.nodes) for _, of, _ in _UNITS}
    return replace(seen, tenants=_tenants(objects, total))


def _unzipped(file: Text) -> Text:
    if not file.text.startswith(b"PK\x03\x04"):
        return file
    whole = "a whole snapshot: it is cut off or damaged; get it again"
    try:
        with ZipFile(BytesIO(file.text)) as archive:
            (name,) = archive.namelist()
            with archive.open(name) as inner:
                text = inner.read((limits().mib << 20) + 1)
    except (BadZipFile, ValueError, OSError, EOFError, zlib.error, RuntimeError) as error:
        raise InputError(file.place, f"a zip file that cannot be read ({error})", whole) from None
    if len(text) > limits().mib << 20:
        raise InputError(file.place, f"more than {limits().mib} MiB", limits().at_most("mib"))
    return Text(f"{file.place}, {name}", text)


def _tenants(objects: Objects, total: Mapping[str, float]) -> tuple[Tenant, ...]:
    """Return the queues: −1 is without limit, and a limit that is not stated is 0.

    KAI gives what is over quota to whoever asks. A root above all queues, to which the whole
    cluster is guaranteed, says so.
    """
    queues = {queue.name: queue for queue in objects.of("Queue", _RUN)}
    root = "cluster/all" if "cluster" in queues else "cluster"
    whole = tuple(Quota(of=of, guaranteed=amount) for of, amount in total.items())
    found = {root: Tenant(name=root, quotas=whole)}
    above = {name: queue.text("spec", "parentQueue") for name, queue in queues.items()}
    for name in parents_first(objects.source, above, "queues"):
        queue = queues.get(name)
        if queue is None:
            objects.noted.add("queue that no file has, taken as one without quota", name)
            found[name] = Tenant(name=name, parent=root)
            continue
        quotas = []
        for key, of, unit in _UNITS:
            quota, limit, _ = _stated(queue, key)
            owned = total[of] if quota < 0 else quota / unit
            quotas.append(Quota(of=of, guaranteed=owned, limit=None if limit < 0 else limit / unit))
            if limit == 0:
                words = f"{key} of {name}"
                objects.noted.add("queue without a limit, which is 0: nothing may run", words)
        spans = [queue.text("spec", f"{kind}MinRuntime") for kind in ("preempt", "reclaim")]
        least = [0.0 if span is None else _seconds(span, queue) for span in spans]
        if least[0] != least[1]:
            what = "queue with two minimum run times, of which the shorter is read"
            objects.noted.add(what, name)
        order = queue.whole("spec", "priority")
        found[name] = Tenant(
            name=name,
            parent=above[name] or root,
            quotas=tuple(quotas),
            weight=_stated(queue, "gpu")[2],
            surplus_order=_QUEUE if order is None else order,
            min_run_s=min(least),
        )
    return tuple(found.values())


def _stated(queue: Doc, resource: str) -> list[float]:
    """Return quota, limit and weight of a queue."""
    found = []
    for field in ("quota", "limit", "overQuotaWeight"):
        value = queue.get("spec", "resources", resource, field)
        value = 0.0 if value is None else value
        if type(value) not in (int, float) or not -1 <= value < inf:
            raise queue.wrong("spec", "resources", resource, field, expected="a number from -1 on")
        found.append(float(value))
    return found


def _seconds(text: str, queue: Doc) -> float:
    """Return a duration of Go, such as ``1h30m``, in seconds."""
    parts = _SPAN.findall(text)
    if "".join(number + unit for number, unit in parts) != text and text != "0":
        found = f"the minimum run time {show(text)}"
        raise InputError(queue.place, found, 'a duration such as "5m"')
    return sum(float(number) * _SPANS[unit] for number, unit in parts)


class _PodGroups:
    """The pod groups of a snapshot, and the pods of none."""

    def __init__(self, objects: Objects, pods: Pods, classes: Classes) -> None:
        self.objects, self.pods, self.classes, self.noted = objects, pods, classes, objects.noted
        self._queues = {queue.name for queue in objects.of("Queue", _RUN)}
        self._bound = self._bindings()
        self._members: dict[tuple[str | None, str], list[Doc]] = {}
        self.others: list[Doc] = []
        groups = {(g.namespace, g.name) for g in objects.of("PodGroup", _RUN)}
        for pod in pods.live:
            key = (pod.namespace, pod.text("metadata", "annotations", "pod-group-name") or "")
            if key in groups:
                self._members.setdefault(key, []).append(pod)
            elif pod.namespace in _RESERVING:
                what = "pod that keeps a GPU for pods with a fraction of it, left out"
                self.noted.add(what, pod.id)
            else:
                self.others.append(pod)

    def _bindings(self) -> dict[str, str]:
        """Return the nodes of pods in flight by id: a request that has not failed is as placed."""
        found, known = {}, {pod.id for pod in self.pods.live}
        for each in self.objects.of("BindRequest", _RUN):
            id = each.id_of(each.text("spec", "podName") or each.name)
            node = each.text("spec", "selectedNode")
            if id not in known:
                self.noted.add("binding of a pod that no file has, left out", id)
            elif each.text("status", "phase") == "Failed":
                self.noted.add("binding that failed, left out", id)
            elif node not in self.pods.floor.labels:
                raise each.wrong("spec", "selectedNode", expected="one of the nodes")
            elif node is not None:
                found[id] = node
        return found

    def jobs(self) -> Iterator[SeenJob]:
        """Yield the jobs that the pod groups are."""
        for group in self.objects.of("PodGroup", _RUN):
            members = self._members.get((group.namespace, group.name), [])
            if members:
                yield from self._group(group, members)
            else:
                self.noted.add("pod group without pods, left out", group.id)

    def _group(self, group: Doc, members: list[Doc]) -> Iterator[SeenJob]:
        queue, name = group.text("spec", "queue"), group.text("spec", "priorityClassName")
        standard = _STANDARD if self.classes.standard is None else self.classes.standard
        rank = self.classes.values.get(name or "", standard)
        firm = "" if rank < _FIRM_FROM else "non-preemptible"
        least = group.whole("spec", "minMember")
        least = 1 if least is None else least
        if group.get("spec", "subGroups"):
            self.noted.add("sub-groups with minimums of their own, not read", group.id)
            least = None
        level = group.text("spec", "topologyConstraint", "requiredTopologyLevel")
        fields = gang_fields(self.pods, group.id, members, least, level)
        if queue not in self._queues:
            fields["blocked"] = f"its queue {queue} does not exist"
        pieces = {pod.id: piece for pod in members if (piece := self._shared(pod)) is not None}
        yield from self.pods.jobs(
            group.id,
            members,
            pieces=pieces,
            placed=self._bound,
            name=group.name,
            tenant=queue if queue in self._queues else None,
            priority=name,
            rank=rank,
            preemptible=(group.text("spec", "preemptibility") or firm) != "non-preemptible",
            **fields,
        )

    def _shared(self, pod: Doc) -> dict[str, Any] | None:
        """Return the piece of a pod with a fraction of a GPU, or of its memory; else None."""
        notes = pod.labels("metadata", "annotations")
        fraction, memory = notes.get("gpu-fraction"), notes.get("gpu-memory")
        if fraction is None and memory is None:
            return None
        share = _number(fraction)
        if share is None or share > 1:
            largest = self.pods.floor.gpu_memory_mib
            mib = _number(memory)
            if mib is None or not largest or mib > largest:
                what = "fraction of a GPU that cannot be read, taken as a whole one"
                self.noted.add(what, pod.id)
                share = 1.0
            else:
                share = mib / largest
        devices = _number(notes.get("gpu-fraction-num-devices")) or 1.0
        piece = self.pods.piece(pod)
        if devices > 1:
            self.noted.add("pod with fractions of several GPUs, taken as whole ones", pod.id)
        if devices > 1 or share == 1:
            return piece | {"per": piece["per"] | {GPUS: devices}}
        return piece | {"per": piece["per"] | {GPUS: share}, "share": share}


def _number(text: str | None) -> float | None:
    """Return a positive number; None for anything else, which KAI ignores."""
    value = number(text or "")
    return value if value > 0 else None
