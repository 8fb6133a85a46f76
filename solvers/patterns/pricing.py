"""Prices of slots by column generation, and the bound that they prove."""

import math
from dataclasses import dataclass, field

import numpy as np

from ronda.formulations.patterns.model import NodeModel
from ronda.instances.base import Floats, Ints
from ronda.instances.clock import checkpoint
from ronda.solvers.patterns.knapsack import Knapsack
from ronda.solvers.patterns.master import PatternMaster

MARGINS = ((0.02, 0.1, 0.25, 0.5), (0.02, 0.1, 0.25, 0.5), (0.005, 0.025, 0.1, 0.25, 0.5))
"""The widths of tiers from the first prices on, and each time that the search stalls."""

MOST_TURNS, STALLED, GAIN = 40, 3, 0.05
"""The most turns; the search stalls if so many turns together close less than a share of what the
relaxation falls short of the bound."""

EXACT, USEFUL = 5e-4, 0.1
"""The relative gap of knapsacks by branch and bound, which are tried where the search stalls, and
the share of the shortfall that the bound must gain by them for more of them."""

ROUNDING = 1e-13
"""The relative error of a number of a bound: some roundings of 1.1e-16 each."""


@dataclass(eq=False)
class SlotPrices:
    """Prices of slots (Q,) and of resources on nodes of classes (K, R), and what they prove.

    `bound` holds for every plan, `relaxed` is the optimum over the patterns of the `master`, and
    `share` the number of nodes of each of its patterns.
    """

    model: NodeModel
    sacks: list[Knapsack]
    prices: Floats
    unit: Floats
    bound: float
    relaxed: float = 0.0
    master: PatternMaster | None = None
    share: Floats = field(default_factory=lambda: np.zeros(0))
    turns: int = 0

    @classmethod
    def at_zero(cls, model: NodeModel) -> "SlotPrices":
        """Return prices of 0, at which every job runs."""
        classes = len(model.count)
        sacks, prices = [Knapsack(model, k) for k in range(classes)], np.zeros(model.priced)
        bound = bound_at(model, prices, np.zeros(classes))
        return cls(model, sacks, prices, np.zeros_like(model.capacity), bound)


def bound_at(model: NodeModel, prices: Floats, tops: Floats) -> float:
    """Return D at prices of slots, rounded up; `tops` bound the worth of a node of each class."""
    terms, size = [float(n * top) for n, top in zip(model.count, tops, strict=True)], 0.0
    for form in model.forms:
        terms += form.net(prices).max(axis=1).tolist()
        most = float(np.abs(form.cost(prices)).max())
        size += float(np.abs(form.value).max(axis=1).sum()) + most * len(form.jobs)
    terms += (others := model.coupling.worth(prices[len(model.size) :])).tolist()
    size += float(np.abs(others).sum())
    return math.fsum(terms) + ROUNDING * (size + float(model.count @ tops))


def price(out: SlotPrices, tolerance: float) -> None:
    """Improve prices until their bound is close to the relaxation, as a share of it.

    Each turn prices slots halfway between the best prices so far and those of the master. All nodes
    are filled at these prices one pattern after another, and these patterns enter.

    Raises
    ------
    OutOfTimeError
        If the time ends (`ronda.instances.clock.ending`); the prices so far can be used.
    """
    model, margins = out.model, list(MARGINS)
    center = PatternMaster(model, out.sacks).by_sums()[0]
    center, out.unit, _ = PatternMaster(model, out.sacks, center, margins[0]).by_sums()
    out.master = PatternMaster(model, out.sacks, center, margins.pop(0))
    gap, before, history = None, math.inf, [-math.inf]
    while out.turns < MOST_TURNS:
        out.turns += 1
        new = _try(out, center, gap)
        out.relaxed, prices, out.share = out.master.solve()
        history.append(out.relaxed)
        short = out.bound - out.relaxed
        if short <= tolerance * abs(out.bound):
            break
        if len(history) > STALLED and history[-1] - history[-1 - STALLED] < GAIN * short:
            history = [-math.inf]
            if before == math.inf:
                gap, before = EXACT, out.bound
            elif margins:
                gap = gap if before - out.bound > USEFUL * short else None
                out.master = _again(out, out.master, margins.pop(0))
                out.relaxed, prices, out.share = out.master.solve()
            else:
                break
        center = (out.prices + prices) / 2 if new else prices


def _try(out: SlotPrices, center: Floats, gap: float | None) -> int:
    """Keep some prices if their bound is the best, and enter patterns; return how many are new."""
    model, found, tops = out.model, list[tuple[int, Floats]](), list[float]()
    unit = np.zeros_like(out.unit)
    for k, sack in enumerate(out.sacks):
        best = sack.best(center[sack.slots], gap)
        tops.append(best.bound)
        unit[k] = best.unit
        found += [(k, pattern) for pattern in best.patterns]
    bound = bound_at(model, center, np.array(tops))
    if bound < out.bound:
        out.bound, out.prices = bound, center
        out.unit = unit if gap is None else out.unit  # what sums prove; knapsacks have no prices
    assert out.master is not None
    wanted = model.wanted(center)
    found += [(k, p) for k, p, _ in sequence(out.sacks, center, wanted, model.count, 0.05)]
    return out.master.enter(found)


def _again(out: SlotPrices, old: PatternMaster, margins: tuple[float, ...]) -> PatternMaster:
    """Return a master with the patterns of the `old` one and tiers cut at the best prices."""
    master = PatternMaster(out.model, out.sacks, out.prices, margins)
    master.enter(list(zip(old.owner, old.patterns, strict=True)))
    return master


def sequence(
    sacks: list[Knapsack], profit: Floats, left: Floats, nodes: Ints, rest: float = 0.0
) -> list[tuple[int, Floats, int]]:
    """Return patterns that fill all nodes one after another: (class, pattern, nodes).

    At most `left` (Q,) slots of each kind are filled on `nodes` (K,) of each class, except for a
    share `rest` of them. A pattern takes a third of the nodes left at most, as classes share what
    all want.
    """
    plan, left, nodes = list[tuple[int, Floats, int]](), left.copy(), nodes.copy()
    few, live = rest * nodes, np.flatnonzero(nodes).tolist()
    while live:
        checkpoint()
        for k in live[:]:
            slots = sacks[k].slots
            pattern = sacks[k].pattern(profit[slots], left[slots]) if len(slots) else np.zeros(0)
            used = np.flatnonzero(pattern)
            if not len(used) or float(profit[slots] @ pattern) <= sacks[k].cost:
                live.remove(k)
                continue
            n = int(min(nodes[k], (left[slots[used]] // pattern[used]).min()))
            n = max(1, min(n, -(-int(nodes[k]) // 3)))
            left[slots] -= n * pattern
            nodes[k] -= n
            plan.append((k, pattern, n))
            if nodes[k] <= few[k]:
                live.remove(k)
    return plan
