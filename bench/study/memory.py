"""Whether memory stays flat while a policy decides on and on.

Each policy, in a process of its own, decides rounds of a few jobs whose gradient noise is another
one each time, and of which one is replaced by a new one now and then: as in a scheduler that runs
for months. The ratio is the resident memory at the end over that after the first 5,000 decisions;
the exit code is 1 if one is above 1.05.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import click
import numpy as np
import pandas as pd
import psutil
from msgspec.structs import replace

from ronda.bench.study.harness import Folder, markdown, option, policies, study
from ronda.formulations.clock import Deadline
from ronda.instances import generate
from ronda.instances.job import JobState
from ronda.instances.plan import Plan
from ronda.instances.profile import NoiseScale
from ronda.instances.round import Round
from ronda.solvers.registry import policy as policy_of

FIRST = 5000
"""Decisions after which memory must not grow."""

MOST = 1.05
"""Most growth that counts as none."""

JOBS, GPUS = 4, 8
"""Of a round: small, as it is the number of decisions that counts."""

REPLACED = 20
"""Decisions after which a job has ended and another one has come."""


def rounds(decisions: int) -> Iterator[Round]:
    """Yield rounds of the same cluster with new noise each time, and sometimes a new job."""
    rng = np.random.default_rng(0)
    base = generate.round(jobs=JOBS, gpus=GPUS, seed=0)
    states = [replace(state, allocation=None) for state in base.jobs]
    for k in range(decisions):
        if k % REPLACED == 0:
            j = k // REPLACED % len(states)
            job = replace(states[j].job, id=f"job-{k}", submit_s=k * base.length_s)
            states[j] = replace(states[j], job=job)
        waiting = tuple(_noisy(state, float(rng.uniform(0.5, 2.0))) for state in states)
        now_s = (k + 1) * base.length_s
        yield replace(base, now_s=now_s, running=(), waiting=waiting)


def _noisy(state: JobState, factor: float) -> JobState:
    noise = state.noise or NoiseScale(batches=(64.0,), scale=(1000.0,))
    return replace(state, noise=replace(noise, scale=tuple(factor * s for s in noise.scale)))


def with_running(round: Round, plan: Plan) -> Round:
    """Return a round in which the jobs of the last plan run as it says."""
    since_s = round.now_s - round.length_s
    running, waiting = [], []
    for state in round.jobs:
        allocation = plan.allocations.get(state.job.id)
        if allocation is None:
            waiting.append(state)
        else:
            running.append(replace(state, allocation=allocation, since_s=since_s, started=True))
    return replace(round, running=tuple(running), waiting=tuple(waiting))


def decide(policy: str, decisions: int) -> tuple[float, float]:
    """Return this process's resident memory in MiB after the first decisions and at the end."""
    chosen, plan, process = policy_of(policy), None, psutil.Process()
    early = 0
    for k, round_ in enumerate(rounds(decisions), start=1):
        now = with_running(round_, plan) if plan else round_
        plan = chosen.plan(now, deadline=Deadline(), seed=0, initial=plan)
        if k == min(FIRST, decisions):
            early = process.memory_info().rss
    return early / 2**20, process.memory_info().rss / 2**20


def measure(policy: str, decisions: int) -> dict[str, Any]:
    """Let a policy decide in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        early, end = process.submit(decide, policy, decisions).result()
    return {"rss_early_mib": early, "rss_end_mib": end, "ratio": end / early}


def table(lines: pd.DataFrame) -> str:
    """Return the memory of all policies, in Markdown."""
    numbers = zip(lines.rss_early_mib, lines.rss_end_mib, lines.ratio, strict=True)
    memory = [[f"{early:.2f}", f"{end:.2f}", f"{ratio:.4f}"] for early, end, ratio in numbers]
    rows = [[policy, *cells] for policy, cells in zip(lines.policy, memory, strict=True)]
    return markdown(["policy", "early (MiB)", "end (MiB)", "ratio"], rows)


def compare(folder: Folder, policies: Sequence[str], decisions: int) -> int:
    """Measure all policies; return the exit code."""
    cases = [{"policy": policy, "decisions": decisions} for policy in policies]
    lines = folder.measure(cases, measure)
    folder.write(table(lines))
    return int((lines.ratio > MOST).any())


command = study(
    "memory",
    __doc__,
    compare,
    [
        policies("optimus,prices,ones"),
        option("--decisions", type=click.IntRange(1), default=100_000, help="Of each policy."),
    ],
)
