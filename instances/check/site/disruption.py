"""The check that a decision stops, moves and restarts no more than the disruption budget allows."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from ronda.instances.check.faults import World
from ronda.instances.check.site.given import JobInPlan
from ronda.instances.check.site.tenants import at_or_below
from ronda.instances.instance import Instance
from ronda.instances.job import Costs, Job
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.schedule import JobOutcome, Schedule, Segment
from ronda.instances.site import Site
from ronda.instances.violation import Violation, exceeds

DISRUPTION = "disruption"
NAMED = 8
"""The most jobs that a message names."""

Disrupted = tuple[Job, float, str]
"""A job, its GPUs, and its array or itself: the jobs of an array on a GPU count as one job."""


def disrupts_too_much(round: Round, plan: Plan, given: list[JobInPlan]) -> list[Violation]:
    """Return the violations of budgets by a plan, with the jobs that do not go on.

    No budget holds in a round whose limits on power and energy do not let all that runs go on.
    """
    if not _has_budget(round.site):
        return []
    gone = {node for node, _ in (*round.leaving, *round.cluster.out)}
    found = list[Disrupted]()
    for state, then, kept in given[: len(round.running)]:
        held, job = state.allocation, state.job
        if held is None or kept or job.id in plan.discarded:
            continue
        if then is not None and (held.narrows_to(then) or _scales(job, round.costs)):
            continue
        if not any(node in gone for node, _ in held.placement):
            found.append((job, held.option.gpus / held.option.width, held.array or job.id))
    over = list(_over(round.site, found))
    if not over:
        return []
    from ronda.instances.check.plan import can_all_go_on

    return over if can_all_go_on(round) else []


def disrupted_too_much(instance: Instance, schedule: Schedule) -> list[Violation]:
    """Return the violations of budgets by all decisions of a schedule.

    Where power or energy is limited, the limits may have stopped jobs, which is not recorded; plans
    are checked when they are made.
    """
    budget = instance.budget
    limited = budget.power_cap_w is not None or budget.energy is not None
    limited |= any(rack.power_cap_w is not None for rack in instance.cluster.racks)
    if limited or not _has_budget(instance.site):
        return []
    world, at = World(instance.faults, schedule.failures), defaultdict[float, list[Disrupted]](list)
    for job, outcome in zip(instance.jobs, schedule.jobs, strict=False):
        for segment in _disrupted(instance, world, job, outcome):
            option = segment.option
            key = segment.array or job.id
            at[segment.end_s].append((job, option.gpus / option.width, key))
    return [
        Violation(fault.code, fault.where, f"at {time_s:.9g} s {fault.message}")
        for time_s in sorted(at)
        for fault in _over(instance.site, at[time_s])
    ]


def _disrupted(
    instance: Instance, world: World, job: Job, outcome: JobOutcome
) -> Iterator[Segment]:
    """Yield the segments of a job at whose end a decision stops, moves or restarts it."""
    from ronda.instances.check.history import same

    for segment, then in zip(outcome.segments, (*outcome.segments[1:], None), strict=True):
        if then is None:
            if outcome.end_s == segment.end_s:  # it ends, or is given up
                continue
        elif same(segment, then) or (
            then.start_s == segment.end_s and _scales(job, instance.costs)
        ):
            continue
        leaves = any(
            outage.known_s <= segment.end_s <= outage.end_s and outage.node == node
            for outage in instance.faults.outages
            for node, _ in segment.placement
        )
        if not leaves and not world.outage(segment) and not world.claim(job.id, segment):
            yield segment


def _over(site: Site, disrupted: list[Disrupted]) -> Iterator[Violation]:
    """Yield the budgets that disrupted jobs exceed, with these jobs."""
    budgets = [("the site", site.disruption, disrupted)]
    for tenant in site.tenants:
        below = at_or_below(site, tenant.name)
        own = [each for each in disrupted if each[0].tenant in below]
        budgets.append((f"tenant {tenant.name}", tenant.disruption, own))
    for where, budget, own in budgets:
        gpus, jobs = sum(gpus for _, gpus, _ in own), len({key for *_, key in own})
        if budget.gpus is not None and exceeds(gpus, budget.gpus):
            message = f"{gpus:g} GPUs of jobs that do not go on, at most {budget.gpus}"
            yield Violation(DISRUPTION, where, f"{message}: {_named(job for job, *_ in own)}")
        if budget.jobs is not None and jobs > budget.jobs:
            message = f"{jobs} jobs do not go on, at most {budget.jobs} may"
            yield Violation(DISRUPTION, where, f"{message}: {_named(job for job, *_ in own)}")


def _named(jobs: Iterable[Job]) -> str:
    names = [job.id for job in jobs]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _scales(job: Job, usual: Costs) -> bool:
    return (job.costs or usual).scale_s is not None


def _has_budget(site: Site) -> bool:
    budgets = [site.disruption, *(tenant.disruption for tenant in site.tenants)]
    return any(budget.gpus is not None or budget.jobs is not None for budget in budgets)
