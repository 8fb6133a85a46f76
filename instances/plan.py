"""Plans, the answers to rounds, with the records of how they were found."""

from enum import StrEnum
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import msgspec

from ronda.instances.base import Name, Record
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation
from ronda.instances.violation import ROUNDING

if TYPE_CHECKING:
    from pandas import DataFrame


class StopReason(StrEnum):
    """The reason why the solver stopped."""

    COMPLETE = "complete"  # it had nothing more to do (a rule, or a proof)
    GAP = "gap"  # the requested gap is reached
    TIME_LIMIT = "time_limit"
    NODE_LIMIT = "node_limit"
    GENERATION_LIMIT = "generation_limit"
    STAGNATION = "stagnation"  # the search no longer improved
    INFEASIBLE = "infeasible"
    ERROR = "error"


class SolutionStatus(StrEnum):
    """The kind of answer that the solver returned."""

    OPTIMAL = "optimal"  # proven, within the requested gap
    FEASIBLE = "feasible"  # satisfies every constraint
    FALLBACK = "fallback"  # the solver had no answer: running jobs go on
    NONE = "none"


NOISE = 1e-14
"""The rounding error of a sum that is 0, as a share of its largest number."""


def closes(bound: float, objective: float, gap: float, scale: float = 0.0) -> bool:
    """Return whether an upper bound proves an objective, to be maximised, within a relative gap.

    It is one if ``bound - objective <= max(gap most, ROUNDING most, NOISE scale)``, with most the
    larger of both in size. `scale` is the largest of the numbers that they are sums of: where the
    optimum is 0 the bound is a rounding error of these. All plans called *optimal* are judged here.
    """
    if not isfinite(objective) or not isfinite(bound):
        return False
    most = max(abs(bound), abs(objective))
    return bound - objective <= max(gap * most, ROUNDING * most, NOISE * scale)


def trusted_bound(told: float, safe: float, known: float | None) -> float:
    """Return the bound of a search beside a safe one, which always holds.

    The bound `told` by a solver counts if it is tighter than the safe one, unless a `known` plan
    has a greater value: then the solver is in doubt.
    """
    if known is None:
        return min(told, safe)
    wrong = known - told > 1e-6 * max(abs(told), abs(known))
    return max(safe if wrong else min(told, safe), known)


def gap_between(bound: float, objective: float, scale: float = 0.0) -> float:
    """Return the relative gap of an objective to an upper bound: 0 or more, 0 if that `closes`."""
    if closes(bound, objective, 0.0, scale):
        return 0.0
    return (bound - objective) / max(abs(bound), abs(objective))


class SolveRecord(Record, frozen=True, kw_only=True):
    """The cost of one decision; times are in seconds by ronda's own clock.

    Attributes
    ----------
    seed
        Seed of everything random.
    build_s
        Time to make options and model.
    solve_s
        Time to solve it.
    extract_s
        Time to read the answer and place it.
    total_s
        Time in all.
    nodes
        Branch-and-bound nodes, or evaluations of a search.
    options
        Number of options of jobs.
    variables, constraints
        Size of the mathematical model.
    incumbents
        Pairs (seconds since entry, objective), ascending in time.
    solver
        Name of the solver.
    versions
        Versions of its packages, by name.
    message
        The solver's own words.
    """

    seed: int = 0
    build_s: float = 0.0
    solve_s: float = 0.0
    extract_s: float = 0.0
    total_s: float = 0.0
    nodes: int = 0
    options: int = 0
    variables: int = 0
    constraints: int = 0
    incumbents: tuple[tuple[float, float], ...] = ()
    solver: str = ""
    versions: dict[str, str] = {}
    message: str = ""


class Conflict(Record, frozen=True):
    """Limits that no plan can keep together.

    Attributes
    ----------
    constraints
        Names of their constraints in the model.
    message
        The reason in words.
    """

    constraints: tuple[str, ...]
    message: str


class PlanDetails(Record, frozen=True, kw_only=True):
    """Details of a plan for users; no policy reads them again.

    Attributes
    ----------
    objective
        Name of the objective that was maximised.
    parameters
        Parameters of the objective that only this round has.
    regret
        Loss of each job at the plan's prices with its next best option, in units of the objective;
        jobs without another option are left out.
    unplaced
        Jobs that were chosen to run and found no room on nodes, with the reasons.
    placement_loss
        Value lost by chosen options that are not placed, or not as chosen.
    widened
        Jobs that found no room in one rack, and run in several.
    moved
        Running jobs that keep their option and run on other nodes.
    moved_gpus
        GPUs of these.
    move_loss
        Value lost by moves, where they are weighed; the objective is net of it.
    joint
        Whether racks were chosen with the options.
    node_cuts
        Cuts that placement on nodes added to the choice of options.
    generations
        Number of generations of evolution.
    solver_lacks
        Abilities and figures that the solver lacks.
    dual_bound
        The bound that prices alone prove, rounded outwards: no plan's objective exceeds it,
        whatever a solver says. None where there are no prices.
    proven_by
        The proof that closes the gap of an optimal plan: ``prices``, which can be added up again
        (then `dual_bound` is within the gap), or a search that is trusted: ronda's own ``labels``
        or ``cuts`` (docs/prices.md), or a solver by its name.
    conflicts
        Limits that gave way to jobs which may not be stopped; if the round is infeasible, also the
        reasons why no plan exists.
    unpriced
        Rules of the user that the plan just keeps, and whose worth the prices do not show: their
        bound is above the plan.
    """

    objective: str = ""
    parameters: dict[str, float | None] = {}
    regret: dict[str, float] = {}
    unplaced: dict[str, str] = {}
    placement_loss: float = 0.0
    widened: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    moved_gpus: int = 0
    move_loss: float = 0.0
    joint: bool = False
    node_cuts: int = 0
    generations: int = 0
    solver_lacks: tuple[str, ...] = ()
    dual_bound: float | None = None
    proven_by: str = ""
    conflicts: tuple[Conflict, ...] = ()
    unpriced: tuple[str, ...] = ()


class Plan(Record, frozen=True, kw_only=True):
    """The answer to a `Round`.

    Attributes
    ----------
    format
        Version of the file format.
    policy
        Name of the policy that decided.
    stop
        Reason why the solver stopped.
    status
        Kind of answer that it returned.
    record
        Cost of the decision.
    allocations
        Allocation of every job that runs from now on, by job id; other jobs wait (or stop). A
        policy that leaves a running job alone returns the same `Allocation` object.
    discarded
        Trials of a sweep that are given up for good.
    asleep
        Nodes that sleep from now on; None leaves them as they are.
    objective
        Value of the plan, to be maximised; None where the policy has no objective.
    bound
        Upper bound on the objective of any plan; None if not known.
    gap
        Relative gap between bound and objective (`gap_between`).
    prices
        Value of one more unit of a resource, by constraint name.
    memory
        Memory of the policy for its next decision, by kind (`PlanMemory`), as plain JSON values.
    details
        Details of the plan.
    """

    format: Literal["ronda/plan/1"] = "ronda/plan/1"
    policy: str = ""
    allocations: dict[str, Allocation] = {}
    discarded: tuple[Name, ...] = ()
    asleep: tuple[int, ...] | None = None
    objective: float | None = None
    bound: float | None = None
    stop: StopReason = StopReason.COMPLETE
    status: SolutionStatus = SolutionStatus.FEASIBLE
    prices: dict[str, float] = {}
    record: SolveRecord = SolveRecord()
    memory: dict[str, Any] = {}
    details: PlanDetails = PlanDetails()

    @property
    def gap(self) -> float | None:
        """Relative gap between bound and objective; None without both."""
        if self.objective is None or self.bound is None:
            return None
        return gap_between(self.bound, self.objective)

    def __repr__(self) -> str:
        """Return the plan in one line."""
        worth = {"objective": self.objective, "gap": self.gap}
        told = "".join(f", {name} {x:.6g}" for name, x in worth.items() if x is not None)
        return f"<Plan of {self.policy!r}: {len(self.allocations)} jobs run, {self.status}{told}>"

    def to_frame(self) -> "DataFrame":
        """Return a data frame of pandas: a row for each job that runs, and the GPUs by node."""
        from ronda.instances.tables.frames import plan_frame

        return plan_frame(self)

    def _repr_html_(self) -> str:
        from ronda.instances.tables.documents import plan_table

        return plan_table(self).html()


class PlanMemory(Record, frozen=True):
    """The memory of the last decision that a policy, or a mechanism of policies, needs.

    A subclass has a `key`, under which it stands in `Plan.memory`, and fields with defaults:
    numbers, texts, lists, dictionaries and records of these.
    """

    key: ClassVar[str]

    @classmethod
    def recall(cls, plan: Plan | None) -> Self:
        """Return the memory of this kind in a plan, or the defaults.

        Raises
        ------
        InputError
            If the memory under the key is not of this kind.
        """
        kept = {} if plan is None else plan.memory.get(cls.key, {})
        try:
            return msgspec.convert(kept, cls, str_keys=True)
        except msgspec.ValidationError as error:
            expected = "what this version of ronda remembers, or a plan without it"
            raise InputError(f"plan: memory.{cls.key}", str(error), expected) from None

    def noted(self) -> dict[str, Any]:
        """Return the entry of a plan's `memory`, plain JSON values under the key."""
        return {self.key: msgspec.to_builtins(self, str_keys=True)}
