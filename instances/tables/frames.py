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
    """Return a data frame of columns, or raise an InputError without pandas."""
    need("to_frame", "pandas")
    import pandas as pd

    return pd.DataFrame(dict(columns))


def plan_frame(plan: Plan) -> "DataFrame":
    """Return a data frame with the allocation of each job in a plan."""
    given = [held.option for held in plan.allocations.values()]
    fields = ("pool", "gpus", "clock", "batch", "rate", "power_w")
    options = {field: [getattr(option, field) for option in given] for field in fields}
    nodes = [dict(held.placement) for held in plan.allocations.values()]
    return frame({"job": [*plan.allocations], **options, "nodes": nodes})


def schedule_frame(schedule: Schedule) -> "DataFrame":
    """Return a data frame with the outcome of each job in a schedule."""
    jobs, figures = schedule.jobs, job_figures(schedule)
    fields = ("submit_s", "eligible_s", "end_s", "failed", "discarded", "ended_by")
    told = {field: [getattr(job, field) for job in jobs] for field in fields}
    names = ("jct_s", "queue_s", "gpu_s", "restarts", "preemptions")
    return frame({"job": [j.id for j in jobs], **told, **{n: getattr(figures, n) for n in names}})
