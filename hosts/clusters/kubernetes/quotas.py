"""Kueue's queues, cohorts and flavors as tenants, partitions and GPU types."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from ronda.hosts.clusters.kubernetes.floor import Lots, NodeFloor
from ronda.hosts.clusters.kubernetes.objects import KUEUE, Doc, Objects
from ronda.hosts.clusters.kubernetes.podgroups import parents_first
from ronda.hosts.clusters.kubernetes.pods import reason_of
from ronda.hosts.clusters.kubernetes.quantities import own_unit
from ronda.instances.rules.problem import show
from ronda.instances.site import GPUS, Quota, Tenant

_POLICIES = {
    None: "never",
    "Never": "never",
    "LowerPriority": "lower",
    "LowerOrNewerEqualPriority": "lower-or-newer",
    "Any": "any",
}
_NO_FLAVOR = "no flavor"


class _Row(NamedTuple):
    nominal: Fraction
    borrow: Fraction | None
    lend: Fraction | None


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
        topologies = {each.name: each for each in objects.of("Topology", KUEUE)}
        self._levels = {
            name: [level.text("nodeLabel") or "" for level in each.docs("spec", "levels")]
            for name, each in topologies.items()
        }
        stated = [
            r
            for each in (*self._queues.values(), *self._cohorts.values())
            for r in _resources(each)
        ]
        self._names = list(dict.fromkeys(flavor for flavor, _ in stated))
        gpus = [flavor for flavor, each in stated if own_unit(each.text("name") or "")[0] == GPUS]
        self._types = list(dict.fromkeys(gpus))
        self._on = {flavor: self._nodes(flavor, floor) for flavor in self._names}
        self._narrow = any(len(nodes) < len(floor.labels) for nodes in self._on.values())

    def _nodes(self, flavor: str, floor: NodeFloor) -> frozenset[str]:
        if flavor not in self._flavors:
            self.noted.add("flavor that no file describes, taken to be all nodes", flavor)
            return frozenset(floor.labels)
        wanted = self._flavors[flavor].labels("spec", "nodeLabels").items()
        found = frozenset(name for name, labels in floor.labels.items() if wanted <= labels.items())
        if not found:
            self.noted.add("flavor with quota that no node has", flavor)
        return found

    def fill(self, lots: Lots, floor: NodeFloor) -> None:
        """Say of each node its partitions, its GPU type, and the levels of its racks."""
        topology = {}
        for name in floor.labels:
            own = [flavor for flavor in self._names if name in self._on[flavor]]
            if self._narrow:
                lots.partitions[name] = tuple(own) or (_NO_FLAVOR,)
            typed = [flavor for flavor in own if flavor in self._types]
            if len(self._types) > 1 and typed:
                lots.types[name] = max(typed, key=lambda f: len(self._labels(f)))
                if len(typed) > 1:
                    self.noted.add("node with several flavors of GPUs, told as the narrowest", name)
            named = (
                self._flavors[f].text("spec", "topologyName") for f in own if f in self._flavors
            )
            topology[name] = next((self._levels[t] for t in named if t in self._levels), [])
        lots.levels = topology.__getitem__

    def _labels(self, flavor: str) -> dict[str, str]:
        return self._flavors[flavor].labels("spec", "nodeLabels") if flavor in self._flavors else {}

    @property
    def tenants(self) -> tuple[Tenant, ...]:
        """All cohorts and queues, each after its parent."""
        above = {name: self._parent(name) for name in self._cohorts}
        above |= {c: self._parent(c) for each in self._queues.values() if (c := _cohort(each))}
        done: dict[str, Tenant] = {}
        for name in parents_first(self._source, above, "cohorts"):
            doc, parent = self._cohorts.get(name), self._parent(name)
            if doc is None:
                self.noted.add("cohort without an object, taken as one without quota", name)
            quotas = () if doc is None else self._quotas(doc, parent is not None)
            own = self._called(name)
            done[own] = Tenant(
                name=own,
                parent=parent and self._called(parent),
                quotas=quotas,
                weight=1.0 if doc is None else _weight(doc),
            )
        for name, doc in self._queues.items():
            parent = _cohort(doc)
            done[name] = Tenant(
                name=name,
                parent=parent and self._called(parent),
                quotas=self._quotas(doc, parent is not None),
                weight=_weight(doc),
            )
        return tuple(done.values())

    def _parent(self, cohort: str) -> str | None:
        doc = self._cohorts.get(cohort)
        if doc is None:
            return None
        return doc.text("spec", "parentName") or doc.text("spec", "parent")

    def _called(self, cohort: str) -> str:
        return f"cohort/{cohort}" if cohort in self._queues else cohort

    def _quotas(self, doc: Doc, has_parent: bool) -> tuple[Quota, ...]:
        sums: dict[str, list[_Row]] = {}
        for flavor, each in _resources(doc):
            name, unit = own_unit(each.text("name") or "")
            if name == GPUS and len(self._types) > 1:
                name = flavor
            stated = (
                each.amount(key) for key in ("nominalQuota", "borrowingLimit", "lendingLimit")
            )
            nominal, borrow, lend = (None if a is None else a / unit for a in stated)
            sums.setdefault(name, []).append(_Row(nominal or Fraction(0), borrow, lend))
        found = []
        for name, rows in sums.items():
            if len(rows) > 1:
                words = f"{name} of {doc.id}: {len(rows)} flavors"
                self.noted.add("quota summed over flavors, though a pod set has one", words)
            borrows = [row.borrow for row in rows if row.borrow is not None]
            lends = [row.nominal if row.lend is None else row.lend for row in rows]
            bounded = has_parent and len(borrows) == len(rows)
            keeps = has_parent and any(row.lend is not None for row in rows)
            found.append(
                Quota(
                    of=name,
                    guaranteed=float(sum(row.nominal for row in rows)),
                    borrow=float(sum(borrows)) if bounded else None,
                    lend=float(sum(lends)) if keeps else None,
                )
            )
        return tuple(found)

    def home(
        self, workload: Doc, asks: Sequence[str]
    ) -> tuple[str | None, str | None, tuple[str, ...]]:
        """Return the queue of a workload, why it may not start there, and its flavors.

        Parameters
        ----------
        workload
            The workload.
        asks
            The resources that it asks for, by Kubernetes' names.
        """
        local = self._local.get((workload.namespace, workload.text("spec", "queueName") or ""))
        name = workload.text("status", "admission", "clusterQueue")
        if name is None and local is not None:
            name = local.text("spec", "clusterQueue")
        if name is None:
            wanted = workload.text("spec", "queueName")
            if self._local and wanted:
                return None, f"its LocalQueue {wanted} does not exist", ()
            self.noted.add(
                "workload whose LocalQueue no file has, told without a tenant", workload.id
            )
            return None, None, ()
        queue = self._queues.get(name)
        if queue is None:
            return None, f"its ClusterQueue {name} does not exist", ()
        flavors: tuple[str, ...] = ()
        for group in queue.docs("spec", "resourceGroups"):
            covered = {*group.texts("coveredResources")} & {*asks}
            if covered and (not flavors or any(own_unit(r)[0] == GPUS for r in covered)):
                flavors = tuple(each.text("name") or "" for each in group.docs("flavors"))
        return name, self._stopped(queue, local), flavors

    def _stopped(self, queue: Doc, local: Doc | None) -> str | None:
        for kind, doc in (("ClusterQueue", queue), ("LocalQueue", local)):
            policy = doc and doc.text("spec", "stopPolicy")
            if doc and policy not in (None, "None"):
                return f"its {kind} {doc.name} is stopped ({policy})"
        active = queue.condition("Active")
        if active.text("status") == "False":
            return f"its ClusterQueue {queue.name} is not active ({reason_of(active)})"
        return None

    def partitions(self, flavors: Sequence[str]) -> tuple[str, ...]:
        """Return the partitions of a job that may have some flavors."""
        return tuple(f for f in flavors if f in self._on) if self._narrow else ()

    def tolerations(self, flavors: Sequence[str]) -> list[Doc]:
        """Return the tolerations that flavors give to their pods."""
        return [
            t
            for f in flavors
            if f in self._flavors
            for t in self._flavors[f].docs("spec", "tolerations")
        ]

    @property
    def policy(self) -> str:
        """The `kueue-like` policy with the rules of most queues."""
        found = Counter(map(self._rules, self._queues.values()))
        if not found:
            return "kueue-like"
        rules = found.most_common(1)[0][0]
        for name, queue in self._queues.items():
            if self._rules(queue) != rules:
                self.noted.add("queue with other rules of preemption than most", name)
        fair = any(
            e.get("status", "fairSharing")
            for e in (*self._queues.values(), *self._cohorts.values())
        )
        words = dict(rules)
        if fair:
            words = {"fair": "true"} | {k: v for k, v in words.items() if k != "borrow_within"}
        if not any(f.text("spec", "topologyName") for f in self._flavors.values()):
            words["tas"] = "false"
        return (
            f"kueue-like({','.join(f'{k}={v}' for k, v in words.items())})"
            if words
            else "kueue-like"
        )

    def _rules(self, queue: Doc) -> tuple[tuple[str, str], ...]:
        rules = (
            {"strategy": "strict"} if queue.text("spec", "queueingStrategy") == "StrictFIFO" else {}
        )
        own = queue.doc("spec", "preemption")
        keys = (
            ("reclaim", ("reclaimWithinCohort",)),
            ("within", ("withinClusterQueue",)),
            ("borrow_within", ("borrowWithinCohort", "policy")),
        )
        for name, path in keys:
            policy = own.text(*path)
            if policy not in _POLICIES:
                raise own.wrong(*path, expected=", ".join(p for p in _POLICIES if p))
            rules[name] = _POLICIES[policy]
        most = own.whole("borrowWithinCohort", "maxPriorityThreshold")
        if most is not None and rules["borrow_within"] == "lower":
            rules["borrow_within"] = f"lower:{most}"
        return tuple((key, value) for key, value in rules.items() if value != "never")


def _resources(doc: Doc) -> list[tuple[str, Doc]]:
    """Return the flavor and the quota of each resource of a queue or cohort."""
    groups = doc.docs("spec", "resourceGroups")
    flavors = [flavor for group in groups for flavor in group.docs("flavors")]
    return [
        (flavor.text("name") or show(None), each)
        for flavor in flavors
        for each in flavor.docs("resources")
    ]


def _cohort(queue: Doc) -> str | None:
    return queue.text("spec", "cohortName") or queue.text("spec", "cohort")


def _weight(doc: Doc) -> float:
    weight = doc.amount("spec", "fairSharing", "weight")
    if weight is not None and weight < 0:
        raise doc.wrong("spec", "fairSharing", "weight", expected="a weight of at least 0")
    return 1.0 if weight is None else float(weight)
