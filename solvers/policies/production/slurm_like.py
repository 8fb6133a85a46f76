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
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.backfill import Promises, Started
from ronda.solvers.greedy.policy import TimelyPolicy
from ronda.solvers.policies.production.floor import Floor, eligible
from ronda.solvers.policies.production.resources import amounts, capacity
from ronda.solvers.policies.production.slurm_priority import (
    RawUsage,
    Weights,
    fair_tree,
    priority,
    size_factor,
)

Weight = Annotated[float, Meta(ge=0)]
Seconds = Annotated[float, Meta(gt=0)]
UNLIMITED = 10**9


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
    max_age_s
        Age from which the factor of age is 1.
    half_life_s
        Seconds in which past usage halves.
    limit_factor
        Time limit over the declared time, for jobs without a time limit (`Job.limit_s`).
    resolution_s, window_s, most_tested
        Seconds to which the ends of jobs are rounded up; how far ahead jobs reserve nodes; and the
        number of jobs that backfilling looks at (Slurm: bf_resolution, bf_window and
        bf_max_job_test).
    """

    backfill: Literal["conservative", "easy", "none"] = "conservative"
    preempt: Literal["none", "qos"] = "none"
    age: Weight = 1000.0
    fair_share: Weight = 10_000.0
    size: Weight = 1000.0
    qos: Weight = 2000.0
    max_age_s: Seconds = 7 * 86_400.0
    half_life_s: Seconds = 7 * 86_400.0
    limit_factor: Seconds = 2.0
    resolution_s: Seconds = 60.0
    window_s: Seconds = 86_400.0
    most_tested: Annotated[int, Meta(ge=0)] = 500

    name: ClassVar[str] = "slurm-like"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SIZES | Capability.SLEEPS

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Start jobs in the main pass, and then by backfill."""
        usage = RawUsage.of(round, initial, self.half_life_s)
        floor = Floor(round, until_end=self.preempt == "none")
        queue = self.queue(floor, usage)
        left = self._main_pass(floor, queue)
        if self.backfill != "none":
            most = 1 if self.backfill == "easy" else UNLIMITED
            reservations = _Reservations(self, floor, most)
            found, states = (
                reservations.start(left[: self.most_tested]),
                {s.job.id: s for s in left},
            )
            floor.started |= {job: (states[job], given) for job, given in found.items()}
        for state in floor.stopped():
            floor.resume(state)
        memory = usage.noted()
        plan = Plan(policy=self.name, allocations=floor.allocations(), memory=memory)
        return rest(round, plan, initial)

    def queue(self, floor: Floor, usage: RawUsage) -> list[JobState]:
        """Return the waiting jobs in order: who may stop others, then priority, then submission."""
        round = floor.round
        shares, total = fair_tree(round.site.tenants, usage.gpu_s), capacity(round)
        ranks = [each.rank for each in round.site.classes]
        highest, of = max([*ranks, 1]), "cpu" if total.get("cpu") else "gpus"
        nodes = sum(1 for gpus in round.cluster.topology.node_gpus if gpus)
        weights = Weights(age=self.age, fair_share=self.fair_share, size=self.size, qos=self.qos)

        def key(state: JobState) -> tuple[int, int, float, str]:
            job = state.job
            option = next(iter(floor.room.ways(state)), None)
            large = 0.0
            if option is not None:
                each = round.cluster.topology.pools[option.pool].gpus_per_node
                needs = amounts(round, job, option).get(of, 0.0)
                large = size_factor(-(-option.gpus // each), nodes, needs, total[of])
            waited_s = round.now_s - max(job.submit_s, job.eligible_s or 0.0)
            factors = Weights(
                age=min(1.0, waited_s / self.max_age_s),
                fair_share=shares.get(job.tenant or "", 0.0),
                size=large,
                qos=max(0, floor.rank(state)) / highest,
            )
            first = -floor.rank(state) if self.preempt == "qos" else 0
            return first, -priority(weights, factors), job.submit_s, job.id

        return sorted(eligible(round), key=key)

    def _main_pass(self, floor: Floor, queue: list[JobState]) -> list[JobState]:
        """Start jobs in order; return those left over.

        A job without room blocks its partition. A job that a limit holds back blocks nobody.
        """
        blocked, left = set[str](), list[JobState]()
        for state in queue:
            checkpoint()
            if state.job.partition not in blocked:
                if floor.fit(state) is not None:
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
        rank = floor.rank(state)

        def order(one: JobState) -> tuple[int, int, str]:
            return floor.rank(one), len(floor.round.held[one.job.id].placement), one.job.id

        def enough(among: list[JobState]) -> list[JobState]:
            """Return the first of the jobs that must stop, or nobody if all are too few."""
            tries = (among[:n] for n in range(1, len(among) + 1))
            return next((t for t in tries if floor.way(state, option, t) is not None), [])

        victims = sorted(
            (s for s in floor.round.running if floor.stoppable(s) and floor.rank(s) < rank),
            key=order,
        )
        victims = enough(victims)
        victims = enough([*victims[-1:], *victims[:-1]])  # the last that was needed may suffice
        if not victims:
            return False
        floor.stop(victims)
        given = floor.way(state, option)
        assert given is not None
        floor.start(state, given)
        return True


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
        return max(1, math.ceil(left_s / policy.resolution_s)) * policy.resolution_s

    def ends(self, held: Started) -> list[tuple[float, Allocation]]:
        """Return the seconds to the time limits of running jobs and of those that start."""
        return [(self.lasts_s(s), given) for s, given in (*self._floor.standing(), *held)]

    def promised(self, option: Option, placement: Placement) -> Placement:
        """Return the whole nodes of a placement."""
        sizes = self.room.round.cluster.topology.node_gpus
        return tuple((node, int(sizes[node])) for node, _ in placement)

    def may_promise(self, state: JobState, start_s: float) -> bool:
        """Return whether the start is within the window, and no limit holds the job back."""
        room = self.room
        return start_s <= self._policy.window_s and any(
            room.allows(state, option) for option in room.ways(state)
        )
