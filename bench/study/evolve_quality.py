"""How near to the certified bound plans come once placement and moves are paid for.

The rounds are *settled*: a generated round is decided, a third of the jobs that run then finish at
random and as many others wait, so that what still runs is scattered over the nodes and a new job of
several nodes has to make room. A plan's worth is the value of the options that it places, less
what the moves of jobs that keep their option cost; the bound is on the value without moves, so it
bounds the worth as well.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import click
import numpy as np
import pandas as pd
from msgspec.structs import replace
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

from ronda.bench.study.harness import (
    Folder,
    jobs,
    markdown,
    numbers,
    policies,
    seeds,
    study,
    words,
)
from ronda.formulations.allocation.case import make_case
from ronda.formulations.allocation.rows import separable
from ronda.formulations.clock import Deadline
from ronda.formulations.genes import Genes, genes_of, move_losses, settle
from ronda.formulations.objectives.outlook import loss_of_moves
from ronda.formulations.options.table import rows_of
from ronda.instances import generate
from ronda.instances.arrays import Floats, Rows
from ronda.instances.errors import RondaError
from ronda.instances.job import JobState
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers import registry
from ronda.solvers.decision.plan import Question

ROUNDING = 1e-7
"""Relative tolerance of the linear program, added to the bound."""

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
    moved = plan.details.get("moved", ())
    return float(values[rows].sum()) - loss_of_moves(question.round, table, values, rows, moved)


def bound_with_moves(genes: Genes) -> float:
    """Return what no plan of the genes is worth more than, moves paid for, by linear programming.

    The dual bound of a round knows nothing of nodes. This relaxation adds what large jobs need:
    nodes that are empty, from which every job that keeps its option must go at its loss::

        max  sum_k value[k] x[k] - sum_j loss[j] (x[held j] - s[j])
        s.t. sum_{k of job i} x[k] <= 1                                  for each job i
             sum_k use[r, k] x[k] + sum_b use[r, b] z[b] <= capacity[r]  for each resource r
             s[j] <= x[held j]                                           for each running job j
             s[j] + e[n] <= 1                                            if j holds GPUs of node n
             sum_k need[k] x[k] - sum_j need[held j] s[j] <= sum_n M[n] e[n]
             0 <= x, s, e <= 1,  0 <= z[b] <= count[b]

    with s[j] = 1 if j stays exactly where it is, e[n] = 1 if node n is given to whole-node pieces
    of other jobs, and need[k] the GPUs of row k in whole nodes (placement cuts every job so).
    Blocks below a node, racks and integrality are left out: all of that only raises the bound. The
    genes know where jobs run (`ronda.formulations.genes.neighbourhood.settle`).
    """
    problem, pools = genes.problem, list(genes.moving)
    rows, blocks = len(problem.value), len(problem.block_value)
    stays = sum(len(pool.job) for pool in pools)
    gain = np.concatenate([problem.value, problem.block_value])
    gain = np.append(gain, np.zeros(stays + sum(len(pool.free) for pool in pools)))
    top = np.ones(len(gain))
    top[rows : rows + blocks] = problem.block_count
    system, job = _System(), np.repeat(np.arange(problem.jobs), np.diff(problem.start))
    system.add(np.ones(problem.jobs), job, np.arange(rows))
    firm = np.cumsum(problem.must) - 1  # jobs that must run: minus their rows, at most -1
    line = np.flatnonzero(problem.must[job])
    system.add(np.full(int(problem.must.sum()), -1.0), firm[job[line]], line, -1.0)
    use = np.hstack([problem.use, problem.block_use])
    resource, column = np.nonzero(use)
    system.add(problem.capacity, resource, column, use[resource, column])
    s, e = rows + blocks, rows + blocks + stays
    for pool in pools:
        here = np.arange(len(pool.job))
        gain[s + here] += pool.loss
        np.subtract.at(gain, pool.row, pool.loss)
        signs = np.repeat([1.0, -1.0], len(here))
        system.add(np.zeros(len(here)), np.r_[here, here], np.r_[s + here, pool.row], signs)
        who, node = np.nonzero(pool.at)
        line = np.arange(len(who))
        system.add(np.ones(len(who)), np.r_[line, line], np.r_[s + who, e + node])
        whole = float(pool.sizes[0])
        asks, room = np.flatnonzero(pool.need[0]), np.flatnonzero(pool.free >= whole)
        gpus = np.r_[pool.need[0, asks], -pool.need[0, pool.row], np.full(len(room), -whole)]
        columns = np.r_[asks, s + here, e + room]
        system.add(np.zeros(1), np.zeros_like(columns), columns, gpus)
        s, e = s + len(here), e + len(pool.free)
    matrix, limit = system.arrays(len(gain))
    bounds = [(0.0, most) for most in top.tolist()]
    solved: Any = linprog(-gain, A_ub=matrix, b_ub=limit, bounds=bounds, method="highs")
    if solved.status != 0:  # numbers out of all proportion
        raise RondaError(f"bound with moves: {solved.message}")
    value = -float(solved.fun)
    return value + ROUNDING * abs(value)


class _System:
    """Constraints as they come: the rows of a sparse matrix, and their right-hand sides."""

    def __init__(self) -> None:
        self.top: list[Floats] = []
        self.parts: list[tuple[ArrayLike, Rows, Rows]] = []
        self.rows = 0

    def add(self, top: Floats, rows: Rows, columns: Rows, numbers: ArrayLike = 1.0) -> None:
        """Add constraints: the numbers at (rows, columns), at most `top`."""
        self.parts.append((np.broadcast_to(numbers, rows.shape), self.rows + rows, columns))
        self.top.append(top)
        self.rows += len(top)

    def arrays(self, width: int) -> tuple[Any, Floats]:
        """Return the matrix and the right-hand sides."""
        numbers, rows, columns = (np.concatenate(part) for part in zip(*self.parts, strict=True))
        matrix = coo_matrix((numbers, (rows, columns)), shape=(self.rows, width))
        return matrix.tocsr(), np.concatenate(self.top)


@lru_cache(maxsize=1)
def _valued(jobs: int, gpus: int, severity: str, seed: int) -> tuple[Question, float]:
    """Return a settled round with its options' values, and the bound that knows of moves."""
    question = Question.of(settled(jobs, gpus, severity, seed), "rank")
    case = make_case(question.round, question.table, question.values)
    problem = separable(case)
    losses = move_losses(question.round, question.table, question.values)
    return question, bound_with_moves(settle(genes_of(problem, problem.capacity), case, losses))


def measure(
    jobs: int, gpus: int, severity: str, seed: int, policy: str, limit_s: float
) -> dict[str, Any]:
    """Let a policy plan a settled round, and judge the plan.

    `moved` and `unplaced` are jobs that change nodes for the same option, or found no room.
    """
    question, tight_bound = _valued(jobs, gpus, severity, seed)
    deadline = Deadline(limit_s)
    plan = registry.policy(policy).plan(question.round, deadline=deadline, seed=0)
    total_s = deadline.elapsed()
    return {
        "options": len(question.table),
        "worth": worth_of(question, plan),
        "bound": plan.bound,
        "tight_bound": tight_bound,
        "moved": len(plan.details.get("moved", ())),
        "unplaced": len(plan.details.get("unplaced", ())),
        "generations": plan.details.get("generations", 0),
        "total_s": total_s,
    }


def worst_gaps(plans: pd.DataFrame) -> str:
    """Return the worst gaps over the rounds of a severity, by policy and limit; Markdown.

    A round's bound is the least of all policies'. In brackets the gap to the bound that knows of
    moves.
    """
    bound = plans.groupby(["severity", "seed"]).bound.transform("min")
    tight = bound.clip(upper=plans.tight_bound)
    gaps = plans.assign(gap=_gap(bound, plans.worth), tight_gap=_gap(tight, plans.worth))
    worst = gaps.groupby(["policy", "limit_s", "severity"], sort=False)[["gap", "tight_gap"]].max()
    severities = list(plans.severity.unique())
    rows = []
    for (name, limit_s), own in worst.groupby(level=["policy", "limit_s"], sort=False):
        found = own.droplevel(["policy", "limit_s"])
        percent = (100 * found.loc[severity] for severity in severities)
        rows.append(
            [f"{name}", f"{limit_s:g}", *(f"{p.gap:.2f} ({p.tight_gap:.2f})" for p in percent)]
        )
    header = [f"{severity}: worst gap (%)" for severity in severities]
    return markdown(["policy", "limit (s)", *header], rows)


def _gap(bound: "pd.Series[float]", worth: "pd.Series[float]") -> "pd.Series[float]":
    return (bound - worth).clip(lower=0.0) / bound.abs()


def compare(
    folder: Folder,
    seeds: Sequence[int],
    jobs: int,
    gpus: int | None,
    severities: Sequence[str],
    policies: Sequence[str],
    limits: Sequence[float],
) -> None:
    """Measure the rounds of all severities and seeds."""
    size = {"jobs": jobs, "gpus": gpus or jobs}
    cases = [
        size | {"severity": severity, "seed": seed, "policy": name, "limit_s": limit_s}
        for severity, seed, limit_s, name in product(severities, seeds, limits, policies)
    ]
    folder.write(worst_gaps(folder.measure(cases, measure)))


command = study(
    "evolve-quality",
    __doc__,
    compare,
    [
        seeds("0-2"),
        jobs(512),
        click.Option(["--gpus"], type=click.IntRange(1), help="As many as jobs by default."),
        words("--severities", ("balanced", "tight"), "Of the generated rounds."),
        policies("evolve(gap=0),genetic,prices"),
        numbers("--limits", "2,10", "Seconds for each plan, as in 2,10."),
    ],
)
