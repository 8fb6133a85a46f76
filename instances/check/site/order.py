"""The check of the order of jobs: who may start, job arrays, and time limits."""

from collections import Counter
from collections.abc import Callable, Iterator
from math import inf

from ronda.instances.check.site.given import JobInPlan
from ronda.instances.check.site.tenants import at_or_below, in_group
from ronda.instances.instance import Instance
from ronda.instances.job import After, Job
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.schedule import JobOutcome, Schedule
from ronda.instances.site import Site
from ronda.instances.violation import SECOND, Violation


def early_starts(round: Round, plan: Plan, given: list[JobInPlan]) -> list[Violation]:
    """Return the jobs that start although they are blocked, too early, or have jobs before them."""
    found, live = [], {each.state.job.id: each.state for each in given}
    longest = _longest(round.site)
    for state, allocation, _ in given:
        if allocation is None or state.allocation is not None:
            continue
        job, message = state.job, None
        if state.blocked is not None:
            message = f"starts, but may not: {state.blocked}"
        elif job.eligible_s is not None and job.eligible_s > round.now_s:
            message = f"starts at {round.now_s:g} s, but may from {job.eligible_s:g} s on"
        elif job.after:
            open_ = [
                each.job
                for each in job.after
                if each.job in live and not (each.when == "start" and live[each.job].started)
            ]
            if len(open_) == len(job.after) or (job.after_all and open_):
                message = f"starts, but job {open_[0]} must come first"
        most_s = min((most_s for most_s, concerns in longest if concerns(job)), default=inf)
        if message is None and (job.limit_s or 0.0) > most_s:
            message = f"starts with a time limit of {job.limit_s:g} s, at most {most_s:g} s"
        if message is not None:
            found.append(Violation("early", f"job {job.id}", message))
    return found


def _longest(site: Site) -> list[tuple[float, Callable[[Job], bool]]]:
    """Return the longest time limits that groups allow, each with the test of who is concerned."""
    limits = [group for group in site.groups if group.max_limit_s is not None]
    below = {t.name: at_or_below(site, t.name) for t in site.tenants} if limits else {}
    return [(group.max_limit_s or 0.0, in_group(group, below)) for group in limits]


def crowded_arrays(round: Round, plan: Plan, given: list[JobInPlan]) -> list[Violation]:
    """Return the job arrays of which more tasks run than may; tasks that run now may go on."""
    ran, runs = Counter[str](), Counter[str]()
    for state, allocation, _ in given:
        if state.job.job_array is not None:
            ran[state.job.job_array] += state.allocation is not None
            runs[state.job.job_array] += allocation is not None
    return [
        Violation("job-array", f"job array {name}", f"{runs[name]} tasks run, of at most {most}")
        for name, most in round.site.job_arrays.items()
        if runs[name] > max(most, ran[name])
    ]


def array_violations(instance: Instance, schedule: Schedule) -> list[Violation]:
    """Return the first moment at which too many tasks of each job array run."""
    steps: dict[str, Counter[float]] = {name: Counter() for name in instance.site.job_arrays}
    for job, outcome in zip(instance.jobs, schedule.jobs, strict=True):
        for segment in outcome.segments:
            if job.job_array is not None and segment.end_s > segment.start_s:
                steps[job.job_array][segment.start_s] += 1
                steps[job.job_array][segment.end_s] -= 1
    found = []
    for name, most in instance.site.job_arrays.items():
        running = 0
        for time_s in sorted(steps[name]):
            running += steps[name][time_s]
            if running > most:
                message = f"{running} tasks run at {time_s:.9g} s, of at most {most}"
                found.append(Violation("job-array", f"job array {name}", message))
                break
    return found


def order_violations(instance: Instance, schedule: Schedule) -> list[Violation]:
    """Return the jobs that start before they may, and those wrongly ended as never able to."""
    outcomes = {outcome.id: outcome for outcome in schedule.jobs}
    found: list[Violation] = []
    for job in instance.jobs:
        outcome = outcomes[job.id]
        if job.after or job.eligible_s is not None or outcome.eligible_s is not None:
            found += _order(job, outcome, outcomes)
        elif outcome.ended_by == "dependency failed":
            message = "is said never to have been able to start, but no job comes before it"
            found.append(Violation("dependency", f"job {job.id}", message))
    return found


def _order(job: Job, outcome: JobOutcome, outcomes: dict[str, JobOutcome]) -> Iterator[Violation]:
    where, from_s = f"job {job.id}", job.submit_s if job.eligible_s is None else job.eligible_s
    if job.after:
        times = [_past_s(each, outcomes[each.job]) for each in job.after]
        from_s = max(from_s, max(times) if job.after_all else min(times))
    if (outcome.ended_by == "dependency failed") != (from_s == inf and outcome.end_s is not None):
        could = "never" if from_s == inf else f"from {from_s:.9g} s on"
        yield Violation("dependency", where, f"could start {could}, but is {outcome.state}")
    elif outcome.segments and outcome.segments[0].start_s < from_s:
        message = f"starts at {outcome.segments[0].start_s:.9g} s, but may from {from_s:.9g} s on"
        yield Violation("early", where, message)
    elif outcome.segments and abs((outcome.eligible_s or job.submit_s) - from_s) > SECOND:
        message = f"could start from {from_s:.9g} s on, not {outcome.eligible_s} s"
        yield Violation("early", where, message)


def _past_s(after: After, first: JobOutcome) -> float:
    """Return the time from which an event lies long enough in the past, infinite for never."""
    end_s = inf if first.end_s is None else first.end_s
    if after.when == "start":
        event_s = first.segments[0].start_s if first.segments else end_s
    elif after.when == "any" or (after.when == "ok") == (first.state == "completed"):
        event_s = end_s
    else:
        event_s = inf
    return event_s + after.delay_s


def limit_violations(instance: Instance, schedule: Schedule) -> list[Violation]:
    """Return the jobs that hold GPUs beyond their time limits, or are ended before these."""
    found, kills = [], instance.site.kills_at_limit
    for job, outcome in zip(instance.jobs, schedule.jobs, strict=True):
        limit_s = inf if job.limit_s is None or not kills else job.limit_s
        cut = outcome.ended_by == "time limit"
        if limit_s == inf and not cut:
            continue
        held_s = sum(segment.end_s - segment.start_s for segment in outcome.segments)
        slack_s = SECOND * max(1, len(outcome.segments))
        if held_s > limit_s + slack_s or (cut and held_s < limit_s - slack_s):
            ends = "and is ended for it" if cut else "and goes on"
            message = f"holds GPUs for {held_s:.9g} s of {limit_s:.9g} s, {ends}"
            found.append(Violation("limit", f"job {job.id}", message))
    return found
