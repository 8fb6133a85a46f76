"""The jobs that prices leave open: wider and wider cores until the gap is certified.

At the dual's prices every plan outside a core falls short of the dual bound by at least the least
loss that was left out; so the best plan of the core and that loss together bound the optimum.
"""

import numpy as np

from ronda.formulations.allocation.separable import Separable
from ronda.instances.arrays import Floats, Ints
from ronda.instances.plan import StopReason
from ronda.solvers.prices.answer import ALONE, CORES, LABELS, Decided
from ronda.solvers.prices.core import solve_core
from ronda.solvers.prices.dual import Dual
from ronda.solvers.prices.fill import is_feasible, spend, without_excess
from ronda.solvers.prices.jobs import Jobs
from ronda.solvers.prices.labels import best_within
from ronda.solvers.prices.search import Search

FIRST_CORE = 150
"""Alternatives in the first core, for each resource."""

WIDER = 4
"""Factor from one core to the next."""

CORE_NODES = 200
"""Search-tree nodes of a core that does not yet hold all options that could matter."""

FEW_JOBS, MOST_NEAR = 256, 400
"""Up to these numbers of jobs and alternatives all is decided without a MILP."""

NEAREST, FURTHER, LEAST_FURTHER = 2e-4, 3.0, 1.3
"""Shortfall, relative to the bound, within which answers are looked for first, and the factor from
one to the next: the usual one, and the one below which it is left to the MILP."""

MOST_CARRIED = 0.02
"""Shortfall of an earlier problem above which it says nothing about this one."""

FEW_LABELS, QUICKLY = 500, 10.0
"""After fewer labels the next shortfall may be larger by this factor."""

ROUNDING = 1e-7
"""Excess over a capacity that is taken for rounding: a share of it, or of the smallest use."""


class CoreSearch:
    """The search for the best answer to a normalised problem at its dual prices.

    Only answers better than `known`, the value of one that is known already, are looked for;
    `chosen` and `blocks` stay None without one. `offset` is value that is not in the problem, but
    in what the gap is a share of. `decided_by`, `cores`, `columns` and `nodes` are as in `Answer`.
    """

    def __init__(
        self,
        problem: Separable,
        jobs: Jobs,
        dual: Dual,
        search: Search,
        *,
        known: float = -np.inf,
        offset: float = 0.0,
    ) -> None:
        self.problem, self.jobs, self.dual = problem, jobs, dual
        self.search, self.offset = search, offset
        self.nearest = max(search.gap, NEAREST, min(search.within, MOST_CARRIED))
        self.chosen: Ints | None = None
        self.blocks: Floats | None = None
        self.objective, self.bound = known, max(dual.bound, known)
        self.cores = self.columns = self.nodes = 0
        self.decided_by = ALONE

    def run(self) -> StopReason:
        """Widen until the gap is certified, the optimum proven, or the time over."""
        prices, blocks = self.dual.prices, self.dual.blocks
        best = self.jobs.losses(prices, np.inf, 0).best
        self._offer(best, blocks)
        if self.chosen is None or not self._certified():
            best = without_excess(self.problem, best, blocks)
            self._offer(best, blocks)
        if not self._certified():
            self._offer(spend(self.problem, prices, best, blocks), blocks)
            # Few jobs are decided exactly even so: plans of later rounds are better for it.
            if self.problem.jobs <= FEW_JOBS and self._near():
                return StopReason.GAP if self._certified() else StopReason.COMPLETE
        most = FIRST_CORE * max(1, len(self.problem.capacity))
        while not self._certified():
            if self.search.deadline.over():
                return StopReason.TIME_LIMIT
            if self._widen(most):
                break
            most *= WIDER
        if not np.isfinite(self.objective):
            return StopReason.INFEASIBLE
        return StopReason.GAP if self._certified() else StopReason.COMPLETE

    def _near(self) -> bool:
        """Look for the best answer within more and more of the bound; tells whether that is all.

        All answers within a shortfall are weighed (`ronda.solvers.prices.labels`): if there is
        none, the bound sinks by it. Should they be too many, the next attempt goes less far.
        """
        scale = abs(self.dual.bound + self.offset)
        done, factor = self.nearest * scale / FURTHER, FURTHER
        while done * factor < scale and factor > LEAST_FURTHER and not self.search.deadline.over():
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
        found = best_within(self.problem, self.dual.prices, losses, within)
        if found is None:
            return None
        self._enter(LABELS, found, within)
        return found.nodes

    def _widen(self, most: int) -> bool:
        """Decide a core of `most` alternatives; tells whether nothing is left to be decided."""
        shortfall = self._shortfall()
        losses = self.jobs.losses(self.dual.prices, shortfall, most)
        complete = len(losses.loss) < most
        found = solve_core(
            self.problem,
            self.dual.bound,
            losses,
            target=self.search.gap * abs(self.dual.bound + self.offset),
            cutoff=shortfall,
            nodes=2**31 - 1 if complete else CORE_NODES,
            seconds=min(self.search.deadline.left(), 1e6),
            seed=self.search.seed,
        )
        self._enter(CORES, found, losses.next_loss)
        return complete and found.proven

    def _enter(self, how: str, found: Decided, outside: float) -> None:
        """Enter what came of deciding the open jobs; what was not weighed falls `outside` short."""
        self.decided_by = how
        self.cores += 1
        self.columns = max(self.columns, found.columns)
        self.nodes += found.nodes
        if found.chosen is not None and found.blocks is not None:
            self._offer(found.chosen, found.blocks)
        least = min(found.least, outside, self._shortfall())
        if np.isfinite(least):
            self.bound = min(self.bound, self.dual.bound - least)

    def _offer(self, chosen: Ints, blocks: Floats) -> None:
        """Take an answer if it is feasible and better than the one so far."""
        objective = self.problem.objective(chosen, blocks)
        if objective > self.objective and is_feasible(self.problem, chosen, blocks, ROUNDING):
            self.chosen, self.blocks, self.objective = chosen, blocks, objective

    def _shortfall(self) -> float:
        """Return by how much the answer so far is below what the prices prove."""
        return self.dual.bound - self.objective

    def _certified(self) -> bool:
        return self.bound - self.objective <= self.search.gap * abs(self.bound + self.offset)
