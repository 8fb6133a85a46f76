"""Questions about rounds, choices of options (from any search), and the plans made from them."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as with_fields
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np

from ronda.formulations.allocation.model_data import Case
from ronda.formulations.allocation.non_preemptible import bearing, rules_bearing
from ronda.formulations.allocation.racks import by_rack, told_apart
from ronda.formulations.allocation.rows import CAP, is_limit, seconds_of
from ronda.formulations.allocation.separable import Separable
from ronda.formulations.objectives.by_name import minds_power, outlook_of, parameters, values_of
from ronda.formulations.objectives.outlook import at_rest
from ronda.formulations.objectives.rank import ALONE_S, Seen, seen
from ronda.formulations.options.build import build
from ronda.formulations.options.stages import Aim
from ronda.formulations.options.stated_rows import ROUNDED, RULE, StatedRows, joined
from ronda.formulations.options.table import OptionTable, rows_of
from ronda.formulations.site.min_run import with_minimum_runs
from ronda.formulations.site.nodes import concerns_nodes
from ronda.formulations.site.stated import aims_of, under_site_rules
from ronda.formulations.tenants.guarantees import OWED, Guarantee, worth_share
from ronda.instances.base import Floats, Rows
from ronda.instances.clock import Deadline, OutOfTimeError, ending
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation
from ronda.instances.plan import (
    Conflict,
    Plan,
    PlanDetails,
    SolutionStatus,
    SolveRecord,
    StopReason,
    closes,
)
from ronda.instances.round import Round
from ronda.instances.violation import ROUNDING
from ronda.solvers.applied_rules import asked
from ronda.solvers.contract import OPTIMISING, Capability
from ronda.solvers.decision.realise import OVER, Realised, realise
from ronda.solvers.decision.stages import in_stages
from ronda.solvers.greedy.policy import TimelyPolicy
from ronda.solvers.rules import EXTRA, NO_RULES, Rules, rules_of
from ronda.solvers.versions import versions

if TYPE_CHECKING:
    from ronda.solvers.prices.dual import Search
    from ronda.solvers.prices.engine import Answer


class Question(msgspec.Struct, frozen=True, eq=False):
    """A round with its options and their values, for policies, models and explanations."""

    round: Round
    objective: str
    table: OptionTable
    values: Floats  # (K,) the values of the options
    added: Floats | float = 0.0  # (K,) the part of the values from terms of site and user
    parameters: Mapping[str, float | None] = {}  # the objective's, in the round
    seen: Seen = Seen()  # jobs so far
    policy: str = ""  # goes into the plan's record, with `packages` and `seed`
    packages: tuple[str, ...] = ()
    seed: int = 0
    gap_is_own: bool = False  # the gap asked for is that of the whole objective, with guarantees
    gave: tuple[Conflict, ...] = ()  # limits that yield to jobs that may not be stopped
    stated: StatedRows | None = None  # the rows of site and user before any of them gave way
    aims: tuple[Aim, ...] = ()  # of the site, which come before the objective
    claims: tuple[Guarantee, ...] = ()  # the terms of the site's guarantees
    options_s: float = 0.0  # seconds from entry until the options and values were ready

    @classmethod
    def of(
        cls,
        round: Round,
        objective: str,
        *,
        elastic: bool = True,
        parameters: Mapping[str, float | None] | None = None,
        policy: str = "",
        packages: tuple[str, ...] = (),
        seed: int = 0,
        deadline: Deadline | None = None,
        initial: Plan | None = None,
        extra: Rules = NO_RULES,
        whole: bool = False,
    ) -> "Question":
        """Build the options of a round and their values for the objective and its parameters.

        The power of options matters if the objective or a limit of the round depends on it. With
        `initial`, the previous plan, jobs age on the scale of all jobs seen so far. With rules of
        the user's own, or for the `whole` table, no possible options are left out. Limits yield to
        jobs that may not be stopped.
        """
        own, (round, gave) = dict(parameters or {}), bearing(with_minimum_runs(round))
        mind_power = minds_power(objective) or bool(extra) or None
        table = build(round, elastic=elastic, prune=not (extra or whole), mind_power=mind_power)
        outlook = outlook_of(round, table, objective, own)
        known = seen(outlook, initial)
        if initial is not None and known.jobs and own.get(ALONE_S, 0.0) is None:
            own[ALONE_S] = known.alone_s
        values = values_of(outlook, objective, own)

        def as_if_at_rest() -> Floats:
            return values_of(outlook_of(*at_rest(round, table), objective, own), objective, own)

        table, values, added, claims = under_site_rules(round, table, values, as_if_at_rest)
        if extra:
            copied, of = table, np.arange(len(table))
            if extra.seeing_racks:
                copied, of = by_rack(round.cluster.topology, table)
            limits, worth = asked(extra, round, copied)
            parts = [limits] if table.own is None else [table.own.of_options(of), limits]
            table = msgspec.structs.replace(copied, own=joined(parts))
            values, added, options = values[of] + worth, added[of] + worth, len(values)
            if extra.seeing_racks:
                table, rows = told_apart(table, of, added)
                values, added = values[rows], added[rows]
                claims = [claim.copied(options, of[rows]) for claim in claims]
        stated = table.own
        if table.own is not None:
            limits, raised = rules_bearing(table.own, table)
            table, gave = msgspec.structs.replace(table, own=limits), (*gave, *raised)
        return cls(
            round=round,
            objective=objective,
            table=table,
            values=values,
            added=added,
            parameters=own,
            seen=known,
            policy=policy,
            packages=("ronda", *packages),
            seed=seed,
            gave=gave,
            stated=stated,
            aims=tuple(aims_of(round, table, values, added)),
            claims=tuple(claims),
            options_s=deadline.elapsed() if deadline else 0.0,
        )

    def describe(self, details: PlanDetails) -> PlanDetails:
        """Add the question's details to the details of a plan for a choice."""
        aged = {ALONE_S: self.parameters[ALONE_S]} if ALONE_S in self.parameters else {}
        own = details.parameters or aged
        return msgspec.structs.replace(
            details, objective=self.objective, parameters=own, conflicts=self.gave
        )


def reserve_s(question: Question) -> float:
    """Return the seconds that the choice of options must leave for placement.

    Placement took 2 ms, plus 3 to 18 microseconds per job, on one core, and 60 to 150 microseconds
    per job where rules concern single nodes.
    """
    each_s = 2e-4 if concerns_nodes(question.round) else 1e-5
    return 0.005 + each_s * len(question.table.jobs)


FEW_RULES, MORE_RULES = 50, 25
"""The most of the user's own limits for which models contain all, and the number that enter at a
time if there are more."""


def many(question: Question) -> bool:
    """Return whether there are too many of the user's own limits for models to contain all."""
    own = question.table.own
    return own is not None and sum(name.startswith(RULE) for name in own.names) > FEW_RULES


PRICES = "prices"
"""The proof of a plan whose gap prices alone close. The word of any other solver is trusted."""

PATTERNS, MANY = "patterns", 500
"""The solver of choices by patterns of nodes, and the number of nodes from which such a choice is
the last."""

AGGREGATE = "aggregate"
"""The placement of policies whose bound holds for options alone, without nodes."""


def later(before: SolveRecord, more: SolveRecord) -> SolveRecord:
    """Return the cost of two successive searches, with the message of the last one."""
    return msgspec.structs.replace(
        before,
        build_s=before.build_s + more.build_s,
        solve_s=before.solve_s + more.solve_s,
        variables=max(before.variables, more.variables),
        constraints=max(before.constraints, more.constraints),
        nodes=before.nodes + more.nodes,
        solver=more.solver or before.solver,
        message=more.message or before.message,
    )


class Choice(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The options chosen for a round, by any search.

    `regret` maps the jobs' rows (J,) (-1: none) to the loss of each job, at the prices, with its
    next best option (`ronda.formulations.allocation.separable`). It is None if the prices do not
    determine it.
    """

    chosen: Rows  # (J,) row of each job, -1 for none
    objective: float = 0.0
    bound: float = inf  # infinite: nothing is proven
    dual: float = inf  # the bound of the prices alone, rounded outwards
    proof: str = ""  # the search that was used if prices were not enough
    scale: float = 0.0  # the largest value of an option; a small share counts as rounding
    prices: dict[str, float] = {}  # value of one more GPU, watt or joule, by constraint name
    stop: StopReason = StopReason.COMPLETE
    status: SolutionStatus = SolutionStatus.FEASIBLE
    incumbents: tuple[tuple[float, float], ...] = ()  # (seconds since entry, objective)
    regret: Callable[[Rows], list[float]] | None = None
    conflicts: tuple[Conflict, ...] = ()
    memory: dict[str, Any] = {}  # the plan's memory of the choice
    details: PlanDetails = PlanDetails()  # further details for the plan
    record: SolveRecord = SolveRecord()  # the cost of finding it, for prices and models

    # The placement on nodes, which the options alone do not determine.
    yielding: tuple[str, ...] = ()  # running jobs that give up their nodes first
    racks: Rows | None = None  # (J,) rack of each job's option, -1 for any
    watt_value: float = 0.0  # least value of saving a watt, if energy has no price
    worth: Floats | None = None  # (K,) values of options that may wait; None: the question's
    awake: tuple[int, ...] | None = None  # (P,) least nodes awake; None: as many as jobs need
    realised: Realised | None = None  # already on nodes; None: `to_plan` places the choice
    fill: bool = True  # jobs that were not chosen run where there is room

    def closed(self, gap: float) -> bool:
        """Return whether the bound proves the gap."""
        return closes(self.bound, self.objective, gap, self.scale)

    @property
    def of_options_alone(self) -> bool:
        """Whether a choice with nodes may replace this one, which was complete.

        No job waits for nodes to wake or yields its nodes, and no power has a price of its own.
        """
        waits = self.worth is not None or self.awake is not None
        late = self.stop is StopReason.TIME_LIMIT
        return not (waits or self.yielding or self.watt_value or late)

    def judged(self, gap: float) -> "Choice":
        """Return the choice with the status OPTIMAL if the bound proves the gap, else FEASIBLE."""
        proven = self.closed(gap)
        status = SolutionStatus.OPTIMAL if proven else SolutionStatus.FEASIBLE
        return msgspec.structs.replace(self, status=status)


def nobody(
    table: OptionTable, stop: StopReason, search: "Search", conflicts: list[Conflict] | None = None
) -> Choice:
    """Return the choice in which no job runs, with the reason."""
    return Choice(
        chosen=np.full(len(table.jobs), -1, dtype=np.int64),
        bound=0.0,
        stop=stop,
        status=SolutionStatus.NONE,
        conflicts=tuple(conflicts or ()),
        record=SolveRecord(build_s=search.deadline.elapsed(), solver="prices"),
    )


def filled(case: Case, problem: Separable, answer: "Answer", search: "Search") -> Choice:
    """Return the choice of a fill; no job runs if the fill was not feasible."""
    chosen, objective = np.full(len(case.table.jobs), -1, dtype=np.int64), 0.0
    if answer.chosen is not None and answer.objective is not None:
        chosen, objective = taken(answer.chosen, case.rows), answer.objective
    elapsed = search.deadline.elapsed()
    return Choice(
        chosen=chosen,
        objective=objective,
        bound=max(answer.bound, objective),
        scale=case.scale,
        dual=answer.dual.bound,
        prices=problem.named(answer.dual.prices),
        incumbents=() if answer.chosen is None else ((elapsed, objective),),
        record=SolveRecord(
            build_s=elapsed, solver="prices", message="greedy choice at the dual prices"
        ),
    )


def taken(chosen: Rows, column: Rows) -> Rows:
    """Return the entries of a case's column for each job's choice (-1: none), shape (J,)."""
    said = chosen.copy()
    runs = chosen >= 0
    said[runs] = column[chosen[runs]]
    return said


def price_of_a_watt(round: Round, prices: Mapping[str, float]) -> float:
    """Return the value, at a plan's prices, of saving a watt throughout the energy window."""
    metered = {name: price for name, price in prices.items() if is_limit(name) and name != CAP}
    return sum(price * seconds_of(name, round.window_s) for name, price in metered.items())


def to_plan(question: Question, choice: Choice, deadline: Deadline) -> Plan:
    """Place a choice on nodes; the plan's objective and gap count the placed jobs.

    Without a choice, running jobs keep running. For an infeasible round the details name the
    conflicting constraints.
    """
    details = question.describe(choice.details)
    if choice.status is SolutionStatus.NONE:
        conflicts = (*details.conflicts, *choice.conflicts)
        return Plan(
            policy=question.policy,
            allocations=question.round.held,
            stop=choice.stop,
            status=SolutionStatus.FALLBACK,
            record=_record(question, choice, 0.0, deadline),
            memory=question.seen.noted() | choice.memory,
            details=msgspec.structs.replace(details, conflicts=conflicts),
        )
    began, late_s = deadline.elapsed(), 0.0
    if deadline.limit_s is not None:  # placement may be this late before the choice is given up
        late_s, behind_s = max(0.03, 0.03 * deadline.limit_s), began - deadline.limit_s
        if behind_s >= 0:
            # HiGHS reads its clock only now and then, so a choice may be late. It gets the time
            # for placement, and time for Python to free its model (0.1 s after 600 jobs).
            late_s = behind_s + 0.3 + 2 * reserve_s(question)
    with ending(deadline.end + late_s):
        placed = choice.realised or realise(
            question.round,
            question.table,
            question.values if choice.worth is None else choice.worth,
            choice.chosen,
            watt_value=max(choice.watt_value, price_of_a_watt(question.round, choice.prices)),
            yielding=choice.yielding,
            racks=choice.racks,
            fill=choice.fill,
        )
    worth = placed.objective if choice.realised is None else choice.objective
    short = worth < choice.objective - ROUNDING * max(abs(worth), choice.scale)  # on nodes
    regret = details.regret
    if choice.regret is not None:
        jobs, got = question.table.jobs, choice.chosen
        if placed.unplaced:
            got = np.where([state.job.id in placed.unplaced for state in jobs], -1, got)
        lost = zip(jobs, choice.regret(got), strict=True)
        # A job without another choice has an infinite regret.
        regret = {state.job.id: r for state, r in lost if isfinite(r)}
    bound = worth if closes(choice.bound, worth, 0.0, choice.scale) else choice.bound
    unpriced = _unpriced(question.table, choice, worth, placed.allocations)
    return Plan(
        policy=question.policy,
        allocations=placed.allocations,
        asleep=placed.asleep,
        objective=worth,
        bound=bound if isfinite(bound) else None,
        stop=choice.stop,
        status=SolutionStatus.FEASIBLE if short else choice.status,
        prices={name: price for name, price in choice.prices.items() if name not in unpriced},
        record=_record(question, choice, deadline.elapsed() - began, deadline),
        memory=question.seen.noted() | choice.memory,
        details=msgspec.structs.replace(
            details,
            regret=regret,
            unplaced=placed.unplaced,
            placement_loss=placed.lost if placed.unplaced or placed.widened else 0.0,
            widened=tuple(placed.widened),
            moved=tuple(placed.moved),
            moved_gpus=placed.moved_gpus,
            unpriced=unpriced,
        ),
    )


def _unpriced(
    table: OptionTable, choice: Choice, worth: float, allocations: dict[str, Allocation]
) -> tuple[str, ...]:
    """Return the rules that are tight in a plan but have no price, unless prices close the gap."""
    own, least = table.own, 1e-4  # negligible gap, and negligible share of an option's value
    if own is None or closes(choice.dual, worth, least, choice.scale):
        return ()
    chosen = rows_of(table, Plan(allocations=allocations))
    use, some = own.dense(chosen[chosen >= 0]), np.diff(own.use.tocsr().indptr) > 0
    tight = use.sum(axis=1) >= own.capacity - ROUNDED * (np.abs(own.capacity) + 1.0)
    names = (own.names[r] for r in np.flatnonzero(tight & some).tolist())
    return tuple(name for name in names if choice.prices.get(name, 0.0) <= least * choice.scale)


def _without_unplaced(question: Question, choice: Choice, plan: Plan) -> Question | None:
    """Return the question without the options that found no room, and their jobs' larger options.

    If watts were short, a larger option has more watts. The result is None if all options found
    room or must run.
    """
    unplaced = plan.details.unplaced
    if not unplaced:
        return None
    table, values = question.table, question.values.copy()
    for j in np.flatnonzero(choice.chosen >= 0).tolist():
        why, row = unplaced.get(table.jobs[j].job.id), choice.chosen[j]
        if why is not None and not table.must_run[j]:
            size = table.extra_w if why == OVER else table.gpus
            own = np.arange(table.start[j], table.start[j + 1])
            own = own[(table.pool[own] == table.pool[row]) & ~table.current[own]]
            values[own[size[own] >= size[row]]] = -inf
    if (values == question.values).all():
        return None
    return msgspec.structs.replace(question, values=values)


def waiting_alone(plan: Plan) -> Plan:
    """Return a plan in which jobs that run with an unchosen option do not count as unplaced."""
    waits = {j: why for j, why in plan.details.unplaced.items() if j not in plan.allocations}
    details = msgspec.structs.replace(plan.details, unplaced=waits)
    return msgspec.structs.replace(plan, details=details)


def _remembering(plan: Plan, before: Plan) -> Plan:
    """Return a plan that also names the jobs without room in the previous plan, and their loss."""
    if not before.details.unplaced and not before.details.widened:
        return plan
    unplaced = before.details.unplaced | plan.details.unplaced
    regained = (plan.objective or 0.0) - (before.objective or 0.0)
    lost = max(0.0, before.details.placement_loss - regained)
    details = msgspec.structs.replace(plan.details, unplaced=unplaced, placement_loss=lost)
    return waiting_alone(msgspec.structs.replace(plan, details=details))


def _record(
    question: Question, choice: Choice, extract_s: float, deadline: Deadline
) -> SolveRecord:
    """Return the record of the decision with its cost."""
    known = versions()
    return msgspec.structs.replace(
        choice.record,
        seed=question.seed,
        build_s=max(question.options_s, choice.record.build_s),
        extract_s=extract_s,
        total_s=deadline.elapsed(),
        options=len(question.table),
        incumbents=choice.incumbents,
        versions={package: known[package] for package in question.packages},
    )


@dataclass(frozen=True, kw_only=True)
class Optimising(TimelyPolicy):
    """A policy that builds the options of a round with values, chooses, and places the choice.

    Jobs that find no room on nodes are left out, and the plan's objective and gap count the other
    jobs. ``parameters`` are the objective's, by name.
    """

    name: ClassVar[str]
    packages: ClassVar[tuple[str, ...]]
    capabilities: ClassVar[Capability] = OPTIMISING

    objective: str = "rank"
    gap: float = 1e-4
    elastic = True  # a parameter of some subclasses
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Refuse impossible parameters, and set defaults for missing ones."""
        if not 0 <= self.gap < 1:
            raise InputError(f"{self.name}: gap", f"{self.gap:g}", "a number from 0 to below 1")
        if rules_of(self) and Capability.RULES not in self.capabilities:
            raise InputError(f"{self.name}: {EXTRA}", "rules, which it keeps not", "milp or prices")
        seeing = rules_of(self).seeing_racks
        if seeing and not self.exact:
            found = f"rule {seeing[0]}, which sees racks"
            raise InputError(f"{self.name}: {EXTRA}", found, "milp(placement=exact)")
        object.__setattr__(self, "parameters", parameters(self.objective, self.parameters))

    @property
    def exact(self) -> bool:
        """Whether the policy chooses options and nodes together from the start."""
        return False

    def decide(
        self,
        round: Round,
        *,
        deadline: Deadline,
        seed: int,
        initial: Plan | None,
        asked: Question | None = None,
    ) -> Plan:
        """Choose among the options of a round, and place the choice; the site's aims come first.

        `asked` is a question about the round that replaces the policy's own. If an option found no
        room on nodes and time allows, the policy chooses again: with the nodes (`on_nodes`), or
        otherwise without the options that found no room.
        """
        question = asked or self.question(round, deadline, seed, initial)
        if question.aims:
            return in_stages(question, self.decide_stage, deadline, initial)
        if question.claims and not question.gap_is_own:
            return self.decide_stage(question, deadline, initial)
        choice = self.choose(question, deadline, initial)
        choice = self.on_many_nodes(question, choice, deadline) or choice
        plan = to_plan(question, choice, deadline)
        best, once_s = (question, choice, plan), deadline.elapsed()
        if closes(choice.bound, plan.objective or 0.0, self.gap, choice.scale):
            if plan.status is SolutionStatus.FEASIBLE:  # it lost value, but the gap still closes
                plan = msgspec.structs.replace(plan, status=SolutionStatus.OPTIMAL)
            return self._attested(question, choice, plan, initial)
        if choice.record.solver == PATTERNS:
            return self._attested(question, choice, plan, initial)
        try:
            again = None if many(question) else self.on_nodes(question, choice, plan, deadline)
        except OutOfTimeError:  # the plan at hand is an answer
            return self._attested(question, choice, waiting_alone(plan), initial)
        if again is not None and again.realised is not None:
            best = question, again, _remembering(to_plan(question, again, deadline), plan)
        elif again is not None:  # the same plan with a bound that knows the nodes
            fields = {"bound": again.bound, "stop": again.stop, "status": again.status}
            record = _record(question, again, plan.record.extract_s, deadline)
            best = question, again, msgspec.structs.replace(plan, record=record, **fields)
        last = again is not None and again.closed(self.gap)
        if again is not None and again.record.solver == PATTERNS:
            last |= len(round.cluster.topology.node_gpus) >= MANY
        for _ in range(0 if last else 8):
            fewer = _without_unplaced(question, choice, plan)
            if fewer is None or deadline.left() <= 2 * once_s:
                break
            again = self.choose(fewer, deadline, initial)
            if again.status is SolutionStatus.NONE:
                break
            again = msgspec.structs.replace(again, bound=best[1].bound, dual=best[1].dual).judged(
                self.gap
            )
            question, choice, plan = fewer, again, to_plan(fewer, again, deadline)
            if (plan.objective or 0.0) >= (best[2].objective or 0.0):
                best = question, choice, _remembering(plan, best[2])
        question, choice, plan = best
        return self._attested(question, choice, waiting_alone(plan), initial)

    def decide_stage(self, question: Question, deadline: Deadline, initial: Plan | None) -> Plan:
        """Choose among the options of a question, and place the choice.

        The gap is relative to the worth without that of guarantees. So the search has a smaller
        gap, by the part that worth is expected to have, and another one if that was too large.
        """
        share = worth_share(question.values, question.claims)
        while True:
            own = self if share == 1 else with_fields(self, gap=self.gap * share)
            plan = own.decide(
                question.round,
                deadline=deadline,
                seed=question.seed,
                initial=initial,
                asked=msgspec.structs.replace(question, gap_is_own=True),
            )
            if plan.status is not SolutionStatus.OPTIMAL or (plan.gap or 0.0) <= self.gap:
                return plan
            if share < worth_share(question.values, question.claims) or deadline.over():
                return msgspec.structs.replace(plan, status=SolutionStatus.FEASIBLE)
            share *= 0.5 * self.gap / (plan.gap or 1.0)

    def question(
        self, round: Round, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Question:
        """Build the options of a round and their values."""
        return Question.of(
            round,
            self.objective,
            policy=self.name,
            packages=self.packages,
            seed=seed,
            deadline=deadline,
            elastic=self.elastic,
            parameters=self.parameters,
            initial=initial,
            extra=rules_of(self),
        )

    def _attested(
        self, question: Question, choice: Choice, plan: Plan, initial: Plan | None
    ) -> Plan:
        """Return the final plan with its proof: prices, or a solver."""
        plan, dual_bound = self.finish(question, choice, plan, initial), choice.dual
        by = ""
        if plan.status is SolutionStatus.OPTIMAL and plan.objective is not None:
            alone = closes(dual_bound, plan.objective, self.gap, choice.scale)
            by = PRICES if alone else choice.proof
        known = dual_bound if isfinite(dual_bound) else None
        rows = rows_of(question.table, plan)
        pairs = [(claim, claim.given(rows[rows >= 0])) for claim in question.claims]
        details = msgspec.structs.replace(
            plan.details,
            dual_bound=known,
            proven_by=by,
            owed={c.name: (given, c.owed) for c, given in pairs if c.name.startswith(OWED)},
            owed_worth=sum(claim.price * given for claim, given in pairs),
        )
        return msgspec.structs.replace(plan, details=details)

    def choose(self, question: Question, deadline: Deadline, initial: Plan | None) -> Choice:
        """Choose options; with many of the user's own limits, models contain only limits at risk.

        Limits enter when a choice breaks them. The best choice without some limits, if it breaks
        none, is the best choice with all limits. The status is NONE if the time is over.
        """
        table, own = question.table, question.table.own
        if own is None or not many(question):
            return self.allocate(question, deadline, initial)
        kept = np.array([not name.startswith(RULE) for name in own.names])  # the site's rows
        while True:
            some = msgspec.structs.replace(table, own=own.only(kept))
            asked = msgspec.structs.replace(question, table=some)
            choice = self.allocate(asked, deadline, initial)
            most = np.maximum(abs(own.use).max(axis=1).toarray().ravel(), 1e-9)
            over = own.excess(choice.chosen[choice.chosen >= 0]) / most
            if choice.status is SolutionStatus.NONE or not over[~kept].any():
                return choice
            if deadline.over():
                none = np.full_like(choice.chosen, -1)
                stop, status = StopReason.TIME_LIMIT, SolutionStatus.NONE
                return msgspec.structs.replace(choice, chosen=none, stop=stop, status=status)
            over[kept] = 0.0
            worst = np.argsort(-over, kind="stable")[: MORE_RULES + int(kept.sum())]
            kept[worst[over[worst] > 0]] = True

    def finish(self, question: Question, choice: Choice, plan: Plan, initial: Plan | None) -> Plan:
        """Return the final plan; by default the given one."""
        return plan

    def on_many_nodes(
        self, question: Question, choice: Choice, deadline: Deadline
    ) -> Choice | None:
        """Return a choice on nodes in place of one to be placed, or None to place it."""
        return None

    def on_nodes(
        self, question: Question, choice: Choice, plan: Plan, deadline: Deadline
    ) -> Choice | None:
        """Return a choice from a model with nodes, or None to keep the first choice."""
        return None

    @abstractmethod
    def allocate(self, question: Question, deadline: Deadline, initial: Plan | None) -> Choice:
        """Choose every job's option."""
