"""BASE+zeus: a policy decides GPUs and batch, and every job runs at the clock of least Zeus cost.

The augmentation that a comparison under an energy budget needs (our reading of "a scheduler with
Zeus": base policy for GPUs, then for each job the power setting of least cost). Classes are made
when they are asked for: ``getattr(zeus, "fifo")`` is the class of ``fifo+zeus``.
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated

import msgspec

from ronda.formulations.options.zeus_clock import at_least_cost, most_gpu_w
from ronda.instances.round import Round
from ronda.solvers.composed import composed
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.room import Clocked, Clocks
from ronda.solvers.registry import ZEUS_BASES


@dataclass(frozen=True, kw_only=True)
class Zeus(Clocked):
    """Every job that gets something new gets it at the clock of least Zeus cost.

    A job that the base policy leaves alone keeps its clock: changing it would cost what any change
    of an allocation costs. Power limits are held with the power at the chosen clocks, so that what
    one job saves another can use.

    Parameters
    ----------
    eta
        Weight of energy in the cost, 0 (time only: full clock) to 1 (energy only).
    """

    eta: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5

    def clocks(self, round: Round) -> Clocks:
        """Return the setting for a round."""
        return partial(at_least_cost, round, eta=self.eta, most_w=most_gpu_w(round))


__getattr__ = composed(
    ZEUS_BASES, Zeus, "zeus", "with every job at the clock of least Zeus cost", Capability.ELASTIC
)
