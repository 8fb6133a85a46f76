"""How large a file and what it describes may be: beyond it, a slip of the pen or an attack.

`RONDA_LIMITS` sets other limits, as in ``RONDA_LIMITS=mib=2048,gpus=10000000``.
"""

import os
from functools import lru_cache
from typing import NamedTuple

from ronda.instances.errors import InputError
from ronda.instances.rules.problem import Problem, show

VARIABLE = "RONDA_LIMITS"
"""The environment variable that sets limits."""

DEPTH = 64
"""Brackets inside each other where anything may stand: ``made``, ``details``, ``config``."""


class SizeLimits(NamedTuple):
    """The limits: MiB of a file, uncompressed; nodes and GPUs of a cluster; jobs."""

    mib: int = 256
    nodes: int = 2**18
    gpus: int = 2**21
    jobs: int = 2**20

    def at_most(self, name: str) -> str:
        """Return what is expected of a number, and how to allow more."""
        unit = " MiB" if name == "mib" else ""
        return f"at most {getattr(self, name)}{unit} ({VARIABLE}={name}=NUMBER allows more)"


def limits() -> SizeLimits:
    """Return the limits that hold."""
    return _read(os.environ.get(VARIABLE, ""))


def too_many(place: str, name: str, number: int) -> list[Problem]:
    """Return the problem of a number of nodes, GPUs or jobs above the limit, if it is."""
    if number <= getattr(limits(), name):
        return []
    return [Problem(place, f"{number} {name.replace('gpus', 'GPUs')}", limits().at_most(name))]


def depth(value: object) -> int:
    """Return how many brackets stand inside each other in plain JSON values."""
    levels, inside = 0, [value]
    while inside := [v for v in inside if isinstance(v, dict | list | tuple)]:
        levels += 1
        inside = [x for v in inside for x in (v.values() if isinstance(v, dict) else v)]
    return levels


@lru_cache(maxsize=8)
def _read(text: str) -> SizeLimits:
    found = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = part.partition("=")
        good = name in SizeLimits._fields and number.isascii() and number.isdigit()
        if not good or not 0 < int(number[:20]) < 10**18:
            expected = ", ".join(f"{name}=NUMBER" for name in SizeLimits._fields)
            raise InputError(VARIABLE, show(part), f"some of {expected}")
        found[name] = int(number)
    return SizeLimits(**found)
