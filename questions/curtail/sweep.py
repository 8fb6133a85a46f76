"""One pass over falling power caps, whose prices bound what any plan is worth at every cap.

Let V(P) be the most that a plan is worth under a power cap of P watts. At prices p, of which λ is
the price of a watt, every plan is worth at most D(p) = g(p) + λ P (`ronda.solvers.prices.dual`),
and g does not depend on P. So the prices found at one cap bound V at all caps, by a line of slope
λ, and the lowest of all lines is a concave bound on the whole curve. The prices of one cap are
where the search at the next one begins. At each cap a greedy fill at its prices gives a choice.

With power caps of racks, the bound has their rows. The fill has none, and placement keeps them.
"""

from dataclasses import replace as with_fields
from math import inf, nextafter

import msgspec

from ronda.formulations.allocation.model_data import make_case
from ronda.formulations.allocation.rows import CAP, separable
from ronda.formulations.allocation.separable import Separable
from ronda.instances.clock import Deadline
from ronda.instances.plan import Plan, SolutionStatus
from ronda.solvers.decision.plan import Question, filled, to_plan
from ronda.solvers.prices.dual import Search, bound_at
from ronda.solvers.prices.engine import first_answer, solve_separable

COARSE, FEW = 2e-3, 32
"""The relative gap of a search in place of a fill, and the jobs up to which it is quick."""


class FallingCaps:
    """The plans of a question at falling power caps, and the bound by all prices so far.

    The cap of the question's round is the highest of them. `limit_s` is the time for each cap.
    """

    def __init__(self, question: Question, limit_s: float | None) -> None:
        self.question, self.limit_s = question, limit_s
        self.case = make_case(question.round, question.table, question.values)
        self.problem = self.bare = separable(self.case, both_limits=True)
        if self.case.racks:
            no_racks = with_fields(self.case, racks=(), most_rack_kw={})
            self.bare = separable(no_racks, both_limits=True)
        top_w = question.round.power_cap_w
        assert top_w is not None
        row = self.problem.names.index(CAP)
        self._nodes_w = top_w - float(self.problem.capacity[row])  # of nodes, whatever runs
        self._prices: dict[str, float] = {}
        self._lines: list[tuple[float, float]] = []  # worth without any watt for jobs, and slope

    def at(self, cap_w: float) -> Plan | None:
        """Return a plan for a cap, and note the line of its prices; None if no plan was found."""
        search = Search(start=self._prices, deadline=Deadline(self.limit_s))
        answer = first_answer(self._under(self.problem, cap_w), search)
        self._prices = self.problem.named(answer.dual.prices)
        base = bound_at(self._under(self.problem, self._nodes_w), answer.dual.prices)
        self._lines.append((base, self._prices[CAP]))
        if self.bare is not self.problem:
            search = with_fields(search, start=self._prices)
            answer = first_answer(self._under(self.bare, cap_w), search)
        # Jobs that must go on leave a fill no room, and a fill of few jobs leaves much.
        if answer.chosen is None or self.bare.jobs <= FEW:
            hard = with_fields(search, start=self._prices, gap=COARSE)
            answer = solve_separable(self._under(self.bare, cap_w), hard)
        if answer.chosen is None:
            return None
        round = msgspec.structs.replace(self.question.round, power_cap_w=cap_w)
        asked = msgspec.structs.replace(self.question, round=round)
        plan = to_plan(asked, filled(self.case, self.bare, answer, search), search.deadline)
        return None if plan.status is SolutionStatus.FALLBACK else plan

    def bound(self, cap_w: float) -> float:
        """Return the bound on plans under a cap."""
        room_w = cap_w - self._nodes_w
        lines = (base + nextafter(price * room_w, inf) for base, price in self._lines)
        return nextafter(min(lines), inf)

    def _under(self, problem: Separable, cap_w: float) -> Separable:
        capacity = problem.capacity.copy()
        capacity[problem.names.index(CAP)] = cap_w - self._nodes_w
        return with_fields(problem, capacity=capacity)
