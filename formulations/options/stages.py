"""Aims that come before the objective, one after the other, as far as each can be reached."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from dataclasses import replace as with_fields

import numpy as np
from msgspec.structs import replace

from ronda.formulations.options.stated_rows import with_row
from ronda.formulations.options.table import OptionTable
from ronda.instances.base import Floats, Rows

SLACK = 1e-6
"""How far a later stage may fall short of what an aim reached, relative to 1 or to what it reached
if that is more."""


@dataclass(frozen=True, slots=True, eq=False)
class Aim:
    """The sum Σ_k worth_k x_k, less penalties for the excess over soft rows, to be maximised.

    Attributes
    ----------
    name
        The name of the row by which later stages keep what was reached.
    worth
        The worth of each option, shape (K,).
    penalties
        The cost of a unit of the excess over soft rows, by name; 0 for others.
    """

    name: str
    worth: Floats
    penalties: Mapping[str, float] = field(default_factory=dict)

    def reached_by(self, table: OptionTable, rows: Rows) -> float:
        """Return how much of the aim chosen rows reach."""
        lost = 0.0
        if self.penalties and table.own is not None:
            over = dict(zip(table.own.names, table.own.excess(rows).tolist(), strict=True))
            lost = sum(cost * over[name] for name, cost in self.penalties.items())
        return float(self.worth[rows].sum()) - lost

    def alone(self, table: OptionTable) -> OptionTable:
        """Return the table for the stage that maximises the aim: no other soft row costs."""
        own = table.own
        if own is None or not own.soft:
            return table
        costs = np.array([self.penalties.get(name, 0.0) for name in own.names])
        return replace(
            table, own=with_fields(own, penalty=np.where(own.penalty < np.inf, costs, np.inf))
        )

    def kept(self, table: OptionTable, reached: float) -> OptionTable:
        """Return the table with the row that keeps what was reached."""
        own = with_row(table.own, self.name, self.worth, least_of(reached), self.penalties)
        return replace(table, own=own)


def least_of(reached: float) -> float:
    """Return the least that later stages reach of an aim that reached so much."""
    return reached - SLACK * max(1.0, abs(reached))
