"""How late decisions come, and what they keep running, where time is short.

Each round is decided once for each policy and limit by `ronda.solve`: validation, building, solving
and the check of the plan. It is late by what it takes beyond the limit, by the wall and by the
processor time of the thread: where other processes run, only the latter says what the policy
does. With --clock processor the limit itself counts processor time, as on an idle machine. A
round's limit is marked where validation alone takes longer. The exit code is 1 if a decision is
late by more than 5 % of its limit and 50 ms (by the clock that counts), runs fewer jobs than before
for lack of time, or has a plan that breaks a rule.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import click
import pandas as pd

from ronda.bench.study.harness import Folder, markdown, numbers, option, policies, study
from ronda.formulations import clock as clocks
from ronda.formulations.clock import Deadline
from ronda.instances import generate
from ronda.instances.check.answer import check
from ronda.instances.plan import StopReason
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate
from ronda.solvers.solve import solve

LATE, LATE_S = 0.05, 0.05
"""Share of the limit, and seconds, by which a decision may be late: whichever is more."""

WARM = 64
"""Jobs of a round that each policy decides first: imports are not what is measured."""

CLOCKS = ("wall", "processor")


@lru_cache(maxsize=64)
def warm(policy: str, seed: int) -> None:
    """Let a policy decide a small round."""
    solve(generate.round(WARM, None, "tight", seed), policy)


@lru_cache(maxsize=1)
def large(jobs: int, seed: int) -> tuple[Round, float]:
    """Return a tight round, and the processor seconds that its validation takes."""
    made = generate.round(jobs, None, "tight", seed)
    began = time.thread_time()
    validate(made)
    return made, time.thread_time() - began


@contextmanager
def counting(clock: str) -> Iterator[None]:
    """Let deadlines count by the wall, or by the thread's processor time."""
    module, real = vars(clocks), vars(clocks)["time"]
    if clock == "processor":
        module["time"] = SimpleNamespace(perf_counter=time.thread_time)
    try:
        yield
    finally:
        module["time"] = real


def measure(policy: str, jobs: int, limit_s: float, clock: str, seed: int) -> dict[str, Any]:
    """Decide a round in time."""
    warm(policy, seed)
    round_, reading_s = large(jobs, seed)
    with counting(clock):
        wall, cpu = time.perf_counter(), time.thread_time()
        plan = solve(round_, policy, deadline=Deadline(limit_s), seed=seed)
        wall_s, cpu_s = time.perf_counter() - wall, time.thread_time() - cpu
    return {
        "reading_s": reading_s,
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "before": len(round_.held),
        "after": len(plan.allocations),
        "stop": plan.stop.value,
        "status": plan.status.value,
        "violations": len(check(round_, plan)),
    }


def faults(line: Any) -> list[str]:
    """Return what is wrong with a decision."""
    found = []
    spent_s = line.wall_s if line.clock == "wall" else line.cpu_s
    if spent_s > line.limit_s + max(LATE * line.limit_s, LATE_S) and not _unread(line):
        found.append("late")
    if line.after < line.before and line.stop == StopReason.TIME_LIMIT.value:
        found.append("fewer")
    if line.violations:
        found.append("invalid")
    return found


def _unread(line: Any) -> bool:
    """Tell whether validation alone takes longer than the limit."""
    return bool(line.reading_s > line.limit_s)


def table(lines: pd.DataFrame) -> str:
    """Return a row for each round and limit, a column for each policy, in Markdown.

    A cell has the milliseconds late by the processor / by the wall, jobs that run before → after,
    and how the plan came about.
    """
    names = list(dict.fromkeys(lines.policy))
    rows = []
    for _, group in lines.groupby(["jobs", "limit_s"], sort=True):
        cells = {line.policy: _cell(line) for line in group.itertuples()}
        first: Any = next(iter(group.itertuples()))
        read = f"{1e3 * first.reading_s:.0f}" + (" (over the limit)" if _unread(first) else "")
        rows.append([f"{first.jobs}", f"{first.limit_s:g}", read, *(cells[n] for n in names)])
    return markdown(["jobs", "limit (s)", "validation (ms)", *names], rows)


def _cell(line: Any) -> str:
    late = [max(0.0, spent - line.limit_s) * 1e3 for spent in (line.cpu_s, line.wall_s)]
    cut = line.status if line.stop == StopReason.TIME_LIMIT.value else "done"
    words = [f"{late[0]:.0f} / {late[1]:.0f}", f"{line.before}→{line.after}", cut, *faults(line)]
    return ", ".join(words)


def compare(
    folder: Folder,
    policies: Sequence[str],
    jobs: Sequence[float],
    limits: Sequence[float],
    clock: str,
    seed: int,
) -> int:
    """Measure all rounds, limits and policies; return the exit code."""
    cases = [
        {"policy": policy, "jobs": int(n), "limit_s": limit_s, "clock": clock, "seed": seed}
        for n in jobs
        for limit_s in limits
        for policy in policies
    ]
    lines = folder.measure(cases, measure)
    folder.write(table(lines))
    return int(any(faults(line) for line in lines.itertuples()))


command = study(
    "deadlines",
    __doc__,
    compare,
    [
        policies("milp,prices,milp-energy,genetic,evolve,ones"),
        numbers("--jobs", "64,256,1024,4096,16384", "Of each round."),
        numbers("--limits", "0.05,0.2,1,5", "Seconds."),
        option("--clock", type=click.Choice(CLOCKS), default="wall", help="That limits count by."),
        option("--seed", type=int, default=7, help="Of the rounds."),
    ],
)
