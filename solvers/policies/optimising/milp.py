"""The exact policies: `milp`, `cp-sat` on the same model, and `sia-like` with its objective."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from msgspec.structs import replace

from ronda.formulations.options.table import rows_of, running_rows
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import OPTIMISING, Capability
from ronda.solvers.decision.by_milp import allocate, search_of
from ronda.solvers.decision.by_positions import again_on_nodes, allocate_on_nodes
from ronda.solvers.decision.plan import AGGREGATE, Choice, Optimising, Question
from ronda.solvers.exact.backends import CP_SAT, MIP, bare, find_solver
from ronda.solvers.prices.dual import Search
from ronda.solvers.rules import NO_RULES, Rules

PLACEMENTS = ("nodes", "exact", AGGREGATE)
"""The levels of detail with which the model sees the nodes."""


@dataclass(frozen=True, kw_only=True)
class ByModel(Optimising):
    """A policy that solves a round's allocation model (docs/formulations.md) for an objective."""

    packages: ClassVar[tuple[str, ...]] = ("numpy", "pyomo", "highspy")

    placement, parts = "nodes", 1  # parameters of `milp`

    @property
    def exact(self) -> bool:
        """Whether the model chooses options and nodes together."""
        return self.placement == "exact"

    def allocate(self, question: Question, deadline: Deadline, initial: Plan | None) -> Choice:
        """Choose options by the model, starting from the running jobs and the last plan."""
        round, table, values = question.round, question.table, question.values
        search = self.search(question, deadline)
        starts = [running_rows(table)]
        if initial is not None:
            starts.append(rows_of(table, initial))
        if self.exact:
            return allocate_on_nodes(round, table, values, search, starts)
        return allocate(round, table, values, search, starts)

    def search(self, question: Question, deadline: Deadline) -> Search:
        """Return the search settings for a question."""
        return search_of(question, self.gap, deadline)

    def on_nodes(
        self, question: Question, choice: Choice, plan: Plan, deadline: Deadline
    ) -> Choice | None:
        """Choose again with the nodes in the model, but not with several parts."""
        if self.placement != "nodes" or self.parts > 1:
            return None
        return again_on_nodes(question, choice, plan, self.search(question, deadline))


@dataclass(frozen=True, kw_only=True)
class Milp(ByModel):
    """Give every job its option in the round's best plan, by mixed-integer programming.

    The allocation model (docs/formulations.md) is solved to a proven gap, or as far as the time
    limit allows.

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
    placement
        ``nodes``: options are chosen by the total capacity of the nodes, and placed. If something
        finds no room, they are chosen again with the nodes. ``exact``: options and nodes are chosen
        together from the start, with the loss of moves. ``aggregate``: the bound holds for options
        alone (docs/placement.md).
    solver
        ``highs``, or another installed solver (docs/solvers.md).
    parts
        Number of random parts into which jobs are divided. Each part has an equal share of all
        capacities and its own model (POP: `ronda.formulations.allocation.separable.random_parts`).
        1: one model.
    options
        Options of the solver. The solver's name comes before an option's name:
        ``{"highs.mip_heuristic_effort": 0.2}``, or in a spec
        ``milp(highs.mip_heuristic_effort=0.2)``.
    extra
        The user's own rules: a file, or functions (docs/own_rules.md).
    """

    name: ClassVar[str] = "milp"
    capabilities: ClassVar[Capability] = OPTIMISING | Capability.RULES

    elastic: bool = True
    placement: str = "nodes"
    solver: str = "highs"
    parts: int = 1
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    extra: Rules = NO_RULES

    def __post_init__(self) -> None:
        """Refuse unknown placements or options, impossible parts, and a missing solver."""
        super().__post_init__()
        find_solver(self.solver, "milp: solver").refuse(self.options, self.name)
        if self.placement not in PLACEMENTS:
            raise InputError("milp: placement", repr(self.placement), ", ".join(PLACEMENTS))
        if self.parts < 1 or (self.exact and self.parts > 1):
            raise InputError("milp: parts", f"{self.parts}", "1, or more without placement=exact")

    def question(
        self, round: Round, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Question:
        """Return the question of a round, with the solver's packages for the plan's record."""
        asked = super().question(round, deadline, seed, initial)
        used = dict.fromkeys((*asked.packages, *MIP[self.solver].packages))
        return replace(asked, packages=tuple(used))

    def search(self, question: Question, deadline: Deadline) -> Search:
        """Return the search settings for a question."""
        fields = {"solver": self.solver, "parts": self.parts, "options": bare(self.options)}
        return search_of(question, self.gap, deadline, **fields)


@dataclass(frozen=True, kw_only=True)
class CpSat(ByModel):
    """Give every job its option in the round's best plan, by constraint programming.

    OR-Tools' CP-SAT solves the model of `milp` in whole numbers (`ronda.solvers.exact.cp_sat`) to a
    proven gap, or as far as the time limit allows.

    Parameters
    ----------
    objective
        Objective that values the options (`ronda.formulations.objectives.by_name.values`).
    gap
        Relative gap to the bound at which the search stops.
    parameters
        Parameters of the objective, by name.
    options
        Options of CP-SAT, with its name before theirs, such as ``cp-sat.linearization_level``.
    """

    name: ClassVar[str] = CP_SAT
    packages: ClassVar[tuple[str, ...]] = ("numpy", "pyomo", "highspy", "ortools")

    placement = AGGREGATE

    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Refuse unknown options, and a missing OR-Tools."""
        super().__post_init__()
        find_solver(CP_SAT, "cp-sat", (CP_SAT,)).refuse(self.options, self.name)

    def search(self, question: Question, deadline: Deadline) -> Search:
        """Return the search settings for a question."""
        fields = {"solver": CP_SAT, "options": bare(self.options)}
        return search_of(question, self.gap, deadline, **fields)


@dataclass(frozen=True, kw_only=True)
class SiaLike(ByModel):
    """Give every job the GPU type and count that make the sum of goodputs^power best.

    The policy follows the artifact of Sia (Jayaram Subramanya et al., SOSP 2023). It takes goodput
    relative to the least of the job's options, to the power of -0.5. It uses 1.1 for a waiting job,
    and a restart factor (`ronda.formulations.objectives.by_name.sia_goodput`). A MILP over jobs and
    options is solved. The policy is `milp` with that objective, and ignores sizes.

    Parameters
    ----------
    objective, gap, parameters
        As for `milp`. The objective's parameters are ``power``, ``waiting`` and ``delay_s``, the
        seconds per restart in its factor.
    """

    name: ClassVar[str] = "sia-like"
    capabilities: ClassVar[Capability] = OPTIMISING & ~(Capability.SIZES | Capability.HISTORY)

    objective: str = "sia-goodput"
