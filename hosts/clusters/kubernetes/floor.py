"""The nodes of a Kubernetes cluster, and which of them a pod may use."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

from ronda.hosts.clusters.kubernetes.devices import Devices, devices_of
from ronda.hosts.clusters.kubernetes.objects import Doc, Objects
from ronda.hosts.clusters.kubernetes.quantities import MIG, own_units, part_of
from ronda.instances.cluster import BUILT_IN, Parts
from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import SeenNode

HOST = "kubernetes.io/hostname"

_MODELS = ("nvidia.com/gpu.product", "amd.com/gpu.product-name", "cloud.google.com/gke-accelerator")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NOWHERE = "a node that its affinity asks for"


class NodeFloor:
    """The nodes, and what readers of jobs find out about them.

    By the name of a node, these are its `labels`, its `partitions`, its GPU type in `types` if that
    is not its labels', and its `levels`, which are the labels that name its racks from the
    outermost. Jobs may share a GPU if `shared`.
    """

    def __init__(self, objects: Objects) -> None:
        self.noted = objects.noted
        self._docs = objects.of("Node")
        self._devices = devices_of(objects)
        self.labels = {node.name: node.labels("metadata", "labels") for node in self._docs}
        self.partitions: dict[str, tuple[str, ...]] = {}
        self.types: dict[str, str] = {}
        self.levels: Callable[[str], Sequence[str]] = lambda name: ()
        self.shared = False
        self._taints = {
            node.name: [
                tuple(taint.text(key) for key in ("key", "value", "effect"))
                for taint in node.docs("spec", "taints")
                if taint.text("effect") != "PreferNoSchedule"
                and not (taint.text("key") or "").startswith("node.kubernetes.io/")
            ]
            for node in self._docs
        }
        self._held: dict[str, dict[str, Fraction]] = {}
        self._asked: set[str] = set()
        self._off = cache(self._untolerated)

    @property
    def gpu_memory_mib(self) -> int:
        """The largest memory of a GPU, or 0."""
        return max(map(_memory_mib, self.labels.values()), default=0)

    @cached_property
    def most_gpus(self) -> float:
        """The most GPUs that a node has."""
        offers = (node.amounts("status", "allocatable") for node in self._docs)
        return max((own_units(each).get(GPUS, 0.0) for each in offers), default=0.0)

    def hold(self, node: str, asks: Mapping[str, Fraction]) -> None:
        """Count what a pod that belongs to no job holds on a node."""
        own = self._held.setdefault(node, {})
        own |= {of: own.get(of, Fraction(0)) + amount for of, amount in asks.items()}

    def rules(self, spec: Doc, more: Sequence[Doc] = ()) -> dict[str, Any]:
        """Return the fields of a job that say which nodes its pods may use.

        A pod's own tolerations and `more` count.
        """
        asked = {f"{key}={value}" for key, value in spec.labels("nodeSelector").items()}
        terms = spec.docs("affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms")
        able = tuple(n for n in self.labels if any(self._fits(n, t) for t in terms))
        if terms and not able:
            asked.add(_NOWHERE)
        self._asked |= asked
        apart = False
        for kind in ("podAffinity", "podAntiAffinity"):
            for rule in spec.docs("affinity", kind, _REQUIRED):
                host = kind == "podAntiAffinity" and rule.text("topologyKey") == HOST
                words = "taken as apart from its job's own pods" if host else "not read"
                self.noted.add(f"affinity of a pod to others, {words}", rule.place)
                apart = apart or host
        tolerations = frozenset(
            tuple(each.text(key) for key in ("key", "operator", "value", "effect"))
            for each in (*spec.docs("tolerations"), *more)
        )
        return {
            "features": tuple(sorted(asked)),
            "nodes": able if len(able) < len(self.labels) else (),
            "not_nodes": self._off(tolerations),
            "own_nodes": apart,
        }

    def _fits(self, node: str, term: Doc) -> bool:
        checks = [(self.labels[node], rule) for rule in term.docs("matchExpressions")]
        checks += [({"metadata.name": node}, rule) for rule in term.docs("matchFields")]
        return bool(checks) and all(_matches(own, rule) for own, rule in checks)

    def _untolerated(self, tolerations: frozenset[tuple[str | None, ...]]) -> tuple[str, ...]:
        return tuple(
            name
            for name, taints in self._taints.items()
            if any(not any(_tolerates(t, taint) for t in tolerations) for taint in taints)
        )

    def seen(self) -> tuple[SeenNode, ...]:
        """Return all nodes."""
        return tuple(self._node(node, self.labels[node.name]) for node in self._docs)

    def _node(self, node: Doc, labels: Mapping[str, str]) -> SeenNode:
        name, devices = node.name, self._devices.get(node.name, Devices())
        offers = node.amounts("status", "allocatable") or node.amounts("status", "capacity")
        cut, parts = self._cut(name, offers)
        held = self._held.get(name, {})
        for of in (of for of, n in held.items() if n > offers.get(of, n)):
            self.noted.add("node overbooked by pods that are no jobs", f"{of} of {name}")
        has = own_units({of: max(0 * n, n - held.get(of, 0)) for of, n in offers.items()})
        if devices.gpus or cut:
            has[GPUS] = float(devices.gpus or labels["nvidia.com/gpu.count"])
        model = next((labels[key] for key in _MODELS if key in labels), None)
        return SeenNode(
            name=name,
            has=has,
            gpu_type=self.types.get(name) or devices.model or model,
            gpu_memory_gib=devices.memory_gib or _memory_mib(labels) / 1024 or None,
            partitions=self.partitions.get(name, ()),
            features=tuple(f"{k}={v}" for k, v in labels.items() if f"{k}={v}" in self._asked),
            racks=tuple((k, labels[k]) for k in self.levels(name) if k in labels and k != HOST),
            out=_out(node),
            parts=devices.parts or parts,
            cut=cut,
            recut="free" if devices.parts else "never",
            shared=self.shared,
        )

    def _cut(
        self, node: str, offers: Mapping[str, Fraction]
    ) -> tuple[tuple[str, ...], Parts | None]:
        """Return the parts of each GPU, and the ways to cut one, if all GPUs are cut alike."""
        counts = {part_of(r): int(n) for r, n in offers.items() if r.startswith(MIG) and n}
        if not counts:
            return (), None
        told = self.labels[node].get("nvidia.com/gpu.count", "")
        gpus = int(told) if told.isdecimal() and len(told) < 10 else 0
        if gpus and not own_units(offers).get(GPUS) and not any(n % gpus for n in counts.values()):
            each = {part: n // gpus for part, n in counts.items()}
            for parts in BUILT_IN.values():
                made = [p.memory * each[p.name] for p in parts.profiles if p.name in each]
                if len(made) == len(each) and sum(made) <= parts.memory:
                    return tuple(part for part in sorted(each) for _ in range(each[part])), parts
        self.noted.add("node with parts of GPUs not cut alike, told as resources only", node)
        return (), None


def levels_of(topology: Doc) -> list[str]:
    """Return the labels that name the racks of a Topology, from the outermost."""
    return [level.text("nodeLabel") or "" for level in topology.docs("spec", "levels")]


def _memory_mib(labels: Mapping[str, str]) -> int:
    told = labels.get("nvidia.com/gpu.memory", "")
    return int(told) if told.isdecimal() and len(told) < 10 else 0


def _out(node: Doc) -> str | None:
    if node.flag("spec", "unschedulable"):
        return "cordoned"
    ready = node.condition("Ready")
    if ready.value and ready.text("status") != "True":
        return f"not ready ({ready.text('reason') or ready.text('status')})"
    return None


def _tolerates(toleration: tuple[str | None, ...], taint: tuple[str | None, ...]) -> bool:
    key, operator, value, effect = toleration
    if effect and effect != taint[2]:
        return False
    if operator == "Exists":
        return not key or key == taint[0]
    return key == taint[0] and value == taint[1]


def _matches(labels: Mapping[str, str], rule: Doc) -> bool:
    own, operator = labels.get(rule.text("key") or ""), rule.text("operator")
    values = rule.texts("values")
    if operator in ("In", "NotIn"):
        return (own in values) == (operator == "In")
    if operator in ("Exists", "DoesNotExist"):
        return (own is not None) == (operator == "Exists")
    if operator not in ("Gt", "Lt"):
        raise rule.wrong("operator", expected="In, NotIn, Exists, DoesNotExist, Gt or Lt")
    try:
        left, right = int(own or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right
