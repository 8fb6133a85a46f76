"""The price engine: certified near-optimal answers to separable rounds.

1. Solve the Lagrangian dual (`ronda.solvers.dual`): prices and an upper bound D.
2. Let all jobs take their best option at these prices, except for a small core of jobs whose
   alternatives cost next to nothing; a MILP decides the core (`ronda.solvers.core`).
   Where GPUs are all that couples a few jobs, dynamic programming decides instead
   (`ronda.solvers.knapsack`).
3. Every plan outside the core falls short of D by at least the least loss that was left out. Widen
   the core until the best plan is within the gap that was asked for, or proven optimal.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ronda.formulations.normalised import Units, normalise
from ronda.formulations.separable import Floats, Separable
from ronda.instances.errors import InputError
from ronda.instances.plan import StopReason
from ronda.solvers.answer import ALONE, CORES, LABELS, PROGRAMME, Answer
from ronda.solvers.contract import Deadline
from ronda.solvers.core import solve_core
from ronda.solvers.dual import Dual, bound_at, solve_dual
from ronda.solvers.knapsack import Demand, best_of_all, fits
from ronda.solvers.labels import best_within
from ronda.solvers.repair import without_excess
from ronda.solvers.shards import Ints, Jobs, LocalJobs

DUAL_TOLERANCE = 1e-8
"""Relative precision of the prices: the finer they are, the fewer jobs they leave undecided, and a
further evaluation costs much less than a wider core."""

FIRST_CORE = 150
"""Alternatives in the first core, for each resource."""

WIDER = 4
"""Factor from one core to the next."""

CORE_NODES = 200
"""Search-tree nodes of a core that does not yet hold all options that could matter."""

FEW_JOBS, MOST_NEAR = 256, 400
"""Up to so many jobs with up to so many alternatives are decided without a MILP."""

NEAREST, FURTHER, LEAST_FURTHER = 2e-4, 3.0, 1.3
"""Shortfall, relative to the bound, within which answers are looked for first, and the factor from
one to the next: the usual one, and the one below which it is left to the MILP."""

MOST_CARRIED = 0.02
"""Shortfall of an earlier problem above which it says nothing about this one."""

FEW_LABELS, QUICKLY = 500, 10.0
"""After so few labels the next shortfall may be larger by this factor."""

ROUNDING = 1e-7
"""Excess over a capacity that is taken for rounding: a share of it, or of the smallest use."""


def solve_separable(
    problem: Separable,
    *,
    gap: float = 1e-4,
    deadline: Deadline | None = None,
    seed: int = 0,
    start: Floats | None = None,
    within: float = 0.0,
    jobs: Callable[[Separable], Jobs] = LocalJobs,
) -> Answer:
    """Solve a separable problem to a certified relative gap.

    Parameters
    ----------
    problem
        The problem; validated first.
    gap
        Relative gap between objective and bound at which to stop.
    deadline
        By when to return the best answer so far, with its true bound.
    seed
        Of the core's search.
    start
        (R,) prices of an earlier, similar problem; NaN for resources that it did not have.
    within
        By how much the answer to that problem fell short of its dual bound, relative: answers so
        near are looked for first. Like `start`, it may lead to another answer within the gap.
    jobs
        Makes whoever answers for the jobs of the (normalised) problem; by default this process.

    Raises
    ------
    InputError
        If the gap or the problem makes no sense.
    """
    if not 0 < gap < 1:
        raise InputError("gap", f"{gap:g}", "a share above 0 and below 1")
    problem.validate()
    deadline = deadline or Deadline()
    own, units = normalise(problem)
    if fits(own):
        return _by_knapsack(problem, own, units)
    asked = jobs(own)
    dual = solve_dual(
        own,
        asked,
        tolerance=DUAL_TOLERANCE,
        deadline=deadline,
        start=None if start is None else units.normalised_prices(start),
    )
    return _Search(problem, own, units, asked, dual, gap, deadline, seed, within).run()


def _by_knapsack(problem: Separable, own: Separable, units: Units) -> Answer:
    """Decide few jobs that share one resource in whole units."""
    chosen, found = best_of_all(own), Demand(own).least()
    prices = units.prices(np.array([found.price]))
    bound = Demand(problem).at(float(prices[0]))[0]
    none = np.zeros(0)
    dual = Dual(prices, bound, bound, found.evaluations, none)
    if chosen is None:
        return Answer(None, None, None, bound, dual, StopReason.INFEASIBLE, PROGRAMME, 1, 0, 0)
    objective = problem.objective(chosen, none)
    columns = len(own.value)
    return Answer(
        chosen, none, objective, objective, dual, StopReason.COMPLETE, PROGRAMME, 1, columns, 0
    )


class _Search:
    """The widening of the core."""

    def __init__(
        self,
        problem: Separable,
        own: Separable,
        units: Units,
        jobs: Jobs,
        dual: Dual,
        gap: float,
        deadline: Deadline,
        seed: int,
        within: float,
    ) -> None:
        self.problem, self.own, self.units = problem, own, units
        self.jobs, self.dual = jobs, dual
        self.gap, self.deadline, self.seed = gap, deadline, seed
        self.nearest = max(2.0 * gap, NEAREST, min(within, MOST_CARRIED))
        self.bound = dual.bound  # all in the units of `own`
        self.chosen: Ints | None = None
        self.blocks: Floats | None = None
        self.objective = -np.inf
        self.cores = self.columns = self.nodes = 0
        self.search = ALONE

    def run(self) -> Answer:
        """Widen until the gap is certified, the optimum proven, or the time over."""
        resources = len(self.problem.capacity)
        best = self.jobs.losses(self.dual.prices, np.inf, 0).best
        self._offer(best, self.dual.blocks)
        if self.chosen is None:
            self._offer(without_excess(self.own, best, self.dual.blocks), self.dual.blocks)
        if self.own.jobs <= FEW_JOBS and not self._certified() and self._near():
            return self._answer(StopReason.GAP if self._certified() else StopReason.COMPLETE)
        most = FIRST_CORE * max(1, resources)
        while not self._certified():
            if self.deadline.over():
                return self._answer(StopReason.TIME_LIMIT)
            if self._widen(most):
                break
            most *= WIDER
        if self.chosen is None:
            return self._answer(StopReason.INFEASIBLE)
        return self._answer(StopReason.GAP if self._certified() else StopReason.COMPLETE)

    def _near(self) -> bool:
        """Look for the best answer within more and more of the bound; tells whether that is all.

        All answers within a shortfall are weighed (`ronda.solvers.labels`): if there is none, the
        bound sinks by it. Should they be too many, the next attempt goes less far.
        """
        scale = abs(self.dual.bound)
        done, factor = self.nearest * scale / FURTHER, FURTHER
        while done * factor < scale and factor > LEAST_FURTHER and not self.deadline.over():
            within = min(done * factor, self._shortfall())
            labels = self._weigh(within)
            if labels is None:
                factor = factor**0.5
                continue
            if self._shortfall() <= within or self._certified():
                return True
            done, factor = within, QUICKLY if labels < FEW_LABELS else min(factor, FURTHER)
        return False

    def _weigh(self, within: float) -> int | None:
        """Weigh all answers within a shortfall; returns with how many labels, None if too many."""
        losses = self.jobs.losses(self.dual.prices, within, MOST_NEAR)
        if len(losses.loss) == MOST_NEAR:
            return None
        found = best_within(self.own, self.dual.prices, losses, within)
        if found is None:
            return None
        self.search = LABELS
        self.cores += 1
        self.columns = max(self.columns, len(losses.loss) + len(np.unique(losses.job)))
        self.nodes += found.labels
        if found.chosen is not None and found.blocks is not None:
            self._offer(found.chosen, found.blocks)
        self.bound = min(self.bound, self.dual.bound - min(self._shortfall(), within))
        return found.labels

    def _widen(self, most: int) -> bool:
        """Decide a core of `most` alternatives; tells whether nothing is left to be decided."""
        shortfall = self._shortfall()
        losses = self.jobs.losses(self.dual.prices, shortfall, most)
        complete = len(losses.loss) < most
        found = solve_core(
            self.own,
            self.dual.bound,
            losses,
            target=self.gap * abs(self.dual.bound),
            cutoff=shortfall,
            nodes=2**31 - 1 if complete else CORE_NODES,
            seconds=min(self.deadline.left(), 1e6),
            seed=self.seed,
        )
        self.search = CORES
        self.cores += 1
        self.columns = max(self.columns, found.columns)
        self.nodes += found.nodes
        if found.chosen is not None and found.blocks is not None:
            self._offer(found.chosen, found.blocks)
        least = min(found.least, losses.next_loss, self._shortfall())
        if np.isfinite(least):
            self.bound = min(self.bound, self.dual.bound - least)
        return complete and found.proven

    def _offer(self, chosen: Ints, blocks: Floats) -> None:
        """Take an answer if it is feasible and better than the one so far."""
        own = self.own
        if (own.excess(chosen, blocks) > ROUNDING * np.maximum(np.abs(own.capacity), 1.0)).any():
            return
        if (own.must & (chosen < 0)).any():
            return
        objective = own.objective(chosen, blocks)
        if objective > self.objective:
            self.chosen, self.blocks, self.objective = chosen, blocks, objective

    def _shortfall(self) -> float:
        """Return by how much the answer so far is below what the prices prove."""
        return self.dual.bound - self.objective

    def _certified(self) -> bool:
        """Tell whether the gap that was asked for is proven."""
        return self.bound - self.objective <= self.gap * abs(self.bound)

    def _answer(self, stop: StopReason) -> Answer:
        """Return the answer in the user's units; the dual's bound is computed anew in them."""
        problem, units = self.problem, self.units
        prices = units.prices(self.dual.prices)
        certified = bound_at(problem, prices)
        bound = certified - (self.dual.bound - self.bound) * units.value
        objective = None
        if self.chosen is not None and self.blocks is not None:
            objective = problem.objective(self.chosen, self.blocks)
            bound = max(bound, objective)
        dual = replace(
            self.dual, prices=prices, bound=certified, floor=self.dual.floor * units.value
        )
        return Answer(
            self.chosen,
            self.blocks,
            objective,
            bound,
            dual,
            stop,
            self.search,
            self.cores,
            self.columns,
            self.nodes,
        )
