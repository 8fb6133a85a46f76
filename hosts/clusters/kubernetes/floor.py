"""The nodes of a Kubernetes cluster, and which of them a pod may use."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

from ronda.hosts.clusters.kubernetes.objects import Doc, Objects
from ronda.hosts.clusters.kubernetes.quantities import own_units
from ronda.instances.cluster import BUILT_IN, Parts
from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import Noted, SeenNode

HOST = "kubernetes.io/hostname"

MIG = "nvidia.com/mig-"

_MODELS = ("nvidia.com/gpu.product", "amd.com/gpu.product-name", "cloud.google.com/gke-accelerator")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NOWHERE = "a node that its affinity asks for"


@dataclass(frozen=True)
class Devices:
    """The GPUs of a node that its driver publishes for dynamic resource allocation."""

    gpus: int = 0
    model: str | None = None
    memory_gib: float | None = None
    parts: Parts | None = None


@dataclass
class Lots:
    """What else is known of nodes, by name.

    Attributes
    ----------
    foreign
        What pods hold on them that belong to no job.
    partitions, types
        The partitions of each, and its GPU type, if that is not its label's.
    levels
        The labels that name its racks, from the outermost.
    devices
        Its GPUs of dynamic resource allocation.
    shared
        Whether jobs may share a GPU.
    """

    foreign: dict[str, dict[str, Fraction]] = field(default_factory=dict)
    partitions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    levels: Callable[[str], Sequence[str]] = lambda name: ()
    devices: Mapping[str, Devices] = field(default_factory=dict)
    shared: bool = False

    def hold(self, node: str, asks: Mapping[str, Fraction]) -> None:
        """Count what a pod that belongs to no job holds on a node."""
        own = self.foreign.setdefault(node, {})
        for resource, amount in asks.items():
            own[resource] = own.get(resource, Fraction(0)) + amount


class NodeFloor:
    """The nodes, and the labels that jobs ask for."""

    def __init__(self, objects: Objects) -> None:
        self.noted: Noted = objects.noted
        self._docs = objects.of("Node")
        self.labels = {node.name: node.labels("metadata", "labels") for node in self._docs}
        self._taints = {
            node.name: [
                (taint.text("key") or "", taint.text("value") or "", taint.text("effect") or "")
                for taint in node.docs("spec", "taints")
                if taint.text("effect") != "PreferNoSchedule"
                and not (taint.text("key") or "").startswith("node.kubernetes.io/")
            ]
            for node in self._docs
        }
        self._asked: set[str] = set()
        self._off = cache(self._untolerated)

    def rules(self, spec: Doc, more: Sequence[Doc] = ()) -> dict[str, Any]:
        """Return the fields of a job that say which nodes its pods may use.

        Parameters
        ----------
        spec
            The pod's.
        more
            Tolerations besides the pod's own.
        """
        asked = {f"{key}={value}" for key, value in spec.labels("nodeSelector").items()}
        terms = spec.docs("affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms")
        nodes: tuple[str, ...] = ()
        if terms:
            able = tuple(name for name in self.labels if any(self._fits(name, t) for t in terms))
            if not able:
                asked.add(_NOWHERE)
            elif len(able) < len(self.labels):
                nodes = able
        self._asked |= asked
        tolerations = frozenset(
            tuple(each.text(key) for key in ("key", "operator", "value", "effect"))
            for each in (*spec.docs("tolerations"), *more)
        )
        apart = False
        for kind, key in (("podAffinity", None), ("podAntiAffinity", HOST)):
            for rule in spec.docs("affinity", kind, _REQUIRED):
                if key is not None and rule.text("topologyKey") == key:
                    apart = True
                    self.noted.add(
                        "pod that asks for a node without its like, taken as without its job's",
                        rule.place,
                    )
                else:
                    self.noted.add("affinity of pods to others, not read", rule.place)
        return {
            "features": tuple(sorted(asked)),
            "nodes": nodes,
            "not_nodes": self._off(tolerations),
            "own_nodes": apart,
        }

    def _fits(self, node: str, term: Doc) -> bool:
        labels = self.labels[node]
        fields = {"metadata.name": node}
        checks = [(labels, each) for each in term.docs("matchExpressions")]
        checks += [(fields, each) for each in term.docs("matchFields")]
        return bool(checks) and all(_matches(own, each) for own, each in checks)

    def _untolerated(self, tolerations: frozenset[tuple[str | None, ...]]) -> tuple[str, ...]:
        return tuple(
            name
            for name, taints in self._taints.items()
            if any(not any(_tolerates(t, taint) for t in tolerations) for taint in taints)
        )

    def largest(self, of: str) -> float:
        """Return the most of a resource that a node offers."""
        each = (
            own_units(node.amounts("status", "allocatable")).get(of, 0.0) for node in self._docs
        )
        return max(each, default=0.0)

    @property
    def gpu_memory_mib(self) -> int:
        """The largest memory of a GPU, or 0."""
        return max((_memory_mib(labels) for labels in self.labels.values()), default=0)

    def seen(self, lots: Lots) -> tuple[SeenNode, ...]:
        """Return all nodes."""
        return tuple(self._node(node, lots) for node in self._docs)

    def _node(self, node: Doc, lots: Lots) -> SeenNode:
        name, labels = node.name, self.labels[node.name]
        offers = node.amounts("status", "allocatable") or node.amounts("status", "capacity")
        has = own_units(offers)
        cut, parts = self._cut(name, has, offers)
        for resource, amount in lots.foreign.get(name, {}).items():
            if amount > offers.get(resource, 0):
                words = f"{float(amount):g} {resource} on {name}"
                self.noted.add("resource of a node that pods outside jobs overbook", words)
            if resource in offers:
                offers[resource] = max(Fraction(0), offers[resource] - amount)
        gpus, devices = has.get(GPUS), lots.devices.get(name, Devices())
        has |= own_units(offers)
        if devices.gpus or (cut and gpus):
            has[GPUS] = float(devices.gpus) or gpus or 0.0
        model = next((labels[key] for key in _MODELS if key in labels), None)
        return SeenNode(
            name=name,
            has=has,
            gpu_type=lots.types.get(name) or devices.model or model,
            gpu_memory_gib=devices.memory_gib or _memory_mib(labels) / 1024 or None,
            partitions=lots.partitions.get(name, ()),
            features=tuple(f"{k}={v}" for k, v in labels.items() if f"{k}={v}" in self._asked),
            racks=tuple((k, labels[k]) for k in lots.levels(name) if k in labels and k != HOST),
            out=_out(node),
            parts=devices.parts or parts,
            cut=cut,
            recut="free" if devices.parts else "never",
            shared=lots.shared,
        )

    def _cut(
        self, node: str, own: dict[str, float], offers: Mapping[str, Fraction]
    ) -> tuple[tuple[str, ...], Parts | None]:
        """Return the parts of each GPU, and the ways to cut one, if all GPUs are cut alike."""
        counts = {part_of(r): int(n) for r, n in offers.items() if r.startswith(MIG) and n}
        if not counts:
            return (), None
        told = self.labels[node].get("nvidia.com/gpu.count", "")
        gpus = int(told) if told.isdecimal() and len(told) < 10 else 0
        if gpus and not own.get(GPUS) and all(n % gpus == 0 for n in counts.values()):
            each = {part: n // gpus for part, n in counts.items()}
            for parts in BUILT_IN.values():
                made = [(p, each[p.name]) for p in parts.profiles if p.name in each]
                room = parts.memory - sum(p.memory * n for p, n in made)
                if len(made) == len(each) and room >= 0:
                    own[GPUS] = float(gpus)
                    return tuple(part for part in sorted(each) for _ in range(each[part])), parts
        self.noted.add("node with parts of GPUs not cut alike, told as resources only", node)
        return (), None


def _memory_mib(labels: Mapping[str, str]) -> int:
    told = labels.get("nvidia.com/gpu.memory", "")
    return int(told) if told.isdecimal() and len(told) < 10 else 0


def part_of(resource: str) -> str:
    """Return the name of a part of a GPU from that of its resource."""
    return resource.removeprefix(MIG).replace(".me", "+me")


def _out(node: Doc) -> str | None:
    if node.flag("spec", "unschedulable"):
        return "cordoned"
    ready = node.condition("Ready")
    if ready.value and ready.text("status") != "True":
        return f"not ready ({ready.text('reason') or ready.text('status')})"
    return None


def _tolerates(toleration: tuple[str | None, ...], taint: tuple[str, str, str]) -> bool:
    key, operator, value, effect = toleration
    if effect and effect != taint[2]:
        return False
    if operator == "Exists":
        return not key or key == taint[0]
    return key == taint[0] and (value or "") == taint[1]


def _matches(labels: Mapping[str, str], rule: Doc) -> bool:
    own, operator = labels.get(rule.text("key") or ""), rule.text("operator")
    values = rule.texts("values")
    if operator in ("In", "NotIn"):
        return (own in values) == (operator == "In")
    if operator in ("Exists", "DoesNotExist"):
        return (own is not None) == (operator == "Exists")
    if operator in ("Gt", "Lt"):
        try:
            left, right = int(own or ""), int(values[0])
        except (ValueError, IndexError):
            return False
        return left > right if operator == "Gt" else left < right
    raise rule.wrong("operator", expected="In, NotIn, Exists, DoesNotExist, Gt or Lt")
