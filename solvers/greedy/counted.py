"""Climbing by numbers: GPUs and watts are counted; which nodes these are, placement tells.

The best step of all jobs is taken first, whatever a step is: more GPUs, or a higher clock.

Watts are limited at once, by the power cap or those of racks that hold all nodes, and throughout
the energy window, in which each job is charged its share (`ronda.formulations.watts`). Nodes that
no job needs sleep, if that helps; the GPUs of a pool fill its nodes one after the other.
"""

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ronda.formulations.allocation.model_data import charged_w
from ronda.formulations.options.table import OptionTable
from ronda.formulations.watts import (
    base_w,
    extra_w,
    may_sleep,
    node_classes,
    node_steps_w,
    outermost_w,
    seconds_left,
    share,
)
from ronda.instances.arrays import Floats, Rows
from ronda.instances.clock import checkpoint, watched
from ronda.instances.job import JobState, Option
from ronda.instances.round import Round
from ronda.instances.violation import ROUNDING

Charge = Sequence[float]
"""Watts that a job adds at once, and as it is charged throughout the energy window."""


@dataclass(slots=True)
class Counted:
    """What is left: ``gpus`` (P,) in each pool, and ``watts`` at once and throughout the window.

    ``node_w`` (P,) are the watts of the nodes that 0, 1, … GPUs of each pool keep awake.
    """

    gpus: list[int]
    watts: list[float]
    node_w: list[Floats]

    @classmethod
    def of(cls, round: Round) -> "Counted":
        """Return all that a round has, on nodes without jobs."""
        pools, base, classes = round.cluster.topology.pools, base_w(round), node_classes(round)
        caps = [w for w in (round.power_cap_w, outermost_w(round.cluster)) if w is not None]
        window_w = np.inf if round.energy_j is None else round.energy_j / round.window_s
        limits = (min(caps, default=np.inf), window_w)
        return cls(
            [pool.gpus for pool in pools],
            [w * (1 + ROUNDING) - base for w in limits],
            [
                node_steps_w(classes, p) if may_sleep(round) else np.zeros(pool.gpus + 1)
                for p, pool in enumerate(pools)
            ],
        )

    @property
    def limited(self) -> bool:
        """Whether watts are limited."""
        return min(self.watts) < np.inf

    def rest(self) -> "Counted":
        """Return what is left, to be taken in another way."""
        return replace(self, gpus=[*self.gpus], watts=[*self.watts])

    def take(self, pool: int, gpus: int, watts: Charge, *, anyhow: bool = False) -> bool:
        """Take some more GPUs of a pool and watts, if they are there or `anyhow`; whether."""
        steps = self.node_w[pool]
        used = len(steps) - 1 - self.gpus[pool]
        enough = gpus <= self.gpus[pool]
        if not enough and not anyhow:
            return False
        nodes_w = float(steps[min(used + gpus, len(steps) - 1)] - steps[min(used, len(steps) - 1)])
        left = [w - more - nodes_w for w, more in zip(self.watts, watts, strict=True)]
        enough = enough and all(w >= min(now, 0.0) for w, now in zip(left, self.watts, strict=True))
        if enough or anyhow:
            self.gpus[pool] -= gpus
            self.watts = left
        return enough


def charge(round: Round, state: JobState, option: Option) -> Charge:
    """Return what a job is charged; less than idle would let it pay for others."""
    watts = max(0.0, extra_w(round, option))
    if round.energy_j is None:
        return watts, watts
    seconds = np.array(seconds_left(round, state, option))
    return watts, watts * float(share(round, seconds))


Step = tuple[float, int]
"""What a step costs, for each gain that it brings, and where it leads."""


def climb(
    jobs: Iterable[int],
    best: Callable[[int], Step | None],
    take: Callable[[int, int], Iterable[int]],
) -> None:
    """Let jobs take their `best` steps, that of least cost first, until none of them has one.

    `take` lets a job take a step if there is room, or else none; it returns the jobs whose best
    step is another one by that, this one too if it is to go on.
    """
    queue: list[tuple[float, int, int]] = []

    def offer(job: int) -> None:
        if (step := best(job)) is not None:
            heapq.heappush(queue, (step[0], job, step[1]))

    for job in watched(jobs):
        offer(job)
    while queue:
        checkpoint()
        cost, job, to = heapq.heappop(queue)
        if best(job) == (cost, to):  # else it has another one by now, which was offered
            for again in take(job, to):
                offer(again)


class RowUses(NamedTuple):
    """What each row of a table takes: GPUs of a pool, and ``watts`` (K, 2) as `charge` says."""

    pool: Rows
    gpus: Rows
    watts: Floats


def uses(round: Round, table: OptionTable) -> RowUses:
    """Return what the rows of a table take."""
    watts = np.maximum(np.stack([table.extra_w, charged_w(round, table)], axis=1), 0.0)
    return RowUses(table.pool, table.gpus, watts)
