"""The exact policy: options, values, MILP, placement."""

from dataclasses import dataclass
from typing import ClassVar

from ronda.formulations.options.table import rows_of, running_rows
from ronda.instances.plan import Plan
from ronda.solvers.contract import Deadline
from ronda.solvers.decision.by_milp import allocate
from ronda.solvers.decision.plan import Choice, reserve_s
from ronda.solvers.decision.question import Question
from ronda.solvers.policies.optimising.base import Optimising
from ronda.solvers.prices.search import Search


@dataclass(frozen=True, kw_only=True)
class Milp(Optimising):
    """Give every job the option that the round's best plan gives it, by mixed-integer programming.

    The allocation model (docs/formulations.md) is solved by HiGHS through Pyomo to a proven gap,
    or as far as the time limit allows.

    Parameters
    ----------
    objective
        What options are worth (`ronda.formulations.objectives.forms.values`).
    gap
        Relative gap to the bound at which the search stops.
    elastic
        Whether jobs may get other GPU counts, batches and clocks than they asked for.
    """

    name: ClassVar[str] = "milp"
    packages: ClassVar[tuple[str, ...]] = ("numpy", "pyomo", "highspy")

    def choose(self, question: Question, deadline: Deadline, initial: Plan | None) -> Choice:
        """Choose by MILP, from what runs and what was planned last."""
        starts = [running_rows(question.table)]
        if initial is not None:
            starts.append(rows_of(question.table, initial))
        return allocate(
            question.round,
            question.table,
            question.values,
            Search(
                gap=self.gap,
                deadline=deadline,
                seed=question.seed,
                reserve_s=reserve_s(question.table),
            ),
            starts,
        )
