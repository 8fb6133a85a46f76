"""How good the plan of a packaged round is: its gap to the best bound known, and violations."""

from typing import Any

from benchopt import BaseObjective

from ronda.instances.check.checker import check
from ronda.instances.plan import Plan, gap_between
from ronda.instances.round import Round
from tools.registry import records
from tools.registry.check import worth


class Objective(BaseObjective):  # type: ignore[misc]
    """The relative gap of a plan's worth to the registry's bound; `value` is what is drawn."""

    name = "Gap to the best bound known"
    sampling_strategy = "run_once"

    def set_data(self, round: Round) -> None:
        """Take a round, and the bound of the registry."""
        bound = records.load(records.DATA).rounds[round.name].bound
        assert bound is not None
        self.round, self.bound = round, bound.value

    def get_objective(self) -> dict[str, Any]:
        """Return what solvers get."""
        return {"round": self.round}

    def evaluate_result(self, plan: Plan) -> dict[str, float]:
        """Return gap and violations."""
        gap = gap_between(self.bound, worth(self.round, plan))
        return {"value": gap, "violations": len(check(self.round, plan))}

    def get_one_result(self) -> dict[str, Any]:
        """Return the plan in which what runs goes on."""
        return {"plan": Plan(allocations=self.round.held)}
