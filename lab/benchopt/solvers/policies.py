"""The policies of ronda."""

from typing import Any, ClassVar

from benchopt import BaseSolver

from ronda import solve
from ronda.instances.round import Round


class Solver(BaseSolver):  # type: ignore[misc]
    """One policy, with the time that its plan takes it."""

    name = "policy"
    parameters: ClassVar = {"spec": ["prices", "milp", "evolve", "srtf"]}
    sampling_strategy = "run_once"

    def set_objective(self, round: Round) -> None:
        """Take a round."""
        self.round = round

    def run(self, _: Any) -> None:
        """Decide it."""
        self.plan = solve(self.round, self.spec, deadline=60.0)

    def get_result(self) -> dict[str, Any]:
        """Return the plan."""
        return {"plan": self.plan}
