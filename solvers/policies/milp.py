"""The exact policy: options, values, MILP, placement."""

from dataclasses import dataclass
from typing import ClassVar

from ronda.formulations.objectives import minds_power
from ronda.instances.errors import InputError
from ronda.instances.instance import Round
from ronda.instances.plan import Plan
from ronda.solvers.allocate import allocate
from ronda.solvers.choice import Setting, reserve_s, to_plan
from ronda.solvers.contract import OPTIMISING, Capability, Deadline
from ronda.solvers.starts import rows_of, running_rows


@dataclass(frozen=True, kw_only=True)
class Milp:
    """Give every job the option that the round's best plan gives it, by mixed-integer programming.

    The allocation model (docs/formulations.md) is solved by HiGHS through Pyomo to a proven gap,
    or as far as the time limit allows. What the solution cannot realise on nodes is left out, and
    the plan's objective and gap are those of what is placed.

    Parameters
    ----------
    objective
        What options are worth (`ronda.formulations.objectives.values`).
    gap
        Relative gap to the bound at which the search stops.
    elastic
        Whether jobs may get other GPU counts, batches and clocks than they asked for.
    """

    name: ClassVar[str] = "milp"
    capabilities: ClassVar[Capability] = OPTIMISING

    objective: str = "rank"
    gap: float = 1e-4
    elastic: bool = True

    def __post_init__(self) -> None:
        """Refuse parameters that make no sense."""
        if not 0 <= self.gap < 1:
            raise InputError("milp: gap", f"{self.gap:g}", "a number from 0 to below 1")
        minds_power(self.objective)  # refuses an unknown objective

    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Decide a round by MILP."""
        setting = Setting.of(
            self.name,
            self.objective,
            ("numpy", "pyomo", "highspy"),
            round=round,
            seed=seed,
            deadline=deadline,
            elastic=self.elastic,
        )
        table = setting.table
        starts = [running_rows(table)]
        if initial is not None:
            starts.append(rows_of(table, initial))
        choice = allocate(
            round,
            table,
            setting.values,
            deadline=deadline,
            gap=self.gap,
            seed=seed,
            starts=starts,
            reserve_s=reserve_s(table),
        )
        return to_plan(setting, choice, deadline)
