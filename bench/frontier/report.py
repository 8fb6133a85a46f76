"""What a sweep says about an instance: curves, equal energy, targets, shadow prices, rankings."""

from collections.abc import Sequence
from dataclasses import dataclass

from ronda.bench.frontier.bound import Steps
from ronda.bench.frontier.curves import (
    YARDSTICK,
    Curve,
    Level,
    Point,
    Verdict,
    Yardstick,
    common_energies,
    curves_of,
    level,
    verdicts,
)
from ronda.bench.frontier.shadow import Worth, gpu_saves, kilowatt_saves, worth
from ronda.bench.runs.compare import Layout
from ronda.bench.runs.results import Result
from ronda.bench.runs.variant import Variant
from ronda.instances.instance import Instance
from ronda.instances.schedule import Schedule

TIE = 1e-6
"""Mean JCTs that differ by less, relatively, rank alike."""


@dataclass(frozen=True, slots=True)
class Shadow:
    """What one more of each resource is worth to a policy at a budget, in seconds of mean JCT.

    A sustained kilowatt: measured between this budget and the next, and by prices; a GPU for the
    whole run: measured with more nodes, and by prices; a GPU-hour and a kilowatt-hour by prices.
    """

    label: str
    factor: float
    kw_measured_s: float | None = None
    kw_priced_s: float | None = None
    gpu_measured_s: float | None = None
    gpu_priced_s: float | None = None
    gpu_hour_s: float | None = None
    kwh_s: float | None = None


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
    verdicts: tuple[Verdict, ...]
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
    yardstick: Yardstick = YARDSTICK,
) -> Report:
    """Make the report of an instance.

    Parameters
    ----------
    instance
        As it is.
    full_w
        Watts of a budget factor of 1.
    results
        Its runs, all changes and budgets.
    layout
        Where their schedules are.
    bound
        The clairvoyant frontier.
    yardstick
        Who ronda's policies are held against.
    """
    by_change: dict[str, list[Result]] = {"": []}
    for result in results:
        by_change.setdefault(result.variant.change, []).append(result)
    found = {change: curves_of(some, yardstick) for change, some in by_change.items()}
    plain = found[""]
    budgets = {point.sustained_w for curve in plain for point in curve.points}
    levels = tuple(level(plain, each) for each in common_energies(plain, len(budgets)))
    worths = _worths(instance, plain, layout)
    larger = {
        some[0].variant.nodes: found[change]
        for change, some in by_change.items()
        if some and some[0].variant.nodes and change == Variant(nodes=some[0].variant.nodes).change
    }
    return Report(
        instance=instance,
        full_w=full_w,
        curves=plain,
        bound=bound,
        levels=levels,
        verdicts=verdicts(plain, levels, yardstick),
        shadows=tuple(_shadows(instance, plain, larger, worths)),
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
            if run.config.get("objective") != "rank":
                continue
            schedule = layout.read(run.key, Schedule)
            said = worth(run.variant.apply(instance), schedule)
            if said is not None:
                made[curve.label, point.factor] = said
    return made


def _shadows(
    instance: Instance,
    found: Sequence[Curve],
    larger: dict[int, tuple[Curve, ...]],
    worths: dict[tuple[str, float], Worth],
) -> list[Shadow]:
    """Return a row for each policy and budget of which anything is known."""
    made = []
    nodes = min(larger, default=0)
    more = {curve.label: curve for curve in larger.get(nodes, ())}
    for curve in found:
        slopes = kilowatt_saves(curve)
        gpus = nodes * instance.cluster.node_groups[0].gpus_per_node
        gains = gpu_saves(curve, more[curve.label], gpus) if curve.label in more else {}
        for factor in (point.factor for point in curve.points):
            said = worths.get((curve.label, factor))
            row = Shadow(
                curve.label,
                factor,
                slopes.get(factor),
                None if said is None else said.kw_s,
                gains.get(factor),
                None if said is None else said.gpu_s,
                None if said is None else said.mean_gpu_hour_s,
                None if said is None else said.mean_kwh_s,
            )
            if row != Shadow(curve.label, factor):
                made.append(row)
    return made


def _rankings(found: dict[str, tuple[Curve, ...]]) -> list[Ranking]:
    """Return the ranking at each budget of each change, those of the instance as it is first."""
    made = []
    plain = _by_factor(found[""])
    for change, some in found.items():
        for factor, points in sorted(_by_factor(some).items()):
            jct = {label: point.jct_s.mean for label, point in points.items()}
            order = tuple(sorted(jct.items(), key=lambda pair: pair[1]))
            before = {label: p.jct_s.mean for label, p in plain.get(factor, {}).items()}
            names = [label for label, _ in order if label in before]
            swapped = tuple(
                (first, second)
                for k, first in enumerate(names)
                for second in names[k + 1 :]
                if jct[first] < jct[second] * (1.0 - TIE)
                and before[second] < before[first] * (1.0 - TIE)
            )
            made.append(Ranking(change, factor, order, swapped))
    return made


def _by_factor(some: Sequence[Curve]) -> dict[float, dict[str, Point]]:
    """Return the points by budget factor and policy."""
    made: dict[float, dict[str, Point]] = {}
    for curve in some:
        for point in curve.points:
            made.setdefault(point.factor, {})[curve.label] = point
    return made
