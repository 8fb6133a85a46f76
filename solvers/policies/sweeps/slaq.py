"""SLAQ for trials: those whose loss is expected to fall most run next."""

from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from ronda.formulations.clock import Deadline, checkpoint
from ronda.formulations.sleeping.standby import rest
from ronda.formulations.sweeps.slaq import expected_fall
from ronda.formulations.sweeps.trials import Trial, trials_of
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.in_time import in_time
from ronda.solvers.greedy.room import Clocked
from ronda.solvers.policies.sweeps.order import in_order


@dataclass(frozen=True)
class Slaq(Clocked):
    """Run the trials of which the largest normalised fall of the loss is expected next.

    SLAQ (Zhang et al., SoCC 2017) gives cores one by one to the job with the largest marginal fall
    that is expected; for jobs of one GPU that comes to this order (INFERRED). A trial without a
    report comes first, and what runs wins ties.
    """

    name: ClassVar[str] = "slaq"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SLEEPS

    @in_time
    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Order trials by what is expected of them."""

        def rank(trial: Trial) -> tuple[bool, float]:
            checkpoint()
            return bool(trial.losses), -expected_fall(trial.losses) if trial.losses else 0.0

        order = sorted(trials_of(round), key=rank)
        plan = in_order(round, order, self.clocks(round))
        return rest(round, replace(plan, policy=self.name), initial)
