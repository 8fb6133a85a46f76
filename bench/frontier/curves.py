"""The frontier of a policy: the lowest mean JCT that it reaches with a given energy.

A sweep runs every policy at several energy budgets. Each budget gives a point (joules used, mean
JCT). A JCT that a policy reaches with some energy is also reachable with more (free disposal). The
policy's curve is therefore the lower envelope of its points: linear between points that are not
dominated, level to the right of the last one, and undefined to the left of the first.

Duels compare the best of ronda's own policies with the strongest comparator wherever both have a
point.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import fmean

import numpy as np

from ronda.bench.runs.results import Result
from ronda.bench.statistics import half_width
from ronda.solvers.registry import ZEUS_BASES

COMPARATORS = frozenset({*ZEUS_BASES, "race-to-idle"}) | {f"{base}+zeus" for base in ZEUS_BASES}
"""The comparators of PowerFlow (Gu et al. 2023) and similar policies: schedulers that allocate GPUs
without regard to energy, alone and with Zeus's clocks. All others count as ronda's own."""

TARGETED, TARGET = ("tiresias+zeus", "fifo+zeus"), 1.57
"""The best of ronda's own policies should have a mean JCT that is shorter by this factor than these
comparators' at equal energy: the lower end of PowerFlow's "1.57 to 3.39 times" (abstract)."""

Pairs = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """A policy at one budget (a factor, in watts), with means over the seeds that broke no rule.

    `energy_half_j` and `mean_jct_half_s` are the half-widths of 95 % confidence intervals.
    `bound_mean_jct_s` bounds the mean JCT of every schedule that keeps this budget.
    """

    factor: float
    sustained_w: float
    energy_j: float
    energy_half_j: float
    mean_jct_s: float
    mean_jct_half_s: float
    bound_mean_jct_s: float
    runs: tuple[Result, ...]


NUMBERS = ("factor", "sustained_w", "energy_j", "energy_half_j", "mean_jct_s", "mean_jct_half_s")
"""The fields of a point that files contain."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A policy's points, in order of the budget, and descriptions of its failures.

    `own` says whether the policy is one of ronda's own and not a comparator.
    """

    label: str
    policy: str
    points: tuple[FrontierPoint, ...]
    failures: tuple[str, ...] = ()
    own: bool = True

    @property
    def knowledge(self) -> str:
        """The policy's source of job sizes; – without a run."""
        runs = (run for point in self.points for run in point.runs)
        return next((str(run.metrics.get("knowledge", "–")) for run in runs), "–")

    @property
    def rises(self) -> tuple[float, ...]:
        """The budget factors at which the policy used more energy than at the next larger one.

        A difference of less than a thousandth is ignored.
        """
        pairs = pairwise(self.points)
        return tuple(a.factor for a, b in pairs if a.energy_j > 1.001 * b.energy_j)

    def envelope(self) -> tuple[tuple[float, float], ...]:
        """Return the points (joules, seconds) that no other point of the curve dominates."""
        best: list[tuple[float, float]] = []
        for pair in sorted((point.energy_j, point.mean_jct_s) for point in self.points):
            if not best or pair[1] < best[-1][1]:
                best.append(pair)
        return tuple(best)

    def jct_at(self, energy_j: float) -> float | None:
        """Return the mean JCT at the given energy; None below the least energy of any point."""
        return _along(self.envelope(), energy_j)

    def energy_at(self, jct_s: float) -> float | None:
        """Return the least energy for the given mean JCT; None below the shortest of any point."""
        return _along([(jct, energy) for energy, jct in reversed(self.envelope())], jct_s)


def energy_unit(curves: Iterable[Curve]) -> tuple[float, str]:
    """Return the unit for the energies of the given curves: its joules and its name."""
    used_j = [point.energy_j for curve in curves for point in curve.points]
    return (3.6e9, "MWh") if max(used_j, default=0.0) >= 3.6e9 else (3.6e6, "kWh")


def _along(pairs: Pairs, place: float) -> float | None:
    """Interpolate ordered pairs (place, value) at the given place; return None before the first."""
    if not pairs or place < pairs[0][0] * (1.0 - 1e-12):  # rounding
        return None
    places, values = zip(*pairs, strict=True)
    return float(np.interp(place, places, values))


def curves_of(
    results: Iterable[Result], comparators: Collection[str] = COMPARATORS
) -> tuple[Curve, ...]:
    """Return the curve of each policy; all results are of one instance with the same changes."""
    grouped: dict[str, dict[float, list[Result]]] = {}
    for result in results:
        sustained_w = result.variant.sustained_w or 0.0
        grouped.setdefault(result.label, {}).setdefault(sustained_w, []).append(result)
    found = []
    for label, budgets in grouped.items():
        points, failures = [], []
        for sustained_w, runs in sorted(budgets.items()):
            if good := tuple(run for run in runs if not run.fault):
                points.append(_point(sustained_w, good))
            failures += [f"{run.title}: {run.fault}" for run in runs if run.fault]
        policy = runs[0].policy
        own = policy not in comparators
        found.append(Curve(label, policy, tuple(points), tuple(failures), own))
    return tuple(found)


def _point(sustained_w: float, runs: tuple[Result, ...]) -> FrontierPoint:
    energies_j, jcts_s = (
        [float(run.metrics[name]) for run in runs] for name in ("energy_j", "mean_jct_s")
    )
    return FrontierPoint(
        factor=runs[0].variant.factor or 0.0,
        sustained_w=sustained_w,
        energy_j=fmean(energies_j),
        energy_half_j=half_width(energies_j),
        mean_jct_s=fmean(jcts_s),
        mean_jct_half_s=half_width(jcts_s),
        bound_mean_jct_s=float(runs[0].metrics.get("bound_mean_jct_s", 0.0)),
        runs=runs,
    )


@dataclass(frozen=True, slots=True)
class Level:
    """All policies at one energy: mean JCT by label, None where no point has so little energy.

    `best` is the label of the best of ronda's own policies, if any has a value.
    """

    energy_j: float
    best: str | None
    jct_s: dict[str, float | None]

    def ratio(self, label: str) -> float | None:
        """Return a policy's mean JCT relative to the best of ronda's own policies."""
        best = None if self.best is None else self.jct_s[self.best]
        reached = self.jct_s[label]
        return None if best is None or reached is None else reached / best


def levels_of(found: Sequence[Curve], count: int) -> tuple[Level, ...]:
    """Compare all policies at `count` energies, evenly spaced over the range of the envelopes.

    No policy improves with more energy than that.
    """
    used = [energy for curve in found for energy, _ in curve.envelope()]
    if not used:
        return ()
    energies = np.linspace(min(used), max(used), max(count, 2)).tolist()
    return tuple(level(found, energy_j) for energy_j in dict.fromkeys(energies))


def level(found: Sequence[Curve], energy_j: float) -> Level:
    """Compare all policies at the given energy."""
    reached = {curve.label: curve.jct_at(energy_j) for curve in found}
    own = {c.label: jct for c in found if c.own and (jct := reached[c.label]) is not None}
    return Level(energy_j, min(own, key=own.__getitem__) if own else None, reached)


@dataclass(frozen=True, slots=True)
class FrontierVerdict:
    """The result of the best of ronda's own policies against a targeted comparator.

    `met` and `missed` hold pairs (joules, ratio) where both have a value and the target is reached
    or not. At the joules of `unreachable` the comparator has no point.
    """

    label: str
    target: float
    met: tuple[tuple[float, float], ...]
    missed: tuple[tuple[float, float], ...]
    unreachable: tuple[float, ...]


def verdicts(found: Sequence[Curve], levels: Sequence[Level]) -> tuple[FrontierVerdict, ...]:
    """Compare the best of ronda's own policies with each targeted comparator that was run.

    Energies at which none of ronda's own policies has a point do not count.
    """
    made = []
    for label in (c.label for c in found if not c.own and c.policy in TARGETED):
        held = [(each.energy_j, each.ratio(label)) for each in levels if each.best]
        ratios = [(energy, ratio) for energy, ratio in held if ratio is not None]
        met = tuple(pair for pair in ratios if pair[1] >= TARGET)
        missed = tuple(pair for pair in ratios if pair[1] < TARGET)
        without = tuple(energy for energy, ratio in held if ratio is None)
        made.append(FrontierVerdict(label, TARGET, met, missed, without))
    return tuple(made)


FASTER, THRIFTIER = 1.25, 0.15
"""The targets of ronda's own policies: somewhere they should be faster by this factor at equal
energy, or use less energy by this share at equal JCT, and they should be worse nowhere."""


@dataclass(frozen=True, slots=True)
class Duel:
    """The best own policy and the strongest comparator at one energy, or at one mean JCT.

    `at` is that energy in joules, or that JCT in seconds. `gain` is the ratio of the comparator's
    JCT to ours, or the share of its energy that ours saves. `own` is None if no own policy gets
    there.
    """

    at: float
    own: str | None
    rival: str
    gain: float


def at_equal_energy(curves: Sequence[Curve]) -> tuple[Duel, ...]:
    """Return a duel at each energy on an envelope at which a comparator has a value."""
    places = {energy for curve in curves for energy, _ in curve.envelope()}
    return _duels(curves, places, Curve.jct_at, lambda ours, theirs: theirs / ours, 0.0)


def at_equal_jct(curves: Sequence[Curve]) -> tuple[Duel, ...]:
    """Return a duel at each mean JCT on an envelope that a comparator reaches."""
    places = {jct for curve in curves for _, jct in curve.envelope()}
    return _duels(curves, places, Curve.energy_at, lambda ours, theirs: 1.0 - ours / theirs, -1.0)


def _duels(
    curves: Sequence[Curve],
    places: Iterable[float],
    value: Callable[[Curve, float], float | None],
    gain: Callable[[float, float], float],
    lost: float,
) -> tuple[Duel, ...]:
    """Return a duel of each side's least value at each place; `lost` is the gain if ours has none.

    Among equal values, the first label in alphabetical order wins.
    """
    found = []
    for place in sorted(places):
        reached = [(at, c) for c in curves if (at := value(c, place)) is not None]
        ours, theirs = (
            min(((at, c.label) for at, c in reached if c.own is own), default=None)
            for own in (True, False)
        )
        if theirs is not None:
            won = lost if ours is None else gain(ours[0], theirs[0])
            found.append(Duel(place, ours and ours[1], theirs[1], won))
    return tuple(found)


def strongest(curves: Sequence[Curve]) -> frozenset[str]:
    """Return the comparators that are the best comparator at some energy."""
    return frozenset(duel.rival for duel in at_equal_energy(curves))


def spans(duels: Sequence[Duel]) -> list[tuple[float, float, Duel]]:
    """Return (from, to, worst duel) for each run of neighbouring duels between the same two."""
    found = []
    for _, group in groupby(duels, key=lambda duel: (duel.own, duel.rival)):
        met = list(group)
        found.append((met[0].at, met[-1].at, min(met, key=lambda duel: duel.gain)))
    return found
