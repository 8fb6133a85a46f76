"""The price policy: it values options, finds prices and places the result."""

from dataclasses import dataclass
from typing import ClassVar

from ronda.formulations.allocation.waking import Ready
from ronda.formulations.site.nodes import concerns_nodes
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.plan import Plan, SolutionStatus, StopReason
from ronda.instances.round import Round
from ronda.solvers.contract import OPTIMISING, Capability
from ronda.solvers.decision.by_prices import LastGap, allocate_by_prices
from ronda.solvers.decision.plan import (
    AGGREGATE,
    MANY,
    Choice,
    Optimising,
    Question,
    many,
    reserve_s,
)
from ronda.solvers.prices.dual import Search
from ronda.solvers.rules import NO_RULES, Rules

PLACEMENTS = ("nodes", AGGREGATE)
"""The levels of detail with which a plan's bound sees the nodes."""

PRECISE = 0.01
"""The gap of a choice by patterns from which on it is compared with one by sums, placed."""


@dataclass(frozen=True, kw_only=True)
class ByPrices(Optimising):
    """A policy that chooses every job's option for an objective by prices of GPUs and watts."""

    packages: ClassVar[tuple[str, ...]] = ("numpy", "highspy")

    joint = True  # parameters of `prices`
    placement = "nodes"

    def __post_init__(self) -> None:
        """Refuse a gap that prices alone cannot guarantee."""
        super().__post_init__()
        if not self.gap:
            raise InputError(f"{self.name}: gap", "0", "a number above 0 and below 1")
        if self.placement not in PLACEMENTS:
            raise InputError(
                f"{self.name}: placement", repr(self.placement), " or ".join(PLACEMENTS)
            )

    def on_many_nodes(
        self, question: Question, choice: Choice, deadline: Deadline
    ) -> Choice | None:
        """Choose by patterns at once where rules tell single nodes apart, if that is precise."""
        if not self._at_once(question.round):
            return None
        found = self._by_patterns(question, choice, None, deadline)
        late = found is not None and found.stop is StopReason.TIME_LIMIT
        return found if found is not None and (late or found.closed(PRECISE)) else None

    def on_nodes(
        self, question: Question, choice: Choice, plan: Plan, deadline: Deadline
    ) -> Choice | None:
        """Choose again with the nodes in the model."""
        if self.placement == AGGREGATE:
            return None
        # Import late: most decisions need no model, which loads Pyomo.
        from ronda.solvers.decision.by_milp import search_of
        from ronda.solvers.decision.by_positions import again_on_nodes

        again = again_on_nodes(question, choice, plan, search_of(question, self.gap, deadline))
        if again is not None and again.closed(self.gap):
            return again
        return self._by_patterns(question, again or choice, plan, deadline) or again

    def _at_once(self, round: Round) -> bool:
        many_nodes = len(round.cluster.topology.node_gpus) >= MANY
        return many_nodes and self.placement != AGGREGATE and concerns_nodes(round)

    def _by_patterns(
        self, question: Question, choice: Choice, plan: Plan | None, deadline: Deadline
    ) -> Choice | None:
        if choice.status is SolutionStatus.NONE or many(question):
            return None
        from ronda.solvers.decision.by_patterns import choose_by_patterns

        search = Search(gap=self.gap, deadline=deadline, seed=question.seed)
        return choose_by_patterns(question, choice, plan, search)

    def allocate(
        self,
        question: Question,
        deadline: Deadline,
        initial: Plan | None,
        awake: tuple[int, ...] | None = None,
    ) -> Choice:
        """Choose options by prices, starting from the prices of the last plan.

        At most `awake` (P,) nodes of each pool are awake. None: all nodes may be.
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
                reserve_s=reserve_s(question) / (2 if self._at_once(question.round) else 1),
            ),
            joint=self.joint,
            ready=self.ready(question.round, initial),
            awake=awake,
        )

    def ready(self, round: Round, initial: Plan | None) -> Ready | None:
        """Return the nodes that can run jobs now, or None if that makes no difference."""
        return None


@dataclass(frozen=True, kw_only=True)
class Prices(ByPrices):
    """Choose every job's option by prices of GPUs and watts, to a certified gap.

    The price engine (`ronda.solvers.prices.engine`) solves the model of `milp`. It solves the
    Lagrangian dual, and a small MILP over the jobs that prices leave undecided. Prices are carried
    over from round to round.

    Parameters
    ----------
    objective
        Objective that values the options (`ronda.formulations.objectives.by_name.values`).
    gap
        Relative gap to the bound at which the search stops.
    elastic
        Whether jobs may get other GPU counts, batches and clocks than they asked for.
    parameters
        Parameters of the objective, by name.
    joint
        Whether GPUs have a price per rack, for options within a rack, if not all of these options
        find a rack. False: options are chosen as if every rack had room, and then placed. The
        choice matters only for profiles with a cost of crossing racks.
    placement
        ``nodes``: if something finds no room on nodes, options are chosen again with the nodes in a
        MILP. ``aggregate``: the bound holds for options alone (docs/placement.md).
    extra
        The user's own rules: a file, or functions (docs/own_rules.md).
    """

    name: ClassVar[str] = "prices"
    capabilities: ClassVar[Capability] = OPTIMISING | Capability.RULES

    elastic: bool = True
    joint: bool = True
    placement: str = "nodes"
    extra: Rules = NO_RULES
