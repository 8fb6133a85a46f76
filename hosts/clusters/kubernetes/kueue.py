"""Kueue's workloads as jobs: v1beta1 and v1beta2 of ``kueue.x-k8s.io``, as of Kueue 0.19."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from math import ceil
from typing import Any, NamedTuple

import msgspec

from ronda.hosts.clusters.kubernetes.classes import Classes
from ronda.hosts.clusters.kubernetes.devices import devices_of
from ronda.hosts.clusters.kubernetes.floor import HOST, Lots
from ronda.hosts.clusters.kubernetes.objects import KUEUE, Doc, Objects
from ronda.hosts.clusters.kubernetes.podgroups import jobs_of, snapshot
from ronda.hosts.clusters.kubernetes.pods import Pods, reason_of
from ronda.hosts.clusters.kubernetes.quotas import KueueQuotas
from ronda.hosts.clusters.read import Text
from ronda.instances.errors import InputError
from ronda.instances.job import Slices
from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import Noted, SeenJob, Snapshot

_OWNER_LABELS = (
    "batch.kubernetes.io/job-name",
    "job-name",
    "jobset.sigs.k8s.io/jobset-name",
    "training.kubeflow.org/job-name",
    "ray.io/cluster",
    "leaderworkerset.sigs.k8s.io/name",
)
_MANAGED = (f"{KUEUE}/managed", f"{KUEUE}/queue-name", f"{KUEUE}/local-queue-name")


def read_kueue(files: Sequence[Text], now_s: float | None) -> Snapshot:
    """Return a cluster from Kueue's objects, its nodes and its pods (``kubectl get … -A``)."""
    objects = Objects(files, Noted())
    workloads = objects.of("Workload", KUEUE)
    if not workloads and not objects.of("ClusterQueue", KUEUE):
        raise InputError(objects.source, "no Workload and no ClusterQueue", "Kueue's objects")
    pods, lots = Pods(objects), Lots(devices=devices_of(objects))
    quotas, classes = (
        KueueQuotas(objects, pods.floor),
        Classes(objects, "WorkloadPriorityClass", "PriorityClass"),
    )
    own, others = _shared_out(workloads, pods)
    jobs: list[SeenJob] = []
    for workload in workloads:
        jobs += _Reader(workload, pods, quotas, own[workload.id]).jobs()
    more, _ = jobs_of(objects, pods, others, lots, own=False)
    quotas.fill(lots, pods.floor)
    return snapshot(
        objects,
        "kueue",
        now_s,
        pods,
        lots,
        [*jobs, *more],
        classes,
        tenants=quotas.tenants,
        policy=quotas.policy,
    )


def _shared_out(workloads: Sequence[Doc], pods: Pods) -> tuple[dict[str, list[Doc]], list[Doc]]:
    """Return the pods of each workload by its id, and the pods of none."""
    by_uid, by_owner = dict[str, str](), dict[tuple[str | None, str], str]()
    ids = {workload.id for workload in workloads}
    for workload in workloads:
        for owner in workload.docs("metadata", "ownerReferences"):
            by_uid[owner.text("uid") or ""] = workload.id
            by_owner[workload.namespace, owner.text("name") or ""] = workload.id
    by_uid.pop("", None)
    own, others = defaultdict[str, list[Doc]](list), list[Doc]()
    for pod in pods.live:
        labels, notes = pod.labels("metadata", "labels"), pod.labels("metadata", "annotations")
        named = [notes.get(f"{KUEUE}/workload"), labels.get(f"{KUEUE}/pod-group-name")]
        uids = [owner.text("uid") for owner in pod.docs("metadata", "ownerReferences")]
        found = [f"{pod.namespace}/{name}" if pod.namespace else name for name in named if name]
        found += [by_uid[uid] for uid in (pod.text("metadata", "uid"), *uids) if uid in by_uid]
        keys = [(pod.namespace, labels[label]) for label in _OWNER_LABELS if label in labels]
        found += [by_owner[key] for key in keys if key in by_owner]
        mine = next((id for id in found if id in ids), None)
        if mine is not None:
            own[mine].append(pod)
        elif {*_MANAGED} & labels.keys() and pods.node(pod) is None:
            pods.noted.add("pod of a workload that no file has, left out", pod.id)
        else:
            others.append(pod)
    return own, others


class _Members(NamedTuple):
    """How many pieces a pod set has, the fewest, and how many are on each node."""

    pieces: int
    least: int | None
    on: Counter[str]


class _Reader:
    """A workload, its queue, and its pods."""

    def __init__(self, workload: Doc, pods: Pods, quotas: KueueQuotas, own: list[Doc]) -> None:
        self.doc, self.pods, self.own, self.noted = workload, pods, own, pods.noted
        self.admission = {
            e.text("name"): e for e in workload.docs("status", "admission", "podSetAssignments")
        }
        self.admitted = workload.holds("QuotaReserved") or bool(self.admission)
        self.quotas = quotas

    def jobs(self) -> Iterator[SeenJob]:
        """Yield the jobs of the workload: one for each shape of its pods, on nodes or waiting."""
        if self.doc.holds("Finished"):
            self.noted.add("finished workload, left out", self.doc.id)
            return
        shapes: dict[bytes, tuple[dict[str, Any], list[_Members]]] = {}
        common, pod_sets = self._common(), self.doc.docs("spec", "podSets")
        if not pod_sets:
            raise InputError(self.doc.place, "no spec.podSets", "at least one")
        for pod_set in pod_sets:
            fields, members = self._pod_set(pod_set)
            shapes.setdefault(msgspec.json.encode(fields), (fields, []))[1].append(members)
        found = sorted(
            shapes.values(), key=lambda s: -s[0]["per"].get(GPUS, 0) * sum(m.pieces for m in s[1])
        )
        if len(found) > 1:
            words = "workload of pod sets of different shapes, of which each is a job of its own"
            self.noted.add(words, self.doc.id)
        for k, (fields, sets) in enumerate(found):
            id = self.doc.id if k == 0 else f"{self.doc.id}#{k}"
            on = sum((each.on for each in sets), Counter[str]())
            count, placed = sum(each.pieces for each in sets), on.total()
            least = sum(m.pieces if m.least is None else m.least for m in sets)
            if placed:
                yield SeenJob(id=id, count=placed, on=dict(on), **common | fields)
            if placed < count:
                if self.admitted:
                    words = "admitted workload whose pods wait for nodes, and hold their quota"
                    self.noted.add(words, self.doc.id)
                yield SeenJob(
                    id=f"{id}#waiting" if placed else id,
                    count=count - placed,
                    least=max(1, least - placed) if least < count else None,
                    blocked=self.blocked,
                    reason=self._reason(),
                    **common | fields | {"start_s": None, "ends_s": None},
                )

    def _common(self) -> dict[str, Any]:
        spec, status = self.doc.doc("spec"), self.doc.doc("status")
        boost = self.doc.text("metadata", "annotations", f"{KUEUE}/priority-boost") or "0"
        if not boost.lstrip("+-").isdecimal():
            raise self.doc.wrong(
                "metadata", "annotations", expected="a whole number as priority boost"
            )
        rank = (spec.whole("priority") or 0) + int(boost)
        asks = [
            r
            for e in spec.docs("podSets")
            for r in self.pods.asks(e.doc("template", "spec"), self.doc.namespace)
        ]
        tenant, self.blocked, self.flavors = self.quotas.home(self.doc, asks)
        if spec.flag("active") is False:
            self.blocked = "inactive (spec.active is false)"
        start_s = self.doc.condition(
            "Admitted" if self.doc.holds("Admitted") else "QuotaReserved"
        ).time_s("lastTransitionTime")
        limit_s = spec.whole("maximumExecutionTimeSeconds")
        past = ("accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds")
        ran_s = next((s for s in map(status.whole, past) if s is not None), 0)
        owners = self.doc.docs("metadata", "ownerReferences")
        evictions = status.docs("schedulingStats", "evictions")
        return {
            "name": owners[0].text("name") if owners else self.doc.name,
            "tenant": tenant,
            "priority": spec.text("priorityClassRef", "name") or spec.text("priorityClassName"),
            "rank": rank,
            "submit_s": self.doc.time_s("metadata", "creationTimestamp") or 0.0,
            "eligible_s": status.time_s("requeueState", "requeueAt"),
            "start_s": start_s,
            "limit_s": limit_s,
            "ends_s": None if not limit_s or start_s is None else start_s + limit_s - ran_s,
            "restarts": sum(each.whole("count") or 0 for each in evictions),
        }

    def _pod_set(self, pod_set: Doc) -> tuple[dict[str, Any], _Members]:
        """Return the fields that each piece of a pod set determines, and its members."""
        name, count = pod_set.text("name"), pod_set.whole("count")
        count = 1 if count is None else count
        assigned = self.admission.get(name)
        flavors = self.flavors
        if assigned is not None:
            flavors = tuple(dict.fromkeys(assigned.labels("flavors").values())) or flavors
            admitted = assigned.whole("count")
            count = count if admitted is None else admitted
        free = (
            e.whole("count") or 0
            for e in self.doc.docs("status", "reclaimablePods")
            if e.text("name") == name
        )
        count -= sum(free)
        spec = pod_set.doc("template", "spec")
        fields = self.pods.piece(spec, self.doc.namespace, more=self.quotas.tolerations(flavors))
        fields["partitions"] = self.quotas.partitions(flavors)
        fields |= self._topology(pod_set, fields, count)
        on = self._nodes(name, assigned)
        size = round(fields.pop("size", 1))
        return fields, _Members(
            max(0, count) // size,
            pod_set.whole("minCount"),
            Counter({node: n // size for node, n in on.items() if n >= size}),
        )

    def _nodes(self, pod_set: str | None, assigned: Doc | None) -> Counter[str]:
        """Return the number of pods on each node: of pods that are there, else as assigned."""
        label, several = f"{KUEUE}/podset", len(self.doc.docs("spec", "podSets")) > 1
        mine = [
            p
            for p in self.own
            if not several or p.text("metadata", "labels", label) in (pod_set, None)
        ]
        if self.own:
            if several and mine and mine[0].text("metadata", "labels", label) is None:
                raise InputError(
                    mine[0].place,
                    f"no label {label}",
                    "the pod set of each pod of a workload with several",
                )
            return Counter(node for pod in mine if (node := self.pods.node(pod)) is not None)
        told = assigned is not None and assigned.get("topologyAssignment") is not None
        if assigned is not None and told:
            return _assigned(assigned.doc("topologyAssignment"), self.noted)
        if self.admitted and not self.pods.live:
            expected = "the pods as well (kubectl get pods -A -o json), which say where it runs"
            raise InputError(self.doc.place, "an admitted workload, and no pods", expected)
        return Counter()

    def _topology(self, pod_set: Doc, fields: dict[str, Any], count: int) -> dict[str, Any]:
        """Return the fields that say in which racks the pods are, and how many are one piece."""
        asked = pod_set.doc("topologyRequest")
        level, layer, size = (
            asked.text("required"),
            asked.text("podSetSliceRequiredTopology"),
            asked.whole("podSetSliceSize"),
        )
        for key in ("preferred", "podsetSliceRequiredTopologyConstraints"):
            if asked.get(key):
                self.noted.add(f"topology request ({key}), not read", self.doc.id)
        if level == HOST:
            return {"one_node": True}
        if layer == HOST and size and count % size == 0:
            return {
                "per": {of: n * size for of, n in fields["per"].items()},
                "part": None,
                "size": size,
            }
        if layer is None and level is None:
            return {}
        each, largest = fields["per"].get(GPUS, 0), self.pods.floor.largest(GPUS)
        if not each or each > largest:
            self.noted.add("topology request of pods without GPUs, not read", self.doc.id)
            return {}
        nodes = ceil((size if layer and size else count) / (largest // each))
        return {
            "slices": Slices(
                nodes=nodes, within=layer or level or "", together=level if layer else None
            )
        }

    def _reason(self) -> str | None:
        for kind in ("QuotaReserved", "Admitted", "Evicted"):
            condition = self.doc.condition(kind)
            if condition.text("status") == ("True" if kind == "Evicted" else "False"):
                return reason_of(condition)
        return None


def _assigned(topology: Doc, noted: Noted) -> Counter[str]:
    """Return the pods on each node: in domains (v1beta1), or in slices of domains (v1beta2)."""
    levels = topology.texts("levels")
    if not levels or levels[-1] != HOST:
        noted.add("assignment to racks in place of nodes, not read", topology.place)
        return Counter()
    found = Counter[str]()
    for domain in topology.docs("domains"):
        found[(domain.texts("values") or [""])[-1]] += domain.whole("count") or 0
    for part in topology.docs("slices"):
        values = (part.docs("valuesPerLevel") or [part])[-1]
        begin, end = (values.text("individual", key) or "" for key in ("prefix", "suffix"))
        roots, whole = values.texts("individual", "roots"), values.text("universal")
        names = [begin + root + end for root in roots] if whole is None else [whole]
        counts = part.get("podCounts", "individual") or [
            part.whole("podCounts", "universal") or 0
        ] * len(names)
        if len(counts) != len(names) or not all(type(n) is int for n in counts):
            raise part.wrong(
                "podCounts", expected=f"a number of pods for each of {len(names)} nodes"
            )
        for name, count in zip(names, counts, strict=True):
            found[name] += count
    return found
