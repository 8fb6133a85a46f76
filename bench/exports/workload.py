"""A schedule in the Standard Workload Format of the Parallel Workloads Archive, version 2.2.

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


def standard_workload(instance: Instance, schedule: Schedule) -> str:
    """Return the text: a line for each job, by submission, followed by a line for each part of it.

    Processors are GPUs. A job that was stopped or given other GPUs has parts, as the format
    proposes. Its own line sums them up: the run time is the total of all parts, and the processors
    are the most that it held.
    """
    numbers = _Numbers(instance)
    lines: list[str] = []
    told = zip(instance.jobs, schedule.jobs, parts_of(instance, schedule), strict=True)
    for number, (job, outcome, parts) in enumerate(told, 1):
        lines += _lines(str(number), job, outcome.state, parts, numbers)
    header = _header(instance, schedule, len(lines), numbers)
    return "\n".join([*header, *lines, ""])


class _Numbers:
    """The numbers from 1 on by which the format identifies users, applications and partitions."""

    def __init__(self, instance: Instance) -> None:
        self.users = _numbered(job.user for job in instance.jobs if job.user is not None)
        self.applications = _numbered(job.profile for job in instance.jobs)
        self.partitions = _numbered(group.partition for group in instance.cluster.node_groups)


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(dict.fromkeys(names), 1)}


def _header(
    instance: Instance, schedule: Schedule, records: int, numbers: _Numbers
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
    yield "; UnixStartTime: 0"
    yield "; TimeZoneString: UTC"
    yield f"; MaxNodes: {len(instance.cluster.topology.node_gpus)}"
    yield f"; MaxProcs: {instance.cluster.gpus}"
    yield f"; MaxPartitions: {len(numbers.partitions)}"
    for name, number in numbers.partitions.items():
        yield f"; Partition: {number} {printable(name)}"
    decided = f"policy {printable(schedule.policy)}, seed {schedule.seed}"
    yield f"; Note: a schedule made by ronda, {decided}; processors are GPUs."
    yield "; Note: times count from the start of the instance. Jobs of an array share a GPU."


def _lines(
    number: str, job: Job, state: str, parts: list[JobPart], numbers: _Numbers
) -> Iterator[str]:
    user = UNKNOWN if job.user is None else str(numbers.users[job.user])
    fixed = {
        1: number,
        8: str(job.gpus),
        12: user,
        14: str(numbers.applications[job.profile]),
        16: str(numbers.partitions.get(job.partition, UNKNOWN)),
    }
    whole = fixed | {2: plain(job.submit_s), 11: WHOLE[state]}
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
        first = {2: plain(job.submit_s)} if part is parts[0] else {}
        yield _line(fixed | first | own)
        ready_s = part.end_s


def _line(fields: dict[int, str]) -> str:
    """Write a record from its fields, which are numbered from 1."""
    return " ".join(fields.get(k, UNKNOWN) for k in range(1, 19))
