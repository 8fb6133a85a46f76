"""Check of a schedule against its instance."""

from collections import Counter
from itertools import pairwise

from ronda.instances.check.arrays import schedule_violations
from ronda.instances.check.history import Histories
from ronda.instances.check.timeline import timeline_violations
from ronda.instances.instance import Instance
from ronda.instances.schedule import Schedule
from ronda.instances.violation import Violation


def check_schedule(instance: Instance, schedule: Schedule) -> list[Violation]:
    """Return every rule that a schedule breaks; see `ronda.instances.check.answer.check`.

    What the jobs do together is examined only when each by itself is in order.
    """
    found = _heading(instance, schedule)
    roster = _roster(instance, schedule)
    if roster:
        return found + roster
    histories = Histories(instance, schedule)
    own: list[Violation] = []
    for job, outcome in zip(instance.jobs, schedule.jobs, strict=True):
        own += histories.check(job, outcome)
    own += histories.unmatched()
    own += schedule_violations(instance, schedule)
    return found + (own or timeline_violations(instance, schedule))


def _heading(instance: Instance, schedule: Schedule) -> list[Violation]:
    """Return what is wrong with the schedule as a whole: its instance, its end, its rounds."""
    found = []
    if schedule.instance != instance.name:
        message = f"is for {schedule.instance!r}, not {instance.name!r}"
        found.append(Violation("instance", "schedule", message))
    ends = [o.end_s for o in schedule.jobs if o.end_s is not None]
    if ends and len(ends) == len(schedule.jobs) and schedule.end_s != max(ends):
        message = f"ends at {schedule.end_s:.9g} s, but the last job at {max(ends):.9g} s"
        found.append(Violation("end", "schedule", message))
    for k, (a, b) in enumerate(pairwise(schedule.rounds)):
        if b.now_s < a.now_s:
            message = f"at {b.now_s:g} s, after one at {a.now_s:g} s"
            found.append(Violation("rounds", f"round {k + 1}", message))
    return found


def _roster(instance: Instance, schedule: Schedule) -> list[Violation]:
    """Return the jobs that are unknown, missing, duplicate or out of order."""
    expected, given = [job.id for job in instance.jobs], [o.id for o in schedule.jobs]
    if given == expected:
        return []
    found = []
    times = Counter(given)
    for job_id in dict.fromkeys([*expected, *given]):
        where = f"job {job_id}"
        if job_id not in times:
            found.append(Violation("missing-job", where, "the schedule does not list it"))
        elif times[job_id] > 1:
            message = f"the schedule lists it {times[job_id]} times"
            found.append(Violation("duplicate-job", where, message))
    known = set(expected)
    found += [
        Violation("unknown-job", f"job {job_id}", "the instance has no such job")
        for job_id in times
        if job_id not in known
    ]
    return found or [Violation("order", "schedule", "jobs are not in the instance's order")]
