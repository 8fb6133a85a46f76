"""Sweeps over energy budgets: a sweep as a suite, and the results of a folder that belong to it."""

import math
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ronda.bench.runs.results import Result
from ronda.bench.runs.variant import Variant
from ronda.bench.suites.suite import Suite, SuitePart
from ronda.instances.errors import InputError
from ronda.instances.files.json import fingerprint
from ronda.instances.instance import Instance
from ronda.solvers.registry import POLICIES


def parse_budgets(text: str) -> tuple[float, ...]:
    """Read ``"0.5:1.0:6"`` (from, to, count) or ``"0.6,0.8"`` as ascending budget factors."""
    expected = "LOW:HIGH:COUNT or factors with commas, as in 0.5:1.0:6 or 0.6,0.8"
    span = re.fullmatch(r"([^:,]+):([^:,]+):\s*(\d{1,9})\s*", text, re.ASCII)
    factors = [_number(part) for part in (span.groups()[:2] if span else text.split(","))]
    if not all(0 < factor < math.inf for factor in factors):
        raise InputError("--budgets", repr(text), expected)
    if span is not None:
        low, high, count = *factors, int(span[3])
        if not 2 <= count <= 1000 or high <= low:  # more factors are probably a typing error
            what = "a rising range of 2 to 1000 factors"
            raise InputError("--budgets", repr(text), what)
        factors = np.linspace(low, high, count).tolist()
    return tuple(sorted({float(f"{factor:.6g}") for factor in factors}))


def parse_changes(texts: Iterable[str]) -> list[dict[str, float]]:
    """Read ``"idle=0.7,1.3"``, ``"power=0.9,1.1"`` or ``"nodes=1"`` as one change per number.

    Numbers that change nothing are left out.
    """
    found: list[dict[str, float]] = []
    for text in texts:
        name, _, values = text.partition("=")
        whole = name == "nodes"
        least, most = (1.0, 2.0**20) if whole else (0.01, 100.0)
        for number in map(_number, values.split(",")):
            known = name in {"idle", "power", "nodes"}
            if not known or not least <= number <= most or (whole and number % 1):
                expected = "idle=FACTORS, power=FACTORS or nodes=NUMBERS, as in idle=0.7,1.3"
                raise InputError("--vary", repr(text), expected)
            change = {name: int(number) if whole else number}
            if change not in found and (whole or number != 1.0):
                found.append(change)
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def parse_comparators(text: str) -> frozenset[str]:
    """Read ``"fifo,srtf"``; raise InputError if a name is not a policy's."""
    names = [part.strip() for part in text.split(",")]
    for name in names:
        if name not in POLICIES:
            raise InputError("--comparators", repr(name), f"names of: {', '.join(POLICIES)}")
    return frozenset(names)


def sweep(factors: Sequence[float], changes: Iterable[dict[str, float]], **part: Any) -> Suite:
    """Return all pairs of a budget and a change as a suite; `part` has the suite's other fields.

    A budget factor means the same watts under every change: an error in the power figures does not
    change how much energy may be spent.
    """
    runs = tuple(SuitePart(change=change) for change in ({}, *changes))
    return Suite(**part, change={"budget": list(factors)}, runs=runs)


def belonging(
    instance: Instance, results: Iterable[Result], asked: Sequence[Result]
) -> list[Result]:
    """Return the results of an instance: those `asked` for, then earlier ones in the same folder.

    An earlier result counts if its fingerprint is that of the instance with its changes, and if its
    policy, budget, change and seed were not asked for now (say, with another time limit).
    """
    print_of = cache(lambda variant: fingerprint(variant.apply(instance)))
    chosen: dict[tuple[str, Variant, int], Result] = {}
    for each in (*asked, *results):
        budgeted = each.instance == instance.name and each.variant.sustained_w is not None
        if budgeted and each.fingerprint == print_of(each.variant):
            chosen.setdefault((each.label, each.variant, each.seed), each)
    return list(chosen.values())
