"""The price policy: options, values, prices, placement."""

from dataclasses import dataclass
from typing import ClassVar

from ronda.formulations.allocation.waking import Ready
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import OPTIMISING, Capability
from ronda.solvers.decision.by_prices import LastGap, allocate_by_prices
from ronda.solvers.decision.plan import AGGREGATE, Choice, Optimising, Question, reserve_s
from ronda.solvers.prices.dual import Search
from ronda.solvers.rules import NO_RULES, Rules

PLACEMENTS = ("nodes", AGGREGATE)
"""Whether a plan's bound knows the nodes."""


@dataclass(frozen=True, kw_only=True)
class ByPrices(Optimising):
    """Let prices of GPUs and watts choose every job's option for an objective."""

    packages: ClassVar[tuple[str, ...]] = ("numpy", "highspy")

    joint = True  # parameters of `prices`
    placement = "nodes"

    def __post_init__(self) -> None:
        """Refuse a gap that prices alone cannot promise."""
        super().__post_init__()
        if not self.gap:
            raise InputError(f"{self.name}: gap", "0", "a number above 0 and below 1")
        if self.placement not in PLACEMENTS:
            raise InputError(
                f"{self.name}: placement", repr(self.placement), " or ".join(PLACEMENTS)
            )

    def on_nodes(
        self, question: Question, choice: Choice, plan: Plan, deadline: Deadline
    ) -> Choice | None:
        """Choose again with the nodes in the model."""
        if self.placement == AGGREGATE:
            return None
        # Most decisions need no model, which loads Pyomo.
        from ronda.solvers.decision.by_milp import search_of
        from ronda.solvers.decision.by_positions import again_on_nodes

        return again_on_nodes(question, choice, plan, search_of(question, self.gap, deadline))

    def allocate(
        self,
        question: Question,
        deadline: Deadline,
        initial: Plan | None,
        awake: tuple[int, ...] | None = None,
    ) -> Choice:
        """Choose by prices, beginning with those of the last plan.

        At most `awake` (P,) nodes of each pool are awake; None: all.
        """
        return allocate_by_prices(
            question.round,
            question.table,
            question.values,
            Search(
                gap=self.gap,
                deadline=deadline,
                seed=question.seed,
                start={} if initial is None else initial.prices,
                within=LastGap.recall(initial).dual_gap,
                reserve_s=reserve_s(question.table),
            ),
            joint=self.joint,
            ready=self.ready(question.round, initial),
            awake=awake,
        )

    def ready(self, round: Round, initial: Plan | None) -> Ready | None:
        """Return which nodes can run jobs now, if that matters."""
        return None


@dataclass(frozen=True, kw_only=True)
class Prices(ByPrices):
    """Let prices of GPUs and watts choose every job's option, to a certified gap.

    The same model as `milp`, solved by the price engine (`ronda.solvers.prices.engine`): the
    Lagrangian dual, and a small MILP over the jobs that prices leave undecided. Prices are carried
    over from round to round.

    Parameters
    ----------
    objective
        What options are worth (`ronda.formulations.objectives.by_name.values`).
    gap
        Relative gap to the bound at which the search stops.
    elastic
        Whether jobs may get other GPU counts, batches and clocks than they asked for.
    parameters
        The objective's, by name.
    joint
        Whether options within a rack compete by the price of GPUs in each rack where not all find
        one. False: options are chosen as if any rack had room, and placed then. It makes a
        difference only for profiles that say what crossing racks costs.
    placement
        ``nodes``: where something finds no room on nodes, options are chosen again with the nodes
        in a MILP. ``aggregate``: the bound is that of options alone (docs/placement.md).
    extra
        Rules of the user's own: a file, or functions (docs/own_rules.md).
    """

    name: ClassVar[str] = "prices"
    capabilities: ClassVar[Capability] = OPTIMISING | Capability.RULES

    elastic: bool = True
    joint: bool = True
    placement: str = "nodes"
    extra: Rules = NO_RULES
