"""Explanations of why a job got its option, by comparing its options at the prices of a plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.allocation.model_data import Case, Fidelity, make_case, restrict
from ronda.formulations.allocation.rows import seconds_of, separable, times_of
from ronda.formulations.allocation.separable import Separable, regrets, surpluses
from ronda.formulations.allocation.waking import ready, with_waking
from ronda.formulations.node_rules.outages import leaving_too_early
from ronda.formulations.options.table import ANYWHERE, OptionTable, option, rows_of
from ronda.formulations.placement.reasons import lack_of_room
from ronda.formulations.site.order import why_not
from ronda.instances.base import Floats, Rows
from ronda.instances.errors import InputError
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.as_one import AsOne
from ronda.solvers.decision.plan import Question
from ronda.solvers.decision.stages import after_stages
from ronda.solvers.rules import NO_RULES, Rules

SHAPES, MORE = 5, 3
"""Number of alternatives shown: the best option of each of 5 sizes, and the 3 best in all."""

READY = "ready_gpus["
OF_GPUS = ("gpus[", "parts[", "whole_nodes[", "buddy[", READY)
"""Prefixes of the names of resources that are GPUs rather than power."""

SAME = 1e-7
"""Difference in surplus, relative to the worth, below which options tie; prices have error 1e-8."""


class Reason(StrEnum):
    """The reason why a job got its option."""

    MUST_RUN = "must_run"  # the job may not be stopped or changed
    YOUNG = "young"  # its minimum run time is not over
    BEST = "best"  # no other option has a larger surplus at these prices
    TIE = "tie"  # another option has the same surplus
    SECOND_BEST = "second_best"  # the best options of all jobs do not fit together
    NO_OPTION = "no_option"  # the job has no option
    WORTHLESS = "worthless"  # no option of the job is worth anything
    TOO_DEAR = "too_dear"  # the best option costs more than it is worth
    CROWDED_OUT = "crowded_out"  # an option is worth its price, but not all such options fit
    NO_ROOM = "no_room"  # the option was chosen, but the nodes have no room for it
    NOT_YET = "not_yet"  # the job may not start now


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a resource: its ``name`` in the plan, and the price ``each`` of one unit.

    ``kilowatt`` is the price of one over the horizon of the round's limit; None for other
    resources than power and energy.
    """

    name: str
    each: float
    kilowatt: float | None


@dataclass(frozen=True, slots=True)
class Weighed:
    """An option of a job, or waiting (0 GPUs): its worth, its costs, and the difference."""

    pool: str
    gpus: int
    clock: float
    batch: float
    worth: float
    gpu_cost: float
    power_cost: float
    rule_cost: float
    surplus: float
    chosen: bool
    current: bool
    late: bool  # nodes must wake first


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a job's option, with the most interesting of its options, best first."""

    job: str
    objective: str  # the name of the objective, which gives options their worth
    runs: bool
    reason: Reason
    moved: bool  # the job keeps its option but changes nodes
    hindrance: str | None  # why the best option does not fit on nodes or racks, if so
    regret: float | None  # surplus less that of the next best choice, if any
    prices: tuple[Price, ...]  # prices of the resources that its options use
    options: tuple[Weighed, ...]  # waiting is one of them unless the job must run

    @property
    def chosen(self) -> Weighed | None:
        """The option that the job got."""
        return next((o for o in self.options if o.chosen), None)


def explain_jobs(
    round: Round,
    plan: Plan,
    jobs: Sequence[str],
    *,
    elastic: bool = True,
    parameters: Mapping[str, float] | None = None,
    extra: Rules = NO_RULES,
) -> list[Explanation]:
    """Explain, by the prices and the objective of a plan, why each of `jobs` got its option.

    `elastic`, `parameters` (of the objective) and `extra` rules must be those of the policy. Only
    nodes that sleep now count as not ready, so the plan of a policy that considers waking times
    must be its first. A job in an array has the explanation of the array.

    Raise InputError if the round has no such job, or the plan is a fallback without comparison.
    """
    refuse_unknown(jobs, round)
    if not plan.details.objective or plan.objective is None:
        raise InputError(
            "--explain", f"no choice by prices ({plan.status.value})", "a plan that was weighed"
        )
    objective = plan.details.objective
    own = {**(parameters or {}), **plan.details.parameters}
    seen = AsOne(round)
    question = Question.of(seen.round, objective, elastic=elastic, parameters=own, extra=extra)
    question = after_stages(question, plan)
    place = {state.job.id: j for j, state in enumerate(seen.round.jobs)}
    asked = [place[seen.stands_for(job)] for job in jobs]
    plan = seen.shown(plan)
    scales = _Scales.of(seen.round, plan, question.table, question.values, asked)
    found = (scales.explain(j, objective) for j in asked)
    return [replace(each, job=job) for each, job in zip(found, jobs, strict=True)]


def refuse_unknown(jobs: Sequence[str], round: Round) -> None:
    """Raise InputError, naming similar ids, for the first job that is not in the round."""
    known = [state.job.id for state in round.jobs]
    job = next((job for job in jobs if job not in known), None)
    if job is None:
        return
    near = get_close_matches(job, known, n=3, cutoff=0.5) or list(known[:3])
    meant = f" ({', '.join(near)}{', ...' if len(known) > len(near) else ''})" if near else ""
    raise InputError("--explain", repr(job), f"the id of a job of the round{meant}")


@dataclass(frozen=True, slots=True)
class _Scales:
    """The data for comparing options; (n,) arrays belong to the options `rows` of the table.

    `unbeaten` marks the options that the policy considered. The others are worthless or dominated:
    another option of the job is worth as much and uses no more of any resource.
    """

    plan: Plan
    round: Round
    table: OptionTable
    problem: Separable
    prices: Floats  # shape (R,)
    rows: Rows
    late: NDArray[np.bool_]  # whether nodes must wake first
    unbeaten: NDArray[np.bool_]
    chosen: Rows  # row of the table, shape (J,)
    gpu_cost: Floats
    power_cost: Floats
    rule_cost: Floats

    @classmethod
    def of(
        cls, round: Round, plan: Plan, table: OptionTable, worth: Floats, asked: list[int]
    ) -> "_Scales":
        """Compute the costs of the options that the policy considered, and of held options.

        For the jobs `asked`, current and chosen options are added, or all options if the policy
        considered none.
        """
        case, chosen = make_case(round, table, worth), rows_of(table, plan)
        times_s = times_of(plan.prices, round.window_s)
        if plan.details.joint:
            case = _cheapest(make_case(round, table, worth, Fidelity.RACKS), plan)
        bare = np.setdiff1d(asked, case.job)
        more = np.isin(table.job, bare) | (np.isin(table.job, asked) & table.current)
        more[chosen[chosen >= 0]] = True
        rows = np.union1d(case.rows, np.flatnonzero(more & np.isfinite(worth)))
        unbeaten = np.isin(rows, case.rows)
        rack = np.full(len(table), ANYWHERE)
        rack[case.rows] = case.rack
        case = replace(case, rows=rows, rack=rack[rows], value=worth[rows], times_s=times_s)
        late, awake = np.zeros(len(rows), dtype=bool), ready(round, frozenset())
        if awake is not None and any(name.startswith(READY) for name in plan.prices):
            case = _cheapest(with_waking(case, awake), plan)
            late = late if case.waking is None else case.waking.late
        problem = separable(case)
        prices = _in_order(problem, plan)
        of_gpus = np.array([n.startswith(OF_GPUS) for n in problem.names], bool)
        stated = () if table.own is None else table.own.names
        of_rules = np.isin(problem.names, stated)
        cost = prices[:, None] * problem.use.dense()
        kinds = (of_gpus, ~(of_gpus | of_rules), of_rules)
        costs = [cost[kind].sum(axis=0) for kind in kinds]
        return cls(plan, round, table, problem, prices, rows, late, unbeaten, chosen, *costs)

    def surplus(self, own: Rows) -> Floats:
        cost = self.gpu_cost[own] + self.power_cost[own] + self.rule_cost[own]
        return np.asarray(self.problem.value[own] - cost)

    def explain(self, j: int, objective: str) -> Explanation:
        table, plan, job = self.table, self.plan, self.table.jobs[j].job.id
        own = np.flatnonzero(table.job[self.rows] == j)
        surplus = self.surplus(own)
        regret, must = self._regret(j, own, surplus), bool(table.must_run[j])
        shown = [self._weighed(k, int(self.rows[k]) == self.chosen[j]) for k in self._shown(own, j)]
        if not must:
            waits = bool(self.chosen[j] < 0)
            shown.append(Weighed("", 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, waits, False, False))
        used = (self.problem.use.dense(own) != 0).any(axis=1)
        return Explanation(
            job=job,
            objective=objective,
            runs=job in plan.allocations,
            reason=self._reason(j, own, surplus, regret),
            moved=job in plan.details.moved,
            hindrance=self._hindrance(j, own, surplus),
            regret=regret if np.isfinite(regret) else None,
            prices=tuple(
                Price(name, price, self._kilowatt(name, price))
                for name, price, of_job in zip(
                    self.problem.names, self.prices.tolist(), used.tolist(), strict=True
                )
                if of_job
            ),
            options=tuple(sorted(shown, key=lambda o: (-o.surplus, not o.chosen))),
        )

    def _regret(self, j: int, own: Rows, surplus: Floats) -> float:
        """Return the surplus of job j's choice less that of its next best undominated choice."""
        known = self.plan.details.regret.get(self.table.jobs[j].job.id)
        if known is not None:
            return known
        got = self.rows[own] == self.chosen[j]
        chosen = np.array([int(np.argmax(got)) if got.any() else -1])
        surplus = np.where(self.unbeaten[own] | got, surplus, -np.inf)
        must = self.table.must_run[j : j + 1]
        return float(regrets(np.array([0, len(own)]), surplus, must, chosen)[0])

    def _kilowatt(self, name: str, price: float) -> float | None:
        """Return the price of a kilowatt over the limit's horizon; None for other resources."""
        own = self.table.own
        if name.startswith(OF_GPUS) or (own is not None and name in own.names):
            return None
        return price * 1e3 * seconds_of(name, self.round.window_s)

    def _reason(self, j: int, own: Rows, surplus: Floats, regret: float) -> Reason:
        job, worth = self.table.jobs[j].job.id, self.problem.value[own]
        if self.table.must_run[j]:
            free = next(s.job.preemptible for s in self.round.running if s.job.id == job)
            return Reason.YOUNG if free else Reason.MUST_RUN
        if why_not(self.round, self.table.jobs[j]) is not None:
            return Reason.NOT_YET
        same = SAME * float(np.abs(worth).max(initial=0.0))
        if job in self.plan.allocations:
            if abs(regret) <= same:
                return Reason.TIE
            return Reason.BEST if regret > 0 else Reason.SECOND_BEST
        if job in self.plan.details.unplaced:
            return Reason.NO_ROOM
        if not self.unbeaten[own].any():
            none = not len(own) or worth.max() > 0  # worth > 0 if no rack has the power
            return Reason.NO_OPTION if none else Reason.WORTHLESS
        return Reason.CROWDED_OUT if surplus.max() > same else Reason.TOO_DEAR

    def _hindrance(self, j: int, own: Rows, surplus: Floats) -> str | None:
        """Return why job j may not start, or waits although enough GPUs are free for an option."""
        state, plan = self.table.jobs[j], self.plan
        job, held_back = state.job.id, why_not(self.round, self.table.jobs[j])
        if job in plan.allocations or held_back is not None:
            return held_back
        known = plan.details.unplaced
        if job in known:
            return known[job]
        given = plan.allocations.values()
        if len(own):
            best = option(self.table, int(self.rows[own[self.problem.value[own].argmax()]]))
            leaves = leaving_too_early(self.round, state, best, given)
            if leaves is not None:
                return leaves
        paid = np.where(self.unbeaten[own], surplus, -np.inf)
        if not len(own) or paid.max() <= SAME * float(np.abs(self.problem.value[own]).max()):
            return None
        best = option(self.table, int(self.rows[own[np.argmax(paid)]]))
        return lack_of_room(self.round, state, best, plan.allocations)

    def _shown(self, own: Rows, j: int) -> list[int]:
        """Return the most interesting options of a job: the best, several sizes, and its own."""
        table = self.table
        surplus = self.surplus(own)
        ranked = own[np.argsort(-surplus, kind="stable")].tolist()
        sizes: dict[tuple[int, int], int] = {}
        for k in ranked:
            row = int(self.rows[k])
            sizes.setdefault((int(table.pool[row]), int(table.gpus[row])), k)
        shown = set(list(sizes.values())[:SHAPES]) | set(ranked[:MORE])
        shown |= {
            k for k in ranked if self.rows[k] == self.chosen[j] or table.current[self.rows[k]]
        }
        return sorted(shown)

    def _weighed(self, k: int, chosen: bool) -> Weighed:
        table, row = self.table, int(self.rows[k])
        costs = (self.gpu_cost, self.power_cost, self.rule_cost)
        worth, gpu, power, rule = (float(a[k]) for a in (self.problem.value, *costs))
        return Weighed(
            pool=table.pools[int(table.pool[row])].name,
            gpus=int(table.gpus[row]),
            clock=float(table.clock[row]),
            batch=float(table.batch[row]),
            worth=worth,
            gpu_cost=gpu,
            power_cost=power,
            rule_cost=rule,
            surplus=worth - gpu - power - rule,
            chosen=bool(chosen),
            current=bool(table.current[row]),
            late=bool(self.late[k]),
        )


def _cheapest(case: Case, plan: Plan) -> Case:
    """Return the case with the best rack and start (now or later) of every option only."""
    problem = separable(case)
    surplus = surpluses(problem, _in_order(problem, plan))
    order = np.lexsort((-surplus, case.rows))
    _, first = np.unique(case.rows[order], return_index=True)
    kept = np.zeros(len(case.rows), dtype=bool)
    kept[order[first]] = True
    return restrict(case, kept)


def _in_order(problem: Separable, plan: Plan) -> Floats:
    """Return the plan's prices in the order of the problem's resources, shape (R,)."""
    return np.array([plan.prices.get(name, 0.0) for name in problem.names])
