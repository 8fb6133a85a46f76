"""A schedule as the ``jobs.csv`` that Batsim writes for a simulation.

The columns and their order are those of Batsim 4.2.1 (Dutot et al., JSSPP 2016; in its repository
``docs/output-jobs.rst`` and ``src/export.cpp``); they are the same from 3.0.0 to 5.0.0-rc2.
"""

import csv
import io

from ronda.bench.exports.parts import parts_of, plain
from ronda.instances.errors import printable
from ronda.instances.instance import Instance
from ronda.instances.job import Job
from ronda.instances.schedule import Schedule

COLUMNS = (
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
    writer.writerow(COLUMNS)
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
