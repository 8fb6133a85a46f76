"""A new job at each of its sizes: whether and where it starts, its cost to others, and limits."""

from collections.abc import Callable
from dataclasses import replace as with_fields

import numpy as np
from msgspec.structs import replace

from ronda.formulations.allocation.rows import CAP, WINDOW
from ronda.formulations.options.stated_rows import RULE
from ronda.formulations.watts import capped
from ronda.instances.base import Record
from ronda.instances.job import Allocation, Job
from ronda.instances.round import Round
from ronda.instances.violation import ROUNDING
from ronda.questions.whatif.frozen import Frozen, Judged, Only, priced
from ronda.solvers.as_one import AsOne


class Size(Record, frozen=True, kw_only=True):
    """The outcome for a new job on a given number of GPUs of a pool.

    Attributes
    ----------
    pool, gpus, starts
        Pool and number of GPUs, and whether running the job there is better than leaving it out.
    worth
        Worth of the job there in units of the objective, with the clock and batch that are best for
        all jobs together. If the job cannot run there, it is the worth of its own best option.
    allocation, cost
        Allocation of the job if others make room, and the total loss of the others by that; None if
        it cannot run there.
    losers
        Losses of the jobs that lose, keyed by job, largest first.
    row, why
        Row of the model that forbids the size or, if the size is worth less than it costs, the row
        on which it spends most, and the reason in words; "" if the job starts.
    """

    pool: str
    gpus: int
    worth: float = 0.0
    cost: float | None = None
    starts: bool = False
    allocation: Allocation | None = None
    losers: dict[str, float] = {}
    row: str = ""
    why: str = ""


def sizes_of(
    made: Frozen,
    round: Round,
    job: Job,
    base: Judged,
    told: Callable[[float, str], None] = lambda share, what: None,
) -> tuple[Size, ...]:
    """Return all sizes of a new job in a round, followed by the pools where it has no size.

    Each size is tried in a plan in which the job is worth more than all other jobs, so it runs if
    it can. Its cost is what the other jobs lose compared with the plan of the unchanged round
    (`base`).
    """
    question = made.question(AsOne(round).round)
    table, dear = question.table, priced(question, base.plan.prices)
    j = [state.job.id for state in table.jobs].index(job.id)
    own = np.arange(table.start[j], table.start[j + 1])
    pairs = sorted({(int(table.pool[k]), int(table.gpus[k])) for k in own.tolist()})
    found = []
    for at, (pool, gpus) in enumerate(pairs):
        told(at / len(pairs), f"{job.id} on {gpus} GPUs of {table.pools[pool].name}")
        rows = own[(table.pool[own] == pool) & (table.gpus[own] == gpus)]
        best = int(rows[np.argmax(question.values[rows])])
        worth = float(question.values[best])
        bonus = 2.0 * abs(base.objective) + abs(worth)
        only = Only(job.id, frozenset({pool}), gpus, bonus)
        forced = with_fields(made, only=only).judged(round, base.plan)
        size = Size(pool=table.pools[pool].name, gpus=gpus, worth=worth)
        if (got := forced.worth.get(job.id, 0.0)) > 0:
            size = replace(size, worth=got - bonus)
        dearest = next((name for name, *_ in dear.spent(best)), "")
        found.append(_judged(size, job.id, base, forced, dearest))
    return (*found, *nowhere(round, job, {pool for pool, _ in pairs}))


def _judged(size: Size, job: str, base: Judged, forced: Judged, dearest: str) -> Size:
    """Return a size with the outcome of the plan in which it was worth more than all other jobs."""
    allocation = forced.plan.allocations.get(job)
    if allocation is None:
        row, why = forbids(forced, job, size)
        return replace(size, row=row, why=why)
    others = {name: forced.worth.get(name, 0.0) - had for name, had in base.worth.items()}
    cost = max(0.0, -sum(others.values()))
    least = ROUNDING * max(abs(base.objective), abs(size.worth))
    losers = sorted((-gain, name) for name, gain in others.items() if gain < -least)
    starts = size.worth > cost + least
    why = f"worth {size.worth:.4g}, costs others {cost:.4g}"
    return replace(
        size,
        cost=cost,
        starts=starts,
        allocation=allocation,
        losers={name: lost for lost, name in reversed(losers)},
        row="" if starts else dearest,
        why="" if starts else f"{why}, most of it by {dearest}" if dearest else why,
    )


def forbids(forced: Judged, job: str, size: Size) -> tuple[str, str]:
    """Return the row that leaves a job no room whatever other jobs do, and the reason in words."""
    known = forced.plan.details.unplaced.get(job)
    if known is not None:
        return "nodes", known
    round = forced.round
    pools = round.cluster.topology.pools
    (pool,) = (k for k, each in enumerate(pools) if each.name == size.pool)
    firm = [s.allocation.option for s in round.running if s.allocation and not s.job.preemptible]
    held = int(sum(option.own_gpus for option in firm if option.pool == pool))
    if held + size.gpus > pools[pool].gpus:
        why = f"{held} of {pools[pool].gpus} GPUs are held by jobs that may not be stopped"
        return f"gpus[{size.pool}]", why
    cap_w, watts = round.power_cap_w, round.watts
    if watts is None and not capped(round.cluster):
        return RULE, "beside what may not be stopped a rule leaves it no room"
    row = "rack_power" if watts is None else CAP if watts == cap_w else WINDOW
    return row, "beside what may not be stopped it draws more than the limit bears"


def nowhere(round: Round, job: Job, pools: set[int]) -> list[Size]:
    """Return the pools of a job's partition in which it has no size, with the reasons."""
    least, found = job.min_gpus or job.gpus, []
    throughput = round.profiles[job.profile].throughput
    for k, pool in enumerate(round.cluster.topology.pools):
        kind = pool.gpu_type.name
        if k in pools or pool.partition != job.partition:
            continue
        if job.gpu_types and kind not in job.gpu_types:
            row, why = "gpu_types", f"the job may use {', '.join(job.gpu_types)} alone"
        elif kind not in throughput:
            row, why = "profile", f"profile {job.profile} says no speed on {kind}"
        elif least > pool.gpus:
            row, why = f"gpus[{pool.name}]", f"{pool.gpus} GPUs are in service"
        else:
            row, why = "memory", "no batch of the job fits there, or it would hardly progress"
        found.append(Size(pool=pool.name, gpus=least, row=row, why=why))
    return found
