"""Leases: a record of which job ran where and for how long, and turns of fixed length.

The plan carries this record (`Book`), so that a policy holds no state.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from msgspec.structs import replace

from ronda.formulations.sleeping import rest
from ronda.instances.clock import Deadline
from ronda.instances.job import Allocation, JobState
from ronda.instances.plan import Plan, PlanMemory
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.policy import Clocked
from ronda.solvers.greedy.room import Clocks, preempt_in_order
from ronda.solvers.policies.fair.time_shares import TimeShares


class Book(PlanMemory, frozen=True, kw_only=True):
    """The start of the current leases, the time of the last entry, and seconds by job and pool."""

    key: ClassVar[str] = "leases"

    began_s: float | None = None
    until_s: float = 0.0
    held_s: dict[str, dict[int, float]] = {}

    @classmethod
    def of(cls, round: Round, initial: Plan | None) -> "Book":
        """Return the book of a round, brought up to date from the previous plan."""
        book = cls.recall(initial)
        held_s = {s.job.id: dict(book.held_s.get(s.job.id, {})) for s in round.jobs}
        for state in round.running:
            assert state.allocation is not None
            pool, own = state.allocation.option.pool, held_s[state.job.id]
            since_s = max(book.until_s, state.held_s)
            own[pool] = own.get(pool, 0.0) + max(0.0, round.now_s - since_s)
        return replace(book, until_s=round.now_s, held_s=held_s)

    def due(self, round: Round, lease_s: float) -> bool:
        """Return whether new leases are due now."""
        return self.began_s is None or round.now_s >= self.began_s + lease_s


@dataclass(frozen=True)
class Leasing(Clocked, ABC):
    """A policy that gives leases in rounds of a fixed length.

    Between rounds, free GPUs go to the job that has waited longest. Jobs run on the GPUs that they
    asked for.
    """

    lease_s = 120.0  # length of a round of leases

    name: ClassVar[str]
    capabilities: ClassVar[Capability]
    takes_turns: ClassVar[bool] = True

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Decide which jobs run on which pools."""
        book, of = Book.of(round, initial), TimeShares.of(round)
        ranked = [(s, s.allocation.option.pool) for s in round.running if s.allocation is not None]
        if not of.jobs:
            ranked = []
        elif book.due(round, self.lease_s):
            ranked = self.ranked(of, book, deadline)
            book = replace(book, began_s=round.now_s)
        else:
            pairs = sorted((j, -of.rate[j, p], p) for j, p in np.argwhere(of.rate > 0).tolist())
            ranked += [(of.jobs[j], p) for j, _, p in pairs if of.jobs[j].allocation is None]
        allocations = lease(round, turns(of, ranked), self.clocks(round))
        plan = Plan(policy=self.name, allocations=allocations, memory=book.noted())
        return rest(round, plan, initial)

    @abstractmethod
    def ranked(self, of: TimeShares, book: Book, deadline: Deadline) -> list[tuple[JobState, int]]:
        """Return pairs (job, pool), with the most urgent lease first."""


def lease(
    round: Round, order: Sequence[tuple[JobState, int | None]], clocks: Clocks
) -> dict[str, Allocation]:
    """Return allocations of jobs as requested, in order, each on its pool (None: any pool).

    Jobs that run on their pool stay where they are; other running jobs stop. Jobs that may not be
    stopped keep their allocations.
    """
    pools = round.cluster.topology.pools
    asked = []
    for state, pool in order:
        held = state.allocation
        if held is not None and (not state.job.preemptible or pool in (None, held.option.pool)):
            asked.append(state)
            continue
        job = state.job
        if pool is not None:
            job = replace(job, gpu_types=(pools[pool].gpu_type.name,))
        asked.append(replace(state, job=job, allocation=None))
    return preempt_in_order(round, asked, clocks=clocks)


def turns(
    of: TimeShares, ranked: Sequence[tuple[JobState, int]]
) -> list[tuple[JobState, int | None]]:
    """Return each job with the pool of its first ranked pair for which GPUs are left.

    Jobs that find no GPUs on any pool come last, with None for the pool.
    """
    left, given = of.capacity.tolist(), dict[str, tuple[JobState, int | None]]()
    for state in of.round.running:
        if not state.job.preemptible and state.allocation is not None:
            left[state.allocation.option.pool] -= state.allocation.option.gpus
            given[state.job.id] = (state, state.allocation.option.pool)
    for state, pool in ranked:
        if state.job.id not in given and left[pool] >= state.job.gpus:
            left[pool] -= state.job.gpus
            given[state.job.id] = (state, pool)
    others = {state.job.id: state for state, _ in ranked if state.job.id not in given}
    return [*given.values(), *((state, None) for state in others.values())]
