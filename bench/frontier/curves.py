"""The frontier of a policy: how low a mean JCT it reaches with how much energy.

A sweep runs every policy at several energy budgets. Each budget gives a point (joules used, mean
JCT). What a policy reaches with some energy it also reaches with more (free disposal), so its
curve is the lower envelope of its points, linear between those that are not dominated, level to
the right of the last one, and without a value to the left of the first.

Duels set the best of ronda's own policies against the strongest comparator, wherever both have a
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
"""What PowerFlow (Gu et al. 2023) compares itself with, and others like it: schedulers that decide
GPUs without energy in view, alone and with Zeus's clocks. All others count as ronda's own."""

TARGETED, TARGET = ("tiresias+zeus", "fifo+zeus"), 1.57
"""The best of ronda's own should have a mean JCT this many times shorter than these comparators at
equal energy: the lower end of the "1.57 to 3.39 times" that PowerFlow's abstract claims."""

Pairs = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """A policy at one budget (a factor, in watts): means over seeds that kept every rule.

    `energy_half_j` and `mean_jct_half_s` are the half-widths of their 95 % confidence intervals;
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
"""Of a point, for files."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A policy's points, in order of the budget, and in words what went wrong.

    `own` is whether it is one of ronda's own policies, not a comparator.
    """

    label: str
    policy: str
    points: tuple[FrontierPoint, ...]
    failures: tuple[str, ...] = ()
    own: bool = True

    @property
    def knowledge(self) -> str:
        """Where the policy has the sizes of jobs from; – without a run."""
        runs = (run for point in self.points for run in point.runs)
        return next((str(run.metrics.get("knowledge", "–")) for run in runs), "–")

    @property
    def rises(self) -> tuple[float, ...]:
        """The budget factors at which it used more energy than at the next larger one.

        Less than a thousandth more counts as none.
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
        """Return the mean JCT at some energy; None below the least energy of any point."""
        return _along(self.envelope(), energy_j)

    def energy_at(self, jct_s: float) -> float | None:
        """Return the least energy for a mean JCT; None below the shortest of any point."""
        return _along([(jct, energy) for energy, jct in reversed(self.envelope())], jct_s)


def energy_unit(curves: Iterable[Curve]) -> tuple[float, str]:
    """Return the joules of the unit in which the energies of curves are shown, and its name."""
    used_j = [point.energy_j for curve in curves for point in curve.points]
    return (3.6e9, "MWh") if max(used_j, default=0.0) >= 3.6e9 else (3.6e6, "kWh")


def _along(pairs: Pairs, place: float) -> float | None:
    """Return the value at a place of pairs (place, value) in order; None before the first."""
    if not pairs or place < pairs[0][0] * (1.0 - 1e-12):  # rounding
        return None
    places, values = zip(*pairs, strict=True)
    return float(np.interp(place, places, values))


def curves_of(
    results: Iterable[Result], comparators: Collection[str] = COMPARATORS
) -> tuple[Curve, ...]:
    """Return the curve of each policy; all results are of one instance, changed alike."""
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
        """Return a policy's mean JCT over that of the best of ronda's own."""
        best = None if self.best is None else self.jct_s[self.best]
        reached = self.jct_s[label]
        return None if best is None or reached is None else reached / best


def levels_of(found: Sequence[Curve], count: int) -> tuple[Level, ...]:
    """Compare all policies at energies spaced evenly from the least to the most of all envelopes.

    With more than that no policy does any better.
    """
    used = [energy for curve in found for energy, _ in curve.envelope()]
    if not used:
        return ()
    energies = np.linspace(min(used), max(used), max(count, 2)).tolist()
    return tuple(level(found, energy_j) for energy_j in dict.fromkeys(energies))


def level(found: Sequence[Curve], energy_j: float) -> Level:
    """Compare all policies at one energy."""
    reached = {curve.label: curve.jct_at(energy_j) for curve in found}
    own = {c.label: jct for c in found if c.own and (jct := reached[c.label]) is not None}
    return Level(energy_j, min(own, key=own.__getitem__) if own else None, reached)


@dataclass(frozen=True, slots=True)
class FrontierVerdict:
    """How the best of ronda's own policies does against a targeted comparator.

    `met` and `missed` are (joules, ratio) where both have a value and the target is reached or
    not; with the joules of `unreachable` the comparator has no point.
    """

    label: str
    target: float
    met: tuple[tuple[float, float], ...]
    missed: tuple[tuple[float, float], ...]
    unreachable: tuple[float, ...]


def verdicts(found: Sequence[Curve], levels: Sequence[Level]) -> tuple[FrontierVerdict, ...]:
    """Hold the best of ronda's own policies against each targeted comparator that was run.

    Energies with which none of ronda's own has a point do not count.
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
"""Ours should be this many times faster at equal energy, or use this share less at equal JCT,
somewhere, and be worse nowhere."""


@dataclass(frozen=True, slots=True)
class Duel:
    """The best own policy and the strongest comparator at one energy, or at one mean JCT.

    `at` is that energy in joules, or those seconds. `gain` is the comparator's mean JCT over ours;
    or the share of its energy that ours does not need. `own` is None where ours gets nowhere near.
    """

    at: float
    own: str | None
    rival: str
    gain: float


def at_equal_energy(curves: Sequence[Curve]) -> tuple[Duel, ...]:
    """Return a duel at the energy of every point of both envelopes where comparators have one."""
    places = {energy for curve in curves for energy, _ in curve.envelope()}
    return _duels(curves, places, Curve.jct_at, lambda ours, theirs: theirs / ours, 0.0)


def at_equal_jct(curves: Sequence[Curve]) -> tuple[Duel, ...]:
    """Return a duel at the mean JCT of every point of both envelopes that comparators reach."""
    places = {jct for curve in curves for _, jct in curve.envelope()}
    return _duels(curves, places, Curve.energy_at, lambda ours, theirs: 1.0 - ours / theirs, -1.0)


def _duels(
    curves: Sequence[Curve],
    places: Iterable[float],
    value: Callable[[Curve, float], float | None],
    gain: Callable[[float, float], float],
    lost: float,
) -> tuple[Duel, ...]:
    """Return the least value of either side at each place; `lost` is the gain where ours has none.

    Of equal values the first label counts.
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
    """Return the comparators of which no other one is better at every energy."""
    return frozenset(duel.rival for duel in at_equal_energy(curves))


def spans(duels: Sequence[Duel]) -> list[tuple[float, float, Duel]]:
    """Return (from, to, duel) where the same two meet at neighbouring places, their worst duel."""
    found = []
    for _, group in groupby(duels, key=lambda duel: (duel.own, duel.rival)):
        met = list(group)
        found.append((met[0].at, met[-1].at, min(met, key=lambda duel: duel.gain)))
    return found
