"""The independent checker of plans and schedules.

It shares only data types with the solvers. Its violations have the following codes:

=================  =================================================================
code               rule that is broken
=================  =================================================================
unknown-job        the job is live in the round, or in the instance
pool               the pool exists, and a placement's nodes belong to it
partition          the pool belongs to the job's partition
options            the job may use the GPU type, and its profile has a speed for it
gpus               a rigid job gets its request, others between minimum and maximum
clock              the GPU type has the clock; rigid jobs run at the full clock
batch              the global batch is the job's own or in its profile
local-batch        the batch can be split into passes within the local batch limits
memory             a pass fits into the GPU's memory
width              a job is alone, or in an array on one GPU with a known mode and width
array              an array's jobs have the claimed number, one class, option and place
span               the span is known, and the placement keeps within it
gang               the placement has as many GPUs as the option
node               the nodes exist
duplicate-node     a placement names no node twice
rate               the claimed rate is the profile's or measured (1e-6 relative; plans only)
option-power       the claimed power is the profile's (1e-6 relative)
capacity           no node has more GPUs in use than in service
asleep             no sleeping node is in use
must-run           running jobs that may not be preempted are neither stopped nor changed
discard            a discarded job is a live, stoppable trial and gets no GPUs
power              the cluster draws no more than the power cap
energy             a plan in its window, or a schedule at any time, keeps to the budget
rack-power         no rack, with all racks below it, draws more than its cap
=================  =================================================================

The following codes are those of a site's rules, in plans and schedules:

=================  =================================================================
code               rule that is broken
=================  =================================================================
sizes              a job that names its sizes gets one of them
nodes              a job is on nodes that it names, with the features that it asks for
one-node           a job that is to be on one node is
exclusive          a job that has its nodes to itself holds all their GPUs, without others
slices             a job's nodes are in slices, each within one rack
neighbours         the jobs of a neighbourhood are together, or apart
early              no job starts that may not start yet
job-array          no more tasks of a job array run than may, unless as many run already
leaving            no job comes to a node that leaves before its expected end (plans only)
part               a job has the part or fraction of a GPU that it asks for
parts              the parts on a GPU do not overlap, and are as it may be cut
recut              no GPU is cut beside a part that goes on, if only empty ones may
host               jobs that come take no more of a host's resource than others leave
licence            jobs hold no more of a licence than others leave, or than now
quota              no tenant or group grows beyond its limit, or beyond what it may borrow
firm               jobs that may not be stopped grow no further than what is guaranteed
running            no tenant or group grows beyond its number of jobs, or GPU-seconds ahead
min-run            no job is stopped or changed before its minimum run time is over
disruption         no more GPUs or jobs are stopped, moved or restarted than the budget
=================  =================================================================

The following codes occur only in schedules:

=================  =================================================================
code               rule that is broken
=================  =================================================================
instance           the schedule belongs to the instance
missing-job        every job of the instance is listed
duplicate-job      no job is listed twice
order              jobs are in the instance's order
rounds             rounds are in order of time
submit             submission times are those of the instance
early              no job starts before its submission, or before it may
limit              jobs end at their time limits, and at no other time for this reason
dependency         jobs that can never start, and no others, end without having run
times              ``start <= resume <= end`` in every segment
overlap            a job's segments do not overlap
end                a job ends with its last segment, and the schedule with its last job
delay              pauses are as long as costs and waking nodes require
truth              the instance knows the job's true work
progress           each segment's work is the integral of the true rate (1e-6 relative)
work               the segments' work adds up to the true work (1e-6 relative)
sleep              sleeps are within the schedule, in service, and do not overlap
out                no node is in use while it is out of service
drain              no more GPUs of a node come into use while it is drained
failure            jobs fail when they or their nodes must, and lose unsaved work
accounting         energy parts, cost and carbon are the exact integrals (1e-9 relative)
=================  =================================================================
"""

from collections import Counter
from itertools import pairwise
from typing import overload

from ronda.instances.arguments import checked
from ronda.instances.check.history import Histories
from ronda.instances.check.incremental import Ledger
from ronda.instances.check.option import completed
from ronda.instances.check.plan import check_plan
from ronda.instances.check.sharing import schedule_violations
from ronda.instances.check.site.rules import site_schedule_violations
from ronda.instances.check.timeline import timeline_violations
from ronda.instances.errors import InputError
from ronda.instances.instance import Instance
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.schedule import RECORDED, Schedule
from ronda.instances.violation import Violation

__all__ = ["Ledger", "Violation", "check"]

SHAPELESS = {"pool", "gang", "node", "duplicate-node", "array", "part", "parts", "times", "overlap"}
"""The rules without which the jobs of a schedule cannot be added up."""


@overload
def check(subject: Round, answer: Plan) -> list[Violation]: ...


@overload
def check(subject: Instance, answer: Schedule) -> list[Violation]: ...


@checked
def check(subject: Round | Instance, answer: Plan | Schedule) -> list[Violation]:
    """Return every violation of a rule by an answer; the list is empty for a valid answer.

    The power of a plan is the sum of three parts. Each awake node draws ``host_idle_w`` plus the
    ``idle_w`` of each idle GPU. Each sleeping node draws ``sleep_w``. Each job draws its option's
    ``power_w``, of which a rack bears the share of the job's GPUs there. The GPU of an array counts
    once. Options state their rate and power for the smallest number of nodes, ``ceil(gpus / gpus
    per node)``, but the work of a schedule follows from the nodes actually used. A running job that
    continues unchanged keeps its claimed rate, even if later measurements differ. If a job really
    draws more than its profile says, the profile's power is compared with the limits.

    Raises
    ------
    InputError
        If a plan is given for an instance, or a schedule for a round.
    """
    if isinstance(subject, Round) and isinstance(answer, Plan):
        return check_plan(completed(subject), answer)
    if isinstance(subject, Instance) and isinstance(answer, Schedule):
        return check_schedule(subject, answer)
    if isinstance(answer, Plan):
        raise InputError("answer", "a plan", "a schedule, which answers an instance")
    raise InputError("answer", "a schedule", "a plan, which answers a round")


def check_schedule(instance: Instance, schedule: Schedule) -> list[Violation]:
    """Return every violation of a rule by a schedule; see `ronda.instances.check.checker.check`.

    The rules for all jobs together are checked only if every job is valid on its own. In a record
    of a log, which was not made by these rules, they are checked if the jobs can be added up.
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
    all_rules = schedule.policy == RECORDED and not any(each.code in SHAPELESS for each in own)
    own += site_schedule_violations(instance, schedule) if all_rules or not own else []
    return found + own + (timeline_violations(instance, schedule) if all_rules or not own else [])


def _heading(instance: Instance, schedule: Schedule) -> list[Violation]:
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
