"""Dynamic resource allocation: the GPUs that drivers publish, and those that claims ask for.

ResourceSlices and ResourceClaims of ``resource.k8s.io`` v1, v1beta2 and v1beta1.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

from ronda.hosts.clusters.kubernetes.objects import Doc, Objects
from ronda.hosts.clusters.kubernetes.quantities import MIG
from ronda.instances.cluster import PartProfile, Parts

_DEVICES = "resource.k8s.io"
_PROFILE = re.compile(r"""profile\s*==\s*["']([^"']+)["']""")
_SLICE = re.compile(r"memory-slice-?(\d{1,3})")


@dataclass(frozen=True)
class Devices:
    """The GPUs of a node that its driver publishes, whole ones and the parts of each."""

    gpus: int = 0
    model: str | None = None
    memory_gib: float | None = None
    parts: Parts | None = None


def devices_of(objects: Objects) -> dict[str, Devices]:
    """Return the GPUs of each node.

    A pool counts if all of its slices are there, of its latest generation (as for the scheduler).
    """
    pools = defaultdict[tuple[str, str], dict[int, list[Doc]]](dict)
    for each in objects.of("ResourceSlice", _DEVICES):
        pool = each.doc("spec", "pool")
        key = (each.text("spec", "driver") or "", pool.text("name") or "")
        pools[key].setdefault(pool.whole("generation") or 0, []).append(each)
    found = defaultdict[str, list[Doc]](list)
    for (driver, name), generations in pools.items():
        slices = generations[max(generations)]
        count = slices[0].whole("spec", "pool", "resourceSliceCount") or 0
        if len(slices) < count:
            words = f"pool {name} of {driver}: {len(slices)} of {count} slices"
            objects.noted.add("incomplete pool of devices, ignored as the scheduler does", words)
        elif "gpu" not in driver:
            objects.noted.add("driver of devices that are no GPUs, not read", driver)
        else:
            for each in slices:
                for device in each.docs("spec", "devices"):
                    node = each.text("spec", "nodeName") or device.text("nodeName")
                    own = device.doc("basic") if device.get("basic") else device  # v1beta1
                    found[node or ""].append(own)
    for device in found.pop("", ()):
        objects.noted.add("device on no node of its own, not read", device.place)
    return {node: _devices(devices) for node, devices in found.items()}


def _devices(devices: list[Doc]) -> Devices:
    cut = [each for each in devices if each.text("attributes", "type", "string") == "mig"]
    whole = [each for each in devices if each not in cut]
    memory = whole[0].amount("capacity", "memory", "value") if whole else None
    return Devices(
        gpus=len(whole),
        model=devices[0].text("attributes", "productName", "string"),
        memory_gib=float(memory / 2**30) if memory else None,
        parts=_parts(cut),
    )


def _parts(cut: list[Doc]) -> Parts | None:
    """Return the ways to cut a GPU from the memory slices that each possible part consumes."""
    starts, sizes = defaultdict[str, set[int]](set), dict[str, int]()
    for device in cut:
        name = device.text("attributes", "profile", "string") or ""
        counters = [
            str(c) for e in device.docs("consumesCounters") for c in e.doc("counters").value
        ]
        taken = [int(match[1]) for c in counters if (match := _SLICE.fullmatch(c))]
        if taken and re.match("[1-9]g", name):
            starts[name].add(min(taken))
            sizes[name] = len(taken)
    if not sizes:
        return None
    memory = max(max(starts[name]) + size for name, size in sizes.items())
    profiles = tuple(
        PartProfile(
            name=name,
            compute=int(name[0]),
            memory=size,
            starts=tuple(sorted(starts[name])),
            most=1 if "+me" in name else min(len(starts[name]), memory // size),
        )
        for name, size in sorted(sizes.items())
    )
    return Parts(compute=max(p.compute for p in profiles), memory=memory, profiles=profiles)


class DeviceClaims:
    """The claims of pods, and the templates that they are made from."""

    def __init__(self, objects: Objects) -> None:
        self.noted = objects.noted
        claims, templates = objects.of("ResourceClaim"), objects.of("ResourceClaimTemplate")
        self._specs = {(False, each.id): each.doc("spec") for each in claims}
        self._specs |= {(True, each.id): each.doc("spec", "spec") for each in templates}

    def asks(self, spec: Doc, owner: Doc) -> dict[str, Fraction]:
        """Return the GPUs and parts that claims of a pod's spec ask for, by Kubernetes' names."""
        made = owner.docs("status", "resourceClaimStatuses")
        names = {each.text("name"): each.text("resourceClaimName") for each in made}
        total = defaultdict[str, Fraction](Fraction)
        for each in spec.docs("resourceClaims"):
            name = each.text("resourceClaimName") or names.get(each.text("name"))
            template = each.text("resourceClaimTemplateName")
            ids = [(kind, owner.id_of(n)) for kind, n in ((False, name), (True, template)) if n]
            claim = next((self._specs[id] for id in ids if id in self._specs), None)
            if claim is None:
                self.noted.add("claim that no file has, taken to ask for nothing", each.place)
                continue
            for request in claim.docs("devices", "requests"):
                resource, count = self._request(request)
                total[resource] += count
        total.pop("", None)
        return dict(total)

    def _request(self, request: Doc) -> tuple[str, int]:
        """Return the resource that a request asks for, "" for none, and how many."""
        ways = request.docs("firstAvailable")
        if ways:
            self.noted.add("claim with alternatives, of which the first is read", request.place)
        exact = ways[0] if ways else request.doc("exactly") if request.get("exactly") else request
        kind, count = exact.text("deviceClassName") or "", exact.whole("count") or 1
        if exact.text("allocationMode") == "All":
            self.noted.add("claim of all devices of a node, read as one", request.place)
        rules = " ".join(each.text("cel", "expression") or "" for each in exact.docs("selectors"))
        profile = _PROFILE.search(rules)
        if profile is not None:
            return MIG + profile[1], count
        if "gpu" not in kind:
            words = f"{kind} ({request.place})"
            self.noted.add("claim of devices that are no GPUs, not read", words)
            return "", 0
        if rules:
            self.noted.add("condition of a claim on its devices, not read", request.place)
        return "nvidia.com/gpu", count
