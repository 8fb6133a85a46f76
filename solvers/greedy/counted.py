"""Climbing by numbers: GPUs and watts are counted, and placement chooses the nodes later.

The best step of all jobs is taken first. A step may be more GPUs or a higher clock.

There are two limits on watts. The momentary limit is the power cap, or the caps of racks that hold
all nodes. The other is the mean over the energy window, in which each job is charged its share
(`ronda.formulations.watts`). Nodes that no job needs sleep, if that helps. The GPUs of a pool fill
its nodes one after another.
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
from ronda.instances.base import Floats, Rows
from ronda.instances.clock import checkpoint, watched
from ronda.instances.job import JobState, Option
from ronda.instances.round import Round
from ronda.instances.violation import ROUNDING

Charge = Sequence[float]
"""The watts that a job adds now, and the watts that it is charged over the energy window."""


@dataclass(slots=True)
class Counted:
    """The remaining ``gpus`` (P,) in each pool, and ``watts`` now and over the energy window.

    ``node_w`` holds, for each pool, the watts of the nodes that 0, 1, … GPUs keep awake.
    """

    gpus: list[int]
    watts: list[float]
    node_w: list[Floats]

    @classmethod
    def of(cls, round: Round) -> "Counted":
        """Return all GPUs and watts of a round, on nodes without jobs."""
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
        """Return a copy of what is left."""
        return replace(self, gpus=[*self.gpus], watts=[*self.watts])

    def take(self, pool: int, gpus: int, watts: Charge, *, anyhow: bool = False) -> bool:
        """Take GPUs of a pool and watts if there are enough, or `anyhow`; return whether enough."""
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
    """Return a job's charge, at least 0, so that no job frees watts for others."""
    watts = max(0.0, extra_w(round, option))
    if round.energy_j is None:
        return watts, watts
    seconds = np.array(seconds_left(round, state, option))
    return watts, watts * float(share(round, seconds))


Step = tuple[float, int]
"""The cost of a step per gain, and its destination."""


def climb(
    jobs: Iterable[int],
    best: Callable[[int], Step | None],
    take: Callable[[int, int], Iterable[int]],
) -> None:
    """Let jobs take their `best` steps, the step of least cost first, until no job has a step.

    `take` lets a job take a step if there is room. It returns the jobs whose best step has changed,
    including the job itself if it should continue.
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
        if best(job) == (cost, to):  # otherwise its new best step is in the queue
            for again in take(job, to):
                offer(again)


class RowUses(NamedTuple):
    """The use of each row of a table: GPUs of a pool, and ``watts`` (K, 2) as in `charge`."""

    pool: Rows
    gpus: Rows
    watts: Floats


def uses(round: Round, table: OptionTable) -> RowUses:
    """Return the use of the rows of a table."""
    watts = np.maximum(np.stack([table.extra_w, charged_w(round, table)], axis=1), 0.0)
    return RowUses(table.pool, table.gpus, watts)
