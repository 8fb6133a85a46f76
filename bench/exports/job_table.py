"""A schedule as a table with a row for each job; the suffix of a column's name is its unit."""

import csv
import io

from ronda.bench.exports.parts import drawn_j
from ronda.instances.errors import printable
from ronda.instances.instance import Instance
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
