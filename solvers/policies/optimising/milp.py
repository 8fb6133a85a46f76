"""The exact policy: options, values, MILP, placement."""

from dataclasses import dataclass
from typing import ClassVar

from ronda.formulations.clock import Deadline
from ronda.formulations.options.table import rows_of, running_rows
from ronda.instances.errors import InputError
from ronda.instances.plan import Plan
from ronda.solvers.decision.by_milp import allocate
from ronda.solvers.decision.by_positions import allocate_on_nodes
from ronda.solvers.decision.plan import Choice, Optimising, Question, reserve_s
from ronda.solvers.prices.search import Search

PLACEMENTS = ("aggregate", "exact")
"""How much of the nodes the model sees."""


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
    parameters
        The objective's, by name.
    placement
        ``aggregate``: options are chosen by what nodes hold together, and placed afterwards.
        ``exact``: options and nodes are chosen together, with what moves lose (docs/placement.md).
    """

    name: ClassVar[str] = "milp"
    packages: ClassVar[tuple[str, ...]] = ("numpy", "pyomo", "highspy")

    placement: str = "aggregate"

    def __post_init__(self) -> None:
        """Refuse a fidelity that there is not."""
        super().__post_init__()
        if self.placement not in PLACEMENTS:
            known = " or ".join(PLACEMENTS)
            raise InputError("milp: placement", repr(self.placement), known)

    def choose(self, question: Question, deadline: Deadline, initial: Plan | None) -> Choice:
        """Choose by MILP, from what runs and what was planned last."""
        search = Search(
            gap=self.gap,
            deadline=deadline,
            seed=question.seed,
            reserve_s=reserve_s(question.table),
        )
        asked = question.round, question.table, question.values, search
        if self.placement == "exact":
            return allocate_on_nodes(*asked)
        starts = [running_rows(question.table)]
        if initial is not None:
            starts.append(rows_of(question.table, initial))
        return allocate(*asked, starts)
