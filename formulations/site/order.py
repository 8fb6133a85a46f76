"""Who may start: jobs that are blocked or must wait for others, and the tasks of job arrays.

Order is state and needs no rows: a round lists jobs that may start. Hosts may list others too, with
the reason in `JobState.blocked` or in the fields of the job; their options are forbidden.
"""

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
from msgspec.structs import replace

from ronda.formulations.options.stated_rows import Sheet
from ronda.formulations.options.table import OptionTable
from ronda.formulations.tenants.sharers import Tree, inside
from ronda.instances.base import Floats, Mask
from ronda.instances.job import Allocation, Job, JobState
from ronda.instances.models.cache import per_record
from ronda.instances.round import Round
from ronda.instances.site import LimitGroup, Site

ARRAY = "array"
"""The family of the rows of job arrays, as in ``array[name]``."""

WHEN = {"ok": "to end well", "notok": "to fail", "any": "to end", "start": "to start"}


def why_not(round: Round, state: JobState) -> str | None:
    """Return why a waiting job may not start now, or None if it may."""
    job = state.job
    if state.allocation is not None:
        return None
    if state.blocked is not None:
        return state.blocked
    long = too_long(round.site, job)
    if long is not None:
        most_s = long.max_limit_s
        return f"its time limit of {job.limit_s:g} s is above the {most_s:g} s of {long.name}"
    if job.eligible_s is not None and job.eligible_s > round.now_s:
        return f"it may start from {job.eligible_s:g} s on"
    if not job.after:
        return None
    live = _live(round)
    left = [
        each
        for each in job.after
        if each.job in live and not (each.when == "start" and live[each.job].started)
    ]
    if not left or (len(left) < len(job.after) and not job.after_all):
        return None
    first, many = live[left[0].job], f" (and {len(left) - 1} more)" * (len(left) > 1)
    return f"it waits for {first.job.id} {WHEN[left[0].when]}, which {_stands(round, first)}{many}"


def too_long(site: Site, job: Job) -> LimitGroup | None:
    """Return the group with the shortest longest time limit that a job exceeds, or None."""
    limit_s = job.limit_s
    if limit_s is None:
        return None
    found = (group for most_s, group, member in _longest(site) if limit_s > most_s and member(job))
    return next(found, None)


@per_record(maxsize=4)
def _longest(site: Site) -> list[tuple[float, LimitGroup, Callable[[Job], bool]]]:
    """Return the groups that allow no longer time limits, the shortest first, with their tests."""
    tree = Tree(site)
    stated = [
        (group.max_limit_s, group, inside(group, tree))
        for group in site.groups
        if group.max_limit_s is not None
    ]
    return sorted(stated, key=lambda one: one[0])


@per_record(maxsize=4)
def _some_wait(round: Round) -> bool:
    """Return whether some job says that it must wait for something."""
    if not round.has_rules:
        return False
    limited = any(group.max_limit_s is not None for group in round.site.groups)
    return any(
        s.blocked or s.job.after or s.job.eligible_s is not None or (limited and s.job.limit_s)
        for s in round.waiting
    )


@per_record(maxsize=2)
def _live(round: Round) -> dict[str, JobState]:
    return {state.job.id: state for state in round.jobs}


def _stands(round: Round, state: JobState) -> str:
    work = state.remaining_at(round.now_s)
    if state.allocation is None:
        return "waits"
    if work is None:
        return "runs"
    left_s = work / state.allocation.option.rate + state.rest_at(round.now_s)
    return f"runs, by belief until {round.now_s + min(left_s, round.may_hold_s(state)):.6g} s"


def startable(round: Round) -> Round:
    """Return the round without waiting jobs that may not start; the same object if all may."""
    if not _some_wait(round):
        return round
    kept = tuple(state for state in round.waiting if why_not(round, state) is None)
    return round if len(kept) == len(round.waiting) else replace(round, waiting=kept)


def not_yet(round: Round, table: OptionTable) -> Mask | None:
    """Return whether each option (K,) is of a job that may not start, or None if none is."""
    if not _some_wait(round):
        return None
    held_back = [why_not(round, state) is not None for state in table.jobs]
    return np.array(held_back)[table.job] if any(held_back) else None


def array_rows(round: Round, table: OptionTable, values: Floats, sheet: Sheet) -> None:
    """State Σ_{k of tasks of a} x_k ≤ m for each job array a with more than m tasks in the round.

    Where more tasks run already, none of them is stopped, and m is their number.
    """
    live, runs = _tasks(table.jobs)
    for name, most in round.site.job_arrays.items():
        if live[name] > max(most, runs[name]):
            own = np.array([state.job.job_array == name for state in table.jobs])
            rows = np.flatnonzero(own[table.job])
            sheet.state(f"{ARRAY}[{name}]", rows, np.ones(len(rows)), max(most, runs[name]))


def _tasks(jobs: tuple[JobState, ...]) -> tuple[Counter[str], Counter[str]]:
    """Return the number of live and of running tasks of each job array."""
    tasks, runs = Counter[str](), Counter[str]()
    for state in jobs:
        if state.job.job_array is not None:
            tasks[state.job.job_array] += 1
            runs[state.job.job_array] += state.allocation is not None
    return tasks, runs


class Tasks:
    """The account of job arrays: no more tasks run than may."""

    def __init__(self, throttles: Mapping[str, int]) -> None:
        self._left = Counter(throttles)

    def fits(self, state: JobState, given: Allocation) -> bool:
        """Return whether one more task may run."""
        return self._left.get(state.job.job_array or "", 1) > 0

    def take(self, state: JobState, given: Allocation) -> None:
        """Count a job."""
        name = state.job.job_array
        if name is not None and name in self._left:
            self._left[name] -= 1


def tasks(round: Round) -> Tasks | None:
    """Return the account of job arrays, or None if there are none."""
    return Tasks(round.site.job_arrays) if round.site.job_arrays else None
