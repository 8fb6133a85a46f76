"""The price of what holds a job back, in a plan of its round."""

from dataclasses import dataclass

from ronda.horizon.solve import solve
from ronda.instances.round import Round
from ronda.instances.site import GPUS
from ronda.questions.why.words import POWER_ROW

NODES = ("gpus[", "ready_gpus[", "whole_nodes[", "buddy[", "parts[")
"""The beginnings of the names of rows for GPUs on nodes."""


@dataclass(frozen=True, slots=True)
class RowPrice:
    """The price of a row of a plan that holds a job back.

    `each` is the worth of one more unit, in units of the plan's `objective`; 0 if the best plan
    does not use the row up.
    """

    row: str
    each: float
    objective: str


def price(round: Round, name: str, seconds: float) -> RowPrice | None:
    """Return the price of what holds a job of a round back; None for what is no row of a plan.

    Prices are those of the policy ``prices``, which decides within so many seconds.
    """
    resource = name.removeprefix("on:") if name.startswith("on:") else None
    if resource is None and "[" not in name:
        return None
    plan = solve(round, "prices", deadline=seconds)
    if plan.bound is None:
        return None
    row = "power_cap" if name == POWER_ROW else name
    if resource is not None:
        own = [
            row
            for row in plan.prices
            if (row.startswith(NODES) if resource == GPUS else f",{resource}" in row)
        ]
        row = max(own, key=lambda each: plan.prices[each], default=name)
    return RowPrice(row, plan.prices.get(row, 0.0), plan.details.objective or "")
