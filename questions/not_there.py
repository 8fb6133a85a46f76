"""Why not there: what it would cost if a job had GPUs of another type, number or partition.

The job may then run there alone, and is worth more there than all others, so that it does if it
can. What the best plan loses by that is the cost, and who loses is named. At the prices of the
plan, its option there spends a price on each unit of each row that it uses. When the job could
start there, without a plan, is the question of `ronda.questions.why.elsewhere`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace as with_fields

import numpy as np
from msgspec.structs import replace

from ronda.formulations.allocation.rows import is_limit
from ronda.formulations.options.table import rows_of
from ronda.formulations.site.order import why_not
from ronda.instances.base import Record
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation, JobState
from ronda.instances.plan import Plan, SolutionStatus
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate
from ronda.instances.tables.table import Report
from ronda.instances.violation import ROUNDING
from ronda.questions.explain import refuse_unknown
from ronda.questions.explained import unit_of, unit_of_worth
from ronda.questions.whatif.frozen import Judged, Only, freeze, priced
from ronda.questions.whatif.sizes import Size, forbids, nowhere
from ronda.solvers.as_one import AsOne
from ronda.solvers.contract import Policy
from ronda.solvers.decision.plan import Question
from ronda.solvers.registry import as_policy

FEW = 3
"""The most jobs and rows that a sentence names."""


class Spent(Record, frozen=True, kw_only=True):
    """What an option spends on a row: the `amount` of it that it uses, at the `price` of a unit."""

    row: str
    amount: float
    price: float


class NotThere(Record, frozen=True, kw_only=True):
    """What it would cost if a job ran where it does not.

    Attributes
    ----------
    job, there
        Id of the job, and the place in words, such as ``A100``, ``8 GPUs`` or ``partition b``.
    here, option
        What the job has in the plan, None if it waits, and what it would have there, with its
        nodes; None if it cannot run there.
    objective, worth_here, worth_there
        Name of the objective, in whose unit worths are, and what the job is worth as it is, 0 if it
        waits, and there.
    cost
        What the best plan with the job there is worth less than the plan; None if there is no plan
        with it there. Options that another one of the job beats in its pool do not count, so that a
        number of GPUs may cost a little less with a slow clock.
    losers, gained
        Losses of other jobs, by id, the largest first, and what others gain in all.
    displaced
        Those of them that run in the plan and would wait.
    spent
        What the option would spend on each row at the prices of the plan, the most first.
    row, why
        The row or the field that leaves it no room there, and the reason in words; "" if it has.
    """

    job: str
    there: str
    here: Allocation | None = None
    option: Allocation | None = None
    objective: str = ""
    worth_here: float = 0.0
    worth_there: float = 0.0
    cost: float | None = None
    losers: dict[str, float] = {}
    gained: float = 0.0
    displaced: tuple[str, ...] = ()
    spent: tuple[Spent, ...] = ()
    row: str = ""
    why: str = ""


def why_not_there(
    round: Round,
    plan: Plan,
    job: str,
    *,
    gpu_type: str | None = None,
    gpus: int | None = None,
    partition: str | None = None,
    policy: Policy | str = "prices",
    seed: int = 0,
    time_limit_s: float | None = 10.0,
) -> NotThere:
    """Return what it would cost if a job of a valid round ran elsewhere than in a plan.

    The plan is the policy's for the round, with its prices. At least one of `gpu_type`, `gpus` and
    `partition` says where else, by names in upper or lower case. Raise InputError if there is no
    such job or place, or the policy does not choose by values.
    """
    refuse_unknown([job], round)
    state = next(state for state in round.jobs if state.job.id == job)
    changed = round
    if partition is not None:
        changed = validate(_in_partition(round, job, partition))
    if gpu_type is None and gpus is None and partition is None:
        raise InputError("--not", "nowhere", "a GPU type, a number of GPUs, or a partition")
    kind = gpu_type or "GPUs"
    where = f" in partition {partition}" if partition else ""
    there = f"{kind if gpus is None else f'{gpus} {kind}'}{where}"
    found = NotThere(job=job, there=there, here=plan.allocations.get(job))
    if (held_back := why_not(round, state)) is not None:
        return replace(found, row="order", why=held_back)
    made = freeze(as_policy(policy), round, seed, time_limit_s, None)
    base = made.weighed(round, plan)
    found = replace(found, objective=made.made.objective, worth_here=base.worth.get(job, 0.0))
    pools = changed.cluster.topology.pools
    own = partition or state.job.partition
    wanted = frozenset(
        p
        for p, pool in enumerate(pools)
        if pool.partition == own and gpu_type in (None, pool.gpu_type.name)
    )
    question = made.question(AsOne(changed).round)
    only = Only(job, wanted, gpus, 0.0)
    may = only.rows(question)[1]
    if not (may & np.isfinite(question.values)).any():
        return replace(found, **_no_option(changed, job, wanted, gpus))
    best = float(question.values[may].max())
    bonus = 2.0 * abs(base.objective) + abs(best)
    forced_by = with_fields(made, only=with_fields(only, bonus=bonus))
    forced = forced_by.judged(changed, plan)
    given = forced.plan.allocations.get(job)
    if given is None or given.option.pool not in wanted or gpus not in (None, given.option.gpus):
        size = Size(pool=pools[min(wanted)].name, gpus=int(question.table.gpus[may].min()))
        if not state.job.preemptible and state.allocation is not None:
            return replace(found, row="must_run", why="it may not be stopped or changed")
        row, why = forbids(forced, job, size)
        return replace(found, worth_there=best, row=row, why=why)
    if forced.plan.status in (SolutionStatus.FALLBACK, SolutionStatus.NONE):
        return replace(found, worth_there=best, row="time", why="no plan was found in time")
    least = ROUNDING * max(abs(base.objective), abs(best))
    losses = {n: had - forced.worth.get(n, 0.0) for n, had in base.worth.items() if n != job}
    losers = {n: lost for n, lost in losses.items() if lost > least}
    waits = (n for n in losers if n in plan.allocations and n not in forced.plan.allocations)
    return replace(
        found,
        option=given,
        worth_there=forced.worth[job] - bonus,
        cost=max(0.0, base.objective - (forced.objective - bonus)),
        losers=dict(sorted(losers.items(), key=lambda pair: -pair[1])),
        gained=-sum(lost for lost in losses.values() if lost < -least),
        displaced=tuple(waits),
        spent=_spent(forced_by.question(AsOne(changed).round), forced, plan, job),
    )


def _in_partition(round: Round, job: str, partition: str) -> Round:
    """Return the round with a job in another partition; where it runs now, it would be stopped."""
    known = sorted({pool.partition for pool in round.cluster.topology.pools})
    if partition not in known:
        raise InputError("--not", repr(partition), f"a partition: {', '.join(known)}")
    now_s, running, waiting = round.now_s, list[JobState](), list[JobState]()
    for state in round.jobs:
        if state.job.id == job:
            if state.allocation is not None and state.job.partition != partition:
                state = state.stopped(now_s, state.done_at(now_s))
            state = replace(state, job=replace(state.job, partition=partition))
        (waiting if state.allocation is None else running).append(state)
    ordered = sorted(waiting, key=lambda each: each.job.submit_s)
    return replace(round, running=tuple(running), waiting=tuple(ordered))


def _no_option(round: Round, job: str, pools: frozenset[int], gpus: int | None) -> dict[str, str]:
    """Return the row and the reason why a job has no option there."""
    own = next(state.job for state in round.jobs if state.job.id == job)
    others = set(range(len(round.cluster.topology.pools))) - pools
    if found := nowhere(round, own, others):
        return {"row": found[0].row, "why": found[0].why}
    sizes = own.sizes or sorted({own.min_gpus or own.gpus, own.max_gpus or own.gpus})
    told = (", " if own.sizes else " to ").join(map(str, sizes))
    why = f"it may have {told} GPUs" if gpus is not None else "no option of it may start there"
    return {"row": "sizes" if gpus is not None else "site", "why": why}


def _spent(question: Question, forced: Judged, plan: Plan, job: str) -> tuple[Spent, ...]:
    """Return what the option of a job in a forced plan spends at the prices of the plan."""
    seen = AsOne(forced.round)
    row = rows_of(question.table, seen.shown(forced.plan))[
        [state.job.id for state in question.table.jobs].index(seen.stands_for(job))
    ]
    spent = priced(question, plan.prices).spent(int(row))
    return tuple(Spent(row=name, amount=amount, price=price) for name, amount, price in spent)


def place_of(round: Round, text: str) -> dict[str, str | int]:
    """Return the arguments of `why_not_there` for ``8``, ``a100``, ``a100:8`` or a partition.

    Raise InputError if the cluster has nothing of that name.
    """
    pools, (name, _, number) = round.cluster.topology.pools, text.partition(":")
    if not number and name.isdecimal():
        name, number = "", name
    found: dict[str, str | int] = {}
    if number:
        if not number.isdecimal() or not 0 < int(number) < 10**6:
            raise InputError("--not", repr(text), "a number of GPUs, as in 8 or a100:8")
        found["gpus"] = int(number)
    for kind, names in (
        ("gpu_type", {pool.gpu_type.name for pool in pools}),
        ("partition", {pool.partition for pool in pools}),
    ):
        if same := [each for each in sorted(names) if each.casefold() == name.casefold()]:
            return found | {kind: same[0]}
    if name:
        known = sorted({x for p in pools for x in (p.gpu_type.name, p.partition)})
        raise InputError("--not", repr(text), f"a number of GPUs, or one of {', '.join(known)}")
    return found


def not_there_told(
    round: Round, made: Policy, jobs: Sequence[str], where: str, seed: int
) -> Callable[[Report, Plan], Report]:
    """Return a function that adds to a plan's report why some jobs are not there."""
    refuse_unknown(jobs, round)
    place = place_of(round, where)

    def told(report: Report, plan: Plan) -> Report:
        if plan.status in (SolutionStatus.FALLBACK, SolutionStatus.NONE):
            return report
        found = [why_not_there(round, plan, job, policy=made, seed=seed, **place) for job in jobs]  # type: ignore[arg-type]
        lines = [line for each in found for line in words_of(round, each)]
        return report.added(*lines, not_there=found)

    return told


def words_of(round: Round, found: NotThere) -> list[str]:
    """Return sentences that say why a job is not there, and what it would cost."""
    pools = round.cluster.topology.pools

    def on(given: Allocation) -> str:
        number, pool = given.option.gpus, pools[given.option.pool].name
        return f"{number} GPU{'s' * (number > 1)} of {pool}"

    here = "it waits" if found.here is None else f"it has {on(found.here)}"
    if found.cost is None or found.option is None:
        return [f"{found.job} on {found.there}: it cannot run there: {found.why} ({found.row})."]
    if found.here is not None and found.here.option.same_way(found.option.option):
        return [f"{found.job} on {found.there}: it has {on(found.here)} in the plan."]
    lines = [
        f"{found.job} on {found.there}: on {on(found.option)} it would be worth "
        f"{found.worth_there:.4g}; now {here}, worth {found.worth_here:.4g}. The plan as a whole "
        f"would lose {found.cost:.4g} ({unit_of_worth(found.objective)})."
    ]
    if found.losers:
        few = [
            f"{job} {lost:.4g}{' and would wait' * (job in found.displaced)}"
            for job, lost in list(found.losers.items())[:FEW]
        ]
        few += [f"{len(found.losers) - FEW} more"] * (len(found.losers) > FEW)
        gained = f" Some would gain {found.gained:.4g}." if found.gained else ""
        total = sum(found.losers.values())
        lines.append(f"  Others would lose {total:.4g}: {', '.join(few)}.{gained}")
    if found.spent:
        few = [
            f"{each.amount:.4g} × {each.price:.4g} = {each.amount * each.price:.4g} for "
            f"{f'the row {each.row}' if is_limit(each.row) else unit_of(each.row)}"
            for each in found.spent[:FEW]
        ]
        lines.append(f"  At the plan's prices it would spend {'; '.join(few)}.")
    return lines
