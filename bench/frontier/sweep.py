"""The cases of a sweep over energy budgets, and the results in a folder that belong to it."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from msgspec.structs import replace

from ronda.bench.runs.results import Result
from ronda.bench.runs.specs import RunCase, cases, refuse_namesakes
from ronda.bench.runs.variant import UNCHANGED, Variant, reference_w
from ronda.instances.errors import InputError
from ronda.instances.files.json import fingerprint
from ronda.instances.instance import DECLARED, Instance, Knowledge
from ronda.solvers.registry import POLICIES

MOST_BUDGETS = 1000
"""More budgets than this in one sweep are taken for a slip of the pen."""


def parse_budgets(text: str) -> tuple[float, ...]:
    """Read ``"0.5:1.0:6"`` (from, to, how many) or ``"0.6,0.8"`` as ascending budget factors."""
    expected = "LOW:HIGH:COUNT or factors with commas, as in 0.5:1.0:6 or 0.6,0.8"
    span = re.fullmatch(r"([^:,]+):([^:,]+):\s*(\d{1,9})\s*", text, re.ASCII)
    found = [_number(part) for part in (span.groups()[:2] if span else text.split(","))]
    factors = [number for number in found if number is not None and 0 < number < math.inf]
    if len(factors) < len(found):
        raise InputError("--budgets", repr(text), expected)
    if span is not None:
        low, high, count = *factors, int(span[3])
        if not 2 <= count <= MOST_BUDGETS or high <= low:
            what = f"a rising range of 2 to {MOST_BUDGETS} factors"
            raise InputError("--budgets", repr(text), what)
        factors = np.linspace(low, high, count).tolist()
    return tuple(sorted({float(f"{factor:.6g}") for factor in factors}))


def parse_changes(texts: Iterable[str]) -> tuple[Variant, ...]:
    """Read ``"idle=0.7,1.3"``, ``"power=0.9,1.1"``, ``"nodes=1"`` as one variant a number."""
    found = []
    for text in texts:
        name, _, values = text.partition("=")
        for part in values.split(","):
            number = _number(part)
            whole = name == "nodes"
            least, most = (1.0, 2.0**20) if whole else (0.01, 100.0)
            known = name in {"idle", "power", "nodes"}
            if not known or number is None or not least <= number <= most or (whole and number % 1):
                expected = "idle=FACTORS, power=FACTORS or nodes=NUMBERS, as in idle=0.7,1.3"
                raise InputError("--vary", repr(text), expected)
            value: Any = int(number) if whole else number
            found.append(Variant(**{name: value}))
    return tuple(dict.fromkeys(change for change in found if change.change))


def parse_comparators(text: str) -> frozenset[str]:
    """Read ``"fifo,srtf"``; InputError if one is no policy's name."""
    names = [part.strip() for part in text.split(",")]
    for name in names:
        if name not in POLICIES:
            raise InputError("--comparators", repr(name), f"names of: {', '.join(POLICIES)}")
    return frozenset(names)


def sweep_cases(
    instances: Mapping[str, Instance],
    policies: tuple[str, ...],
    seeds: tuple[int, ...],
    factors: Sequence[float],
    changes: Sequence[Variant],
    levels: Sequence[Knowledge] = (DECLARED,),
    *,
    time_limit_s: float | None,
) -> tuple[RunCase, ...]:
    """Multiply instances (by the word that loads them) and all else out.

    A factor of the budget stands for the same watts whatever else is changed: what is wrong about
    power figures does not change what may be spent.
    """
    refuse_namesakes({source: (each, fingerprint(each)) for source, each in instances.items()})
    found: dict[str, RunCase] = {}
    for source, instance in instances.items():
        full_w = reference_w(instance)
        for change, factor in product((UNCHANGED, *changes), factors):
            variant = replace(change, sustained_w=full_w * factor, factor=factor)
            varied = variant.apply(instance)
            loaded = {source: (varied, fingerprint(varied))}
            made = cases(
                loaded,
                policies,
                seeds,
                time_limit_s=time_limit_s,
                levels=levels,
                variant=variant,
            )
            for case in made:
                found.setdefault(case.key, case)
    return tuple(found.values())


def belonging(
    instance: Instance, results: Iterable[Result], asked: Sequence[Result]
) -> list[Result]:
    """Return the results of an instance: those asked for, then earlier ones of the same folder.

    An earlier one counts if it is of this very instance, changed as it says, and its policy,
    budget, change and seed were not asked for now (with another time limit, say).
    """
    chosen: dict[tuple[str, float | None, str, int], Result] = {}
    same = {r.variant: r.fingerprint for r in asked if r.instance == instance.name}
    for each in (*asked, *results):
        variant = each.variant
        if each.instance != instance.name or variant.sustained_w is None:
            continue
        if variant not in same:
            same[variant] = fingerprint(variant.apply(instance))
        if same[variant] == each.fingerprint:
            key = (each.label, variant.sustained_w, variant.change, each.seed)
            chosen.setdefault(key, each)
    return list(chosen.values())


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
