"""Pods: what they ask for, where they run, and the jobs that they are."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import msgspec

from ronda.hosts.clusters.kubernetes.devices import DeviceClaims
from ronda.hosts.clusters.kubernetes.floor import MIG, NodeFloor, part_of
from ronda.hosts.clusters.kubernetes.objects import Doc, Objects
from ronda.hosts.clusters.kubernetes.quantities import own_units
from ronda.instances.errors import InputError
from ronda.instances.rules.problem import show
from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import SeenJob

_SHARERS = ("nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores")


class Pods:
    """The pods of a cluster that are not over.

    Attributes
    ----------
    live
        The pods.
    floor
        The nodes.
    """

    def __init__(self, objects: Objects) -> None:
        self.noted = objects.noted
        self.floor, self._claims = NodeFloor(objects), DeviceClaims(objects)
        listed = objects.of("Pod", "")
        self.live = [
            pod for pod in listed if pod.text("status", "phase") not in ("Succeeded", "Failed")
        ]
        if len(listed) > len(self.live):
            over = next(pod for pod in listed if pod not in self.live)
            self.noted.add("pod that is over, left out", over.id, len(listed) - len(self.live))

    def node(self, pod: Doc) -> str | None:
        """Return the node that a pod is on, which must be listed."""
        node = pod.text("spec", "nodeName")
        if node is not None and node not in self.floor.labels:
            raise InputError(
                pod.place,
                f"on node {show(node)}, which no file lists",
                "the nodes of the whole cluster",
            )
        return node

    def asks(
        self, spec: Doc, namespace: str | None, status: Doc | None = None
    ) -> dict[str, Fraction]:
        """Return what a pod asks for, by Kubernetes' resources.

        All containers together, or an init container beside the sidecars before it if that is more,
        or what the pod states itself, and its overhead (as in ``k8s.io/component-helpers``).
        """
        total, beside, peak = dict[str, Fraction](), dict[str, Fraction](), dict[str, Fraction]()
        for each in spec.docs("containers"):
            _add(total, _requests(each))
        for each in spec.docs("initContainers"):
            own = _requests(each)
            if each.text("restartPolicy") == "Always":
                _add(beside, own)
            else:
                _add(own, beside)
                peak |= {r: max(amount, peak.get(r, amount)) for r, amount in own.items()}
        _add(total, beside)
        total |= {r: max(amount, total.get(r, amount)) for r, amount in peak.items()}
        total |= _requests(spec)
        _add(total, spec.amounts("overhead"))
        _add(total, self._claims.asks(spec, namespace, status))
        for resource in _SHARERS:
            if total.pop(resource, None) is not None:
                self.noted.add(f"request for {resource}, which no node lists, not read", spec.place)
        return total | {"pods": Fraction(1)}

    def piece(
        self, spec: Doc, namespace: str | None, status: Doc | None = None, more: Sequence[Doc] = ()
    ) -> dict[str, Any]:
        """Return the fields of a job that each of its pods determines."""
        asks = self.asks(spec, namespace, status)
        cut = {r: n for r, n in asks.items() if r.startswith(MIG) and n}
        per = own_units(asks)
        part = (
            part_of(next(iter(cut)))
            if len(cut) == 1 and sum(cut.values()) == 1 and not per.get(GPUS)
            else None
        )
        return {"per": {of: n for of, n in per.items() if n}, "part": part} | self.floor.rules(
            spec, more
        )

    def jobs(
        self,
        id: str,
        pods: Sequence[Doc],
        *,
        least: int | None = None,
        blocked: str | None = None,
        pieces: Mapping[str, dict[str, Any]] | None = None,
        placed: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Iterator[SeenJob]:
        """Yield the jobs that some pods are: one for each shape, on nodes or waiting.

        Parameters
        ----------
        id
            Id of the job with most GPUs; the others add to it.
        pods
            The pods.
        least
            Fewest of them with which they start, or None for all.
        blocked
            Why they may not start.
        pieces, placed
            The `piece`, and the node, of pods by id, where they are not those of the pod itself.
        **fields
            More fields of the jobs.
        """
        shapes = defaultdict[bytes, list[Doc]](list)
        found = {pod.id: (pieces or {}).get(pod.id) or self._own_piece(pod) for pod in pods}
        for pod in pods:
            shapes[msgspec.json.encode(found[pod.id])].append(pod)
        order = sorted(
            shapes.values(), key=lambda own: -found[own[0].id]["per"].get(GPUS, 0) * len(own)
        )
        if len(order) > 1:
            self.noted.add(
                "job of pods of different shapes, of which each is a job of its own", f"job {id}"
            )
            least = None
        for k, own in enumerate(order):
            name = id if k == 0 else f"{id}#{own[0].name}"
            on: dict[str, int] = {}
            waiting = []
            for pod in own:
                node = (placed or {}).get(pod.id) or self.node(pod)
                if node is None:
                    waiting.append(pod)
                else:
                    on[node] = on.get(node, 0) + 1
            common = {**self._common(own), **found[own[0].id], **fields}
            if on:
                starts = [pod.time_s("status", "startTime") for pod in own]
                begun = min((time for time in starts if time is not None), default=None)
                yield SeenJob(id=name, count=sum(on.values()), on=on, **{"start_s": begun} | common)
            if waiting:
                left = (
                    None if least is None else max(1, min(least - sum(on.values()), len(waiting)))
                )
                if on:
                    self.noted.add(
                        "job some of whose pods wait, which are a job of their own", f"job {id}"
                    )
                yield SeenJob(
                    id=f"{name}#waiting" if on else name,
                    count=len(waiting),
                    least=left if left != len(waiting) else None,
                    blocked=blocked or _gated(waiting[0]),
                    reason=_reason(waiting),
                    **common,
                )

    def _own_piece(self, pod: Doc) -> dict[str, Any]:
        return self.piece(pod.doc("spec"), pod.namespace, pod.doc("status"))

    def _common(self, pods: Sequence[Doc]) -> dict[str, Any]:
        first = pods[0]
        times = [pod.time_s("metadata", "creationTimestamp") for pod in pods]
        return {
            "name": first.name,
            "submit_s": min((time for time in times if time is not None), default=0.0),
            "limit_s": first.whole("spec", "activeDeadlineSeconds"),
            "rank": first.whole("spec", "priority"),
            "priority": first.text("spec", "priorityClassName"),
        }


def _requests(container: Doc) -> dict[str, Fraction]:
    """Return the requests; a limit without a request is one (as the API server sets them)."""
    return container.amounts("resources", "limits") | container.amounts("resources", "requests")


def _add(total: dict[str, Fraction], more: Mapping[str, Fraction]) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, Fraction(0)) + amount


def _gated(pod: Doc) -> str | None:
    gates = [gate.text("name") or "" for gate in pod.docs("spec", "schedulingGates")]
    return f"scheduling gates: {', '.join(gates)}" if gates else None


def _reason(pods: Sequence[Doc]) -> str | None:
    told = (pod.condition("PodScheduled") for pod in pods)
    return next((reason_of(each) for each in told if each.text("status") == "False"), None)


def reason_of(condition: Doc) -> str | None:
    """Return reason and message of a condition, in the host's words."""
    words = (condition.text("reason"), condition.text("message"))
    return ": ".join(word for word in words if word) or None
