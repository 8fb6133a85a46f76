"""Shortest remaining time first: preemptive."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import msgspec

from ronda.formulations.requested import remaining_s, requested_options
from ronda.instances.instance import Round
from ronda.instances.job import Allocation, JobState
from ronda.instances.plan import Plan
from ronda.solvers.contract import Capability, Deadline
from ronda.solvers.policies.rigid import Room


@dataclass(frozen=True)
class Srtf:
    """Admit live jobs by remaining time while GPUs last; stop running jobs that are not admitted.

    As in the Helios artifact (SC'21): the remaining time of a stopped job includes the restart
    that it will need, admission counts GPUs only, and an admitted job that finds no nodes waits
    without blocking those behind it.

    Parameters
    ----------
    teardown_s
        Seconds that a job holds its GPUs after its last work. The artifact's simulator counts a
        running job down second by second and releases it one second after it reached zero, under
        SRTF alone. With the default of 1 s its results are met to the digit; with 0 the mean JCT
        on venus-vcvgl is 5,125.58 s instead of 5,056.42 s.
    """

    teardown_s: Annotated[float, msgspec.Meta(ge=0)] = 1.0

    name: ClassVar[str] = "srtf"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS

    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Admit jobs, shortest remaining time first."""
        order = sorted(
            (*round.waiting, *round.running),
            key=lambda state: remaining_s(round, state),
        )
        admitted = self._admit(round, order)
        stay = tuple(s for s in admitted if s.allocation is not None)
        allocations: dict[str, Allocation] = {
            s.job.id: s.allocation for s in stay if s.allocation is not None
        }
        starting = [s for s in admitted if s.allocation is None]
        if starting:
            room = Room(round, stay)
            for state in starting:
                allocation = room.fit(state, self.teardown_s)
                if allocation is not None:
                    allocations[state.job.id] = allocation
        return Plan(policy=self.name, allocations=allocations)

    def _admit(self, round: Round, order: list[JobState]) -> list[JobState]:
        """Return the jobs that get a share of their pool's GPUs."""
        pools = round.cluster.topology.pools
        left = [pool.gpus for pool in pools]
        admitted = []
        pinned = [s for s in order if s.allocation is not None and not s.job.preemptible]
        for state in pinned + [s for s in order if s not in pinned]:
            if state.allocation is not None:
                choices = [state.allocation.option.pool]
            else:
                choices = [option.pool for option in requested_options(round, state)]
            gpus = state.allocation.option.gpus if state.allocation else state.job.gpus
            pool = next((p for p in choices if left[p] >= gpus), None)
            if pool is not None:
                left[pool] -= gpus
                admitted.append(state)
        return admitted
