"""How near to the certified bound plans come once placement and moves are paid for.

``python -m ronda.bench.study.evolve_quality --jobs 512 --limits 2,10`` prints one JSON object a
line. The rounds are *settled*: a generated round is decided, a third of the jobs that run then
finish at random and as many others wait, so that what still runs is scattered over the nodes and a
new job of several nodes has to make room. A plan's worth is the value of the options that it
places, less what the moves of jobs that keep their option cost; the bound is on the value without
moves, so it bounds the worth as well.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import msgspec
import numpy as np

from ronda.bench.runs.specs import split_policies
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
from ronda.solvers.contract import Deadline
from ronda.solvers.decision.by_prices import allocate_by_fill, unit_prices
from ronda.solvers.decision.question import Question
from ronda.solvers.registry import policy

FINISHED = 1.0 / 3.0
"""Share of the jobs that finish between the two rounds."""

ELAPSED_S = 600.0
"""Seconds between the two rounds."""


LARGE = 8
"""One of so many new jobs needs at least 8 GPUs (a node), at most 32, and counts eightfold."""


@dataclass(frozen=True, slots=True)
class Quality:
    """One plan.

    Attributes
    ----------
    case, round, jobs, running, gpus, options, policy, limit_s
        What was asked of whom.
    worth, bound, gap
        Value of what is placed less moves; the least bound of all policies asked; relative gap.
    tight_bound, tight_gap
        The same with the bound that knows of moves (`ronda.bench.study.moving_bound`), if it is
        less.
    moved, unplaced, stays
        Jobs that change nodes for the same option, found no room, or keep their allocation.
    generations, total_s
        How long it took.
    """

    case: str
    round: str
    jobs: int
    running: int
    gpus: int
    options: int
    policy: str
    limit_s: float
    worth: float
    bound: float
    gap: float
    tight_bound: float
    tight_gap: float
    moved: int
    unplaced: int
    stays: int
    generations: int
    total_s: float


def settled(jobs: int, gpus: int, severity: str, seed: int) -> Round:
    """Return a round whose running jobs are scattered over the nodes.

    Parameters
    ----------
    jobs, gpus, severity, seed
        Of the generated round (`ronda.instances.generate.round`).
    """
    first = generate.round(jobs=jobs, gpus=gpus, severity=severity, seed=seed)
    plan = policy("prices").plan(first, deadline=Deadline(), seed=seed)
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
    """Return so many jobs that have just been submitted."""
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


def measure(
    round: Round, policies: Sequence[str], limits_s: Sequence[float], *, seed: int = 0
) -> list[Quality]:
    """Ask each policy within each limit, and judge all plans alike."""
    question = Question.of(round, "rank")
    table, worth = question.table, question.values
    asked = [(name, limit_s) for limit_s in limits_s for name in policies]
    plans = []
    for name, limit_s in asked:
        deadline = Deadline(limit_s)
        plan = policy(name).plan(round, deadline=deadline, seed=seed)
        plans.append((plan, deadline.elapsed()))
    bound = min(plan.bound for plan, _ in plans if plan.bound is not None)
    prices = unit_prices(round, allocate_by_fill(round, table, worth).prices)
    losses = move_losses(round, table, worth)
    pool = settle(genes(table, worth, limits(round, table), prices), round, table, losses)
    tight = min(bound, bound_with_moves(pool))
    found = []
    for (name, limit_s), (plan, total_s) in zip(asked, plans, strict=True):
        own = worth_of(round, table, worth, plan)
        found.append(
            Quality(
                case="evolve-quality",
                round=round.name,
                jobs=len(round.jobs),
                running=len(round.running),
                gpus=round.cluster.gpus,
                options=len(table),
                policy=name,
                limit_s=limit_s,
                worth=own,
                bound=bound,
                gap=max(0.0, bound - own) / abs(bound),
                tight_bound=tight,
                tight_gap=max(0.0, tight - own) / abs(tight),
                moved=len(plan.details.get("moved", ())),
                unplaced=len(plan.details.get("unplaced", ())),
                stays=sum(plan.allocations.get(s.job.id) is s.allocation for s in round.running),
                generations=int(plan.details.get("generations", 0)),
                total_s=total_s,
            )
        )
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the rounds that were asked for, one JSON object a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=512)
    parser.add_argument("--gpus", type=int, default=None, help="as many as jobs by default")
    parser.add_argument("--severities", default="balanced,tight")
    parser.add_argument("--seeds", type=int, default=3, help="rounds of each severity")
    parser.add_argument("--limits", default="2,10", help="seconds, as in 2,10")
    parser.add_argument("--policies", default="evolve(gap=0),genetic,prices")
    asked = parser.parse_args(arguments)
    limits_s = [float(part) for part in asked.limits.split(",")]
    policies = split_policies(asked.policies)
    for severity in asked.severities.split(","):
        for seed in range(asked.seeds):
            round_ = settled(asked.jobs, asked.gpus or asked.jobs, severity, seed)
            for line in measure(round_, policies, limits_s):
                sys.stdout.write(msgspec.json.encode(asdict(line)).decode() + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
