"""The policy of OR-Tools' constraint solver: options, values, CP-SAT, placement."""

from dataclasses import dataclass
from typing import ClassVar

from ronda.formulations.clock import Deadline
from ronda.instances.plan import Plan
from ronda.solvers.decision.by_milp import decide
from ronda.solvers.decision.plan import Choice, Optimising, Question
from ronda.solvers.exact.catalogue import CP_SAT, find


@dataclass(frozen=True, kw_only=True)
class CpSat(Optimising):
    """Give every job the option that the round's best plan gives it, by constraint programming.

    The same model as `milp`, in whole numbers (`ronda.solvers.exact.cp_sat`), solved by OR-Tools'
    CP-SAT to a proven gap, or as far as the time limit allows.

    Parameters
    ----------
    objective
        What options are worth (`ronda.formulations.objectives.forms.values`).
    gap
        Relative gap to the bound at which the search stops.
    elastic
        Whether jobs may get other GPU counts, batches and clocks than they asked for.
    parameters
        The objective's, by name.
    """

    name: ClassVar[str] = CP_SAT
    packages: ClassVar[tuple[str, ...]] = ("numpy", "pyomo", "highspy", "ortools")

    def __post_init__(self) -> None:
        """Refuse to be made without OR-Tools."""
        super().__post_init__()
        find(CP_SAT, "cp-sat", (CP_SAT,))

    def choose(self, question: Question, deadline: Deadline, initial: Plan | None) -> Choice:
        """Choose by CP-SAT, from what runs and what was planned last."""
        return decide(question, self.gap, deadline, initial, CP_SAT)
