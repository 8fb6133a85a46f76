"""A schedule as a table with a row for each job, and as the ``jobs.csv`` of Batsim.

The suffix of a column's name is its unit. The columns of Batsim and their order are those of 4.2.1
(Dutot et al., JSSPP 2016; in its repository ``docs/output-jobs.rst`` and ``src/export.cpp``); they
are the same from 3.0.0 to 5.0.0-rc2.
"""

import csv
import io

from ronda.bench.exports.parts import drawn_j, parts_of, plain
from ronda.instances.errors import printable
from ronda.instances.instance import Instance
from ronda.instances.job import Job
from ronda.instances.outcome.metrics import job_figures
from ronda.instances.schedule import Schedule

WORDS = ("id", "name", "user", "partition", "profile", "sweep", "state")

COLUMNS = (
    *("submit_s", "start_s", "end_s", "jct_s", "queue_s", "held_s", "pause_s", "deadline_s"),
    *("gpus_asked", "gpus_most", "gpu_s", "energy_j", "work", "work_done", "weight"),
    *("allocations", "preemptions", "restarts"),
)
"""The numbers of a job; unknown ones are empty. `work` is in the unit of the job's profile."""


def job_table(instance: Instance, schedule: Schedule) -> str:
    """Return the CSV (RFC 4180), with jobs in the schedule's order, which is by submission."""
    text, figures = io.StringIO(), job_figures(schedule)
    writer = csv.writer(text)
    writer.writerow((*WORDS, *COLUMNS))
    for k, (job, outcome) in enumerate(zip(instance.jobs, schedule.jobs, strict=True)):
        segments = outcome.segments
        numbers = {
            "submit_s": job.submit_s,
            "start_s": segments[0].start_s if segments else None,
            "end_s": outcome.end_s,
            "held_s": sum(s.end_s - s.start_s for s in segments),
            "pause_s": sum(s.resume_s - s.start_s for s in segments),
            "deadline_s": job.deadline_s,
            "gpus_asked": job.gpus,
            "gpus_most": max((s.option.gpus for s in segments), default=0),
            "energy_j": sum(drawn_j(instance, job, s) for s in segments),
            "work": None if job.truth is None else job.truth.work,
            "work_done": sum(s.done for s in segments),
            "weight": job.weight,
            "allocations": len(segments),
        }
        for name in ("jct_s", "queue_s", "gpu_s", "preemptions", "restarts"):
            numbers[name] = getattr(figures, name)[k].item()
        words = (job.id, job.name, job.user, job.partition, job.profile, job.sweep, outcome.state)
        told = (printable(word or "") for word in words)
        writer.writerow((*told, *(_cell(numbers[name]) for name in COLUMNS)))
    return text.getvalue()


def _cell(value: float | int | None) -> str:
    """Write a number so that it reads back exactly; an unknown number is an empty cell."""
    if value is None or value != value:
        return ""
    return str(value) if isinstance(value, int) else repr(float(value))


BATSIM_COLUMNS = (
    *("job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources"),
    *("requested_time", "success", "final_state", "starting_time", "execution_time"),
    *("finish_time", "waiting_time", "turnaround_time", "stretch", "allocated_resources"),
    *("consumed_energy", "metadata"),
)

STATES = {
    "completed": "COMPLETED_SUCCESSFULLY",
    "failed": "COMPLETED_FAILED",
    "discarded": "COMPLETED_KILLED",
    "time limit": "COMPLETED_WALLTIME_REACHED",
    "dependency failed": "REJECTED",
    "unfinished": "COMPLETED_KILLED",
}
"""The final state of a job's last part; a job that never ran is ``REJECTED``."""


def batsim_jobs(instance: Instance, schedule: Schedule) -> str:
    """Return the CSV; its resources are GPUs, numbered from 0 through the cluster, node by node.

    Batsim's jobs neither pause nor change what they hold. A job that did so appears as it does
    under Batsim schedulers that kill and resubmit jobs: it has a row for each time on the same
    GPUs. The second row is called ``ID#1`` and is submitted when the first is killed.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(BATSIM_COLUMNS)
    told = zip(instance.jobs, schedule.jobs, parts_of(instance, schedule), strict=True)
    for job, outcome, parts in told:
        if not parts:
            writer.writerow((*_asked(instance, job, 0, job.submit_s), 0, "REJECTED", *[""] * 9))
        submit_s = job.submit_s
        for k, part in enumerate(parts):
            ended = k == len(parts) - 1
            state = STATES[outcome.state] if ended else "COMPLETED_KILLED"
            success = int(state == STATES["completed"])
            asked = _asked(instance, job, k, submit_s)
            run_s, total_s = part.end_s - part.start_s, part.end_s - submit_s
            times = (part.start_s, run_s, part.end_s, part.start_s - submit_s, total_s)
            ran = [*map(plain, (*times, total_s / run_s)), intervals(part.gpus)]
            writer.writerow((*asked, success, state, *ran, plain(part.energy_j), ""))
            submit_s = part.end_s
    return text.getvalue()


def _asked(instance: Instance, job: Job, part: int, submit_s: float) -> list[str]:
    """Return the columns up to the requested time, which is -1 for a job without a limit."""
    name = f"{job.id}#{part}" if part else job.id
    words = [printable(word) for word in (name, instance.name, job.profile)]
    return [*words, plain(submit_s), str(job.gpus), plain(job.limit_s or -1)]


def intervals(numbers: tuple[int, ...]) -> str:
    """Write ascending numbers as one of Batsim's interval sets, in canonical form: ``0-2 5``."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)
