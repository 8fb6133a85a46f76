"""Documents as data frames, where pandas is installed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ronda.instances.errors import need
from ronda.instances.outcome.metrics import job_figures
from ronda.instances.plan import Plan
from ronda.instances.schedule import Schedule

if TYPE_CHECKING:
    from pandas import DataFrame


def frame(columns: Mapping[str, Any]) -> "DataFrame":
    """Return a frame of columns; InputError without pandas."""
    need("to_frame", "pandas")
    import pandas as pd

    return pd.DataFrame(dict(columns))


def plan_frame(plan: Plan) -> "DataFrame":
    """Return the allocation of each job of a plan."""
    given = [held.option for held in plan.allocations.values()]
    fields = ("pool", "gpus", "clock", "batch", "rate", "power_w")
    options = {field: [getattr(option, field) for option in given] for field in fields}
    nodes = [dict(held.placement) for held in plan.allocations.values()]
    return frame({"job": [*plan.allocations], **options, "nodes": nodes})


def schedule_frame(schedule: Schedule) -> "DataFrame":
    """Return the outcome of each job of a schedule."""
    jobs, figures = schedule.jobs, job_figures(schedule)
    fields = ("submit_s", "end_s", "failed", "discarded")
    told = {field: [getattr(job, field) for job in jobs] for field in fields}
    names = ("jct_s", "queue_s", "gpu_s", "restarts", "preemptions")
    return frame({"job": [j.id for j in jobs], **told, **{n: getattr(figures, n) for n in names}})
