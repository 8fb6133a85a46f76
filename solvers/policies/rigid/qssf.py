"""Quasi-shortest service first: the least expected GPU time first, without preemption."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import msgspec

from ronda.formulations.clock import Deadline
from ronda.formulations.sleeping import rest
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.backfill import Backfill, beside
from ronda.solvers.greedy.in_time import in_time
from ronda.solvers.greedy.order import Service, service
from ronda.solvers.greedy.room import Clocked


@dataclass(frozen=True)
class Qssf(Clocked):
    """Start waiting jobs by expected GPU time, least first, as the QSSF service of Helios does.

    Hu et al. (SC'21): what is believed of a job's run time, times the GPUs that it asked for, ranks
    the queue of its partition; the first that finds no room blocks. Ties go to fewer GPUs, then to
    who came first. Jobs of unknown size come last. Whose beliefs these are says the run
    (``--knowledge``, ``--predictor``).

    Parameters
    ----------
    by
        What ranks jobs: expected GPU time, expected time, or just GPUs.
    backfill
        Who passes a job that finds no room, as of `fifo`.
    ageing_s
        Seconds of waiting after which a job ranks as if it were half as large, after twice as many
        as a third, and so on: nobody starves. None: never, as published.
    """

    by: Service = "gpu-time"
    backfill: Backfill = "none"
    ageing_s: Annotated[float, msgspec.Meta(gt=0)] | None = None

    name: ClassVar[str] = "qssf"
    capabilities: ClassVar[Capability] = Capability.SIZES | Capability.SLEEPS

    @in_time
    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Start what fits, least service first."""
        waiting = sorted(round.waiting, key=service(round, self.by, self.ageing_s))
        held = beside(round, waiting, self.backfill, self.clocks(round))
        plan = Plan(policy=self.name, allocations=held)
        return rest(round, plan, initial)
