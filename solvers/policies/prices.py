"""The price policy: options, values, prices, placement."""

from dataclasses import dataclass
from typing import ClassVar

from ronda.formulations.objectives import minds_power
from ronda.instances.errors import InputError
from ronda.instances.instance import Round
from ronda.instances.plan import Plan
from ronda.solvers.allocate_by_prices import allocate_by_prices
from ronda.solvers.choice import Setting, reserve_s, to_plan
from ronda.solvers.contract import OPTIMISING, Capability, Deadline


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Let prices of GPUs and watts choose every job's option, to a certified gap.

    The same model as `milp`, solved by the price engine (`ronda.solvers.prices`): the Lagrangian
    dual, and a small MILP over the jobs that prices leave undecided. Prices are carried over from
    round to round.

    Parameters
    ----------
    objective
        What options are worth (`ronda.formulations.objectives.values`).
    gap
        Relative gap to the bound at which the search stops.
    elastic
        Whether jobs may get other GPU counts, batches and clocks than they asked for.
    """

    name: ClassVar[str] = "prices"
    capabilities: ClassVar[Capability] = OPTIMISING

    objective: str = "rank"
    gap: float = 1e-4
    elastic: bool = True

    def __post_init__(self) -> None:
        """Refuse parameters that make no sense."""
        if not 0 < self.gap < 1:
            raise InputError("prices: gap", f"{self.gap:g}", "a number above 0 and below 1")
        minds_power(self.objective)  # refuses an unknown objective

    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Decide a round by prices."""
        setting = Setting.of(
            self.name,
            self.objective,
            ("numpy", "highspy"),
            round=round,
            seed=seed,
            deadline=deadline,
            elastic=self.elastic,
        )
        choice = allocate_by_prices(
            round,
            setting.table,
            setting.values,
            deadline=deadline,
            gap=self.gap,
            seed=seed,
            start={} if initial is None else initial.prices,
            reserve_s=reserve_s(setting.table),
        )
        return to_plan(setting, choice, deadline)
