"""The frontier of a policy: how low a mean JCT it reaches with how much energy.

A sweep runs every policy at several energy budgets. Each budget gives a point (joules used, mean
JCT). What a policy reaches with some energy it also reaches with more (free disposal), so its
curve is the lower envelope of its points, linear between those that are not dominated, level to
the right of the last one, and without a value to the left of the first.

Duels set the best of ronda's own policies against the strongest comparator, wherever both have a
point.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
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


RISE = 1e-3
"""Less of a difference in energy between two budgets, relatively, is none."""

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
        run = next((run for point in self.points for run in point.runs), None)
        return "–" if run is None else str(run.metrics.get("knowledge", "–"))

    @property
    def rises(self) -> tuple[float, ...]:
        """The budget factors at which it used more energy than at the next larger one."""
        return tuple(
            low.factor
            for low, high in pairwise(self.points)
            if low.energy_j > high.energy_j * (1.0 + RISE)
        )

    def envelope(self) -> tuple[tuple[float, float], ...]:
        """Return the points (joules, seconds) that no other point of the curve dominates."""
        best: list[tuple[float, float]] = []
        for pair in sorted((point.energy_j, point.mean_jct_s) for point in self.points):
            if not best or pair[1] < best[-1][1]:
                best.append(pair)
        return tuple(best)

    def jct_at(self, energy_j: float) -> float | None:
        """Return the mean JCT at some energy; None below the least energy of any point."""
        envelope = self.envelope()
        if not envelope or energy_j < envelope[0][0] * (1.0 - 1e-12):
            return None
        energies, seconds = zip(*envelope, strict=True)
        return float(np.interp(energy_j, energies, seconds))

    def energy_at(self, jct_s: float) -> float | None:
        """Return the least energy for a mean JCT; None below the shortest of any point."""
        envelope = self.envelope()
        if not envelope or jct_s < envelope[-1][1] * (1.0 - 1e-12):
            return None
        energies, seconds = zip(*reversed(envelope), strict=True)
        return float(np.interp(jct_s, seconds, energies))


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
            good = tuple(run for run in runs if run.ok and not run.metrics.get("violations"))
            if good:
                points.append(_point(sustained_w, good))
            for run in runs:
                if not run.ok:
                    failures.append(f"{run.title}: {run.status}: {run.message}")
                elif run not in good:
                    failures.append(f"{run.title}: {run.metrics['violations']} violations")
        policy = runs[0].policy
        own = policy not in comparators
        found.append(Curve(label, policy, tuple(points), tuple(failures), own))
    return tuple(found)


def _point(sustained_w: float, runs: tuple[Result, ...]) -> FrontierPoint:
    energies_j = [float(run.metrics["energy_j"]) for run in runs]
    jcts_s = [float(run.metrics["mean_jct_s"]) for run in runs]
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


def verdicts(found: Sequence[Curve], levels: Sequence[Level]) -> tuple[FrontierVerdict, ...]:
    """Hold the best of ronda's own policies against each targeted comparator that was run.

    Energies with which none of ronda's own has a point do not count.
    """
    made = []
    for curve in found:
        if curve.own or curve.policy not in TARGETED:
            continue
        held = [(each.energy_j, each.ratio(curve.label)) for each in levels if each.best]
        ratios = [(energy, ratio) for energy, ratio in held if ratio is not None]
        met = tuple(pair for pair in ratios if pair[1] >= TARGET)
        missed = tuple(pair for pair in ratios if pair[1] < TARGET)
        without = tuple(energy for energy, ratio in held if ratio is None)
        made.append(FrontierVerdict(curve.label, TARGET, met, missed, without))
    return tuple(made)


FASTER, THRIFTIER = 1.25, 0.15
"""Ours should be this many times faster at equal energy, or use this share less at equal JCT,
somewhere, and be worse nowhere."""


@dataclass(frozen=True, slots=True)
class Duel:
    """The best own policy and the strongest comparator at one energy, or at one mean JCT.

    `at` is that energy in joules, or those seconds. `gain` is the comparator's mean JCT over ours;
    or the share of its energy that ours does not need. 0 for `own` None: ours gets nowhere near.
    """

    at: float
    own: str | None
    rival: str
    gain: float


def at_equal_energy(curves: Sequence[Curve]) -> tuple[Duel, ...]:
    """Return a duel at the energy of every point of both envelopes where comparators have one."""
    energies = sorted({energy for curve in curves for energy, _ in curve.envelope()})
    found = []
    for energy in energies:
        ours, theirs = _least(curves, energy, own=True), _least(curves, energy, own=False)
        if theirs is not None:
            gain = 0.0 if ours is None else theirs[0] / ours[0]
            found.append(Duel(energy, None if ours is None else ours[1], theirs[1], gain))
    return tuple(found)


def _least(curves: Sequence[Curve], energy_j: float, *, own: bool) -> tuple[float, str] | None:
    """Return the shortest mean JCT with some energy, and whose; None if nobody has a point."""
    some = ((curve.jct_at(energy_j), curve.label) for curve in curves if curve.own == own)
    return min(((jct, label) for jct, label in some if jct is not None), default=None)


def at_equal_jct(curves: Sequence[Curve]) -> tuple[Duel, ...]:
    """Return a duel at the mean JCT of every point of both envelopes that comparators reach."""
    seconds = sorted({jct for curve in curves for _, jct in curve.envelope()})
    found = []
    for jct in seconds:
        ours, theirs = _cheapest(curves, jct, own=True), _cheapest(curves, jct, own=False)
        if theirs is not None:
            gain = -1.0 if ours is None else 1.0 - ours[0] / theirs[0]
            found.append(Duel(jct, None if ours is None else ours[1], theirs[1], gain))
    return tuple(found)


def _cheapest(curves: Sequence[Curve], jct_s: float, *, own: bool) -> tuple[float, str] | None:
    """Return the least energy for some mean JCT, and whose; None if nobody is as fast."""
    some = ((curve.energy_at(jct_s), curve.label) for curve in curves if curve.own == own)
    return min(((energy, label) for energy, label in some if energy is not None), default=None)


def strongest(curves: Sequence[Curve]) -> frozenset[str]:
    """Return the comparators of which no other one is better at every energy."""
    return frozenset(duel.rival for duel in at_equal_energy(curves))


def spans(duels: Sequence[Duel]) -> list[tuple[float, float, Duel]]:
    """Return (from, to, duel) where the same two meet at neighbouring places, their worst duel."""
    found: list[tuple[float, float, Duel]] = []
    for before, duel in pairwise([None, *duels]):
        assert duel is not None
        if before is not None and (before.own, before.rival) == (duel.own, duel.rival):
            start, _, worst = found[-1]
            found[-1] = (start, duel.at, min(worst, duel, key=lambda each: each.gain))
        else:
            found.append((duel.at, duel.at, duel))
    return found
