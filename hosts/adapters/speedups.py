"""Pollux's objective for the price engine: the sum of speed-ups, reduced for changed jobs."""

from typing import ClassVar

import msgspec
import numpy as np

from ronda.instances.clock import Deadline
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.decision.plan import Question
from ronda.solvers.policies.optimising.prices import Prices


class SumOfSpeedups(Prices):
    """The price engine with Pollux's objective."""

    name: ClassVar[str] = "pollux-by-prices"

    def question(
        self, round: Round, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Question:
        """Value each option by its speed-up, reduced if the job changes."""
        asked = super().question(round, deadline, seed, initial)
        table = asked.table
        values = table.rate * np.where(table.current, 1.0, 0.9)  # a changed job loses a tenth
        return msgspec.structs.replace(asked, objective="sum of speed-ups", values=values)
