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
from typing import Any, NamedTuple

import click
import msgspec
import numpy as np
import pandas as pd

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
from ronda.bench.study.moving_bound import bound_with_moves
from ronda.formulations.allocation.limits import limits
from ronda.formulations.genes.building import genes
from ronda.formulations.genes.neighbourhood import move_losses, settle
from ronda.formulations.options.table import OptionTable, rows_of
from ronda.formulations.placement.moves import loss_of_moves
from ronda.instances import generate
from ronda.instances.arrays import Floats
from ronda.instances.job import JobState
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers import registry
from ronda.solvers.contract import Deadline
from ronda.solvers.decision.by_prices import allocate_by_fill, unit_prices
from ronda.solvers.decision.question import Question

FINISHED = 1.0 / 3.0
"""Share of the jobs that finish between the two rounds."""

ELAPSED_S = 600.0
"""Seconds between the two rounds."""

LARGE = 8
"""One in this many new jobs needs 8 to 32 GPUs (whole nodes), and counts eightfold."""


def settled(jobs: int, gpus: int, severity: str, seed: int) -> Round:
    """Return a round whose running jobs are scattered over the nodes.

    Parameters
    ----------
    jobs, gpus, severity, seed
        Of the generated round (`ronda.instances.generate.round`).
    """
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
            waiting.append(msgspec.structs.replace(state, allocation=None, since_s=now_s))
            continue
        running.append(
            msgspec.structs.replace(
                state,
                allocation=allocation,
                started=True,
                since_s=first.now_s,
                held_s=first.now_s,
            )
        )
    gone = jobs - len(running) - len(waiting)
    return msgspec.structs.replace(
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
        job = msgspec.structs.replace(state.job, id=f"new-{state.job.id}", submit_s=now_s)
        if k % LARGE == 0:
            job = msgspec.structs.replace(job, gpus=8, min_gpus=8, max_gpus=32, weight=8.0)
        states.append(JobState(job=job, since_s=now_s, noise=state.noise))
    return states


def worth_of(
    round: Round,
    table: OptionTable,
    worth: Floats,
    plan: Plan,
) -> float:
    """Return the value of what a plan places, less what its moves cost."""
    rows = rows_of(table, plan)
    rows = rows[rows >= 0]
    lost = loss_of_moves(round, table, worth, rows, plan.details.get("moved", ()))
    return float(worth[rows].sum()) - lost


class _Valued(NamedTuple):
    """A settled round, its options with their values, and the bound that knows of moves."""

    round: Round
    table: OptionTable
    worth: Floats
    tight_bound: float


@lru_cache(maxsize=1)
def _valued(jobs: int, gpus: int, severity: str, seed: int) -> _Valued:
    round = settled(jobs, gpus, severity, seed)
    question = Question.of(round, "rank")
    table, worth = question.table, question.values
    prices = unit_prices(round, allocate_by_fill(round, table, worth).prices)
    losses = move_losses(round, table, worth)
    pool = settle(genes(table, worth, limits(round, table), prices), round, table, losses)
    return _Valued(round, table, worth, bound_with_moves(pool))


def measure(
    jobs: int, gpus: int, severity: str, seed: int, policy: str, limit_s: float
) -> dict[str, Any]:
    """Let a policy plan a settled round, and judge the plan.

    Returns
    -------
    dict
        ``worth``: value of what is placed less moves; ``bound``: the policy's own;
        ``tight_bound``: that knows of moves (`ronda.bench.study.moving_bound`); ``moved`` and
        ``unplaced``: jobs that change nodes for the same option, or found no room.
    """
    round, table, worth, tight_bound = _valued(jobs, gpus, severity, seed)
    deadline = Deadline(limit_s)
    plan = registry.policy(policy).plan(round, deadline=deadline, seed=0)
    total_s = deadline.elapsed()
    return {
        "options": len(table),
        "worth": worth_of(round, table, worth, plan),
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
    limits_s: Sequence[float],
) -> None:
    """Measure the rounds of all severities and seeds."""
    size = {"jobs": jobs, "gpus": gpus or jobs}
    cases = [
        size | {"severity": severity, "seed": seed, "policy": name, "limit_s": limit_s}
        for severity, seed, limit_s, name in product(severities, seeds, limits_s, policies)
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
        numbers("--limits", "limits_s", "2,10", "Seconds for each plan, as in 2,10."),
    ],
)
