"""The findings of a sweep on an instance: curves, equal energy, targets, prices, rankings."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

from ronda.bench.frontier.bound import Steps, kept_steps
from ronda.bench.frontier.curves import (
    COMPARATORS,
    Curve,
    at_equal_energy,
    at_equal_jct,
    curves_of,
    energy_unit,
    levels_of,
    verdicts,
)
from ronda.bench.frontier.shadow import Worth, shadows, worth
from ronda.bench.frontier.sweep import belonging
from ronda.bench.runs.compare import Layout
from ronda.bench.runs.results import Result
from ronda.bench.runs.variant import Variant, reference_w
from ronda.instances.instance import Instance
from ronda.instances.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Ranking:
    """Policies ranked by mean JCT at one budget of a changed instance.

    `change` is empty for the unchanged instance. `swapped` holds the pairs of policies that have
    the opposite order on the unchanged instance.
    """

    change: str
    factor: float
    order: tuple[tuple[str, float], ...]
    swapped: tuple[tuple[str, str], ...]


class Frontier:
    """The results of a sweep on one instance, from its runs with all changes and budgets.

    A budget factor of 1 means `full_w` watts. `curves` and `levels` belong to the instance without
    other changes; `worths` is by policy and budget factor; `rankings` is empty if nothing was
    varied. Energies are shown in a `unit` of `unit_j` joules.
    """

    def __init__(
        self,
        instance: Instance,
        full_w: float,
        results: Iterable[Result],
        layout: Layout,
        bound: Steps,
        comparators: Collection[str] = COMPARATORS,
    ) -> None:
        by_change: dict[str, list[Result]] = {"": []}
        for result in results:
            by_change.setdefault(result.variant.change, []).append(result)
        found = {change: curves_of(some, comparators) for change, some in by_change.items()}
        self.instance, self.full_w, self.bound, self.curves = instance, full_w, bound, found[""]
        points = [point for curve in self.curves for point in curve.points]
        self.levels = levels_of(self.curves, len({point.sustained_w for point in points}))
        self.verdicts = verdicts(self.curves, self.levels)
        self.equal_energy = at_equal_energy(self.curves)
        self.equal_jct = at_equal_jct(self.curves)
        self.worths = _worths(instance, self.curves, layout)
        larger = {
            nodes: found[change]
            for change, some in by_change.items()
            if change and change == Variant(nodes=(nodes := some[0].variant.nodes)).change
        }
        self.shadows = shadows(instance, self.curves, larger, self.worths)
        self.rankings = _rankings(found) if len(found) > 1 else []
        self.failures = [f for each in found.values() for curve in each for f in curve.failures]
        self.unit_j, self.unit = energy_unit(self.curves)


def frontiers(
    instances: Mapping[str, Instance],
    there: Sequence[Result],
    asked: Sequence[Result],
    layout: Layout,
    comparators: Collection[str],
    progress: Callable[[str, float], None],
) -> list[Frontier]:
    """Return the frontier of each instance from a folder of runs; the folder also keeps the bounds.

    `there` are all runs in the folder; only those count that belong to the runs in `asked`.
    """
    made = []
    for name, instance in instances.items():
        own = belonging(instance, there, asked)
        most_w = max((result.variant.sustained_w or 0.0 for result in own), default=0.0)
        changed = Variant(sustained_w=most_w).apply(instance)
        bound = kept_steps(changed, layout.folder / "bounds.json", partial(progress, name))
        made.append(Frontier(instance, reference_w(instance), own, layout, bound, comparators))
    return made


def _worths(
    instance: Instance, found: Sequence[Curve], layout: Layout
) -> dict[tuple[str, float], Worth]:
    """Return the shadow prices of each policy's first seed, if its runs have prices."""
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
                if jct[first] < jct[second] * (1.0 - 1e-6)  # smaller differences count as ties
                and before[second] < before[first] * (1.0 - 1e-6)
            )
            made.append(Ranking(change, factor, order, swapped))
    return made


def _jct_by_factor(some: Sequence[Curve]) -> dict[float, dict[str, float]]:
    made: dict[float, dict[str, float]] = {}
    for curve in some:
        for point in curve.points:
            made.setdefault(point.factor, {})[curve.label] = point.mean_jct_s
    return made
