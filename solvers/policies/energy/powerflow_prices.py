"""The two-price rule: seconds saved over what a step takes of the budget and of the cluster."""

from dataclasses import dataclass
from typing import ClassVar

from ronda.formulations.objectives.forms import minds_power
from ronda.instances.arrays import Floats
from ronda.solvers.greedy.marginal import priced
from ronda.solvers.greedy.marginal_policy import MarginalCase, MarginalGreedy, watts_with_hosts


@dataclass(frozen=True, kw_only=True)
class PowerflowPrices(MarginalGreedy):
    """Climb by dJCT / (dE / E_bud + dn / N): PowerFlow's greedy with prices in absolute terms.

    Ours, not PowerFlow's. A step's cost is the share of the power budget (hosts' share included)
    and the share of its pool's GPUs that it takes: two Lagrange multipliers, set so that the whole
    budget costs as much as the whole cluster. Everything else is as in `powerflow`.

    Parameters
    ----------
    objective
        What options are worth (`ronda.formulations.objectives.forms.values`): dJCT is the
        difference of it. ``snapshot`` is just the seconds that a step saves.
    """

    name: ClassVar[str] = "powerflow-prices"

    objective: str = "snapshot"  # type: ignore[misc]

    def __post_init__(self) -> None:
        """Refuse an unknown objective."""
        minds_power(self.objective)

    def worth(self, case: MarginalCase) -> Floats:
        """Return (2, K) the priority of each step at the two prices."""
        table, bounds = case.outlook.table, case.limits
        cost = table.gpus / bounds.capacity[table.pool]
        watts = watts_with_hosts(table, bounds)
        if watts.any() and bounds.capacity[-1] > 0:
            cost = cost + watts / bounds.capacity[-1]
        return priced(case.ladder.up, case.values, cost)
