"""Jobs or a schedule in the Standard Workload Format 2.2 of the Parallel Workloads Archive.

See Chapin et al., "Benchmarks and standards for the evaluation of parallel job schedulers", JSSPP
1999; the archive's page "The Standard Workload Format" lists the 18 fields and the header comments.
"""

from collections.abc import Iterable, Iterator

import ronda
from ronda.bench.exports.parts import JobPart, parts_of, plain
from ronda.instances.errors import printable
from ronda.instances.instance import Instance
from ronda.instances.job import Job
from ronda.instances.schedule import Schedule

UNKNOWN = "-1"
WHOLE = {"failed": "0", "completed": "1", "discarded": "5", "unfinished": UNKNOWN}
WHOLE |= {"time limit": "0", "dependency failed": "5"}
"""Field 11 of a job, by the state in which it ended."""


def standard_workload(instance: Instance, schedule: Schedule | None = None) -> str:
    """Return the text: a line for each job, by submission, followed by a line for each part of it.

    Processors are GPUs. A job that was stopped or given other GPUs has parts, as the format
    proposes. Its own line sums them up: the run time is the total of all parts, and the processors
    are the most that it held. Without a schedule no job has waited for a known time, and rigid jobs
    run for their true time. Names without a field, and the nodes, stand in notes of the header,
    which `ronda.instances.traces.logs.swf` reads.
    """
    numbers = _Numbers(instance)
    lines: list[str] = []
    if schedule is None:
        lines += (_line(numbers.asked(job) | _alone(job)) for job in instance.jobs)
    else:
        told = zip(instance.jobs, schedule.jobs, parts_of(instance, schedule), strict=True)
        for job, outcome, parts in told:
            lines += _lines(job, outcome.state, parts, numbers.asked(job))
    header = _header(instance, schedule, len(lines), numbers)
    return "\n".join([*header, *lines, ""])


class _Numbers:
    """The numbers from 1 on by which the format identifies jobs and whatever they name."""

    def __init__(self, instance: Instance) -> None:
        jobs = instance.jobs
        self.jobs = _numbered(job.id for job in jobs)
        self.users = _numbered(job.user for job in jobs if job.user is not None)
        self.groups = _numbered(job.tenant for job in jobs if job.tenant is not None)
        self.applications = _numbered(map(_application, jobs))
        self.queues = _numbered(job.priority for job in jobs if job.priority is not None)
        self.partitions = _numbered(group.partition for group in instance.cluster.node_groups)

    def asked(self, job: Job) -> dict[int, str]:
        """Return the fields of a job that do not depend on what became of it."""
        first = next(iter(job.after), None)
        limit_s = job.limit_s if job.estimate is None else job.estimate.work
        memory = job.needs.get("memory_gib")
        return {
            1: str(self.jobs[job.id]),
            2: plain(job.submit_s),
            8: str(job.gpus),
            9: UNKNOWN if job.limit_s is None or limit_s is None else plain(limit_s),
            10: UNKNOWN if memory is None else plain(memory.per_gpu * 2**20),
            12: str(self.users.get(job.user or "", UNKNOWN)),
            13: str(self.groups.get(job.tenant or "", UNKNOWN)),
            14: str(self.applications[_application(job)]),
            15: str(self.queues.get(job.priority or "", UNKNOWN)),
            16: str(self.partitions.get(job.partition, UNKNOWN)),
            17: UNKNOWN if first is None else str(self.jobs.get(first.job, UNKNOWN)),
            18: UNKNOWN if first is None else plain(first.delay_s),
        }

    def notes(self) -> Iterator[str]:
        """Yield the names of users, groups, applications and jobs that are not their numbers."""
        kinds = {"user": self.users, "group": self.groups, "executable": self.applications}
        for kind, names in (kinds | {"job": self.jobs}).items():
            for name, number in names.items():
                if name != str(number):
                    yield f"; Note: {kind} {number} is {printable(name)}"


def _application(job: Job) -> str:
    """Return the name by which a job's application is known: its own, if its profile has none."""
    return job.name if job.profile == "rigid" and job.name is not None else job.profile


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(dict.fromkeys(names), 1)}


def _header(
    instance: Instance, schedule: Schedule | None, records: int, numbers: _Numbers
) -> Iterator[str]:
    jobs = len(instance.jobs)
    yield "; Version: 2.2"
    yield f"; Computer: {printable(instance.name)}"
    yield f"; Conversion: ronda {ronda.__version__}, ronda export"
    if instance.citation or instance.source:
        yield f"; Acknowledge: {printable(instance.citation or instance.source)}"
    yield f"; MaxJobs: {jobs}"
    yield f"; MaxRecords: {records}"
    yield f"; Preemption: {'No' if records == jobs else 'Double'}"
    yield f"; UnixStartTime: {int(instance.made.get('unix_start_s', 0))}"
    yield "; TimeZoneString: UTC"
    yield f"; MaxNodes: {len(instance.cluster.topology.node_gpus)}"
    yield f"; MaxProcs: {instance.cluster.gpus}"
    yield f"; MaxPartitions: {len(numbers.partitions)}"
    for name, number in numbers.partitions.items():
        yield f"; Partition: {number} {printable(name)}"
    if numbers.queues:
        yield f"; MaxQueues: {len(numbers.queues)}"
    for name, number in numbers.queues.items():
        yield f"; Queue: {number} {printable(name)}"
    made = "the jobs of an instance of ronda, which have not run"
    if schedule is not None:
        policy = f"policy {printable(schedule.policy)}, seed {schedule.seed}"
        made = f"a schedule made by ronda, {policy}"
    yield f"; Note: {made}; processors are GPUs."
    yield "; Note: times count from the start of the instance. Jobs of an array share a GPU."
    for group in instance.cluster.node_groups:
        where = f"partition {numbers.partitions[group.partition]}, type {printable(group.gpu_type)}"
        yield f"; Note: nodes {group.count} of {group.gpus_per_node} processors, {where}"
    yield from numbers.notes()


def _alone(job: Job) -> dict[int, str]:
    """Return the fields of a job that no schedule tells of: its true run time, if it is rigid."""
    if job.truth is None or job.profile != "rigid":
        return {}
    return {4: plain(job.truth.work), 5: str(job.gpus), 11: WHOLE["completed"]}


def _lines(job: Job, state: str, parts: list[JobPart], asked: dict[int, str]) -> Iterator[str]:
    whole = asked | {11: WHOLE[state]}
    if parts:
        run_s = sum(part.end_s - part.start_s for part in parts)
        whole |= {3: plain(parts[0].start_s - job.submit_s), 4: plain(run_s)}
        whole |= {5: str(max(len(part.gpus) for part in parts))}
    yield _line(whole)
    ready_s = job.submit_s
    for part in parts if len(parts) > 1 else ():
        status = "2"  # another part follows; the last part completed (3) or failed (4)
        if part is parts[-1]:
            status = "3" if state == "completed" else "4"
        own = {3: plain(part.start_s - ready_s), 4: plain(part.end_s - part.start_s)}
        own |= {5: str(len(part.gpus)), 11: status}
        first = {} if part is parts[0] else {2: UNKNOWN}
        yield _line(asked | first | own)
        ready_s = part.end_s


def _line(fields: dict[int, str]) -> str:
    """Write a record from its fields, which are numbered from 1."""
    return " ".join(fields.get(k, UNKNOWN) for k in range(1, 19))
