"""Speed of decisions about several partitions: all in one round, and each alone."""

from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
from msgspec.structs import replace

from ronda.bench.speed.cases import tell, timed
from ronda.formulations.clock import Deadline
from ronda.instances import generate
from ronda.instances.budget import Budget
from ronda.instances.job import Allocation, JobState
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.horizon.driver import run
from ronda.solvers.policies.optimising.prices import Prices

GPUS_EACH = 64
"""GPUs of each partition."""


def alone(round: Round, partition: str) -> Round:
    """Return the round of one partition's jobs and nodes."""
    cluster, topology = round.cluster, round.cluster.topology
    own = replace(
        cluster,
        node_groups=tuple(g for g in cluster.node_groups if g.partition == partition),
        partitions=tuple(p for p in cluster.partitions if p.name == partition),
    )
    kept = [p.partition == partition for p in topology.pools]
    node = np.cumsum(np.array(kept)[topology.node_pool]) - 1
    pool = np.cumsum(kept) - 1

    def there(allocation: Allocation) -> Allocation:
        return replace(
            allocation,
            option=replace(allocation.option, pool=int(pool[allocation.option.pool])),
            placement=tuple((int(node[n]), gpus) for n, gpus in allocation.placement),
        )

    def mine(states: tuple[JobState, ...]) -> tuple[JobState, ...]:
        return tuple(
            state
            if state.allocation is None
            else replace(state, allocation=there(state.allocation))
            for state in states
            if state.job.partition == partition
        )

    return replace(round, cluster=own, waiting=mine(round.waiting), running=mine(round.running))


@dataclass
class Apart:
    """Let `prices` decide a horizon, and every partition of each round alone as well.

    All begin with the same last plan. `seconds` are of processor time: the whole, and the sum.
    """

    name: str = field(default=Prices.name, init=False)
    capabilities: Capability = field(default=Prices.capabilities, init=False)
    seconds: list[tuple[float, float]] = field(default_factory=list, init=False)
    same: int = field(default=0, init=False)  # rounds in which each job has the same option
    options: int = field(default=0, init=False)  # of the largest round

    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Decide a round."""

        def decide(about: Round) -> tuple[Plan, float]:
            plan, _, cpu_s = timed(
                lambda: Prices().plan(about, deadline=deadline, seed=seed, initial=initial)
            )
            return plan, cpu_s

        made, whole_s = decide(round)
        parts = [decide(alone(round, p.name)) for p in round.cluster.partitions]
        self.seconds.append((whole_s, sum(cpu_s for _, cpu_s in parts)))
        self.same += _runs(made) == {k: v for plan, _ in parts for k, v in _runs(plan).items()}
        self.options = max(self.options, made.record.options)
        return made


def _runs(plan: Plan) -> dict[str, object]:
    """Return how each job runs, wherever its nodes are."""
    return {job: replace(a.option, pool=0) for job, a in plan.allocations.items()}


def measure_partitions(jobs: int, partitions: int, seed: int) -> dict[str, Any]:
    """Time the decisions over a generated horizon of some partitions, in processor time."""
    structure = generate.Structure(partitions=partitions)
    gpus = GPUS_EACH * partitions
    made = generate.horizon(jobs, gpus, "tight", seed, structure)
    tell(f"partitions: {jobs:,} jobs in {partitions} partitions ...")
    both = Apart()
    run(replace(made, budget=Budget()), both, seed=seed, time_limit_s=None)
    total_s, baseline_s = (median(times) for times in zip(*both.seconds, strict=True))
    return {
        "gpus": gpus,
        "partitions": partitions,
        "seed": seed,
        "options": both.options,
        "rounds": len(both.seconds),
        "same": both.same,
        "total_s": total_s,
        "baseline_s": baseline_s,
    }
