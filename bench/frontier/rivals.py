"""The best of ronda's own policies against the strongest comparator, wherever both have a point."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ronda.bench.frontier.curves import Curve

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
