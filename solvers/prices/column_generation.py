"""Column generation for the dual of a problem with many coupling resources, and a diving answer.

Cutting planes need more evaluations than there are resources, and each evaluation solves an LP with
all planes. From about 16 resources on, columns are quicker. A master problem, the relaxation of a
few options per job, gives prices (the duals of its rows). D at these prices is a bound. Options
that are worth more than these prices enter, until there are none or the bound is close enough. The
master begins with the options of most surplus at prices that come from every fourth job in the same
way. It also begins with the basis of a greedy answer.

The master's solution is nearly integral. A dive makes it integral: half of the split jobs take the
option with their largest share, and options that no longer fit are forbidden. The master is solved
again with all other jobs free. New options enter every second time.

(Column generation: Dantzig and Wolfe, Oper. Res. 8, 1960. Diving: Sadykov et al., INFORMS J.
Comput. 31, 2019.)
"""

from collections.abc import Sequence
from dataclasses import replace

import highspy
import numpy as np

from ronda.formulations.allocation.separable import Separable, with_share
from ronda.instances.base import Floats, Ints, Mask, Rows
from ronda.solvers.exact.highs import run, silent
from ronda.solvers.prices.dual import Dual, DualFunction, Jobs, Reply, Search, solve_dual
from ronda.solvers.prices.fill import is_feasible, needed_blocks, without_excess

MANY = 16
"""The number of resources from which columns find prices sooner than planes do."""

FIRST, FLUID, MORE, IN_DIVE = 4, 2, 3, 3
"""The options per job in the first master, also where some blocks may be taken in any amount, and
the most that enter per step and per step of a dive."""

WHOLE, SLACK = 1e-6, 1e-9
"""The shares of an option and of a capacity that count as rounding errors."""

TO_PRICE = 0.6
"""The share of the time for prices. A dive takes about as long."""


def price(
    problem: Separable,
    jobs: Jobs,
    search: Search,
    *,
    start: Floats | None = None,
    known: Sequence[tuple[Floats, Reply]] = (),
) -> Dual:
    """Find prices with a good bound for a normalised problem, by columns for many resources.

    `start` and `known` are as in `solve_dual`. Columns also give an answer.
    """
    if len(problem.names) >= MANY and len(problem.value):
        if known:
            ask = DualFunction(problem, jobs)
            start = min(known, key=lambda pair: ask.given(*pair)[0])[0]
        master = Master(problem, jobs, _first_prices(problem, search, start))
        dual = master.price(replace(search, deadline=search.deadline.share(TO_PRICE)))
        if dual is not None:
            # With soft limits a dive takes three times as long as prices and a core together, which
            # find as good an answer (16,384 jobs of 64 tenants in 848 rows: 51 s instead of 20 s).
            return replace(dual, answer=master.nearest() if fluid(problem) else master.dive(search))
    return solve_dual(problem, jobs, search, start=start, known=known)


def _first_prices(problem: Separable, search: Search, start: Floats | None) -> Floats:
    """Return prices of an earlier problem or of a sample of the jobs, shape (R,)."""
    if start is not None and (start > 0).any():
        return np.nan_to_num(start)
    few_jobs = problem.jobs <= max(600, 3 * len(problem.names))
    if few_jobs or search.deadline.over():
        best = np.maximum.reduceat(problem.value, problem.start[:-1][np.diff(problem.start) > 0])
        scarce = np.maximum(problem.capacity, 1.0)
        together = float(np.median(best)) * len(best) / 4  # a quarter of the most they pay
        return np.asarray(together / len(scarce) / scarce)
    few = with_share(problem, np.arange(0, problem.jobs, 4)).problem
    rough = replace(search, tolerance=1e-3, deadline=search.deadline.share(TO_PRICE / 2))
    first = _first_prices(few, search, None)
    dual = Master(few, Jobs(few), first).price(rough)
    return first if dual is None else dual.prices


def fluid(problem: Separable) -> bool:
    """Return whether some blocks may be taken in any amount, as the excess over a soft limit."""
    return not problem.block_integer.all()


class Master:
    """The relaxation of a normalised problem with some of its options, in HiGHS.

    Its columns are the blocks and then the options `rows`, in order of entry. It has one row per
    job and one per resource.
    """

    def __init__(self, problem: Separable, jobs: Jobs, prices: Floats) -> None:
        self.problem, self.jobs, self.ask = problem, jobs, DualFunction(problem, jobs)
        self.known = np.zeros(len(problem.value), dtype=bool)
        self.rows: Rows = np.zeros(0, dtype=np.int64)
        self.owner: Rows = np.zeros(0, dtype=np.int64)
        self.prices = prices
        self._lp = _without_options(problem)
        self._enter(np.flatnonzero(problem.must.repeat(np.diff(problem.start))))
        self._widen(np.full(problem.jobs, -np.inf), FLUID if fluid(problem) else FIRST)
        self.greedy = self._begin()

    def price(self, search: Search) -> Dual | None:
        """Find prices, or return None if jobs that must run or required least uses do not fit."""
        best, bound = self.prices, self.ask(self.prices * self.ask.scale)[0]
        self._lp.setOptionValue("simplex_strategy", PRIMAL)
        while not search.deadline.over() and self._solve(search):
            worth, prices = self._duals()
            value = self.ask(prices * self.ask.scale)[0]
            if value < bound:
                best, bound = prices, value
            relaxed = self._lp.getInfo().objective_function_value
            if bound - relaxed <= search.tolerance * abs(bound):
                break
            self.prices = prices
            if not self._widen(worth, MORE):
                break
        if self._lp.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
            return None
        self.prices = best
        replies = tuple(self.ask.replies)
        return Dual(best, bound, len(replies), self.ask.blocks_at(best), replies)

    def nearest(self) -> tuple[Ints, Floats] | None:
        """Return the answer of the largest shares of the relaxation that fit, or None."""
        return self._rounded(self._shares())

    def dive(self, search: Search) -> tuple[Ints, Floats] | None:
        """Return an answer near the relaxation, with counts of blocks, or None."""
        self._lp.setOptionValue("simplex_strategy", DUAL)
        undecided, room, turn = np.ones(self.problem.jobs, dtype=bool), self._room(), 0
        share = self._shares()
        while len(split := np.flatnonzero((share > WHOLE) & (share < 1 - WHOLE))):
            if search.deadline.over():
                break
            turn += 1
            half = max(0.5 * len(np.unique(self.owner[split])), 8)
            self._bound(self._take(split, share, undecided, room, half), 1.0, 1.0)
            no_room = ~self.problem.use.picked(self.rows).plain().below(room)
            self._bound(np.flatnonzero(undecided[self.owner] & no_room), 0.0, 0.0)
            if turn % 2 == 0:
                worth, self.prices = self._duals()
                fits = self.problem.use.below(room)
                self._widen(np.where(undecided, worth, np.inf), IN_DIVE, fits)
            if not self._solve(search):
                break
            share = self._shares()
        return self._rounded(share)

    def _solve(self, search: Search) -> bool:
        return run(self._lp, search.deadline.left()) == highspy.HighsModelStatus.kOptimal

    def _duals(self) -> tuple[Floats, Floats]:
        duals = np.abs(np.array(self._lp.getSolution().row_dual))
        return duals[: self.problem.jobs], duals[self.problem.jobs :]

    def _shares(self) -> Floats:
        blocks = len(self.problem.block_value)
        return np.array(self._lp.getSolution().col_value)[blocks:]

    def _bound(self, columns: Rows, low: float, high: float) -> None:
        at, n = (columns + len(self.problem.block_value)).astype(np.int32), len(columns)
        self._lp.changeColsBounds(n, at, np.full(n, low), np.full(n, high))

    def _widen(self, worth: Floats, most: int, among: Mask | None = None) -> bool:
        """Let options enter whose surplus exceeds `worth` (J,) of their jobs.

        `among` (P,) marks the kinds of use that may enter. Return whether any option entered.
        """
        rows = self.jobs.best_of_each(self.prices, worth + 1e-7, self.known, most, among)
        self._enter(rows)
        return len(rows) > 0

    def _enter(self, rows: Rows) -> None:
        problem, n = self.problem, len(rows)
        owner = np.searchsorted(problem.start, rows, side="right") - 1
        use = problem.use.picked(rows).plain()
        where = np.vstack([owner, problem.jobs + use.resource]).T
        what = np.vstack([np.ones(n), use.amount]).T
        filled = what != 0
        begin = np.concatenate([[0], np.cumsum(filled.sum(axis=1))])[:-1]
        self._lp.addCols(
            n,
            problem.value[rows],
            np.zeros(n),
            np.full(n, highspy.kHighsInf),
            int(filled.sum()),
            begin.astype(np.int32),
            where[filled].astype(np.int32),
            what[filled],
        )
        self.known[rows] = True
        self.rows = np.concatenate([self.rows, rows])
        self.owner = np.concatenate([self.owner, owner])

    def _begin(self) -> Ints:
        """Set the master's first basis from a greedy answer at the prices, and return its options.

        Jobs take their best option that fits, in descending order of surplus. Blocks of any amount
        (the excess over soft limits) are taken as far as the answer needs them.
        """
        problem, blocks = self.problem, self.ask.blocks_at(self.prices)
        use = problem.use.picked(self.rows).plain()
        surplus = use.net(problem.value[self.rows], self.prices)
        order = np.lexsort((-surplus, self.owner))
        first = np.searchsorted(self.owner[order], np.arange(problem.jobs + 1))
        best = np.full(problem.jobs, -np.inf)
        some = first[:-1] < first[1:]
        best[some] = surplus[order[first[:-1][some]]]
        best[problem.must & some] = np.inf
        any_amount = np.flatnonzero(~problem.block_integer)
        blocks[any_amount] = 0.0
        gives = np.maximum(-problem.block_use[:, any_amount], 0.0)
        room = (
            problem.capacity - problem.block_use @ blocks + gives @ problem.block_count[any_amount]
        )
        left = room.tolist()
        where, what = use.resource.T.tolist(), use.amount.T.tolist()
        chosen, basic = np.full(problem.jobs, -1), np.zeros(len(self.rows), dtype=bool)
        for j in np.argsort(-best, kind="stable")[: np.count_nonzero(best > 0)].tolist():
            for k in order[first[j] : first[j + 1]].tolist():
                if all(a <= left[r] + SLACK for r, a in zip(where[k], what[k], strict=True) if a):
                    for r, a in zip(where[k], what[k], strict=True):
                        left[r] -= a
                    chosen[j], basic[k] = self.rows[k], True
                    break
        needed = any_amount[needed_blocks(problem, self.prices, chosen)[any_amount] > 0]
        self._lp.setBasis(_basis(problem, blocks > 0, needed, basic, chosen >= 0))
        return chosen

    def _rounded(self, share: Floats) -> tuple[Ints, Floats] | None:
        """Return the better of the greedy answer and an answer from the largest shares that fit."""
        problem = self.problem
        chosen, undecided = np.full(problem.jobs, -1), np.ones(problem.jobs, dtype=bool)
        taken = self._take(np.flatnonzero(share > WHOLE), share, undecided, self._room(), np.inf)
        chosen[self.owner[taken]] = self.rows[taken]
        answers = [self._with_blocks(rows) for rows in (chosen, self.greedy)]
        fit = [answer for answer in answers if is_feasible(problem, *answer)]
        return max(fit, key=lambda answer: problem.objective(*answer), default=None)

    def _room(self) -> Floats:
        problem = self.problem
        slack = SLACK * np.maximum(np.abs(problem.capacity), 1.0)
        given = np.maximum(-problem.block_use, 0.0) @ problem.block_count
        return np.asarray(problem.capacity + given + slack)

    def _take(
        self, columns: Rows, share: Floats, undecided: Mask, room: Floats, most: float
    ) -> Rows:
        """Return up to `most` columns of largest share that fit and have undecided jobs.

        Mark their jobs as decided, and subtract their use from `room`.
        """
        taken, order = list[int](), columns[np.argsort(-share[columns], kind="stable")]
        use, left = self.problem.use.picked(self.rows[order]).plain(), room.tolist()
        where, what = use.resource.T.tolist(), use.amount.T.tolist()
        for k, resources, amounts in zip(order.tolist(), where, what, strict=True):
            fits = all(a <= left[r] for r, a in zip(resources, amounts, strict=True) if a)
            if undecided[self.owner[k]] and fits:
                undecided[self.owner[k]] = False
                for r, a in zip(resources, amounts, strict=True):
                    left[r] -= a
                taken.append(k)
            if len(taken) >= most:
                break
        room[:] = left
        return np.array(taken, dtype=np.int64)

    def _with_blocks(self, chosen: Ints) -> tuple[Ints, Floats]:
        blocks = needed_blocks(self.problem, self.prices, chosen)
        return without_excess(self.problem, chosen, blocks), blocks


PRIMAL, DUAL = 4, 1
"""The simplex methods of HiGHS: primal when options enter, dual after options were forbidden."""


def _without_options(problem: Separable) -> highspy.Highs:
    """Return the master without options: blocks, and rows of jobs and resources."""
    blocks, jobs = len(problem.block_value), problem.jobs
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = blocks, jobs + len(problem.names)
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_, lp.col_lower_ = problem.block_value, np.zeros(blocks)
    lp.col_upper_ = problem.block_count
    free = np.full(len(problem.names), -highspy.kHighsInf)
    lp.row_lower_ = np.concatenate([np.where(problem.must, 1.0, -highspy.kHighsInf), free])
    lp.row_upper_ = np.concatenate([np.ones(jobs), problem.capacity])
    resource, block = np.nonzero(problem.block_use)
    order = np.lexsort((resource, block))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.searchsorted(block[order], np.arange(blocks + 1)).astype(np.int32)
    lp.a_matrix_.index_ = (jobs + resource[order]).astype(np.int32)
    lp.a_matrix_.value_ = problem.block_use[resource, block][order]
    solver = silent(solver="simplex")
    solver.passModel(lp)
    return solver


def _basis(
    problem: Separable, full: Mask, needed: Rows, basic: Mask, runs: Mask
) -> highspy.HighsBasis:
    """Return a basis in which some options are basic, in the rows of their jobs.

    Blocks that are `needed` are basic in the row that they give to.
    """
    status, basis = highspy.HighsBasisStatus, highspy.HighsBasis()
    blocks = [status.kUpper if one else status.kLower for one in full.tolist()]
    resources = [status.kBasic] * len(problem.names)
    for b in needed.tolist():
        blocks[b] = status.kBasic
        resources[int(problem.block_use[:, b].argmin())] = status.kUpper
    options = [status.kBasic if one else status.kLower for one in basic.tolist()]
    basis.col_status = [*blocks, *options]
    jobs = [status.kUpper if one else status.kBasic for one in runs.tolist()]
    basis.row_status = [*jobs, *resources]
    basis.valid = True
    return basis
