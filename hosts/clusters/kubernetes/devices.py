"""Dynamic resource allocation: the GPUs that drivers publish, and those that claims ask for.

ResourceSlices and ResourceClaims of ``resource.k8s.io`` v1, v1beta2 and v1beta1.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction

from ronda.hosts.clusters.kubernetes.floor import MIG, Devices
from ronda.hosts.clusters.kubernetes.objects import Doc, Objects
from ronda.instances.cluster import PartProfile, Parts

_DEVICES = "resource.k8s.io"
_PROFILE = re.compile(r"""profile\s*==\s*["']([^"']+)["']""")
_SLICE = re.compile(r"memory-slice-?(\d+)")


def devices_of(objects: Objects) -> Mapping[str, Devices]:
    """Return the GPUs of each node.

    A pool counts if all of its slices are there, of its latest generation (as for the scheduler).
    """
    pools = defaultdict[tuple[str, str], list[Doc]](list)
    for each in objects.of("ResourceSlice", _DEVICES):
        pools[each.text("spec", "driver") or "", each.text("spec", "pool", "name") or ""].append(
            each
        )
    found: dict[str, list[Doc]] = defaultdict(list)
    for (driver, pool), slices in pools.items():
        newest = max(each.whole("spec", "pool", "generation") or 0 for each in slices)
        slices = [e for e in slices if (e.whole("spec", "pool", "generation") or 0) == newest]
        count = slices[0].whole("spec", "pool", "resourceSliceCount") or len(slices)
        if len(slices) < count:
            words = f"pool {pool} of {driver}: {len(slices)} of {count} slices"
            objects.noted.add("incomplete pool of devices, ignored as the scheduler does", words)
            continue
        if "gpu" not in driver:
            objects.noted.add("driver of devices that are no GPUs, not read", driver)
            continue
        for each in slices:
            for device in each.docs("spec", "devices"):
                node = each.text("spec", "nodeName") or device.text("nodeName")
                if node is None:
                    objects.noted.add("device on no node of its own, not read", device.place)
                else:
                    found[node].append(device.doc("basic") if device.get("basic") else device)
    return {node: _devices(devices) for node, devices in found.items()}


def _devices(devices: list[Doc]) -> Devices:
    whole = [each for each in devices if each.text("attributes", "type", "string") != "mig"]
    cut = [each for each in devices if each.text("attributes", "type", "string") == "mig"]
    first = whole[0] if whole else cut[0]
    memory = first.amount("capacity", "memory", "value") if whole else None
    return Devices(
        gpus=len(whole),
        model=first.text("attributes", "productName", "string"),
        memory_gib=float(memory / 2**30) if memory else None,
        parts=_parts(cut),
    )


def _parts(cut: list[Doc]) -> Parts | None:
    """Return the ways to cut a GPU from the memory slices that each possible part consumes."""
    starts, sizes = defaultdict[str, set[int]](set), dict[str, int]()
    for device in cut:
        name = device.text("attributes", "profile", "string") or ""
        taken = [
            int(match[1])
            for each in device.docs("consumesCounters")
            for counter in each.doc("counters").value
            if (match := _SLICE.fullmatch(str(counter)))
        ]
        if taken and name[:1].isdecimal() and int(name[0]):
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
        self._specs = {
            (e.namespace, e.name): e.doc("spec") for e in objects.of("ResourceClaim", _DEVICES)
        }
        self._templates = {
            (e.namespace, e.name): e.doc("spec", "spec")
            for e in objects.of("ResourceClaimTemplate", _DEVICES)
        }

    def asks(
        self, spec: Doc, namespace: str | None, status: Doc | None = None
    ) -> dict[str, Fraction]:
        """Return the GPUs and parts that a pod's claims ask for, as resources of Kubernetes."""
        made = {}
        if status is not None:
            for each in status.docs("resourceClaimStatuses"):
                made[each.text("name")] = each.text("resourceClaimName")
        total: dict[str, Fraction] = {}
        for each in spec.docs("resourceClaims"):
            template = each.text("resourceClaimTemplateName")
            name = each.text("resourceClaimName") or made.get(each.text("name"))
            claim = self._specs.get((namespace, name or "")) or self._templates.get(
                (namespace, template or "")
            )
            if claim is None:
                self.noted.add(
                    "claim of devices that no file has, taken to ask for nothing", each.place
                )
                continue
            for request in claim.docs("devices", "requests"):
                resource, count = self._request(request)
                if resource is not None:
                    total[resource] = total.get(resource, Fraction(0)) + count
        return total

    def _request(self, request: Doc) -> tuple[str | None, int]:
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
            self.noted.add(
                "claim of devices that are no GPUs, not read", f"{kind} ({request.place})"
            )
            return None, 0
        if rules:
            self.noted.add("condition of a claim on its devices, not read", request.place)
        return "nvidia.com/gpu", count
