"""Plans for rounds in which tasks run: prices say who stays, and others come after.

To stay is one more way to run, at no loss, in the relaxation that counts all nodes of a class as
one. What it lets stay stays. The others are placed the largest first, as many on each class as the
relaxation has there, and then wherever they are worth the room. Last, nodes that waste much
exchange a job for others, time and again.
"""

from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ronda.formulations.patterns.held import Running, staying_model
from ronda.formulations.patterns.of_tasks import TaskModel, by_task, worth_of
from ronda.instances.base import Floats, Rows
from ronda.instances.clock import Deadline, OutOfTimeError, ending
from ronda.instances.plan import StopReason, closes
from ronda.solvers.patterns.board import Board
from ronda.solvers.patterns.knapsack import Knapsack
from ronda.solvers.patterns.master import PatternMaster
from ronda.solvers.patterns.pricing import MARGINS, SlotPrices, bound_at, price

SUMS, BUDGETED = 3, 6
"""The number of relaxations by sums, without and with a budget of disruptions."""

LOOSE, FEW = 0.02, 90
"""The gap from which on patterns are priced for a better bound, and the most kinds of slots."""

FINISH_S = 2e-6
"""The seconds of a processor per task that are kept for the end."""

TURNS, TRIES = 4, 16
"""The most turns in which jobs find places, and the most nodes in one turn that a way is tried."""

EXCHANGES, PARTS, SHARE, MOST = 5, 10, 0.6, 20_000
"""Turns of exchanges, parts of the nodes in each, and the share and the most of the nodes."""


class PlacedTasks(NamedTuple):
    """Pairs of a task and a node, by task, a bound, prices of slots and of resources of classes."""

    task: Rows
    node: Rows
    bound: float
    prices: Floats
    unit: Floats
    stop: StopReason


def run_on(whole: TaskModel, now: Running, gap: float, deadline: Deadline) -> PlacedTasks:
    """Return places of tasks in a round in which some run, with a bound on every plan."""
    round, stop, board, search = whole.round, StopReason.STAGNATION, None, _Sums(whole, now)
    with ending(deadline.sooner(deadline.paced(FINISH_S * round.tasks)).end):
        try:
            search.run()
            board = search.board()
            _fill(board, search)
            for _ in range(EXCHANGES):
                _exchange(board)
        except OutOfTimeError:
            stop = StopReason.TIME_LIMIT
    task, node = _pairs(whole, now, search.board() if board is None else board)
    few = len(search.model.size) <= FEW
    if few and not closes(search.bound, worth_of(round, task, node), LOOSE):
        with suppress(OutOfTimeError), ending(deadline.end):
            search.by_patterns(gap)
    return PlacedTasks(task, node, search.bound, search.prices, search.unit, stop)


class _Sums:
    """Prices by the relaxation in which jobs may stay, and its best bound.

    `bonus` is the price of one more disruption: jobs that stay are worth so much more, and the
    bound that much less for each that has to stay.
    """

    def __init__(self, whole: TaskModel, now: Running) -> None:
        self.whole, self.now, self.bonus = whole, now, 0.0
        self.running, most = np.unique(now.job), whole.round.most_disrupted
        self.must = 0 if most is None else max(0, len(self.running) - most)  # that have to stay
        self.model = staying_model(whole, now)
        self.prices: Floats = np.zeros(len(self.model.size))
        self.unit: Floats = np.zeros_like(self.model.capacity)
        self.amount: Floats = np.zeros(self.model.supplied.shape)
        self.bound = bound_at(self.model, self.prices, np.zeros(len(self.model.count)))

    def run(self) -> None:
        """Improve prices, bound and the number of slots on each class."""
        sacks = [Knapsack(self.model, k) for k in range(len(self.model.count))]
        for turn in range(BUDGETED if self.must else SUMS):
            known = self.prices if turn else None
            master = PatternMaster(self.model, sacks, known, MARGINS[0])
            prices, unit, amount = master.by_sums()
            tops = np.array([sack.best(prices[sack.slots]).bound for sack in sacks])
            bound = bound_at(self.model, prices, tops) - self.bonus * self.must
            self.prices, self.unit, self.amount = prices, unit, amount
            self.bound = min(self.bound, bound)
            if self.must:
                self._charge()

    def _charge(self) -> None:
        """Set the price of a disruption at which as many jobs stay as have to."""
        gains = np.sort(self.margins()[self.running])[::-1] - self.bonus
        more = max(0.0, -float(gains[self.must - 1])) - self.bonus
        self.bonus += more
        forms = []
        for form in self.model.forms:
            value = form.value
            if self.now.task[form.jobs[0]] >= 0:
                value = np.column_stack([value[:, :-1], value[:, -1] + more])
            forms.append(replace(form, value=value))
        self.model = replace(self.model, forms=tuple(forms))

    def margins(self) -> Floats:
        """Return what each job gains by staying at the prices, -inf for those that wait."""
        found = np.full(len(self.now.task), -np.inf)
        for form in self.model.forms:
            if self.now.task[form.jobs[0]] >= 0:
                net = form.net(self.prices)
                found[form.jobs] = net[:, -2] - np.delete(net, -2, axis=1).max(axis=1)
        return found

    def board(self) -> Board:
        """Return the nodes with the jobs that stay: all before prices are known."""
        model, margins = self.whole.model, self.margins()
        total = np.maximum(model.count[:, None] * model.capacity, 1e-12)
        tight = np.minimum(1.0, self.amount.T @ self.model.size / total)
        board = Board(model, self.now, self.prices[: len(model.size)], self.unit, tight)
        best = self.running[np.argsort(-margins[self.running], kind="stable")]
        stay = max(self.must, np.count_nonzero(margins >= 0))
        board.stay(best[:stay] if self.amount.any() else best, fixed=self.must > 0)
        return board

    def by_patterns(self, gap: float) -> None:
        """Improve the bound by whole patterns, where nodes hold few jobs each."""
        priced = SlotPrices.at_zero(self.model)
        try:
            price(priced, gap)
        finally:
            self.bound = min(self.bound, priced.bound - self.bonus * self.must)


def _fill(board: Board, search: _Sums) -> None:
    """Place jobs the largest first, where the relaxation has them, and then where they fit."""
    model = board.model
    large = board.large(model.size)
    ranked = [
        (-float(large[form.slot[w, 0]]), f, w)
        for f, form in enumerate(model.forms)
        for w in np.argsort(-form.value.mean(axis=0), kind="stable").tolist()
    ]
    ways = [(f, w) for _, f, w in sorted(ranked, key=lambda way: way[:2])]
    until = np.round(np.cumsum(search.amount[: len(large)], axis=1))
    quota = np.diff(until, axis=1, prepend=0.0).astype(np.int64)
    for f, w in ways:
        q, times = int(model.forms[f].slot[w, 0]), int(model.forms[f].times[w, 0])
        for k in np.flatnonzero(quota[q] >= times).tolist():
            for _ in range(TRIES):
                jobs = _wanting(board, f, w)[: quota[q, k] // times]
                placed = (
                    board.place(f, w, _by_value(board, f, w, jobs), np.array([k]), False)
                    if len(jobs)
                    else 0
                )
                quota[q, k] -= placed * times
                if not placed or quota[q, k] < times:
                    break
    for _ in range(TURNS):
        board.index()
        placed = 0
        for f, w in ways:
            classes = np.flatnonzero(model.supplied[model.forms[f].slot[w, 0]])
            for _ in range(TRIES):
                jobs = _by_value(board, f, w, _wanting(board, f, w))
                some = board.place(f, w, jobs, classes, True) if len(jobs) else 0
                placed += some
                if not some:
                    break
        if not placed:
            return


def _wanting(board: Board, f: int, w: int) -> Rows:
    """Return the jobs of a form without a place that gain in a way, most over other ways first."""
    form, net = board.model.forms[f], board.nets[f]
    rows = np.flatnonzero((board.way[form.jobs] < 0) & (net[:, w] > 0))
    other = np.delete(net[rows], w, axis=1).max(axis=1)
    return form.jobs[rows[np.lexsort((-net[rows, w], other - net[rows, w]))]]


def _by_value(board: Board, f: int, w: int, jobs: Rows) -> Rows:
    form = board.model.forms[f]
    value = form.value[np.searchsorted(form.jobs, jobs), w]
    return jobs[np.argsort(-value, kind="stable")]


def _exchange(board: Board) -> None:
    """Let the nodes that waste most exchange jobs, some nodes at a time."""
    waste = (board.unit[board.owner] * board.free).sum(axis=1)
    most = min(MOST, int(np.ceil(SHARE * len(waste))))
    worst = np.argsort(-waste, kind="stable")[:most]
    for part in range(min(PARTS, len(worst))):
        board.exchange(np.sort(worst[part::PARTS]))


def _pairs(whole: TaskModel, now: Running, board: Board) -> tuple[Rows, Rows]:
    """Return the pairs of a task and a node of the round, sorted."""
    task = np.where(board.stays, now.task, whole.model.picked(board.way, whole.tasks))
    seats = np.flatnonzero(board.node >= 0)
    return by_task(task[board.job[seats]], whole.node[board.node[seats]])
