"""The smallest change of each kind that makes an infeasible round feasible by itself.

Every limit holds as it is stated, and does not give way to jobs that may not be stopped. Only the
options that can matter are modelled: those of jobs that must run, and those that help to meet a
lower limit. One limit may be exceeded, and a MILP finds the least excess with which some choice
keeps all others, which proves the change minimal. For GPUs, the round is built again with as many
more, and with one less. The choice is then placed on nodes and checked in the changed round. A
limit that is not in every conflict is no remedy, so only those that are get tried.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace as with_fields
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from ronda.formulations.allocation.model_data import case_of, case_of_all
from ronda.formulations.allocation.non_preemptible import bearing, firm_jobs
from ronda.formulations.allocation.rows import CAP, WINDOW, gpus_by_pool, is_limit, separable
from ronda.formulations.allocation.separable import Separable, normalise
from ronda.formulations.node_rules.outages import STAYING, ends_s
from ronda.formulations.options.stated_rows import RULE
from ronda.formulations.options.table import rows_of
from ronda.formulations.site.min_run import with_minimum_runs
from ronda.formulations.watts import extra_gpu_w, least_node_w, may_sleep, rack_caps
from ronda.instances.base import Floats, Record, Rows
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline, OutOfTimeError
from ronda.instances.job import used_nodes
from ronda.instances.plan import Conflict, SolutionStatus, StopReason
from ronda.instances.round import Round
from ronda.questions.whatif.changes import Gpus
from ronda.solvers.as_one import AsOne
from ronda.solvers.decision.conflicts import needed
from ronda.solvers.decision.node_cuts import Cut, with_cuts
from ronda.solvers.decision.plan import Choice, Optimising, Question, taken, to_plan
from ronda.solvers.exact.highs import solve_form
from ronda.solvers.exact.linear_form import Effort, form_of


class Fix(Record, frozen=True, kw_only=True):
    """The smallest change of one kind that makes a round feasible.

    Attributes
    ----------
    kind, of
        ``gpus``, ``power``, ``rack``, ``energy``, ``rule``, ``outage`` or ``jobs``, and the pool,
        rack or row that changes, or the time at which nodes leave; "" for others.
    more, unit
        How much more is needed, negative where a lower limit must fall, None if no such change
        helps by itself; in ``GPUs``, ``W``, ``J``, ``s`` or ``jobs``, "" for the unit of a rule.
    limit, jobs
        What the limit becomes, None for jobs, and the jobs that would be given up.
    checked
        Whether a plan of the changed round was placed on nodes and passed the checker.
    """

    kind: str
    of: str = ""
    more: float | None = None
    unit: str = ""
    limit: float | None = None
    jobs: tuple[str, ...] = ()
    checked: bool = False


class _Found(NamedTuple):
    """The least excess over some rows, and a choice with it: rows (J,), -1 for none."""

    least: float
    chosen: Rows


class _Limits(NamedTuple):
    """All limits on the options `rows` (n,) of a table that can matter for them."""

    problem: Separable
    rows: Rows

    @classmethod
    def of(cls, question: Question) -> "_Limits":
        """Return the limits of a question's round and table, as they are there."""
        table = question.table
        possible = np.isfinite(question.values) | table.must_run[table.job]
        case = case_of(question.round, table, np.flatnonzero(possible))
        case = case_of_all(question.round, table, case.rows[needed(case)])
        return cls(separable(case, both_limits=True), case.rows)

    def and_row(self, name: str, use: Floats, capacity: float) -> "_Limits":
        """Return the limits with one more row, of which the table's options `use` (K,) some.

        The row is ``name[0]``.
        """
        row = Cut(use[self.rows], np.zeros(len(self.problem.block_value)), capacity)
        return _Limits(with_cuts(self.problem, [row], name), self.rows)

    def least(self, names: set[str], deadline: Deadline, *, whole: bool = False) -> _Found | None:
        """Return the least by which the named rows must all rise; None if no rise is enough.

        Raise OutOfTimeError if the time is over before that is proven.
        """
        own, at = self.problem, [r for r, n in enumerate(self.problem.names) if n in names]
        over = own.use.reduced(np.add, np.maximum(own.use.amount, 0.0), 0.0) - own.capacity
        over += np.maximum(own.block_use, 0.0) @ own.block_count
        most = max(1.0, float(over[at].max(initial=0.0)))
        column = np.zeros((len(own.names), 1))
        column[at] = -1.0 if whole else -most
        loose = with_fields(
            own,
            block_value=np.append(own.block_value, -1.0),
            block_use=np.hstack([own.block_use, column]),
            block_count=np.append(own.block_count, np.ceil(most) if whole else 1.0),
            block_integer=np.append(own.block_integer, whole),
        )
        chosen, blocks = _best(loose, deadline) or (None, None)
        if chosen is None or blocks is None:
            return None
        excess = own.excess(chosen, blocks[:-1])[at]
        return _Found(max(0.0, float(excess.max(initial=0.0))), taken(chosen, self.rows))


def _best(problem: Separable, deadline: Deadline, gap: float = 0.0) -> tuple[Rows, Floats] | None:
    """Return the best choice and blocks of a problem, or None if no choice keeps all rows."""
    form = form_of(normalise(problem)[0])
    outcome = solve_form(form, Effort(deadline=deadline, gap=gap))
    if outcome.stop is StopReason.INFEASIBLE:
        return None
    if outcome.x is None or outcome.status is not SolutionStatus.OPTIMAL:
        raise OutOfTimeError
    return problem.answer(outcome.x)


def fixes(
    round: Round,
    policy: Optimising,
    question: Question,
    conflicts: Sequence[Conflict],
    deadline: Deadline,
) -> Iterator[Fix]:
    """Yield the smallest change of each kind for a round with conflicts, the policy's question.

    Kinds of limits that the round does not have are left out. Raise OutOfTimeError if the time is
    over before all kinds are tried.
    """
    rows = set.intersection(*({*each.constraints} for each in conflicts))
    made = _Fixing(round, policy, question, rows, deadline)
    yield from made.power()
    yield from made.rules()
    yield from made.outages()
    if question.table.must_run.any():
        yield made.given_up()
    yield from made.gpus()  # takes longest


class _Fixing:
    """A round with its limits as they are stated; `rows` are those in every conflict."""

    def __init__(
        self,
        round: Round,
        policy: Optimising,
        question: Question,
        rows: set[str],
        deadline: Deadline,
    ) -> None:
        self._given, self._policy, self._rows, self._deadline = round, policy, rows, deadline
        self._round = with_minimum_runs(AsOne(round).round)
        self._question = _as_stated(question, self._round)
        self._limits = _Limits.of(self._question)
        self._choice = cache(self._choice_with)
        # A conflict about options that power leaves need not name the limit on it.
        stated = set() if question.stated is None else {*question.stated.names}
        self._unnamed = all(n in stated or n.startswith("one_option[") for n in rows)

    def gpus(self) -> Iterator[Fix]:
        """Yield how many GPUs more of each pool are enough."""
        table = self._question.table
        every = sum(max(s.job.max_gpus or s.job.gpus, *s.job.sizes, 1) for s in table.jobs)
        lower = table.own is not None and bool((table.own.use.data < 0).any())
        firm = gpus_by_pool(table, np.flatnonzero(table.must_run[table.job]))
        for p, pool in enumerate(table.pools):
            fix = Fix(kind="gpus", of=pool.name, unit="GPUs")
            if not lower and firm[p] <= pool.gpus:  # nothing else asks for more GPUs
                yield fix
                continue
            big = self._with_gpus(pool.name, every)
            use = np.where(big.table.pool == p, big.table.own_gpus, 0.0)
            total = _Limits.of(big).and_row("more", use, float(pool.gpus))
            found = total.least({"more[0]"}, self._deadline, whole=True)
            if found is None:
                yield fix
                continue
            guess = max(1, min(every, int(np.ceil(found.least - 1e-6))))
            possible = partial(self._possible, pool.name)
            more = _least_such(possible, guess, every)
            chosen = self._choice(pool.name, more)
            okay = chosen is not None and self._checked(self._with_gpus(pool.name, more), chosen)
            yield replace(fix, more=float(more), limit=float(pool.gpus + more), checked=okay)

    def _with_gpus(self, name: str, more: int) -> Question:
        changed = with_minimum_runs(AsOne(Gpus(name, more).apply(self._given)).round)
        return _as_stated(self._policy.question(changed, self._deadline, 0), changed)

    def _choice_with(self, name: str, more: int) -> Rows | None:
        """Return a choice that keeps every limit with more GPUs, or None."""
        found = _Limits.of(self._with_gpus(name, more)).least(set(), self._deadline)
        return None if found is None else found.chosen

    def _possible(self, name: str, more: int) -> bool:
        return self._choice(name, more) is not None

    def power(self) -> Iterator[Fix]:
        """Yield the least power cap, caps of racks, and energy budget that are enough.

        All energy that is added may be used at once.
        """
        round, cluster = self._round, self._round.cluster
        if round.power_cap_w is not None:
            yield self._of_power(Fix(kind="power", unit="W"), {CAP}, round.power_cap_w)
        for rack in cluster.racks:
            row = f"rack_power[{rack.name}]"
            if rack.power_cap_w is not None and (row in self._rows or self._unnamed):
                fix = Fix(kind="rack", of=rack.name, unit="W")
                yield self._of_power(fix, {row}, rack.power_cap_w)
        if round.energy_j is not None:
            rows = {n for n in {*self._limits.problem.names, *self._rows} if is_limit(n)} - {CAP}
            yield self._of_power(Fix(kind="energy", unit="J"), rows, round.energy_j)

    def _of_power(self, fix: Fix, rows: set[str], now: float) -> Fix:
        """Return the least by which rows of power or energy must rise.

        What jobs that may not be stopped draw is counted where they run as well (`bearing`).
        """
        may = self._unnamed or rows & self._rows
        found = self._limits.least(rows, self._deadline) if may else None
        if found is None:
            return fix
        borne, gave = bearing(_raised(self._round, fix, now + found.least))
        limit = max(now + found.least, _limit_of(borne, fix)) if gave else now + found.least
        raised = _raised(self._round, fix, limit)
        if bearing(raised)[1]:  # another limit would have to rise too
            return fix
        okay = self._checked(replace(self._question, round=raised), found.chosen)
        return replace(fix, more=limit - now, limit=limit, checked=okay)

    def rules(self) -> Iterator[Fix]:
        """Yield the least change of each limit that the site or the user states."""
        table, own = self._question.table, self._question.table.own
        for r, name in enumerate(own.names if own is not None else ()):
            if own is None or name not in self._rows or name.startswith(STAYING):
                continue
            found = self._limits.least({name}, self._deadline)
            if found is None:
                yield Fix(kind="rule", of=name)
                continue
            capacity = own.capacity.copy()
            capacity[r] += found.least
            raised = replace(table, own=with_fields(own, capacity=capacity))
            stated = name.startswith(RULE)
            okay = self._checked(
                replace(self._question, table=raised), found.chosen, apart=not stated
            )
            sign = -1.0 if own.turned[r] else 1.0
            limit = float(sign * capacity[r]) + 0.0  # no -0
            yield Fix(kind="rule", of=name, more=sign * found.least, limit=limit, checked=okay)

    def outages(self) -> Iterator[Fix]:
        """Yield how much later nodes must leave, for each time in a conflict."""
        own = self._question.table.own
        names = () if own is None else own.names
        for at_s in sorted({at for _, at in self._round.leaving}):
            own_rows = [
                r
                for r, n in enumerate(names)
                if n in self._rows
                and n.startswith(STAYING)
                and f"{at_s:g}" in n[:-1].split(",")[1:2]
            ]
            if own_rows:
                yield self._outage(at_s, own_rows)

    def _outage(self, at_s: float, rows: list[int]) -> Fix:
        """Return how much later the nodes that leave at a time must leave.

        Only the ends of options matter, and those that end by then have no use of the `rows`.
        """
        question, late = self._question, ends_s(self._round, self._question.table)
        use = question.table.own.use if question.table.own is not None else None
        assert use is not None
        ends, mine = np.repeat(late, np.diff(use.indptr)), np.isin(use.indices, rows)
        times = np.unique(ends[mine & np.isfinite(ends) & (ends > at_s)])

        def until(k: int) -> Question:
            left = use.copy()
            left.data = np.where(mine & (ends <= times[k - 1]), 0.0, use.data)
            own = with_fields(question.table.own, use=left)  # type: ignore[type-var]
            return replace(question, table=replace(question.table, own=own))

        def found(k: int) -> _Found | None:
            return _Limits.of(until(k)).least(set(), self._deadline)

        fix = Fix(kind="outage", of=f"{at_s:g}", unit="s")
        last = found(len(times)) if len(times) else None
        if last is None:
            return fix
        k = _least_such(lambda k: found(k) is not None, 1, len(times))
        then, best = float(times[k - 1]), found(k) or last
        leaving = tuple((n, then if at == at_s else at) for n, at in self._round.leaving)
        okay = self._checked(
            replace(until(k), round=replace(self._round, leaving=leaving)), best.chosen
        )
        return replace(fix, more=then - at_s, limit=then, checked=okay)

    def given_up(self) -> Fix:
        """Return the fewest jobs that would have to be given up.

        Rows say what giving up jobs can save where they run, of power and energy that is short.
        """
        table, limits = self._question.table, self._limits
        values = table.must_run[table.job[limits.rows]].astype(float)
        one = 0.5 / (1.0 + values.sum())  # less than a job
        free = np.zeros_like(table.must_run)
        without, gone, rows = self._round, set[str](), free.astype(np.int64)
        while (gave := bearing(without)[1]) or without is self._round:
            for row in {conflict.constraints[-1] for conflict in gave}:
                limits = limits.and_row("fewer", *self._saving(row, without))
            problem = with_fields(limits.problem, value=values, must=free)
            chosen, _ = _best(problem, self._deadline, one) or (None, None)
            if chosen is None:
                return Fix(kind="jobs", unit="jobs")
            rows = taken(chosen, limits.rows)
            gone = {table.jobs[j].job.id for j in np.flatnonzero(table.must_run & (rows < 0))}
            left = (state for state in self._round.running if state.job.id not in gone)
            without = replace(self._round, running=tuple(left))
        kept = replace(table, must_run=table.must_run & (rows >= 0))
        okay = self._checked(replace(self._question, table=kept), rows, without=without)
        return Fix(
            kind="jobs", more=float(len(gone)), unit="jobs", jobs=tuple(sorted(gone)), checked=okay
        )

    def _saving(self, row: str, without: Round) -> tuple[Floats, float]:
        """Return a row that every choice keeps, for a limit that is broken without some jobs too.

        What is still too much must be saved by the jobs that are left there. A job saves what it
        draws, and its part of nodes that could sleep: these are saved when all their jobs go.
        """
        fix = Fix(kind={CAP: "power", WINDOW: "energy"}.get(row, "rack"), of=row[11:-1])
        over = _limit_of(bearing(without)[0], fix) - _limit_of(without, fix)
        table, topology = self._question.table, without.cluster.topology
        node_w = topology.awake_w - least_node_w(topology)
        node_w[list(without.waking)] += topology.waking_w[list(without.waking)]
        caps = [cap.racks for cap in rack_caps(without.cluster) if cap.name == fix.of]
        here = np.isin(topology.node_rack, [*caps[0]]) if fix.kind == "rack" else node_w >= 0
        firm = [s for s in firm_jobs(without) if s.allocation is not None]
        held = {s.job.id: s.allocation for s in firm if s.allocation is not None}
        shared = Counter(node for given in held.values() for node in used_nodes([given]))
        saves = {
            job: sum(
                node_w[n] / shared[n] + gpus * extra_gpu_w(without, given.option)
                for n, gpus in given.placement
                if here[n]
            )
            for job, given in held.items()
        }
        seconds = without.window_s if fix.kind == "energy" else 1.0
        each = np.array([saves.get(s.job.id, 0.0) for s in table.jobs]) * seconds
        return np.where(table.must_run[table.job], each[table.job], 0.0), float(each.sum() - over)

    def _checked(
        self, question: Question, chosen: Rows, *, without: Round | None = None, apart: bool = False
    ) -> bool:
        """Return whether a choice finds room on nodes, and the checker accepts it.

        `without` is the round without jobs that are given up. With `apart` a limit of the site was
        raised in the rows alone, so that the checker's books of quotas do not count.
        """
        round, table = without or question.round, question.table
        worth = table.worth(question.values, chosen)
        choice = Choice(chosen=chosen, objective=worth, fill=False)
        plan = to_plan(replace(question, aims=(), claims=()), choice, self._deadline)
        if (rows_of(table, plan) != chosen).any():
            return False
        if may_sleep(round):  # the least power
            used = {*used_nodes(plan.allocations.values())}
            nodes = np.flatnonzero(round.cluster.topology.node_gpus).tolist()
            plan = replace(plan, asleep=tuple(n for n in nodes if n not in used))
        if table.own is not None and table.own.broken(chosen[chosen >= 0]).any():
            return False
        books = {"quota", "running", "firm"} if apart else set[str]()
        return not [v for v in check(round, plan) if v.code not in books]


def _as_stated(question: Question, round: Round) -> Question:
    """Return a question about a round whose limits have not given way to any job."""
    table = replace(question.table, own=question.stated)
    return replace(question, round=round, table=table, gave=())


def _raised(round: Round, fix: Fix, limit: float) -> Round:
    if fix.kind == "power":
        return replace(round, power_cap_w=limit)
    if fix.kind == "energy":
        more = limit - (round.energy_j or 0.0)
        bank_j = None if round.banked_j is None else round.banked_j + more
        return replace(round, energy_j=limit, banked_j=bank_j)
    racks = (replace(r, power_cap_w=limit) if r.name == fix.of else r for r in round.cluster.racks)
    return replace(round, cluster=replace(round.cluster, racks=tuple(racks)))


def _limit_of(round: Round, fix: Fix) -> float:
    if fix.kind == "rack":
        return next(r.power_cap_w or 0.0 for r in round.cluster.racks if r.name == fix.of)
    return (round.power_cap_w if fix.kind == "power" else round.energy_j) or 0.0


def _least_such(possible: Callable[[int], bool], guess: int, most: int) -> int:
    """Return the least number up to `most` that is possible, where larger ones are possible too.

    `most` is possible and 0 is not. A good guess needs two tests.
    """
    low, high, at, step = 0, most, guess, 1
    while high - low > 1:
        if possible(at):
            high, at = at, max(low + 1, at - step)
        else:
            low, at = at, min(high - 1, at + step)
        step *= 2
    return high
