"""Pollux's objective for the price engine: the sum of speed-ups, less for what changes."""

from typing import ClassVar

import msgspec
import numpy as np

from ronda.instances.clock import Deadline
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.decision.plan import Question
from ronda.solvers.policies.optimising.prices import Prices

RESTART = 0.1
"""Share of a speed-up that a change costs."""


class SumOfSpeedups(Prices):
    """The price engine for Pollux's objective."""

    name: ClassVar[str] = "pollux-by-prices"

    def question(
        self, round: Round, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Question:
        """Value each option by its speed-up, and what changes by less."""
        asked = super().question(round, deadline, seed, initial)
        table = asked.table
        values = table.rate * np.where(table.current, 1.0, 1.0 - RESTART)
        return msgspec.structs.replace(asked, objective="sum of speed-ups", values=values)
