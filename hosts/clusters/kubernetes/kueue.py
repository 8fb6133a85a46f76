"""Kueue's workloads as jobs: v1beta1 and v1beta2 of ``kueue.x-k8s.io``, as of Kueue 0.19."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from ronda.hosts.clusters.kubernetes.classes import Classes
from ronda.hosts.clusters.kubernetes.floor import HOST
from ronda.hosts.clusters.kubernetes.objects import KUEUE, Doc, Objects
from ronda.hosts.clusters.kubernetes.podgroups import jobs_of, snapshot
from ronda.hosts.clusters.kubernetes.pods import Members, Pods, jobs_of_members, reason_of
from ronda.hosts.clusters.kubernetes.quotas import KueueQuotas
from ronda.hosts.clusters.read import Text
from ronda.instances.errors import InputError
from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import Noted, SeenJob, Snapshot

BOOST = f"{KUEUE}/priority-boost"
"""The annotation of a workload that is added to its priority."""

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
    pods = Pods(objects)
    quotas, jobs = KueueQuotas(objects, pods.floor), list[SeenJob]()
    own, others = _shared_out(workloads, pods)
    for workload in workloads:
        if workload.holds("Finished"):
            pods.noted.add("finished workload, left out", workload.id)
        else:
            jobs += _Reader(workload, pods, quotas, own[workload.id]).jobs()
    jobs += jobs_of(objects, pods, others, own=False)
    rules = {"tenants": quotas.tenants, "policy": quotas.policy}
    return snapshot(objects, "kueue", now_s, pods, jobs, Classes(objects), **rules)


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
        found = [pod.id_of(name) for name in named if name]
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


def boost_of(workload: Doc) -> int:
    """Return the number that is added to the priority of a workload (Kueue's KEP-7990)."""
    boost = workload.text("metadata", "annotations", BOOST) or "0"
    if not re.fullmatch(r"[+-]?\d{1,10}", boost, re.ASCII) or abs(int(boost)) >= 2**31:
        expected = "a whole priority-boost of 32 bits"
        raise workload.wrong("metadata", "annotations", expected=expected)
    return int(boost)


class _Reader:
    """A workload, its queue, and its pods."""

    def __init__(self, workload: Doc, pods: Pods, quotas: KueueQuotas, own: list[Doc]) -> None:
        self.doc, self.pods, self.quotas, self.own = workload, pods, quotas, own
        self.sets = workload.docs("spec", "podSets")
        if not self.sets:
            raise InputError(workload.place, "no spec.podSets", "at least one")
        given = workload.docs("status", "admission", "podSetAssignments")
        self.given = {each.text("name"): each for each in given}
        self.admitted = workload.holds("QuotaReserved") or bool(given)
        self.specs = [each.doc("template", "spec") for each in self.sets]
        asks = [of for spec in self.specs for of in pods.asks(workload, spec)]
        self.home = quotas.home(workload, asks)

    def jobs(self) -> Iterator[SeenJob]:
        """Yield the jobs of the workload: one for each shape of its pods, on nodes or waiting."""
        spec, status, noted = self.doc.doc("spec"), self.doc.doc("status"), self.pods.noted
        begun = self.doc.condition("Admitted" if self.doc.holds("Admitted") else "QuotaReserved")
        start_s = begun.time_s("lastTransitionTime") if self.admitted else None
        limit_s = spec.whole("maximumExecutionTimeSeconds")
        past = ("accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds")
        ran_s = sum(s for s in map(status.whole, past) if s)  # one of them, by version
        owners = self.doc.docs("metadata", "ownerReferences")
        evictions = status.docs("schedulingStats", "evictions")
        common = {
            "name": owners[0].text("name") if owners else self.doc.name,
            "tenant": self.home.queue,
            "priority": spec.text("priorityClassRef", "name") or spec.text("priorityClassName"),
            "rank": (spec.whole("priority") or 0) + boost_of(self.doc),
            "submit_s": self.doc.time_s("metadata", "creationTimestamp") or 0.0,
            "eligible_s": status.time_s("requeueState", "requeueAt"),
            "start_s": start_s,
            "limit_s": limit_s,
            "ends_s": start_s + limit_s - ran_s if limit_s and start_s is not None else None,
            "restarts": sum(each.whole("count") or 0 for each in evictions),
        }
        inactive = spec.flag("active") is False
        waits = {
            "blocked": "inactive (spec.active is false)" if inactive else self.home.blocked,
            "reason": reason_of(self.doc.condition("QuotaReserved"), "False")
            or reason_of(self.doc.condition("Admitted"), "False"),
        }
        members = [self._members(each, waits) for each in zip(self.sets, self.specs, strict=True)]
        if self.admitted and any(each.on.total() < each.pieces for each in members):
            noted.add("admitted workload whose pods wait, and hold their quota", self.doc.id)
        yield from jobs_of_members(self.doc.id, members, common, noted)

    def _members(self, pair: tuple[Doc, Doc], waits: dict[str, Any]) -> Members:
        pod_set, spec = pair
        name, given = pod_set.text("name"), self.given.get(pod_set.text("name"), Doc({}, ""))
        flavors = tuple(dict.fromkeys(given.labels("flavors").values())) or self.home.flavors
        counts = (given.whole("count"), pod_set.whole("count"))
        count = next((n for n in counts if n is not None), 1)
        for each in self.doc.docs("status", "reclaimablePods"):
            count -= (each.whole("count") or 0) * (each.text("name") == name)
        piece = self.pods.piece(self.doc, spec, self.quotas.tolerations(flavors))
        piece["partitions"] = self.quotas.partitions(flavors)
        size = self._topology(pod_set, piece, count)
        on = Counter({node: n // size for node, n in self._nodes(name, given).items() if n >= size})
        count, least = max(0, count) // size, pod_set.whole("minCount")
        return Members(piece, count, count if least is None else least // size, on, waits)

    def _nodes(self, pod_set: str | None, given: Doc) -> Counter[str]:
        """Return the number of pods on each node: of pods that are there, else as assigned."""
        labels = [pod.text("metadata", "labels", f"{KUEUE}/podset") for pod in self.own]
        if len(self.sets) > 1 and None in labels:
            pod = self.own[labels.index(None)]
            expected = "the pod set of each pod of a workload with several"
            raise InputError(pod.place, f"no label {KUEUE}/podset", expected)
        if self.own:
            pairs = zip(self.own, labels, strict=True)
            mine = [pod for pod, label in pairs if label == pod_set or len(self.sets) == 1]
            return Counter(node for pod in mine if (node := self.pods.node(pod)) is not None)
        if given.get("topologyAssignment") is not None:
            return _assigned(given.doc("topologyAssignment"), self.pods.noted)
        if self.admitted and not self.pods.live:
            expected = "the pods as well (kubectl get pods -A -o json), which say where it runs"
            raise InputError(self.doc.place, "an admitted workload, and no pods", expected)
        return Counter()

    def _topology(self, pod_set: Doc, piece: dict[str, Any], count: int) -> int:
        """Say of a piece in which racks the pods are, and return how many pods it is."""
        asked, noted, size = pod_set.doc("topologyRequest"), self.pods.noted, 1
        level, layer = asked.text("required"), asked.text("podSetSliceRequiredTopology")
        whole = asked.whole("podSetSliceSize") or count
        for key in ("preferred", "podsetSliceRequiredTopologyConstraints"):
            if asked.get(key):
                noted.add(f"topology request ({key}), not read", self.doc.id)
        if layer == HOST and whole > 0 and count % whole == 0:
            piece["per"] = {of: n * whole for of, n in piece["per"].items()}
            size, layer, whole = whole, None, count // whole
        if level == HOST:
            piece["one_node"] = True
        elif level or layer:
            within, together = (layer, level) if layer else (level, None)
            gpus = piece["per"].get(GPUS, 0.0)
            args = (self.doc.id, gpus * whole, gpus, within or "", together)
            piece["slices"] = self.pods.slices(*args)
        return size


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
        each = part.whole("podCounts", "universal")
        counts = part.get("podCounts", "individual") if each is None else [each] * len(names)
        if not isinstance(counts, list) or [type(n) for n in counts] != [int] * len(names):
            expected = f"a number of pods for each of {len(names)} nodes"
            raise part.wrong("podCounts", expected=expected)
        for name, count in zip(names, counts, strict=True):
            found[name] += count
    return found
