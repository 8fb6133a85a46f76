"""What a sweep says about an instance: curves, equal energy, targets, shadow prices, rankings."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

from ronda.bench.frontier.bound import Steps
from ronda.bench.frontier.curves import (
    COMPARATORS,
    Curve,
    Duel,
    FrontierVerdict,
    Level,
    at_equal_energy,
    at_equal_jct,
    curves_of,
    levels_of,
    verdicts,
)
from ronda.bench.frontier.shadow import Shadow, Worth, shadows, worth
from ronda.bench.runs.compare import Layout
from ronda.bench.runs.results import Result
from ronda.bench.runs.variant import Variant
from ronda.instances.instance import Instance
from ronda.instances.schedule import Schedule

TIE = 1e-6
"""Mean JCTs that differ by less, relatively, rank alike."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """(Policy, mean JCT in seconds) at a budget of a changed instance, the best first.

    `change` is empty for the instance as it is; `swapped` are pairs that rank the other way round
    there.
    """

    change: str
    factor: float
    order: tuple[tuple[str, float], ...]
    swapped: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """All that a sweep says about an instance; a budget factor of 1 stands for `full_w` watts.

    `curves` and `levels` are of the instance as it is, but for its budget; `worths` by policy and
    budget factor; `rankings` are empty where nothing was varied.
    """

    instance: Instance
    full_w: float
    curves: tuple[Curve, ...]
    bound: Steps
    levels: tuple[Level, ...]
    verdicts: tuple[FrontierVerdict, ...]
    equal_energy: tuple[Duel, ...]
    equal_jct: tuple[Duel, ...]
    shadows: tuple[Shadow, ...]
    worths: dict[tuple[str, float], Worth]
    rankings: tuple[Ranking, ...]
    failures: tuple[str, ...]


def make_report(
    instance: Instance,
    full_w: float,
    results: Sequence[Result],
    layout: Layout,
    bound: Steps,
    comparators: Collection[str] = COMPARATORS,
) -> Report:
    """Make the report of an instance from its runs, of all changes and budgets."""
    by_change: dict[str, list[Result]] = {"": []}
    for result in results:
        by_change.setdefault(result.variant.change, []).append(result)
    found = {change: curves_of(some, comparators) for change, some in by_change.items()}
    plain = found[""]
    budgets = {point.sustained_w for curve in plain for point in curve.points}
    levels = levels_of(plain, len(budgets))
    worths = _worths(instance, plain, layout)
    larger = {
        nodes: found[change]
        for change, some in by_change.items()
        if change and change == Variant(nodes=(nodes := some[0].variant.nodes)).change
    }
    return Report(
        instance=instance,
        full_w=full_w,
        curves=plain,
        bound=bound,
        levels=levels,
        verdicts=verdicts(plain, levels),
        equal_energy=at_equal_energy(plain),
        equal_jct=at_equal_jct(plain),
        shadows=shadows(instance, plain, larger, worths),
        worths=worths,
        rankings=tuple(_rankings(found)) if len(found) > 1 else (),
        failures=tuple(f for each in found.values() for curve in each for f in curve.failures),
    )


def _worths(
    instance: Instance, found: Sequence[Curve], layout: Layout
) -> dict[tuple[str, float], Worth]:
    """Return what the prices of each policy's first seed say, where it has prices."""
    made = {}
    for curve in found:
        for point in curve.points:
            run = point.runs[0]
            if run.config.get("objective") == "rank":
                schedule = layout.read(run.key, Schedule)
                made[curve.label, point.factor] = worth(run.variant.apply(instance), schedule)
    return {key: said for key, said in made.items() if said is not None}


def _rankings(found: dict[str, tuple[Curve, ...]]) -> list[Ranking]:
    made = []
    plain = _jct_by_factor(found[""])
    for change, some in found.items():
        for factor, jct in sorted(_jct_by_factor(some).items()):
            order = tuple(sorted(jct.items(), key=lambda pair: pair[1]))
            before = plain.get(factor, {})
            names = [label for label, _ in order if label in before]
            swapped = tuple(
                (first, second)
                for first, second in combinations(names, 2)
                if jct[first] < jct[second] * (1.0 - TIE)
                and before[second] < before[first] * (1.0 - TIE)
            )
            made.append(Ranking(change, factor, order, swapped))
    return made


def _jct_by_factor(some: Sequence[Curve]) -> dict[float, dict[str, float]]:
    made: dict[float, dict[str, float]] = {}
    for curve in some:
        for point in curve.points:
            made.setdefault(point.factor, {})[curve.label] = point.mean_jct_s
    return made
