"""Slurm-like: multifactor priority, backfill over time limits, and preemption by class."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from ronda.formulations.placement.nodes import Placement
from ronda.formulations.sleeping import rest
from ronda.instances.clock import Deadline, checkpoint
from ronda.instances.job import Allocation, JobState, Option
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.site import GPUS
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.backfill import Promises, Started
from ronda.solvers.greedy.policy import TimelyPolicy
from ronda.solvers.policies.production.floor import Floor, amounts, capacity
from ronda.solvers.policies.production.slurm_priority import RawUsage, fair_tree

Weight = Annotated[float, Meta(ge=0)]
Seconds = Annotated[float, Meta(gt=0)]

MOST = 2**32 - 1
"""The highest priority."""

MAX_AGE_S = 7 * 86_400.0
"""The age from which its factor is 1 (Slurm: PriorityMaxAge)."""

RESOLUTION_S, WINDOW_S = 60.0, 86_400.0
"""The seconds to which the ends of jobs are rounded up, and for which jobs reserve nodes ahead
(Slurm: bf_resolution and bf_window)."""


@dataclass(frozen=True)
class SlurmLike(TimelyPolicy):
    """Start jobs by priority, and others where they delay no reservation (docs/site.md).

    Parameters
    ----------
    backfill
        The jobs that reserve nodes for their earliest start: all (conservative), the first of each
        partition (easy), or none, and then no job passes another.
    preempt
        Whether a job without room may stop jobs whose class has a lower rank (qos).
    age, fair_share, size, qos
        Weights of the factors of priority, by default those of an example in Slurm's documentation.
    half_life_s
        Seconds in which past usage halves.
    limit_factor
        Time limit over the declared time, for jobs without a time limit (`Job.limit_s`).
    most_tested
        Number of jobs that backfilling looks at (Slurm: bf_max_job_test).
    """

    backfill: Literal["conservative", "easy", "none"] = "conservative"
    preempt: Literal["none", "qos"] = "none"
    age: Weight = 1000.0
    fair_share: Weight = 10_000.0
    size: Weight = 1000.0
    qos: Weight = 2000.0
    half_life_s: Seconds = 7 * 86_400.0
    limit_factor: Seconds = 2.0
    most_tested: Annotated[int, Meta(ge=0)] = 500

    name: ClassVar[str] = "slurm-like"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SIZES | Capability.SLEEPS

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Start jobs in the main pass, and then by backfill."""
        usage = RawUsage.of(round, initial, self.half_life_s)
        floor = Floor(round, until_end=self.preempt == "none")
        left = self._main_pass(floor, self._queue(floor, usage))
        if self.backfill != "none":
            most = 1 if self.backfill == "easy" else len(left)
            found = _Reservations(self, floor, most).start(left[: self.most_tested])
            floor.runs |= {s.job.id: (s, found[s.job.id]) for s in left if s.job.id in found}
        for state in floor.stopped():
            floor.go_on(state)
        allocations, memory = floor.allocations(), usage.noted()
        return rest(round, Plan(policy=self.name, allocations=allocations, memory=memory), initial)

    def priority(self, *, age: float, fair_share: float, size: float, qos: float) -> int:
        """Return a job's priority from factors between 0 and 1: at least 1, at most `MOST`."""
        total = self.age * age + self.fair_share * fair_share + self.size * size + self.qos * qos
        return int(min(MOST, max(1.0, total)))

    def _queue(self, floor: Floor, usage: RawUsage) -> list[JobState]:
        """Return the waiting jobs in order: who may stop others, then priority, then submission."""
        round = floor.round
        shares, total = fair_tree(round.site.tenants, usage.gpu_s), capacity(round)
        highest = max([each.rank for each in round.site.classes] + [1])
        of = "cpu" if total.get("cpu") else GPUS
        nodes = sum(1 for gpus in round.cluster.topology.node_gpus if gpus)

        def key(state: JobState) -> tuple[int, int, float, str]:
            job, rank, size = state.job, floor.rank(state), 0.0
            for option in floor.room.ways(state)[:1]:
                each = round.cluster.topology.pools[option.pool].gpus_per_node
                needs = amounts(round, job, option).get(of, 0.0)
                size = (-(-option.gpus // each) / nodes + needs / total[of]) / 2
            age = min(1.0, (round.now_s - max(job.submit_s, job.eligible_s or 0.0)) / MAX_AGE_S)
            fair_share, qos = shares.get(job.tenant or "", 0.0), max(0, rank) / highest
            priority = self.priority(age=age, fair_share=fair_share, size=size, qos=qos)
            return -rank if self.preempt == "qos" else 0, -priority, job.submit_s, job.id

        return sorted(round.waiting, key=key)

    def _main_pass(self, floor: Floor, queue: list[JobState]) -> list[JobState]:
        """Start jobs in order; return those left over.

        A job without room blocks its partition. A job that a limit holds back blocks nobody.
        """
        blocked, left = set[str](), list[JobState]()
        for state in queue:
            checkpoint()
            if state.job.partition not in blocked:
                given = floor.room.fit(state)
                if given is not None:
                    floor.runs[state.job.id] = state, given
                    continue
                options = [o for o in floor.room.ways(state) if floor.room.allows(state, o)]
                if any(self._started_instead(floor, state, option) for option in options):
                    continue
                if options:
                    blocked.add(state.job.partition)
            left.append(state)
        return left

    def _started_instead(self, floor: Floor, state: JobState, option: Option) -> bool:
        """Start a job in place of jobs of lower rank, if any suffice; return whether."""
        if self.preempt == "none":
            return False

        def order(one: JobState) -> tuple[int, int, str]:
            return floor.rank(one), len(floor.round.held[one.job.id].placement), one.job.id

        def enough(among: list[JobState]) -> list[JobState]:
            """Return the first of the jobs that must stop, or nobody if all are too few."""
            tries = (among[:n] for n in range(1, len(among) + 1))
            return next((t for t in tries if floor.way(state, option, t) is not None), [])

        going = filter(floor.may_stop, floor.round.running)
        victims = enough(sorted((s for s in going if floor.rank(s) < floor.rank(state)), key=order))
        victims = enough([*victims[-1:], *victims[:-1]])  # the last that was needed may suffice
        if victims:
            floor.stop(victims)
        given = floor.way(state, option) if victims else None
        if given is not None:
            floor.take(state, given)
        return given is not None


class _Reservations(Promises):
    """Reservations of whole nodes from the earliest starts of jobs until their time limits."""

    def __init__(self, policy: SlurmLike, floor: Floor, most: int) -> None:
        super().__init__(floor.room, most)
        self._policy, self._floor = policy, floor

    def lasts_s(self, state: JobState) -> float:
        """Return the seconds until a job's time limit, once it runs, rounded up."""
        policy, job = self._policy, state.job
        limit_s, rate = job.limit_s, self.requested.rate(state)
        if limit_s is None:
            if job.estimate is None or not rate:
                return math.inf
            limit_s = policy.limit_factor * job.estimate.work / rate
        left_s = limit_s - state.ran_at(self.room.round.now_s)
        return max(1, math.ceil(left_s / RESOLUTION_S)) * RESOLUTION_S

    def ends(self, held: Started) -> list[tuple[float, Allocation]]:
        """Return the seconds to the time limits of running jobs and of those that start."""
        return [(self.lasts_s(s), given) for s, given in (*self._floor.runs.values(), *held)]

    def promised(self, option: Option, placement: Placement) -> Placement:
        """Return the whole nodes of a placement."""
        sizes = self.room.round.cluster.topology.node_gpus
        return tuple((node, int(sizes[node])) for node, _ in placement)

    def may_promise(self, state: JobState, start_s: float) -> bool:
        """Return whether the start is within the window, and no limit holds the job back."""
        room = self.room
        return start_s <= WINDOW_S and any(
            room.allows(state, option) for option in room.ways(state)
        )
