"""Pods: what they ask for, where they run, and the jobs that they are."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import msgspec

from ronda.hosts.clusters.kubernetes.devices import DeviceClaims
from ronda.hosts.clusters.kubernetes.floor import NodeFloor
from ronda.hosts.clusters.kubernetes.objects import Doc, Objects
from ronda.hosts.clusters.kubernetes.quantities import MIG, own_units, part_of
from ronda.instances.errors import InputError
from ronda.instances.job import Slices
from ronda.instances.rules.problem import show
from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import Noted, SeenJob

_SHARERS = ("nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores")

Amounts = dict[str, Fraction]


class Members(NamedTuple):
    """Some equal pieces of a job: how many they are, and the `least` with which it starts.

    `piece` has the fields of a `SeenJob` that each of them determines, `on` how many are on each
    node, and `waits` the fields of those that are on none.
    """

    piece: dict[str, Any]
    pieces: int
    least: int
    on: Counter[str]
    waits: dict[str, Any]


def jobs_of_members(
    id: str, members: Sequence[Members], common: dict[str, Any], noted: Noted
) -> Iterator[SeenJob]:
    """Yield the jobs of one id: one for each shape of its pieces, on nodes or waiting.

    The shape with most GPUs keeps the id, and the ids of others add to it; so does that of what
    waits beside pieces on nodes.
    """
    shapes: dict[bytes, list[Members]] = {}
    for each in members:
        shapes.setdefault(msgspec.json.encode(each.piece), []).append(each)
    if len(shapes) > 1:
        noted.add("job of pieces of different shapes, each told as a job of its own", f"job {id}")
    order = sorted(
        shapes.values(), key=lambda own: -sum(m.piece["per"].get(GPUS, 0) * m.pieces for m in own)
    )
    for k, own in enumerate(order):
        name, fields = f"{id}#{k}" if k else id, common | own[0].piece
        on = sum((each.on for each in own), Counter[str]())
        placed, count = on.total(), sum(each.pieces for each in own)
        if placed:
            yield SeenJob(id=name, count=placed, on=dict(on), **fields)
        if placed < count:
            if placed:
                noted.add("job some of whose pieces wait, told as a job of their own", f"job {id}")
            least = max(1, sum(each.least for each in own) - placed)
            waits = next(each.waits for each in own if each.on.total() < each.pieces)
            yield SeenJob(
                id=f"{name}#waiting" if placed else name,
                count=count - placed,
                least=least if least < count - placed else None,
                **fields | waits | {"start_s": None, "ends_s": None},
            )


class Pods:
    """The pods of a cluster that are not over (`live`), and its nodes (`floor`)."""

    def __init__(self, objects: Objects) -> None:
        self.noted = objects.noted
        self.floor, self._claims = NodeFloor(objects), DeviceClaims(objects)
        self._asks: dict[int, Amounts] = {}
        self.live: list[Doc] = []
        for pod in objects.of("Pod", ""):
            if pod.text("status", "phase") in ("Succeeded", "Failed"):
                self.noted.add("pod that is over, left out", pod.id)
            else:
                self.live.append(pod)

    def node(self, pod: Doc) -> str | None:
        """Return the node that a pod is on, which must be listed."""
        node = pod.text("spec", "nodeName")
        if node is not None and node not in self.floor.labels:
            found = f"on node {show(node)}, which no file lists"
            raise InputError(pod.place, found, "the nodes of the whole cluster")
        return node

    def asks(self, owner: Doc, spec: Doc | None = None) -> Amounts:
        """Return what a pod asks for, or a pod of a workload by its spec, by Kubernetes' resources.

        All containers together, or an init container beside the sidecars before it if that is more,
        or what the pod states itself, and its overhead (as in ``k8s.io/component-helpers``).
        """
        spec = owner.doc("spec") if spec is None else spec
        if id(spec.value) in self._asks:
            return self._asks[id(spec.value)]
        total, beside, peak = Amounts(), Amounts(), Amounts()
        for each in spec.docs("containers"):
            total = _sum(total, _requests(each))
        for each in spec.docs("initContainers"):
            own = _sum(beside, _requests(each))
            if each.text("restartPolicy") == "Always":
                beside = own
            else:
                peak |= {of: max(n, peak.get(of, n)) for of, n in own.items()}
        total = _sum(total, beside)
        total |= {of: max(n, total.get(of, n)) for of, n in peak.items()} | _requests(spec)
        total = _sum(total, spec.amounts("overhead"))
        total = _sum(total, self._claims.asks(spec, owner))
        for of in _SHARERS:
            if total.pop(of, None) is not None:
                self.noted.add(f"request for {of}, which no node lists, not read", spec.place)
        self._asks[id(spec.value)] = total | {"pods": Fraction(1)}
        return self._asks[id(spec.value)]

    def piece(
        self, owner: Doc, spec: Doc | None = None, more: Sequence[Doc] = ()
    ) -> dict[str, Any]:
        """Return the fields of a job that each of its pods determines, as for `asks`.

        The pod is tolerated as its own tolerations and `more` say.
        """
        spec = owner.doc("spec") if spec is None else spec
        asks = self.asks(owner, spec)
        per = {of: n for of, n in own_units(asks).items() if n}
        cut = [of for of, n in asks.items() if of.startswith(MIG) for _ in range(min(int(n), 2))]
        part = part_of(cut[0]) if len(cut) == 1 and GPUS not in per else None
        return {"per": per, "part": part} | self.floor.rules(spec, more)

    def slices(
        self, id: str, gpus: float, least: float, within: str, together: str | None = None
    ) -> Slices | None:
        """Return the slices of a job's whole nodes in racks, or None if it has no whole ones.

        A slice has some GPUs in all, and its smallest pod the `least`.
        """
        most = self.floor.most_gpus
        if not 0 < least <= most or gpus <= 0 or gpus % most:
            self.noted.add("rule on racks for pods that fill no whole nodes, not read", f"job {id}")
            return None
        if least < most:
            self.noted.add("rule on racks for pods taken to fill whole nodes", f"job {id}")
        return Slices(nodes=round(gpus / most), within=within, together=together)

    def jobs(
        self,
        id: str,
        pods: Sequence[Doc],
        least: int | None = None,
        blocked: str | None = None,
        placed: Mapping[str, str] | None = None,
        pieces: Mapping[str, dict[str, Any]] | None = None,
        **fields: Any,
    ) -> Iterator[SeenJob]:
        """Yield the jobs that some pods of one id are.

        They start with the `least` of them, by default with all, unless they are `blocked` for a
        reason. `placed` and `pieces` have the node and the `piece` of pods by id, where they are
        not those of the pod itself, and `fields` more fields of the jobs.
        """
        members = []
        for k, pod in enumerate(pods):
            node = (placed or {}).get(pod.id) or self.node(pod)
            named = pod.docs("spec", "schedulingGates")
            gates = ", ".join(gate.text("name") or "" for gate in named)
            waits = {
                "blocked": blocked or (f"scheduling gates: {gates}" if gates else None),
                "reason": reason_of(pod.condition("PodScheduled"), "False"),
            }
            members.append(
                Members(
                    (pieces or {}).get(pod.id) or self.piece(pod),
                    pieces=1,
                    least=int(least is None or k < least),
                    on=Counter([] if node is None else [node]),
                    waits=waits,
                )
            )
        first = pods[0].doc("spec")
        times = (("metadata", "creationTimestamp"), ("status", "startTime"))
        told = [[t for pod in pods if (t := pod.time_s(*path)) is not None] for path in times]
        common = {
            "name": pods[0].name,
            "submit_s": min(told[0], default=0.0),
            "start_s": min(told[1], default=None),
            "limit_s": first.whole("activeDeadlineSeconds"),
            "rank": first.whole("priority"),
            "priority": first.text("priorityClassName"),
        }
        yield from jobs_of_members(id, members, common | fields, self.noted)


def _requests(container: Doc) -> Amounts:
    """Return the requests; a limit without a request is one (as the API server sets them)."""
    return container.amounts("resources", "limits") | container.amounts("resources", "requests")


def _sum(total: Amounts, more: Amounts) -> Amounts:
    return total | {of: total.get(of, Fraction(0)) + n for of, n in more.items()}


def reason_of(condition: Doc, status: str) -> str | None:
    """Return reason and message of a condition in the host's words, if it has the status."""
    words = (condition.text("reason"), condition.text("message"))
    told = ": ".join(word for word in words if word)
    return told if told and condition.text("status") == status else None
