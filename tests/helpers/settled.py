"""Rounds whose running jobs are scattered over the nodes, and what a plan of one is worth."""

import numpy as np
from msgspec.structs import replace

from ronda.formulations.objectives.switching_cost import loss_of_moves
from ronda.formulations.options.table import rows_of
from ronda.instances import generate
from ronda.instances.clock import Deadline
from ronda.instances.job import JobState
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers import registry
from ronda.solvers.decision.plan import Question

FINISHED = 1.0 / 3.0
"""Share of the jobs that finish between the two rounds."""

ELAPSED_S = 600.0
"""Seconds between the two rounds."""

LARGE = 8
"""One in this many new jobs needs 8 to 32 GPUs (whole nodes), and counts eightfold."""


def settled(jobs: int, gpus: int, severity: str, seed: int) -> Round:
    """Return a round whose running jobs are scattered over the nodes."""
    first = generate.round(jobs=jobs, gpus=gpus, severity=severity, seed=seed)
    plan = registry.policy("prices").plan(first, deadline=Deadline(), seed=seed)
    now_s = first.now_s + ELAPSED_S
    rng = np.random.default_rng([seed, 2])
    running, waiting = [], []
    for state in first.jobs:
        if rng.random() < FINISHED:
            continue
        allocation = plan.allocations.get(state.job.id)
        if allocation is None:
            waiting.append(replace(state, allocation=None, since_s=now_s))
        else:
            began = {"since_s": first.now_s, "held_s": first.now_s}
            running.append(replace(state, allocation=allocation, started=True, **began))
    gone = jobs - len(running) - len(waiting)
    return replace(
        first,
        name=f"settled-{severity}-{jobs}-{seed}",
        now_s=now_s,
        running=tuple(running),
        waiting=(*waiting, *_arrivals(gone, gpus, severity, seed, now_s)),
    )


def _arrivals(count: int, gpus: int, severity: str, seed: int, now_s: float) -> list[JobState]:
    """Return jobs that have just been submitted."""
    other = generate.round(jobs=max(1, count), gpus=gpus, severity=severity, seed=seed + 10_000)
    states = []
    for k, state in enumerate(other.jobs[:count]):
        job = replace(state.job, id=f"new-{state.job.id}", submit_s=now_s)
        if k % LARGE == 0:
            job = replace(job, gpus=8, min_gpus=8, max_gpus=32, weight=8.0)
        states.append(JobState(job=job, since_s=now_s, noise=state.noise))
    return states


def worth_of(question: Question, plan: Plan) -> float:
    """Return the value of what a plan places, less what its moves cost."""
    table, values = question.table, question.values
    rows = rows_of(table, plan)
    rows = rows[rows >= 0]
    moved = plan.details.moved
    return float(values[rows].sum()) - loss_of_moves(question.round, table, values, rows, moved)
