"""Quantities of Kubernetes, such as ``500m`` and ``40Gi``, as exact numbers."""

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from math import ceil

from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import CPU, MEMORY

LARGEST = 2**63 - 1
"""The largest quantity; Kubernetes takes larger ones for it."""

_FORM = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([KMGTPE]i|[numkMGTPE])|[eE]([+-]?\d+))?"
)
_BINARY = {f"{prefix}i": Fraction(1024**k) for k, prefix in enumerate("KMGTPE", 1)}
_DECIMAL = dict(zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True))

MIG = "nvidia.com/mig-"
"""How the resources begin that are parts of NVIDIA's GPUs."""

_GPU_NAMES = {"gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi", "google.com/tpu"}


@lru_cache(maxsize=4096, typed=True)
def quantity(value: object) -> Fraction:
    """Return a quantity of Kubernetes as an exact number.

    As in Kubernetes (``k8s.io/apimachinery/pkg/api/resource``), at most `LARGEST` remains of a
    larger one, and what is finer than 1e-9 is rounded away from zero. Anything else raises a
    ValueError.
    """
    text = repr(value) if isinstance(value, int | float) else value
    match = _FORM.fullmatch(text) if isinstance(text, str) and len(text) <= 100 else None
    if match is None or isinstance(value, bool):
        raise ValueError(f"{value!r} is no quantity")
    number, suffix, exponent = Fraction(match[1]), match[2], int(match[3] or 0)
    factor = _BINARY.get(suffix or "")
    if factor is None:
        power = _DECIMAL.get(suffix or "", exponent)
        factor = Fraction(10) ** max(-200, min(power, 200))  # beyond, all is capped or rounded
    size = min(Fraction(ceil(abs(number) * factor * 10**9), 10**9), Fraction(LARGEST))
    return size if number >= 0 else -size


def own_unit(resource: str) -> tuple[str, int]:
    """Return the name that ronda has for a resource of Kubernetes, and how many units one is.

    Memory is in GiB; GPUs of all vendors are ``gpus``. All others keep name and unit.
    """
    if resource == "memory":
        return MEMORY, 2**30
    if resource == "ephemeral-storage" or resource.startswith("hugepages-"):
        return f"{resource}_gib", 2**30
    if resource.endswith("/gpu") or resource in _GPU_NAMES:
        return GPUS, 1
    return (CPU, 1) if resource == "cpu" else (resource, 1)


def own_units(amounts: Mapping[str, Fraction]) -> dict[str, float]:
    """Return amounts of Kubernetes' resources by ronda's names and units."""
    sums: dict[str, Fraction] = {}
    for resource, amount in amounts.items():
        name, unit = own_unit(resource)
        sums[name] = sums.get(name, Fraction(0)) + amount / unit
    return {name: float(amount) for name, amount in sums.items()}


def part_of(resource: str) -> str:
    """Return the name of a part of a GPU from that of its resource."""
    return resource.removeprefix(MIG).replace(".me", "+me")
