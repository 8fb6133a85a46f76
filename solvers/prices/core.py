"""The core: the few jobs that prices leave undecided, whose options are chosen together.

At prices p every plan falls short of the dual bound by exactly::

    sum_j loss_j(choice) + sum_b loss of blocks + sum_r p_r (rest of r)

No sum has negative terms. So the core consists of the options of least loss, and all jobs outside
it take their best option. A plan that uses an option outside the core falls short by at least that
option's loss. Both facts bound the optimum, and the core grows until the bound certifies the gap.
Labels decide small cores (`best_within`), and a MILP decides larger ones (`solve_core`). The MILP
minimises the dual bound minus the value. That is the same shortfall, but needs no columns for
unused capacity.

**Labels.** The best answer with a shortfall of at most e has choices whose losses add up to e or
less. Each label is a choice for the jobs so far. The search extends every label by every option of
the next job, job after job. It drops a label if

* its losses, and the price of capacity that can no longer be used, exceed e;
* it cannot become feasible, whatever the other jobs take;
* another label uses the same of all resources but one, no more of that one, and is worth as much.

This is dynamic programming for the multiple-choice knapsack (Kellerer, Pferschy and Pisinger,
*Knapsack Problems*, 2004, section 11.5), limited by reduced costs. In rounds of about ten jobs it
takes one millisecond, and a MILP solver takes ten. With many jobs there are too many labels.

**Strangers.** With many resources the best answer falls short of the dual bound by a little per
resource. Tens of thousands of options lose less than this whole shortfall. But a plan that uses one
of these options still falls short for all other resources. So the core is solved again with
strangers. Any job may leave the core and earn the surplus of its best option. For each job that
leaves, one stranger enters. The stranger uses as much as some kind of option. Its value is the
price of that use minus the least loss of any option of the kind outside the core. Every plan has a
counterpart in this model of at least its value. So the bound holds for all plans, although the
model contains few of the options.
"""

from dataclasses import dataclass, replace

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, hstack, vstack

from ronda.formulations.allocation.separable import Separable, largest
from ronda.instances.base import Floats, Ints
from ronda.instances.plan import StopReason, closes
from ronda.solvers.exact.highs import run, silent
from ronda.solvers.prices.dual import Dual, Jobs, Losses, Search
from ronda.solvers.prices.fill import is_feasible, spend, without_excess

ALONE, LABELS, CORES = "prices alone", "labels", "cores"
"""The methods for jobs that prices leave undecided (`CoreSearch.decided_by`)."""

FIRST_CORE, BESIDE_ANSWER = 150, 2000
"""The number of alternatives in the first core, after a greedy fill and after an answer from the
dual."""

CLOSER = 0.5
"""The share of the gap to which a core is decided after an answer from the dual. With many
resources even the best answer is below the dual bound."""

CLIQUES = 20_000
"""The number of options with which HiGHS works on its clique table for a second without reading its
clock, both before and during its search. The time grows with the square of this number (on one slow
core: 27,000 options 1.4 s, 38,000 options 2 s)."""

CORE_NODES = 200
"""The most search-tree nodes for a core without all options that could matter."""

FEW_JOBS, MOST_NEAR = 256, 400
"""The most jobs, and the most alternatives, that are decided without a MILP."""

NEAREST, FURTHER, LEAST_FURTHER = 2e-4, 3.0, 1.3
"""The first limit on the shortfall of examined answers, relative to the bound; the usual factor to
the next limit; and the factor below which the MILP decides."""

RETURNS_LATE_S = 0.02
"""The additional seconds before HiGHS reads its clock, on cores of some thousand options."""

ROUNDING = 1e-7
"""The excess over a capacity that counts as a rounding error, relative to the capacity or to the
smallest use."""

MOST_LABELS = 60_000
"""The number of labels after which the search stops, about 30 ms."""


def blind_s(options: int) -> float:
    """Return the seconds for which HiGHS does not read its clock, twice, with some options."""
    return (options / CLIQUES) ** 2


@dataclass(frozen=True, slots=True)
class Decided:
    """The outcome of deciding the undecided jobs together.

    Every examined answer better than `chosen` falls short of the dual bound by at least `least`,
    which is infinite if there is no better answer. `proven` means that all answers were examined or
    the target was reached.
    """

    chosen: Ints | None  # (J,) option of every job; None without an answer
    blocks: Floats | None  # (B,) count of every block; None without an answer
    least: float
    proven: bool
    columns: int  # undecided options
    nodes: int  # search-tree nodes or labels


class CoreSearch:
    """The search for the best answer to a normalised problem at its dual prices.

    It looks only for answers better than `known`, the value of a known answer. Without such an
    answer `chosen` and `blocks` stay None. `offset` is a value outside the problem that counts for
    the gap. `cores`, `columns` and `nodes` are as in `Answer`, and `decided_by` is its `search`.
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
        self.nearest = max(search.gap, NEAREST, min(search.within, 0.02))
        self.chosen: Ints | None = None
        self.blocks: Floats | None = None
        self.objective, self.bound = known, max(dual.bound, known)
        self.cores = self.columns = self.nodes = 0
        self.decided_by = ALONE

    def run(self) -> StopReason:
        """Widen the core until the gap is certified, the optimum is proven, or the time is over."""
        prices, blocks = self.dual.prices, self.dual.blocks
        best = self.jobs.losses(prices, np.inf, 0).best
        self._offer(best, blocks)
        if self.dual.answer is not None:
            self._offer(*self.dual.answer)
        elif self.chosen is None or not self._certified():
            best = without_excess(self.problem, best, blocks)
            self._offer(best, blocks)
        if not self._certified():
            if self.dual.answer is None:
                self._offer(spend(self.problem, prices, best, blocks), blocks)
            # Few jobs are decided exactly anyway, which improves the plans of later rounds.
            if self.problem.jobs <= FEW_JOBS and self._near():
                return StopReason.GAP if self._certified() else StopReason.COMPLETE
        most = FIRST_CORE if self.dual.answer is None else BESIDE_ANSWER
        while not self._certified():
            if self.search.deadline.left() <= 2 * blind_s(most) + RETURNS_LATE_S:
                return StopReason.TIME_LIMIT
            if self._widen(most):
                break
            most *= 2
        if not np.isfinite(self.objective):
            return StopReason.INFEASIBLE
        return StopReason.GAP if self._certified() else StopReason.COMPLETE

    def _near(self) -> bool:
        """Search for the best answer within growing shortfalls; return whether it is found.

        All answers within a shortfall are examined (`best_within`). If there is none, the bound
        sinks by the shortfall. If there are too many, the next shortfall is smaller.
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
            done, factor = within, 10.0 if labels < 500 else min(factor, FURTHER)
        return False

    def _weigh(self, within: float) -> int | None:
        """Examine all answers within a shortfall; return the number of labels (None: too many)."""
        losses = self.jobs.losses(self.dual.prices, within, MOST_NEAR)
        if len(losses.loss) == MOST_NEAR:
            return None
        found = best_within(self.problem, self.dual.prices, losses, within)
        if found is None:
            return None
        self._enter(LABELS, found, within)
        return found.nodes

    def _widen(self, most: int) -> bool:
        """Decide a core of `most` alternatives; return whether the optimum is proven."""
        shortfall = self._shortfall()
        losses = self.jobs.losses(self.dual.prices, shortfall, most)
        complete = len(losses.loss) < most
        begin = self.chosen if self.dual.answer is not None else None
        if begin is not None:
            losses = _including(losses, begin)
        found = solve_core(
            self.problem,
            self.dual.bound,
            losses,
            target=(1.0 if begin is None else CLOSER) * self.search.gap * self._least_size(),
            cutoff=shortfall,
            nodes=2**31 - 1 if complete else CORE_NODES,
            seconds=min(self.search.deadline.left() - blind_s(most) - RETURNS_LATE_S, 1e6),
            seed=self.search.seed,
            begin=begin,
        )
        self._enter(CORES, found, losses.next_loss)
        # With soft limits wider cores are sooner done than strangers (2,048 jobs of 64 tenants in
        # 406 rows: 20 s instead of 39 s).
        if not complete and found.proven and self.problem.block_integer.all():
            self._rule_out(losses, found.least)
        return complete and found.proven

    def _rule_out(self, losses: Losses, least: float) -> None:
        """Lower the bound by the least shortfall of all plans, if the core's plans allow it.

        `losses` are the options of the core. Its plans fall short by at least `least`.
        """
        enough = self._shortfall() - 0.999 * self.search.gap * self._least_size()
        if self.problem.use.kind is None or not 0.0 < enough <= least or self._certified():
            return
        seconds = self.search.deadline.left() - blind_s(len(losses.loss))
        found = least_with_strangers(
            self.problem,
            self.jobs,
            self.dual,
            losses,
            enough=enough,
            seconds=min(seconds, 1e6),
            seed=self.search.seed,
        )
        self.bound = min(self.bound, self.dual.bound - found)

    def _enter(self, how: str, found: Decided, outside: float) -> None:
        """Record an outcome; answers that were not examined fall short by at least `outside`."""
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
        """Keep an answer if it is feasible and better than the best so far."""
        objective = self.problem.objective(chosen, blocks)
        if objective > self.objective and is_feasible(self.problem, chosen, blocks, ROUNDING):
            self.chosen, self.blocks, self.objective = chosen, blocks, objective

    def _shortfall(self) -> float:
        return self.dual.bound - self.objective

    def _least_size(self) -> float:
        """Return the least possible reference value of the relative gap."""
        known = self.objective if np.isfinite(self.objective) else self.dual.bound
        return min(abs(known + self.offset), abs(self.dual.bound + self.offset))

    def _certified(self) -> bool:
        bound, objective = self.bound + self.offset, self.objective + self.offset
        return closes(bound, objective, self.search.gap, scale=1.0)  # values are normalised


@dataclass(frozen=True, slots=True)
class _Stage:
    loss: Floats  # (n,)
    use: Floats  # (R, n)
    what: Ints  # (n,) row of the problem (-1 for none), or count of blocks


def best_within(
    problem: Separable, prices: Floats, losses: Losses, shortfall: float
) -> Decided | None:
    """Return the best answer within a shortfall, or None if there are too many labels.

    `prices` (R,) are those of the dual bound. `losses` are all options that lose no more than the
    shortfall at these prices.
    """
    if not problem.block_integer.all() or (problem.block_count > 200).any():
        return None
    jobs, stages = _job_stages(problem, losses)
    stages = [*stages, *_block_stages(problem, prices, shortfall)]
    fixed = losses.best.copy()
    fixed[jobs] = -1
    room = problem.capacity - problem.use.total(fixed[fixed >= 0])
    excess = 1e-9 * np.maximum(np.abs(problem.capacity), 1.0)
    found = _sweep(stages, room, excess, prices, shortfall)
    if found is None:
        return None
    taken, labels = found
    columns = len(losses.loss) + len(jobs)
    if taken is None:
        return Decided(None, None, np.inf, True, columns, labels)
    chosen = losses.best.copy()
    chosen[jobs] = taken[: len(jobs)]
    blocks = np.array(taken[len(jobs) :], dtype=float)
    return Decided(chosen, blocks, np.inf, True, columns, labels)


def _job_stages(problem: Separable, losses: Losses) -> tuple[Ints, list[_Stage]]:
    """Return the undecided jobs with their choices, in ascending order of the number of options."""
    order = np.argsort(losses.job, kind="stable")
    jobs, first = np.unique(losses.job[order], return_index=True)
    rows, loss = losses.row[order], losses.loss[order]
    ends = np.append(first[1:], len(order))
    rank = np.argsort(ends - first, kind="stable")
    stages = []
    for i in rank.tolist():
        own = slice(first[i], ends[i])
        what = np.append(losses.best[jobs[i]], rows[own])
        use = np.where(what >= 0, problem.use.dense(what), 0.0)
        stages.append(_Stage(np.append(0.0, loss[own]), use, what))
    return jobs[rank], stages


def _block_stages(problem: Separable, prices: Floats, shortfall: float) -> list[_Stage]:
    """Return the counts of each kind of block that lose no more than the shortfall."""
    stages = []
    gain = problem.block_value - prices @ problem.block_use
    for b, most in enumerate(problem.block_count.tolist()):
        counts = np.arange(int(most) + 1)
        loss = max(gain[b], 0.0) * most - gain[b] * counts
        near = loss <= max(shortfall, 0.0)  # a proof may leave it below 0, by rounding
        use = problem.block_use[:, b : b + 1] * counts[near]
        stages.append(_Stage(loss[near], use, counts[near]))
    return stages


def _sweep(
    stages: list[_Stage], room: Floats, excess: Floats, prices: Floats, shortfall: float
) -> tuple[list[int] | None, int] | None:
    """Return the choice of each stage in the best answer, if any, and the number of labels."""
    least, most = _ahead(stages, len(room))
    limit = room + excess
    loss, use = np.zeros(1), np.zeros((len(room), 1))
    if (least[0] > limit).any() or prices @ np.maximum(room - most[0], 0.0) > shortfall:
        return None, 0
    last = 0
    if stages and len(stages[0].use) > 1:  # the resource with most distinct uses
        uses = np.concatenate([stage.use for stage in stages], axis=1)
        last = int(np.argmax([len(np.unique(row)) for row in uses]))
    steps: list[tuple[Ints, Ints]] = []
    labels = 0
    for s, stage in enumerate(stages):
        options = len(stage.loss)
        labels += len(loss) * options
        if labels > MOST_LABELS:
            return None
        parent = np.repeat(np.arange(len(loss)), options)
        taken = np.tile(np.arange(options), len(loss))
        loss = (loss[:, None] + stage.loss).ravel()
        use = (use[:, :, None] + stage.use[:, None, :]).reshape(len(room), -1)
        unused = np.maximum(room[:, None] - use - most[s + 1][:, None], 0.0)
        kept = loss + prices @ unused <= shortfall
        kept &= (use + least[s + 1][:, None] <= limit[:, None]).all(axis=0)
        at = np.flatnonzero(kept)
        at = at[_unbeaten(loss[at], use[:, at], prices, last)]
        loss, use = loss[at], use[:, at]
        steps.append((parent[at], taken[at]))
    if not len(loss):
        return None, labels
    return _back(stages, steps, int(np.argmin(loss - prices @ use))), labels


def _ahead(stages: list[_Stage], resources: int) -> tuple[list[Floats], list[Floats]]:
    least, most = [np.zeros(resources)], [np.zeros(resources)]
    for stage in reversed(stages):
        least.append(least[-1] + stage.use.min(axis=1))
        most.append(most[-1] + stage.use.max(axis=1))
    return least[::-1], most[::-1]


def _unbeaten(loss: Floats, use: Floats, prices: Floats, last: int) -> Ints:
    """Return the labels that no label with equal use of all resources but `last` beats."""
    worth = prices @ use - loss
    others = [row for r, row in enumerate(use) if r != last]
    order = np.lexsort((-worth, use[last], *others))
    group = np.zeros(len(order))
    if others:
        group[1:] = np.cumsum(np.any([np.diff(row[order]) != 0 for row in others], axis=0))
    span = float(np.ptp(worth)) + 1.0 if len(worth) else 1.0
    level = worth[order] + group * (2.0 * span)  # every group lies above all earlier groups
    above = np.maximum.accumulate(level)
    kept = np.ones(len(order), dtype=bool)
    kept[1:] = level[1:] > above[:-1]
    return np.asarray(order[kept])


def _back(stages: list[_Stage], steps: list[tuple[Ints, Ints]], at: int) -> list[int]:
    taken = []
    for stage, (parent, option) in zip(reversed(stages), reversed(steps), strict=True):
        taken.append(int(stage.what[option[at]]))
        at = int(parent[at])
    return taken[::-1]


HIGHS = {
    "mip_feasibility_tolerance": 1e-8,
    "primal_feasibility_tolerance": 1e-9,
    "mip_allow_restart": False,
    "mip_rel_gap": 0.0,
}
"""The options of HiGHS for a core. With few coupling rows the first relaxation is nearly tight, so
restarts do not pay."""


def solve_core(
    problem: Separable,
    bound: float,
    losses: Losses,
    *,
    target: float,
    cutoff: float,
    nodes: int,
    seconds: float,
    seed: int,
    begin: Ints | None = None,
) -> Decided:
    """Decide a core by a MILP.

    Parameters
    ----------
    bound, losses
        The dual bound of the problem, and the options of the core.
    target
        The shortfall at which to stop, in units of value.
    cutoff
        The shortfall of the best known answer; only better answers matter.
    begin
        An answer within the core from which the search starts, shape (J,).
    """
    columns = _columns(losses)
    if not len(columns.row) and not len(problem.block_value):  # nothing is undecided
        return Decided(losses.best, np.zeros(0), np.inf, True, 0, 0)
    unit = _unit(problem, target)
    solver = _model(problem, bound, losses, columns, unit)
    # An answer within the target of the core's own bound is enough: both bounds prove the gap.
    solver.setOptionValue("mip_abs_gap", target / unit)
    if begin is not None:
        taken = np.zeros(solver.getNumCol())
        taken[: len(columns.row)] = begin[columns.jobs[columns.job]] == columns.row
        solution = highspy.HighsSolution()
        solution.col_value = taken.tolist()
        solver.setSolution(solution)
    proven, least = _searched(
        solver, unit, target=target, cutoff=cutoff, nodes=nodes, seconds=seconds, seed=seed
    )
    chosen, blocks, info = None, None, solver.getInfo()
    if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        chosen, blocks = _read(problem, losses, columns, np.array(solver.getSolution().col_value))
    return Decided(chosen, blocks, least, proven, len(columns.row), int(info.mip_node_count))


def least_with_strangers(
    problem: Separable,
    jobs: Jobs,
    dual: Dual,
    losses: Losses,
    *,
    enough: float,
    seconds: float,
    seed: int,
) -> float:
    """Return the least shortfall of any plan from the dual bound, up to `enough`.

    `losses` are the options of a core. Options with equal use are of one kind.
    """
    columns, unit = _columns(losses), _unit(problem, enough)
    strangers = _strangers(problem, jobs, dual.prices, losses, columns)
    solver = _model(problem, dual.bound, losses, columns, unit, strangers)
    _, least = _searched(
        solver, unit, target=enough, cutoff=enough, nodes=CORE_NODES, seconds=seconds, seed=seed
    )
    return min(least, enough)


def _unit(problem: Separable, least: float) -> float:
    """Return the unit of value for a core's model, at least `least`."""
    worth = max(largest(problem.value), largest(problem.block_value))
    return max(least, 1e-3 * worth) or 1.0


def _searched(
    solver: highspy.Highs,
    unit: float,
    *,
    target: float,
    cutoff: float,
    nodes: int,
    seconds: float,
    seed: int,
) -> tuple[bool, float]:
    """Search a core's model; return whether it is decided, and its least shortfall."""
    solver.setOptionValue("random_seed", seed % 2**31)
    solver.setOptionValue("mip_max_nodes", nodes)
    solver.setOptionValue("objective_target", target / unit)
    if np.isfinite(cutoff):
        solver.setOptionValue("objective_bound", cutoff / unit)
    status, states = run(solver, max(seconds, 1e-3)), highspy.HighsModelStatus
    if status in (states.kInfeasible, states.kObjectiveBound):
        return True, np.inf
    proven = status in (states.kOptimal, states.kObjectiveTarget)
    return proven, max(0.0, float(solver.getInfo().mip_dual_bound) * unit)


def _including(losses: Losses, chosen: Ints) -> Losses:
    """Return losses that include the options of a choice, whatever they lose."""
    listed = set(zip(losses.job.tolist(), losses.row.tolist(), strict=True))
    other = np.flatnonzero(chosen != losses.best).tolist()
    new = np.array([j for j in other if (j, int(chosen[j])) not in listed], dtype=np.int64)
    return replace(
        losses,
        job=np.append(losses.job, new),
        row=np.append(losses.row, chosen[new]),
        loss=np.append(losses.loss, np.full(len(new), losses.next_loss)),
    )


@dataclass(frozen=True, slots=True)
class _Columns:
    """The options of a core: the best option and the alternatives of every undecided job."""

    jobs: Ints  # (F,) the undecided jobs
    job: Ints  # (C,) index into `jobs`
    row: Ints  # (C,) row of the problem
    may_wait: NDArray[np.bool_]  # (F,) whether the core lets the job wait


def _columns(losses: Losses) -> _Columns:
    jobs = np.unique(losses.job)
    place = np.searchsorted(jobs, losses.job)
    best = losses.best[jobs]
    none = losses.row < 0
    may_wait = best < 0
    may_wait[place[none]] = True
    taken = np.flatnonzero(best >= 0)
    job = np.concatenate([taken, place[~none]])
    row = np.concatenate([best[taken], losses.row[~none]])
    order = np.lexsort((row, job))
    return _Columns(jobs, job[order], row[order], may_wait)


@dataclass(frozen=True, slots=True)
class _Strangers:
    """Additional columns of a core's model: jobs that leave, and strangers in their place."""

    value: Floats  # (N,)
    use: csc_array  # (R, N), below 0 for use that a leaving job gives up
    most: Floats  # (N,)
    job: Ints  # (N,) index of a leaving job among the undecided jobs, or -1
    comes: Floats  # (N,) 1 for a stranger, -1 for a leaving job


def _strangers(
    problem: Separable, jobs: Jobs, prices: Floats, losses: Losses, columns: _Columns
) -> _Strangers:
    """Return the jobs that may leave a core, and the least loss of each kind outside it."""
    use, must = problem.use, problem.must
    price, listed = use.kind_costs(prices), losses.row >= 0
    inside = np.zeros(len(problem.value), dtype=bool)
    inside[losses.best[losses.best >= 0]] = inside[losses.row[listed]] = True
    loss = jobs.least_by_kind(prices, inside)
    runs = np.flatnonzero(losses.best >= 0)
    surplus = np.zeros(problem.jobs)
    surplus[runs] = problem.value[losses.best[runs]] - use.each(price, losses.best[runs])
    waits = np.setdiff1d(runs[~must[runs]], losses.job[~listed])  # the core does not let these wait
    fixed = np.delete(losses.best, columns.jobs)
    stays = np.bincount(use.each(np.arange(len(price)), fixed[fixed >= 0]), minlength=len(price))
    free, comes, left = len(columns.jobs), np.flatnonzero(np.isfinite(loss)), np.flatnonzero(stays)
    amounts = use.of_kinds()
    nothing = csc_array((use.resources, 1))
    return _Strangers(
        value=np.concatenate(
            [
                surplus[columns.jobs],
                (price - loss)[comes],
                [-surplus[waits].min(initial=np.inf) if len(waits) else 0.0],
                -price[left],
                [0.0],
            ]
        ),
        use=hstack(
            [
                csc_array((use.resources, free)),
                amounts[:, comes],
                nothing,
                -amounts[:, left],
                nothing,
            ],
            format="csc",
        ),
        most=np.concatenate(
            [
                np.ones(free),
                np.full(len(comes), problem.jobs),
                [len(waits)],
                stays[left],
                [np.count_nonzero(fixed < 0)],
            ]
        ),
        job=np.append(np.arange(free), np.full(len(comes) + len(left) + 2, -1)),
        comes=np.concatenate([-np.ones(free), np.ones(len(comes) + 1), -np.ones(len(left) + 1)]),
    )


def _model(
    problem: Separable,
    bound: float,
    losses: Losses,
    columns: _Columns,
    unit: float,
    strangers: _Strangers | None = None,
) -> highspy.Highs:
    """Build the MILP that minimises the dual bound minus the value of all jobs and blocks."""
    resources, blocks = len(problem.capacity), len(problem.block_value)
    fixed = np.delete(losses.best, columns.jobs)
    fixed = fixed[fixed >= 0]
    room = problem.capacity - problem.use.total(fixed)
    use = problem.use.picked(columns.row).plain()
    scale = np.maximum(use.largest(), np.abs(problem.block_use).max(axis=1, initial=0.0))
    scale = np.where(scale > 0, scale, 1.0)
    options, jobs = len(columns.row), len(columns.jobs)
    width = options + blocks
    value, most = [problem.value[columns.row], problem.block_value], [problem.block_count]
    least, upper = np.where(columns.may_wait, 0.0, 1.0), [room / scale, np.ones(jobs)]
    lower = [np.full(resources, -highspy.kHighsInf), least]
    one_each = csc_array((np.ones(options), (columns.job, np.arange(options))), shape=(jobs, width))
    used = hstack([use.sparse(), csc_array(problem.block_use)], format="csc")
    rows = [used, one_each]
    whole, any_amount = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
    kinds = [whole] * options
    kinds += [whole if b else any_amount for b in problem.block_integer.tolist()]
    if strangers is not None:
        own = np.flatnonzero(strangers.job >= 0)
        number = len(strangers.value)
        left = csc_array((np.ones(len(own)), (strangers.job[own], own)), shape=(jobs, number))
        balance = hstack([csc_array((1, width)), csc_array(strangers.comes[None])])
        rows = [hstack([used, strangers.use]), hstack([one_each, left]), balance]
        value, most, width = [*value, strangers.value], [*most, strangers.most], width + number
        lower, upper = [*lower, np.zeros(1)], [*upper, np.zeros(1)]
        kinds += [whole] * number
    matrix = csc_array(vstack(rows, format="csc"))
    of_resource = matrix.indices < resources
    matrix.data[of_resource] /= scale[matrix.indices[of_resource]]
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = width, matrix.shape[0]
    lp.col_cost_ = -np.concatenate(value) / unit
    lp.offset_ = (bound - float(problem.value[fixed].sum())) / unit
    lp.col_lower_ = np.zeros(width)
    lp.col_upper_ = np.concatenate([np.ones(options), *most])
    lp.row_lower_, lp.row_upper_ = np.concatenate(lower), np.concatenate(upper)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = matrix.indptr
    lp.a_matrix_.index_ = matrix.indices
    lp.a_matrix_.value_ = matrix.data
    lp.integrality_ = kinds
    solver = silent(**HIGHS)
    solver.passModel(lp)
    return solver


def _read(
    problem: Separable, losses: Losses, columns: _Columns, values: Floats
) -> tuple[Ints, Floats]:
    options, blocks = len(columns.row), len(problem.block_value)
    chosen = losses.best.copy()
    chosen[columns.jobs] = -1
    taken = np.flatnonzero(values[:options] > 0.5)
    chosen[columns.jobs[columns.job[taken]]] = columns.row[taken]
    counts = values[options : options + blocks]
    return chosen, np.where(problem.block_integer, np.rint(counts), counts)
