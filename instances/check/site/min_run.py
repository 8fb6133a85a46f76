"""The check that no job is stopped or changed before its minimum run time is over."""

from ronda.instances.check.faults import World
from ronda.instances.check.site.given import JobInPlan
from ronda.instances.instance import Instance
from ronda.instances.job import Job, JobState
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.schedule import Schedule
from ronda.instances.site import Site
from ronda.instances.violation import SECOND, Violation

MIN_RUN = "min-run"


def may_change(round: Round, state: JobState) -> bool:
    """Return whether a running job may be stopped or changed now."""
    if not round.has_rules or not state.job.preemptible:
        return state.job.preemptible
    least_s = _least_s(round.site, state.job)
    return not least_s or state.held_s + least_s <= round.now_s


def changes_too_soon(round: Round, plan: Plan, given: list[JobInPlan]) -> list[Violation]:
    """Return the violations by jobs that are changed before their minimum run time is over."""
    found = []
    for state, then, kept in given[: len(round.running)]:
        held = state.allocation
        if held is None or kept or not state.job.preemptible or may_change(round, state):
            continue
        if then is not None and held.narrows_to(then):
            continue
        left_s = state.held_s + _least_s(round.site, state.job) - round.now_s
        message = f"is stopped or changed {left_s:.9g} s before its minimum run time is over"
        found.append(Violation(MIN_RUN, f"job {state.job.id}", message))
    return found


def runs_too_short(instance: Instance, schedule: Schedule) -> list[Violation]:
    """Return the violations by runs that a decision ends before their minimum is over."""
    from ronda.instances.check.history import same

    world, found = World(instance.faults, schedule.failures), []
    for job, outcome in zip(instance.jobs, schedule.jobs, strict=False):
        least_s = _least_s(instance.site, job)
        if not least_s or not outcome.segments:
            continue
        since_s = outcome.segments[0].start_s
        for segment, then in zip(outcome.segments, (*outcome.segments[1:], None), strict=True):
            ends = then is None and outcome.end_s == segment.end_s and not outcome.discarded
            broken = world.outage(segment) or world.claim(job.id, segment)
            if then is not None and same(segment, then):
                continue
            if not ends and not broken and segment.end_s < since_s + least_s - SECOND:
                ran_s = segment.end_s - since_s
                message = f"runs {ran_s:.9g} s from {since_s:.9g} s, not at least {least_s:.9g} s"
                found.append(Violation(MIN_RUN, f"job {job.id}", message))
            since_s = segment.end_s if then is None else then.start_s
    return found


def _least_s(site: Site, job: Job) -> float:
    """Return the minimum run time of a job: the most that it, its class or any tenant asks for."""
    least = [job.min_run_s]
    least += [c.min_run_s for c in site.classes if c.name == job.priority]
    name = job.tenant
    for tenant in reversed(site.tenants):  # parents come before those below them
        if tenant.name == name:
            least.append(tenant.min_run_s)
            name = tenant.parent
    return max(least)
