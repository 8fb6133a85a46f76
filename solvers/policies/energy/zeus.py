"""BASE+zeus: a base policy decides GPUs and batch; each job runs at the clock of least Zeus cost.

Comparisons under an energy budget use this combination. It is our reading of "a scheduler with
Zeus": the base policy decides GPUs, and each job then gets the power setting of least cost. Classes
are made on request: ``getattr(zeus, "fifo")`` is the class of ``fifo+zeus``.

Zeus (You et al., NSDI 2023) runs a training job at the power limit that minimises ::

    eta ETA + (1 - eta) MAXPOWER TTA

where ETA is the energy and TTA the time to accuracy. For a job of n GPUs with a fixed batch, both
are proportional to its remaining work. So the clock of least cost per unit of work minimises
``(eta P(s) + (1 - eta) n MAXPOWER) / rate(s)``, where P(s) is the watts of its n GPUs at clock s.

Zeus sets power limits and takes the GPU's highest limit as MAXPOWER. In ronda GPUs have clocks, and
MAXPOWER is the highest power per GPU of the type that any application of the round draws at full
clock. This is our reading, as a round does not hold the GPU's rated power.
"""

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated

import msgspec

from ronda.formulations.options.application import Application, application_of
from ronda.instances.job import JobState, Option
from ronda.instances.models.power import gpu_power_w
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.policy import Clocked
from ronda.solvers.greedy.room import Clocks
from ronda.solvers.registry import ZEUS_BASES, composed


@dataclass(frozen=True, kw_only=True)
class Zeus(Clocked):
    """Give every job with a new allocation the clock of least Zeus cost.

    A job that the base policy leaves alone keeps its clock, because a change of clock would cost as
    much as any change of an allocation. Power limits count the power at the chosen clocks, so that
    one job can use the watts that another saves.

    Parameters
    ----------
    eta
        Weight of energy in the cost, from 0 (time only: full clock) to 1 (energy only).
    """

    eta: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5

    def clocks(self, round: Round) -> Clocks:
        """Return the function that sets the clocks of jobs in a round."""
        return partial(at_least_cost, round, eta=self.eta, most_w=most_gpu_w(round))


def most_gpu_w(round: Round) -> dict[str, float]:
    """Return MAXPOWER in watts, keyed by GPU type."""
    most: dict[str, float] = {}
    for gpu_type in round.cluster.gpu_types:
        curves = [
            p.power[gpu_type.name] for p in round.profiles.values() if gpu_type.name in p.power
        ]
        drawn = (float(gpu_power_w(curve, 1.0)) for curve in curves)
        most[gpu_type.name] = max(drawn, default=gpu_type.idle_w)
    return most


def at_least_cost(
    round: Round, state: JobState, option: Option, *, eta: float, most_w: dict[str, float]
) -> Option:
    """Return an option at the clock of least Zeus cost; of equally cheap clocks, the highest.

    `eta` is the weight of energy, from 0 to 1; time has the remaining weight. `most_w` is MAXPOWER
    in watts, keyed by GPU type.
    """
    of = application_of(round, state, option.pool)
    if of is None or of.rigid:
        return option
    full_w = most_w[of.shape.pool.gpu_type.name]
    gpus, alone = option.computing, state.job.exclusive
    clock = _clock(of, gpus, option.batch, eta, full_w)
    return of.option(gpus, option.batch, state.noise, clock=clock, exclusive=alone) or option


@lru_cache(maxsize=512)
def _clock(of: Application, gpus: int, batch: float, eta: float, full_w: float) -> float:
    def cost(clock: float) -> float:
        at = of.option(gpus, batch, None, clock=clock)
        if at is None:
            return float("inf")
        return (eta * at.power_w + (1.0 - eta) * gpus * full_w) / at.rate

    return min(reversed(of.shape.pool.gpu_type.clocks), key=cost)


__getattr__ = composed(
    ZEUS_BASES, Zeus, "zeus", "with every job at the clock of least Zeus cost", Capability.ELASTIC
)
