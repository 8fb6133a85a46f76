"""A policy that values all rounds on the scale of one, and bounds on others from its prices."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec
import numpy as np

from ronda.formulations.allocation.model_data import make_case
from ronda.formulations.allocation.rows import separable, times_of
from ronda.formulations.allocation.separable import Separable
from ronda.formulations.objectives.by_name import outlook_of
from ronda.formulations.objectives.outlook import Outlook
from ronda.formulations.objectives.scale import Scale, frozen_values, scale_of, with_newcomers
from ronda.formulations.options.table import rows_of
from ronda.horizon.solve import solve_valid
from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError, RondaError
from ronda.instances.plan import Plan, SolutionStatus
from ronda.instances.round import Round
from ronda.solvers.applied_rules import broken_rules
from ronda.solvers.as_one import AsOne
from ronda.solvers.contract import Capability, Policy
from ronda.solvers.decision.plan import Optimising, Question
from ronda.solvers.greedy.policy import TimelyPolicy
from ronda.solvers.prices.dual import bound_at
from ronda.solvers.rules import EXTRA, Rules, rules_of

GAP = 1e-6
"""Relative gap to which plans are proven; it is small because their differences matter."""


@dataclass(frozen=True)
class Only:
    """A job that may run only in some pools, and is worth `bonus` more there.

    It has `gpus` GPUs there, or any number if that is None.
    """

    job: str
    pools: frozenset[int]
    gpus: int | None
    bonus: float

    def rows(self, question: Question) -> tuple[Mask, Mask]:
        """Return which rows belong to the job, and which of them it may have, shape (K,)."""
        table = question.table
        own = np.array([state.job.id == self.job for state in table.jobs], dtype=bool)[table.job]
        there = own & np.isin(table.pool, [*self.pools])
        return own, there if self.gpus is None else there & (table.gpus == self.gpus)


@dataclass(frozen=True)
class Judged:
    """A plan valued on the scale of the unchanged round.

    ``worth`` is keyed by job, and ``lost`` is the cost of soft limits. By the prices of the
    unchanged round, no plan of the same round is worth more than ``bound``.
    """

    round: Round
    plan: Plan
    worth: Mapping[str, float]
    lost: float
    bound: float

    @property
    def objective(self) -> float:
        """The worth of the plan."""
        return sum(self.worth.values()) - self.lost


@dataclass
class Frozen(TimelyPolicy):
    """A policy with values on a fixed scale; `only` may restrict one job to one size."""

    name: str  # type: ignore[misc]
    capabilities: Capability  # type: ignore[misc]
    made: Optimising
    scale: Scale
    seed: int
    limit_s: float | None
    only: Only | None = None

    @property
    def extra(self) -> Rules:
        """The extra rules that its plans keep."""
        return rules_of(self.made)

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Return the plan of a round by values on the scale."""
        asked = self.question(round, deadline, seed, initial)
        return self.made.decide(round, deadline=deadline, seed=seed, initial=initial, asked=asked)

    def question(
        self,
        round: Round,
        deadline: Deadline | None = None,
        seed: int = 0,
        initial: Plan | None = None,
    ) -> Question:
        """Build the options of a round and their worth on the scale."""
        asked = self.made.question(round, deadline or Deadline(), seed, initial)
        values = frozen_values(_outlook(asked, self.scale), self.scale) + asked.added
        values = np.where(np.isneginf(asked.values), -np.inf, values)  # what rules forbid stays so
        if self.only is not None:
            own, may = self.only.rows(asked)
            values = np.where(own, np.where(may, values + self.only.bonus, -np.inf), values)
        return msgspec.structs.replace(asked, values=values)

    def worth(self, question: Question, plan: Plan) -> float:
        """Return the worth of a plan for a question of its own, less the cost of soft limits."""
        rows, own = rows_of(question.table, plan), question.table.own
        rows = rows[rows >= 0]
        return float(question.values[rows].sum()) - (0.0 if own is None else own.lost(rows))

    def knowing(self, round: Round) -> "Frozen":
        """Return the policy with the round's new jobs added to its scale, at their worth there."""
        asked = self.made.question(AsOne(round).round, Deadline(), 0)
        return replace(self, scale=with_newcomers(self.scale, _outlook(asked, self.scale)))

    def as_it_is(self, round: Round, initial: Plan | None) -> Judged:
        """Return the plan of the unchanged round; raise RondaError if there is none."""
        found = self.judged(round, initial)
        if found.plan.status in (SolutionStatus.FALLBACK, SolutionStatus.NONE):
            why = found.plan.record.message or found.plan.stop.value
            raise RondaError(f"{found.plan.policy}: no plan for the round as it is: {why}")
        return found

    def judged(self, round: Round, initial: Plan | None, base: Judged | None = None) -> Judged:
        """Return the plan of a round, bounded for a changed round by the prices of the `base` plan.

        The `base` plan replaces the new one if it is still possible and worth more.
        """
        plan = solve_valid(
            round, self, seed=self.seed, deadline=Deadline(self.limit_s), initial=initial
        )
        prices = plan.prices if base is None else base.plan.prices
        found = self.weighed(round, plan, prices)
        if base is None or found.objective >= base.objective:
            return found
        before = _still(base, round)
        if check(round, before) or broken_rules(self.extra, round, before):
            return found
        kept = self.weighed(round, before, prices)
        return max(found, kept, key=lambda judged: judged.objective)

    def weighed(
        self, round: Round, plan: Plan, prices: Mapping[str, float] | None = None
    ) -> Judged:
        """Return a plan valued on the scale and bounded by prices, by default its own."""
        seen = AsOne(round)
        question = self.question(seen.round)
        rows, own = rows_of(question.table, seen.shown(plan)), question.table.own
        worth = {
            state.job.id: float(question.values[k]) if k >= 0 else 0.0
            for state, k in zip(question.table.jobs, rows.tolist(), strict=True)
        }
        lost = 0.0 if own is None else own.lost(rows[rows >= 0])
        dear = priced(question, plan.prices if prices is None else prices)
        return Judged(round, plan, worth, lost, bound_at(dear.problem, dear.prices))


def freeze(
    made: Policy, round: Round, seed: int, limit_s: float | None, initial: Plan | None
) -> Frozen:
    """Return a policy that values any round on the scale of `round`, with a limit per plan.

    Raise InputError if it does not choose by values, or its values are no scale for other rounds.
    """
    if not isinstance(made, Optimising) or Capability.ARRAYS in made.capabilities:
        expected = "a policy that chooses by values, such as prices, milp or genetic"
        raise InputError("--policy", made.name, expected)
    if rules_of(made).seeing_racks:  # prices bound only choices of options
        raise InputError(f"{made.name}: {EXTRA}", "rules that see racks", "none for a what-if")
    made = replace(made, gap=min(made.gap, GAP))
    asked = made.question(AsOne(round).round, Deadline(), seed, initial)
    outlook = outlook_of(asked.round, asked.table, asked.objective, asked.parameters)
    scale = scale_of(outlook, asked.objective, asked.parameters)
    return Frozen(made.name, made.capabilities, made, scale, seed, limit_s)


def _outlook(asked: Question, scale: Scale) -> Outlook:
    given = {**asked.parameters, "horizon_s": scale.horizon_s}
    return outlook_of(asked.round, asked.table, asked.objective, given)


class Priced(NamedTuple):
    """A problem with the rows (n,) of a question's table, and the prices (R,) of its resources."""

    rows: Rows
    problem: Separable
    prices: Floats

    def spent(self, row: int) -> list[tuple[str, float, float]]:
        """Return what a row of the table pays for: names, amounts and prices, the dearest first."""
        used = self.problem.use.dense(np.flatnonzero(self.rows == row)).sum(axis=1)
        every = zip(self.problem.names, used.tolist(), self.prices.tolist(), strict=True)
        paid = [(name, amount, price) for name, amount, price in every if amount * price > 0]
        return sorted(paid, key=lambda each: -each[1] * each[2])


def priced(question: Question, prices: Mapping[str, float]) -> Priced:
    """Return the problem of a question, with rows for the times that occur in prices.

    D(p) bounds all plans at any prices (docs/prices.md). Rows without a price and prices without a
    row (of racks, which are ignored) make the bound weaker but not wrong.
    """
    case = make_case(question.round, question.table, question.values)
    times_s = times_of(prices, case.round.window_s)
    if times_s and case.times_s:
        case = replace(case, times_s=tuple(sorted({*case.times_s, *times_s})))
    problem = separable(case, both_limits=True)
    each = np.array([max(0.0, prices.get(name, 0.0)) for name in problem.names])
    return Priced(case.rows, problem, each)


def _still(base: Judged, round: Round) -> Plan:
    """Return the plan of the unchanged round for a changed round, where new nodes stay off."""
    known = {state.job.id for state in round.jobs}
    allocations = {job: a for job, a in base.plan.allocations.items() if job in known}
    nodes, more = (len(r.cluster.topology.node_gpus) for r in (base.round, round))
    asleep = base.round.asleep if base.plan.asleep is None else base.plan.asleep
    if more > nodes or base.plan.asleep is not None:
        asleep = (*asleep, *range(nodes, more))
    return msgspec.structs.replace(
        base.plan, allocations=allocations, asleep=asleep if asleep else base.plan.asleep
    )
