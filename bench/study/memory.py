"""Whether memory stays flat while a policy decides on and on: one JSON line a policy.

``python -m ronda.bench.study.memory --decisions 100000 --policies optimus,prices,ones`` lets each
policy, in a process of its own, decide rounds of a few jobs whose gradient noise is another one
each time, and of which one is replaced by a new one now and then: as in a scheduler that runs for
months. ``ratio`` is the resident memory at the end over that after the first 5,000 decisions.
"""

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from ronda.instances import generate
from ronda.instances.job import JobState
from ronda.instances.plan import Plan
from ronda.instances.profile import NoiseScale
from ronda.instances.round import Round
from ronda.solvers.contract import Deadline
from ronda.solvers.registry import policy

FIRST = 5000
"""Decisions after which memory must not grow."""

JOBS, GPUS = 4, 8
"""Of a round: small, as it is the number of decisions that counts."""

REPLACED = 20
"""Decisions after which a job has ended and another one has come."""


def rounds(decisions: int, seed: int = 0) -> Iterator[Round]:
    """Yield rounds of the same cluster with new noise each time, and sometimes a new job."""
    rng = np.random.default_rng(seed)
    base = generate.round(jobs=JOBS, gpus=GPUS, seed=seed)
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


def with_running(round: Round, plan: Plan | None) -> Round:
    """Return a round in which the jobs of the last plan run as it says."""
    if plan is None:
        return round
    running, waiting = [], []
    for state in round.jobs:
        allocation = plan.allocations.get(state.job.id)
        if allocation is None:
            waiting.append(state)
        else:
            since_s = round.now_s - round.length_s
            running.append(replace(state, allocation=allocation, since_s=since_s, started=True))
    return replace(round, running=tuple(running), waiting=tuple(waiting))


def decide(name: str, decisions: int, seed: int = 0) -> Iterator[Plan]:
    """Yield the plans of a policy for rounds that follow each other."""
    chosen, plan = policy(name), None
    for round in rounds(decisions, seed):
        now = with_running(round, plan)
        plan = chosen.plan(now, deadline=Deadline(), seed=seed, initial=plan)
        yield plan


def measure(name: str, decisions: int) -> dict[str, Any]:
    """Return resident memory in MiB after the first decisions and at the end."""
    early = 0.0
    for k, _ in enumerate(decide(name, decisions), start=1):
        if k == min(FIRST, decisions):
            early = rss_mib()
    late = rss_mib()
    return {
        "policy": name,
        "decisions": decisions,
        "rss_early_mib": round(early, 2),
        "rss_end_mib": round(late, 2),
        "ratio": round(late / early, 4),
    }


def rss_mib() -> float:
    """Return the resident memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each policy; 1 if memory grew by more than 5 % in any of them."""
    parser = argparse.ArgumentParser(prog="ronda.bench.study.memory", description=__doc__)
    parser.add_argument("--decisions", type=int, default=100_000)
    parser.add_argument("--policies", default="optimus,prices,ones")
    asked = parser.parse_args(argv)
    grown = False
    for name in asked.policies.split(","):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            line = process.submit(measure, name, asked.decisions).result()
        print(json.dumps(line), flush=True)
        grown = grown or line["ratio"] > 1.05
    return int(grown)


if __name__ == "__main__":
    raise SystemExit(main())
