"""The exact policy for clusters with an energy budget."""

from dataclasses import dataclass, replace
from typing import ClassVar

from ronda.formulations.thrift import worth_of_a_watt
from ronda.instances.errors import InputError
from ronda.instances.plan import Plan
from ronda.solvers.choice import Choice, Setting
from ronda.solvers.contract import Deadline
from ronda.solvers.policies.milp import Milp


@dataclass(frozen=True, kw_only=True)
class MilpEnergy(Milp):
    """Give every job the option that the round's best plan gives it, with a price on energy.

    The exact counterpart of `powerflow`: the allocation model of `milp` (docs/formulations.md)
    with options of GPUs, clock and batch; nodes awake as variables with the power of hosts and
    idle GPUs; the power cap; the energy of the window; and the objective ``thrifty-rank``
    (`ronda.formulations.thrift`), which took less energy than ``rank`` for no longer mean JCT at
    the budgets that we measured (docs/powerflow.md). Switching costs progress
    (`ronda.formulations.outlook`). A job that is not served forgoes what a second of its progress
    saves in flow time; that grows with its age (`ronda.formulations.ageing`), so that nobody
    waits for ever.

    A node that is woken draws its power in the model for the whole window, and the driver has it
    draw from the order on: the energy of waking is inside. The delay is not: the model does not
    know which job waits for which node.

    Parameters
    ----------
    objective
        What options are worth (`ronda.formulations.objectives.values`).
    gap
        Relative gap to the bound at which the search stops.
    elastic
        Whether jobs may get other GPU counts, batches and clocks than they asked for.
    thrift
        Of ``thrifty-rank``: what a watt costs, as a share of what the job's most frugal option
        earns with one. 0: only the budget limits energy. The higher, the less energy is used for
        work of the same amount, and the longer jobs take if the budget would allow more.
    """

    name: ClassVar[str] = "milp-energy"

    objective: str = "thrifty-rank"
    gap: float = 1e-3
    thrift: float = 0.3

    def __post_init__(self) -> None:
        """Refuse parameters that make no sense."""
        super().__post_init__()
        if not 0 <= self.thrift <= 1:
            raise InputError("milp-energy: thrift", f"{self.thrift:g}", "a number from 0 to 1")

    @property
    def parameters(self) -> dict[str, float]:
        """The price of energy, for the objective that knows one."""
        return {"thrift": self.thrift} if self.objective == "thrifty-rank" else {}

    def choose(self, setting: Setting, deadline: Deadline, initial: Plan | None) -> Choice:
        """Choose by MILP; nodes that jobs can leave are powered off even if energy has no price."""
        choice = super().choose(setting, deadline, initial)
        watt = worth_of_a_watt(setting.table, setting.values, choice.chosen)
        return replace(choice, watt_value=watt)
