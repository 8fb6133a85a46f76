"""Kueue's queues, cohorts and flavors as tenants, partitions and GPU types."""

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from ronda.hosts.clusters.kubernetes.floor import NodeFloor, levels_of
from ronda.hosts.clusters.kubernetes.objects import KUEUE, Doc, Objects
from ronda.hosts.clusters.kubernetes.podgroups import parents_first
from ronda.hosts.clusters.kubernetes.pods import reason_of
from ronda.hosts.clusters.kubernetes.quantities import own_unit
from ronda.instances.site import GPUS, Quota, Tenant

_POLICIES = {
    "Never": "never",
    "LowerPriority": "lower",
    "LowerOrNewerEqualPriority": "lower-or-newer",
    "Any": "any",
}
_NO_FLAVOR = "no flavor"


class QueueHome(NamedTuple):
    """The ClusterQueue of a workload, why it may not start there, and the flavors there."""

    queue: str | None = None
    blocked: str | None = None
    flavors: tuple[str, ...] = ()


class KueueQuotas:
    """The tree of ClusterQueues and Cohorts, and the nodes of their flavors.

    Each flavor is a partition, as a pod set has one flavor. If GPUs have several flavors, these are
    the GPU types, and quotas of GPUs are quotas of types. Quotas of other resources are summed over
    flavors.
    """

    def __init__(self, objects: Objects, floor: NodeFloor) -> None:
        self.noted, self._source = objects.noted, objects.source
        self._queues = {each.name: each for each in objects.of("ClusterQueue", KUEUE)}
        self._cohorts = {each.name: each for each in objects.of("Cohort", KUEUE)}
        self._local = {(e.namespace, e.name): e for e in objects.of("LocalQueue", KUEUE)}
        self._flavors = {each.name: each for each in objects.of("ResourceFlavor", KUEUE)}
        self._levels = {each.name: levels_of(each) for each in objects.of("Topology", KUEUE)}
        self._all = [*self._queues.values(), *self._cohorts.values()]
        stated = [pair for each in self._all for pair in _resources(each)]
        self._names = list(dict.fromkeys(flavor for flavor, _ in stated))
        gpus = [flavor for flavor, each in stated if own_unit(each.text("name") or "")[0] == GPUS]
        self._types = list(dict.fromkeys(gpus))
        self._on = {flavor: self._nodes(flavor, floor) for flavor in self._names}
        self._narrow = any(len(nodes) < len(floor.labels) for nodes in self._on.values())
        self._fill(floor)
        for name, queue in self._queues.items():
            checks = ("admissionChecks", "admissionChecksStrategy")
            if any(queue.get("spec", key) for key in checks):
                self.noted.add("queue with admission checks, not read", name)

    def _nodes(self, flavor: str, floor: NodeFloor) -> frozenset[str]:
        if flavor not in self._flavors:
            self.noted.add("flavor that no file describes, taken to be all nodes", flavor)
        wanted = self._labels(flavor).items()
        found = frozenset(name for name, labels in floor.labels.items() if wanted <= labels.items())
        if not found:
            self.noted.add("flavor with quota that no node has", flavor)
        return found

    def _labels(self, flavor: str) -> dict[str, str]:
        return self._flavors[flavor].labels("spec", "nodeLabels") if flavor in self._flavors else {}

    def _fill(self, floor: NodeFloor) -> None:
        """Say of each node its partitions, its GPU type, and the levels of its racks."""
        levels: dict[str, list[str]] = {}
        for name in floor.labels:
            own = [flavor for flavor in self._names if name in self._on[flavor]]
            if self._narrow:
                floor.partitions[name] = tuple(own) or (_NO_FLAVOR,)
            typed = [flavor for flavor in own if flavor in self._types]
            if len(self._types) > 1 and typed:
                floor.types[name] = max(typed, key=lambda f: len(self._labels(f)))
                if len(typed) > 1:
                    self.noted.add("node with several flavors of GPUs, told as the narrowest", name)
            docs = [self._flavors[flavor] for flavor in own if flavor in self._flavors]
            named = (doc.text("spec", "topologyName") or "" for doc in docs)
            levels[name] = next((self._levels[t] for t in named if t in self._levels), [])
        floor.levels = levels.__getitem__

    @property
    def tenants(self) -> tuple[Tenant, ...]:
        """All cohorts and queues, each after its parent."""
        above = {name: self._parent(name) for name in self._cohorts}
        above |= {c: self._parent(c) for each in self._queues.values() if (c := _cohort(each))}
        found: list[tuple[str, Doc | None, str | None]] = []
        for name in parents_first(self._source, above, "cohorts"):
            if name not in self._cohorts:
                self.noted.add("cohort without an object, taken as one without quota", name)
            found.append((self._called(name), self._cohorts.get(name), self._parent(name)))
        found += [(name, doc, _cohort(doc)) for name, doc in self._queues.items()]
        return tuple(
            Tenant(
                name=name,
                parent=parent and self._called(parent),
                quotas=() if doc is None else self._quotas(doc, parent is not None),
                weight=1.0 if doc is None else _weight(doc),
            )
            for name, doc, parent in found
        )

    def _parent(self, cohort: str) -> str | None:
        doc = self._cohorts.get(cohort, Doc({}, cohort))
        return doc.text("spec", "parentName") or doc.text("spec", "parent")

    def _called(self, cohort: str) -> str:
        return f"cohort/{cohort}" if cohort in self._queues else cohort

    def _quotas(self, doc: Doc, has_parent: bool) -> tuple[Quota, ...]:
        stated: dict[str, list[tuple[Fraction, Fraction | None, Fraction | None]]] = {}
        for flavor, each in _resources(doc):
            name, unit = own_unit(each.text("name") or "")
            if name == GPUS and len(self._types) > 1:
                name = flavor
            keys = ("nominalQuota", "borrowingLimit", "lendingLimit")
            nominal, borrow, lend = (n and n / unit for n in map(each.amount, keys))
            stated.setdefault(name, []).append((nominal or Fraction(0), borrow, lend))
        found = []
        for name, rows in stated.items():
            if len(rows) > 1:
                words = f"{name} of {doc.id}: {len(rows)} flavors"
                self.noted.add("quota summed over flavors, though a pod set has one", words)
            borrows = [borrow for _, borrow, _ in rows if borrow is not None]
            lends = [nominal if lend is None else lend for nominal, _, lend in rows]
            keeps = has_parent and any(lend is not None for *_, lend in rows)
            capped = has_parent and len(borrows) == len(rows)
            quota = Quota(
                of=name,
                guaranteed=float(sum(nominal for nominal, *_ in rows)),
                borrow=float(sum(borrows)) if capped else None,
                lend=float(sum(lends)) if keeps else None,
            )
            found.append(quota)
        return tuple(found)

    def home(self, workload: Doc, asks: Iterable[str]) -> QueueHome:
        """Return the queue of a workload that asks for some resources of Kubernetes."""
        wanted = workload.text("spec", "queueName")
        local = self._local.get((workload.namespace, wanted or ""))
        name = workload.text("status", "admission", "clusterQueue")
        if name is None and local is not None:
            name = local.text("spec", "clusterQueue")
        if name is None and self._local and wanted:
            return QueueHome(blocked=f"its LocalQueue {wanted} does not exist")
        if name is None:
            self.noted.add("workload whose LocalQueue no file has, without a tenant", workload.id)
            return QueueHome()
        queue = self._queues.get(name)
        if queue is None:
            return QueueHome(blocked=f"its ClusterQueue {name} does not exist")
        flavors: tuple[str, ...] = ()
        for group in queue.docs("spec", "resourceGroups"):
            covered = {*group.texts("coveredResources")} & {*asks}
            if covered and (not flavors or any(own_unit(r)[0] == GPUS for r in covered)):
                flavors = tuple(each.text("name") or "" for each in group.docs("flavors"))
        return QueueHome(name, self._stopped(queue, local), flavors)

    def _stopped(self, queue: Doc, local: Doc | None) -> str | None:
        for kind, doc in (("ClusterQueue", queue), ("LocalQueue", local)):
            policy = doc and doc.text("spec", "stopPolicy")
            if doc and policy not in (None, "None"):
                return f"its {kind} {doc.name} is stopped ({policy})"
        inactive = reason_of(queue.condition("Active"), "False")
        return inactive and f"its ClusterQueue {queue.name} is not active ({inactive})"

    def partitions(self, flavors: Sequence[str]) -> tuple[str, ...]:
        """Return the partitions of a job that may have some flavors."""
        return tuple(f for f in flavors if f in self._on) if self._narrow else ()

    def tolerations(self, flavors: Sequence[str]) -> list[Doc]:
        """Return the tolerations that flavors give to their pods."""
        docs = [self._flavors[flavor] for flavor in flavors if flavor in self._flavors]
        return [each for doc in docs for each in doc.docs("spec", "tolerations")]

    @property
    def policy(self) -> str:
        """The `kueue-like` policy with the rules of most queues."""
        found = {name: _rules(queue) for name, queue in self._queues.items()}
        rules = dict(Counter(found.values()).most_common(1)[0][0]) if found else {}
        for name, own in found.items():
            if dict(own) != rules:
                self.noted.add("queue with other rules of preemption than most", name)
        if any(each.get("status", "fairSharing") for each in self._all):
            rules.pop("borrow_within", None)
            rules["fair"] = "true"
        if not any(each.text("spec", "topologyName") for each in self._flavors.values()):
            rules["tas"] = "false"
        words = ",".join(f"{key}={value}" for key, value in rules.items())
        return f"kueue-like({words})" if words else "kueue-like"


def _rules(queue: Doc) -> tuple[tuple[str, str], ...]:
    """Return the parameters of `kueue-like` in which a queue differs from the defaults."""
    own, rules = queue.doc("spec", "preemption"), {}
    if queue.text("spec", "queueingStrategy") == "StrictFIFO":
        rules["strategy"] = "strict"
    for name, *path in (
        ("reclaim", "reclaimWithinCohort"),
        ("within", "withinClusterQueue"),
        ("borrow_within", "borrowWithinCohort", "policy"),
    ):
        policy = own.text(*path) or "Never"
        if policy not in _POLICIES:
            raise own.wrong(*path, expected=", ".join(_POLICIES))
        rules[name] = _POLICIES[policy]
    most = own.whole("borrowWithinCohort", "maxPriorityThreshold")
    if most is not None and rules["borrow_within"] == "lower":
        rules["borrow_within"] = f"lower:{most}"
    return tuple((key, value) for key, value in rules.items() if value != "never")


def _resources(doc: Doc) -> list[tuple[str, Doc]]:
    """Return the flavor and the quota of each resource of a queue or cohort."""
    groups = doc.docs("spec", "resourceGroups")
    flavors = [flavor for group in groups for flavor in group.docs("flavors")]
    return [(flavor.text("name") or "", e) for flavor in flavors for e in flavor.docs("resources")]


def _cohort(queue: Doc) -> str | None:
    return queue.text("spec", "cohortName") or queue.text("spec", "cohort")


def _weight(doc: Doc) -> float:
    weight = doc.amount("spec", "fairSharing", "weight")
    if weight is not None and weight < 0:
        raise doc.wrong("spec", "fairSharing", "weight", expected="a weight of at least 0")
    return 1.0 if weight is None else float(weight)
