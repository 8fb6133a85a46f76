"""Pollux-like: a greedy climb to the best power mean of the jobs' speedups."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ronda.formulations.objectives.by_name import restart_factor
from ronda.formulations.options.application import application_of
from ronda.formulations.options.build import build
from ronda.formulations.options.gpu_ladders import Homes, Ladder
from ronda.instances.clock import Deadline, checkpoint
from ronda.instances.job import JobState
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.gpu_climb import GpuLadderClimb
from ronda.solvers.greedy.policy import Clocked

FLOOR = 1e-3
"""The artifact adds this number to every speedup, so that a job without GPUs costs 1 / FLOOR."""

DELAY_S = 30.0
"""The seconds per restart in the penalty f, as in the artifact."""


class LadderWorth(NamedTuple):
    """A job's ladder, and the value of each of its steps over having no GPUs."""

    ladder: Ladder
    value: list[float]


@dataclass(frozen=True)
class PolluxLike(Clocked):
    """Maximise the harmonic mean of all jobs' speedups relative to a fair share of the GPUs.

    The objective is that of Pollux (Qiao et al., OSDI 2021) in its artifact. A greedy search of our
    own replaces its NSGA-II. It minimises ``sum_j w_j / (s_j f_j + 0.001)``, where s_j is the
    goodput (throughput x statistical efficiency at the best batch) relative to that of a fair share
    of the GPUs, times nodes per GPU. For any change of allocation
    ``f_j = max(age - delay n, 0) / (age + delay)`` after n restarts. A first start is no restart
    here: f_j = 1. GPU counts are those of `Application.sizes`.

    The search climbs the concave hulls of the jobs' values, with the steepest step of all jobs
    first. That is optimal except for the last GPUs, which go to the best steps that still fit.
    """

    name: ClassVar[str] = "pollux-like"
    capabilities: ClassVar[Capability] = (
        Capability.ELASTIC | Capability.PREEMPTS | Capability.SLEEPS
    )
    takes_turns: ClassVar[bool] = True

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Decide the number of GPUs and the batch of every job."""
        jobs = worths(round)
        ladders = [job.ladder for job in jobs]
        climb = GpuLadderClimb(round, ladders, self.clocks(round))
        steepest = sorted(
            (-slope, j, step)
            for j, job in enumerate(jobs)
            for slope, step in hull_steps(job.ladder.gpus, job.value)
        )
        stuck: set[int] = set()
        for _, j, step in steepest:
            if j not in stuck and not climb.move(j, step):
                stuck.add(j)

        def fall(j: int) -> float | None:
            rise = 0.0 if climb.top(j) else slope(climb, jobs, j)
            return -rise if rise > 0 else None

        climb.climb(range(len(jobs)), fall)
        return climb.plan(self.name, initial)


def slope(climb: GpuLadderClimb, jobs: list[LadderWorth], j: int) -> float:
    """Return the value that a job's next step adds, per added GPU."""
    step, value, gpus = climb.step[j], jobs[j].value, jobs[j].ladder.gpus
    before, had = (value[step], gpus[step]) if step >= 0 else (0.0, 0)
    return (value[step + 1] - before) / (gpus[step + 1] - had)


def hull_steps(gpus: tuple[int, ...], value: list[float]) -> list[tuple[float, int]]:
    """Return the concave hull of a job's values, from no GPUs on, as (value per GPU, step).

    Slopes fall along the hull. Steps that do not raise the value are left out.
    """
    hull: list[tuple[float, int]] = []
    at: list[tuple[int, float]] = [(0, 0.0)]
    for step, (g, v) in enumerate(zip(gpus, value, strict=True)):
        while hull and (v - at[-1][1]) / (g - at[-1][0]) >= hull[-1][0]:
            hull.pop()
            at.pop()
        rise = (v - at[-1][1]) / (g - at[-1][0])
        if rise > 0:
            hull.append((rise, step))
            at.append((g, v))
    return hull


def worths(round: Round) -> list[LadderWorth]:
    """Return the ladders of the movable jobs and their values, in order of submission."""
    table = build(round, prune=False, mind_power=False)
    homes = Homes(round)
    fair = -(-round.cluster.gpus // max(1, len(round.jobs)))
    order = sorted(
        np.flatnonzero(~table.must_run).tolist(), key=lambda j: table.jobs[j].job.submit_s
    )
    full = np.flatnonzero(table.clock == 1.0)
    asked = table.gpus if table.asked is None else table.asked.astype(int)
    columns = (table.pool, table.gpus, table.batch, table.rate, asked)
    rows = list(zip(*(column[full].tolist() for column in columns), strict=True))
    start = np.searchsorted(full, table.start).tolist()
    found = []
    for j in order:
        checkpoint()
        state = table.jobs[j]
        own = rows[start[j] : start[j + 1]]
        least: dict[int, int] = {}
        for pool, gpus, *_ in own:
            if gpus < least.get(pool, gpus + 1):
                least[pool] = gpus
        home = homes.choose(state, least)
        if home is not None:
            own = [row for row in own if row[0] == home]
            found.append(_worth(round, state, home, own, fair))
    return found


def _worth(
    round: Round,
    state: JobState,
    pool: int,
    rows: list[tuple[int, int, float, float, int]],
    fair: int,
) -> LadderWorth:
    """Return the ladder of a job in a pool with the value of each GPU count.

    Each count has its best batch, or the batch that the job runs with where that is better. `rows`
    are (pool, GPUs, batch, rate at full clock, computing GPUs), and `fair` is the GPUs of a fair
    share.
    """
    steps = {gpus: (batch, rate, False, asked) for _, gpus, batch, rate, asked in rows}
    where = round.cluster.topology.pools[pool]
    few = max(fair, min(steps))
    fair_rate = max(rate for gpus, (_, rate, *_) in steps.items() if gpus <= few)
    factor = restart_factor(round, state, DELAY_S)
    held = state.allocation.option if state.allocation else None
    if held is not None and held.pool == pool:
        of = application_of(round, state, pool)
        same, alone = None, held.asked is not None
        if of is not None:
            same = of.option(held.computing, held.batch, state.noise, exclusive=alone)
        other = steps.get(held.gpus)
        if same is not None and (other is None or same.rate >= other[1] * factor):
            steps[held.gpus] = (held.batch, same.rate, True, held.computing)
    gpus, columns = zip(*sorted(steps.items()), strict=True)
    batch, rate, stays, computing = zip(*columns, strict=True)
    scale, weight = where.nodes / where.gpus / fair_rate, state.job.weight
    value = [
        weight * (1.0 / FLOOR - 1.0 / (r * scale * (1.0 if stay else factor) + FLOOR))
        for r, stay in zip(rate, stays, strict=True)
    ]
    return LadderWorth(Ladder(state, pool, gpus, batch, rate, computing), value)
