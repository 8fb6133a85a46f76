"""The price engine, which gives certified near-optimal answers to separable rounds.

1. Solve the Lagrangian dual (`ronda.solvers.prices.dual`) for prices and an upper bound D. If many
   resources couple the jobs, capacities are first rounded down (`with_floors`). Columns then find
   the prices, and a first answer (`ronda.solvers.prices.column_generation`).
2. If the dual takes half a block (half a node that may sleep), its bound is too high by up to half
   the value of a node. That is far more than undecided jobs cost. So branch and bound divides the
   range of such a block in two, and each part has its own dual.
3. Let all jobs take their best option at these prices, except for a small core of jobs whose
   alternatives lose next to nothing. The core is decided exactly (`ronda.solvers.prices.core`).
4. Widen the core until the best plan is within the requested gap, or proven optimal. Every plan
   outside the core falls short of D by at least the least loss outside the core.

Parts that share no binding resource (`ronda.formulations.allocation.separable`) are solved
separately, and their answers are joined.
"""

import heapq
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from ronda.formulations.allocation.rounded_capacity import folded, with_floors
from ronda.formulations.allocation.separable import Part, Separable, Units, independent, normalise
from ronda.instances.base import Floats, Ints
from ronda.instances.clock import OutOfTimeError, checkpoint, ending
from ronda.instances.errors import InputError
from ronda.instances.plan import StopReason, closes, gap_between, trusted_bound
from ronda.solvers.prices.column_generation import MANY, price
from ronda.solvers.prices.core import ALONE, CORES, LABELS, CoreSearch
from ronda.solvers.prices.dual import Dual, Jobs, Search, bound_at
from ronda.solvers.prices.fill import fill, is_feasible


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a separable problem."""

    chosen: Ints | None  # (J,) row of each job's option, -1 for none; None without an answer
    blocks: Floats | None  # (B,) the counts of blocks
    objective: float | None
    bound: float  # upper bound on every answer
    dual: Dual  # the prices and the bound that they alone prove
    stop: StopReason
    search: str = ALONE  # the method that decided the last open jobs
    cores: int = 0  # cores that were decided
    columns: int = 0  # number of options in the largest core
    nodes: int = 0  # total search-tree nodes
    parts: int = 1  # number of parts that were answered separately

    @property
    def gap(self) -> float | None:
        """The relative gap between bound and objective."""
        return None if self.objective is None else gap_between(self.bound, self.objective)

    @property
    def dual_gap(self) -> float | None:
        """The relative gap that prices alone prove."""
        return None if self.objective is None else gap_between(self.dual.bound, self.objective)


def solve_separable(problem: Separable, search: Search | None = None) -> Answer:
    """Solve a separable problem to a certified relative gap.

    Raises
    ------
    InputError
        If the problem is malformed, or if the gap is 0, which prices cannot guarantee.
    """
    search = search or Search()
    if not search.gap:
        raise InputError("gap", "0", "a share above 0 and below 1")
    if parts := _parts(problem):
        answers = [solve_separable(part.problem, own) for part, own in in_turn(parts, search)]
        return _together(problem, parts, answers)
    ready = _priced(problem, search)
    own, jobs, dual = ready.problem, ready.jobs, ready.dual
    search = _closing(search, jobs)
    tree = WholeBlocks(own, jobs, dual, search)
    with ending(search.deadline.end):
        try:
            stop = tree.run()
        except OutOfTimeError:
            stop = StopReason.TIME_LIMIT
        chosen, blocks = tree.chosen, tree.blocks
        if stop is StopReason.TIME_LIMIT:
            with suppress(OutOfTimeError):
                if chosen is not None:
                    checkpoint()
                chosen, blocks = _best_of(own, (chosen, blocks), _filled(own, jobs, dual))
    found = Answer(
        chosen=chosen,
        blocks=blocks,
        objective=None,
        bound=tree.bound,
        dual=dual,
        stop=stop,
        search=tree.decided_by,
        cores=tree.cores,
        columns=tree.columns,
        nodes=tree.nodes,
    )
    return _in_units(found, problem, ready)


def first_answer(problem: Separable, search: Search | None = None) -> Answer:
    """Return the fill of a separable problem at the prices of its dual, without a search."""
    search = search or Search()
    return _first(problem, replace(search, deadline=search.deadline.sooner(search.reserve_s)))


def _first(problem: Separable, search: Search) -> Answer:
    if parts := _parts(problem):
        answers = [_first(part.problem, own) for part, own in in_turn(parts, search)]
        return _together(problem, parts, answers)
    ready = _priced(problem, search)
    dual = ready.dual
    with ending(_closing(search, ready.jobs).deadline.end):
        chosen, blocks = _filled(ready.problem, ready.jobs, dual)
    found = Answer(
        chosen=chosen,
        blocks=blocks,
        objective=None,
        bound=dual.bound,
        dual=dual,
        stop=StopReason.GAP,
    )
    return _in_units(found, problem, ready)


def _parts(problem: Separable) -> list[Part]:
    """Return the parts of a problem that share no binding resource; a single part gives []."""
    checkpoint()
    problem.validate()
    return independent(problem)


def in_turn(parts: Sequence[Part], search: Search) -> Iterator[tuple[Part, Search]]:
    """Yield each part of a problem with a share of the time in proportion to its options."""
    left = sum(len(part.options) + 1 for part in parts)
    for part in parts:
        own = len(part.options) + 1
        yield part, replace(search, deadline=search.deadline.share(own / left))
        left -= own


STOPS = (StopReason.INFEASIBLE, StopReason.TIME_LIMIT, StopReason.GAP, StopReason.COMPLETE)
SEARCHES = (ALONE, LABELS, CORES)
"""The orders of stop reasons and of searches. For parts together the first of their stop reasons
counts, and the last of their searches."""


def _together(problem: Separable, parts: Sequence[Part], answers: Sequence[Answer]) -> Answer:
    chosen = np.full(problem.jobs, -1, dtype=np.int64)
    blocks, asked = np.zeros(len(problem.block_value)), np.zeros(len(problem.block_value))
    prices, complete = np.zeros(len(problem.names)), True
    for part, answer in zip(parts, answers, strict=True):
        prices[part.resources], asked[part.blocks] = answer.dual.prices, answer.dual.blocks
        if answer.chosen is None or answer.blocks is None:
            complete = False
            continue
        runs = answer.chosen >= 0
        chosen[part.jobs[runs]] = part.options[answer.chosen[runs]]
        blocks[part.blocks] = answer.blocks
    objective = problem.objective(chosen, blocks) if complete else None
    bound = math.fsum(answer.bound for answer in answers)
    dual = Dual(
        prices=prices,
        bound=math.nextafter(math.fsum(answer.dual.bound for answer in answers), math.inf),
        evaluations=sum(answer.dual.evaluations for answer in answers),
        blocks=asked,
    )
    return Answer(
        chosen=chosen if complete else None,
        blocks=blocks if complete else None,
        objective=objective,
        bound=bound if objective is None else max(bound, objective),
        dual=dual,
        stop=min((answer.stop for answer in answers), key=STOPS.index),
        search=max((answer.search for answer in answers), key=SEARCHES.index),
        cores=sum(answer.cores for answer in answers),
        columns=max(answer.columns for answer in answers),
        nodes=sum(answer.nodes for answer in answers),
        parts=len(parts),
    )


@dataclass(frozen=True, slots=True)
class _Priced:
    """A problem in its own units, with its dual.

    `problem` is `plain` with rounded capacities as additional resources. `rounded` (F,) are the
    resources that they round, and `size` (F,) are their sizes.
    """

    plain: Separable
    units: Units
    problem: Separable
    rounded: Ints
    size: Ints
    jobs: Jobs
    dual: Dual


def _priced(problem: Separable, search: Search) -> _Priced:
    checkpoint()
    plain, units = normalise(problem)
    checkpoint()
    own, rounded, size = plain, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if len(plain.names) >= MANY:
        own, rounded, size = with_floors(plain)
    jobs = Jobs(own)
    start = None
    if any(search.start.get(name) for name in problem.names):
        named = np.array([search.start.get(name, np.nan) for name in problem.names])
        start = np.append(units.normalised_prices(named), np.full(len(rounded), np.nan))
    return _Priced(plain, units, own, rounded, size, jobs, price(own, jobs, search, start=start))


def _closing(search: Search, jobs: Jobs) -> Search:
    # The time of 15 replies is enough to end a step of a fill and convert the answer.
    return replace(search, deadline=search.deadline.sooner(15 * jobs.reply_s))


_Found = tuple[Ints | None, Floats | None]
"""A choice and counts of blocks, or None for both."""


def _filled(problem: Separable, jobs: Jobs, dual: Dual) -> _Found:
    """Return the dual's answer, or the greedy fill at its prices if the fill fits."""
    if dual.answer is not None:
        return dual.answer
    chosen, blocks = fill(problem, jobs, dual.prices)
    return (chosen, blocks) if is_feasible(problem, chosen, blocks) else (None, None)


def _best_of(problem: Separable, *answers: _Found) -> _Found:
    """Return the answer of greatest value; of equal answers, the first."""

    def worth(answer: _Found) -> float:
        chosen, blocks = answer
        if chosen is None or blocks is None:
            return -np.inf
        return problem.objective(chosen, blocks)

    return max(answers, key=worth)


def _in_units(found: Answer, problem: Separable, ready: _Priced) -> Answer:
    """Return an answer in the user's units, with the dual's bound computed again in those units.

    Prices of rounded capacities are added to those of the capacities. The part of the gap that was
    proven in the problem's own units is kept, because values are rounded in those units.
    """
    own = folded(found.dual.prices, ready.rounded, ready.size)
    prices = ready.units.prices(own)
    certified = bound_at(problem, prices)
    proven = certified - (found.dual.bound - found.bound) * ready.units.value
    objective = None
    if found.chosen is not None and found.blocks is not None:
        objective = problem.objective(found.chosen, found.blocks)
        short = found.bound - ready.problem.objective(found.chosen, found.blocks)
        told = objective + short * ready.units.value
        proven = trusted_bound(told, certified, objective)
    dual = replace(found.dual, prices=prices, bound=certified)
    return replace(found, objective=objective, bound=proven, dual=dual)


FEW_JOBS = 12
"""The most jobs for which all answers, with blocks, are examined together. Branching would take
many duals, as each proves little (500 rounds of pollux-1: 6 s instead of 12 s)."""


@dataclass(order=True, slots=True)
class _Part:
    """A part of the search with ranges of undecided blocks; parts are ordered by bound, best first.

    `problem` counts blocks from `low` on. The blocks in `low` are worth `offset`.
    """

    key: float
    number: int
    problem: Separable = field(compare=False)
    dual: Dual = field(compare=False)
    low: Floats = field(compare=False)
    offset: float = field(compare=False)


class WholeBlocks:
    """Branch and bound on the counts of blocks, with a `CoreSearch` for each undivided part.

    The problem is normalised. `cores`, `columns` and `nodes` are as in `Answer`, and `decided_by`
    is its `search`.
    """

    def __init__(self, problem: Separable, jobs: Jobs, dual: Dual, search: Search) -> None:
        self.jobs, self.search = jobs, search
        self.chosen: Ints | None = None
        self.blocks: Floats | None = None
        self.objective = -np.inf
        self.bound = dual.bound
        self.cores = self.columns = self.nodes = 0
        self.decided_by = ALONE
        self._number = 0
        self._parts: list[_Part] = []
        self._add(problem, dual, np.zeros_like(problem.block_count), 0.0)

    def run(self) -> StopReason:
        """Search one part after another until the gap is certified or the time is over."""
        closed = -np.inf  # best bound of searched parts
        while self._parts:
            part = self._parts[0]
            if self._certified(max(closed, -part.key)):
                break
            heapq.heappop(self._parts)
            block = self._undecided(part)
            if block is not None and not self.search.deadline.over():
                self._cut(part, block)
                continue
            if block is not None:  # no time to divide: take as many as the jobs ask for
                blocks = part.dual.blocks.copy()
                blocks[block] = self._asked(part, block)
                part = replace(part, dual=replace(part.dual, blocks=blocks))
            core = CoreSearch(
                part.problem,
                self.jobs,
                part.dual,
                self.search if part.number == 1 else replace(self.search, within=0.0),
                known=self.objective - part.offset,
                offset=part.offset,
            )
            stop = core.run()
            self.cores += core.cores
            self.columns = max(self.columns, core.columns)
            self.nodes += core.nodes
            if core.chosen is not None and core.blocks is not None:
                self.chosen, self.blocks = core.chosen, core.blocks + part.low
                self.objective, self.decided_by = core.objective + part.offset, core.decided_by
            if stop is not StopReason.INFEASIBLE:
                closed = max(closed, core.bound + part.offset)
            if stop is StopReason.TIME_LIMIT:
                rest = max((-p.key for p in self._parts), default=-np.inf)
                self.bound = max(closed, rest)
                return stop
        if self.chosen is None:
            return StopReason.INFEASIBLE
        rest = -self._parts[0].key if self._parts else -np.inf
        self.bound = max(closed, rest, self.objective)
        return StopReason.GAP if self._certified(self.bound) else StopReason.COMPLETE

    def _certified(self, bound: float) -> bool:
        return closes(bound, self.objective, self.search.gap, scale=1.0)

    def _add(self, problem: Separable, dual: Dual, low: Floats, offset: float) -> None:
        self._number += 1
        part = _Part(-(dual.bound + offset), self._number, problem, dual, low, offset)
        heapq.heappush(self._parts, part)

    def _undecided(self, part: _Part) -> int | None:
        """Return the block with the widest range that the dual leaves undecided, if any."""
        problem, prices = part.problem, part.dual.prices
        few = problem.jobs <= FEW_JOBS
        if few or self._number > 200 or not problem.block_integer.any():
            return None
        cost = prices[:, None] * problem.block_use
        gain = np.abs(problem.block_value - cost.sum(axis=0))
        size = np.maximum(np.abs(cost).max(axis=0, initial=0.0), np.abs(problem.block_value))
        free = problem.block_integer & (problem.block_count > 0) & (size > 0)
        free &= gain <= 1e-6 * size  # at its price, the dual leaves the count open
        if not free.any():
            return None
        return int(np.argmax(np.where(free, problem.block_count, 0.0)))

    def _cut(self, part: _Part, block: int) -> None:
        problem = part.problem
        at = self._asked(part, block)
        least = np.zeros_like(problem.block_count)
        least[block] = at + 1.0
        fewer, more = problem.block_count.copy(), problem.block_count - least
        fewer[block] = at
        self._open(part, replace(problem, block_count=fewer), np.zeros_like(least))
        room = problem.capacity - problem.block_use @ least
        self._open(part, replace(problem, capacity=room, block_count=more), least)

    def _asked(self, part: _Part, block: int) -> float:
        """Return the whole number of blocks that jobs ask for at the prices, below the maximum."""
        problem, prices = part.problem, part.dual.prices
        others = part.dual.blocks.copy()
        others[block] = 0.0
        used = self.jobs.reply(prices).use + problem.block_use @ others - problem.capacity
        given = -problem.block_use[:, block]
        rows = np.flatnonzero((given > 0) & (prices > 0))
        asked = float((used[rows] / given[rows]).max()) if len(rows) else 0.0
        return float(np.clip(np.floor(asked), 0.0, problem.block_count[block] - 1.0))

    def _open(self, part: _Part, problem: Separable, least: Floats) -> None:
        offset = part.offset + float(problem.block_value @ least)
        dual = price(problem, self.jobs, self.search, known=part.dual.replies)
        dual = replace(dual, bound=min(dual.bound, -part.key - offset))
        self._add(problem, dual, part.low + least, offset)
