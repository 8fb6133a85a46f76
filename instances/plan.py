"""The answer to a round, and how it was found."""

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
    """Why the solver stopped."""

    COMPLETE = "complete"  # it had nothing more to do (a rule, or a proof)
    GAP = "gap"  # the gap that was asked for is reached
    TIME_LIMIT = "time_limit"
    NODE_LIMIT = "node_limit"
    GENERATION_LIMIT = "generation_limit"
    STAGNATION = "stagnation"  # the search no longer improved
    INFEASIBLE = "infeasible"
    ERROR = "error"


class SolutionStatus(StrEnum):
    """What the solver returned."""

    OPTIMAL = "optimal"  # proven, within the gap that was asked for
    FEASIBLE = "feasible"  # satisfies every constraint
    FALLBACK = "fallback"  # the solver had nothing: what runs keeps running
    NONE = "none"


NOISE = 1e-14
"""What rounding leaves of numbers whose sum is 0, as a share of the largest."""

TOLD = 1e-6
"""Share by which the bound that a solver tells may be off: its own tolerance."""


def closes(bound: float, objective: float, gap: float, scale: float = 0.0) -> bool:
    """Return whether an upper bound proves an objective, to be maximised, within a relative gap.

    That is ``bound - objective <= max(gap most, ROUNDING most, NOISE scale)``, most the larger of
    both in size. `scale` is the largest of the numbers that they are made from: where the optimum
    is 0 the bound is what rounding leaves of these. Whatever is called *optimal* is judged here.
    """
    if not isfinite(objective) or not isfinite(bound):
        return False
    most = max(abs(bound), abs(objective))
    return bound - objective <= max(gap * most, ROUNDING * most, NOISE * scale)


def believed(told: float, safe: float, known: float | None) -> float:
    """Return the bound of a search beside a safe one, which holds whoever is wrong.

    What a solver tells counts if it says more than the safe bound does; not if a plan is `known`
    that is worth more: then all that it tells is in doubt.
    """
    if known is None:
        return min(told, safe)
    wrong = known - told > TOLD * max(abs(told), abs(known))
    return max(safe if wrong else min(told, safe), known)


def gap_between(bound: float, objective: float, scale: float = 0.0) -> float:
    """Return the relative gap of an objective to an upper bound: 0 or more, 0 if that `closes`."""
    if closes(bound, objective, 0.0, scale):
        return 0.0
    return (bound - objective) / max(abs(bound), abs(objective))


class SolveRecord(Record, frozen=True, kw_only=True):
    """What one decision cost; times in seconds by ronda's own clock.

    Attributes
    ----------
    seed
        Seed of everything random.
    build_s
        Making options and model.
    solve_s
        Solving.
    extract_s
        Placement and reading the answer.
    total_s
        All of it.
    nodes
        Branch-and-bound nodes, or evaluations of a search.
    options
        Ways to run jobs that were weighed.
    variables, constraints
        Size of the mathematical model.
    incumbents
        Pairs (seconds since entry, objective), ascending in time.
    solver
        Who solved it.
    versions
        Versions of the packages that did, by name.
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
        Their names in the model.
    message
        Why, in words.
    """

    constraints: tuple[str, ...]
    message: str


class PlanDetails(Record, frozen=True, kw_only=True):
    """What a plan says of itself; no policy reads it again.

    Attributes
    ----------
    objective
        Name of the objective that was maximised.
    parameters
        Its parameters that only this round has.
    regret
        By job: what it would lose at the plan's prices with its next best option, in units of the
        objective; without jobs that have no other.
    unplaced
        Jobs that were chosen to run and found no room on nodes, and why.
    placement_loss
        Value that was chosen, and is not placed or not as chosen.
    widened
        Jobs that found no room in one rack, and run in several.
    moved
        Running jobs that keep their option and run on other nodes.
    moved_gpus
        GPUs of these.
    move_loss
        Value that moves lose, where they are weighed: the objective is net of it.
    joint
        Whether racks were chosen with the options.
    node_cuts
        Cuts that placement on nodes added to the choice of options.
    generations
        Generations that evolution went through.
    solver_lacks
        What the solver cannot do or does not tell.
    dual_bound
        What prices alone prove, rounded outwards: no plan's objective exceeds it, whatever a solver
        says. None where there are no prices.
    proven_by
        Who closes the gap of an optimal plan: ``prices``, which anyone can add up again (then
        `dual_bound` is within the gap), or a search that is taken at its word: ronda's own,
        ``labels`` or ``cuts`` (docs/prices.md), or a solver's name.
    conflicts
        Limits that gave way to jobs which may not be stopped; if the round is infeasible, also why
        no plan exists.
    unpriced
        Rules of the user's own that the plan just keeps, and of which the prices do not say what
        they are worth: their bound is above the plan.
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
        Who decided.
    stop
        Why the solver stopped.
    status
        What it returned.
    record
        What the decision cost.
    allocations
        What every job runs on from now on, by job id; a job that is not here waits (or stops).
        A policy that leaves a running job alone returns the very same `Allocation`.
    discarded
        Trials of a sweep that are given up for good.
    asleep
        Nodes to put, or leave, asleep; None leaves them as they are.
    objective
        Value of the plan, to be maximised; None where the policy has no objective.
    bound
        What no plan's objective can exceed; None where it is not known.
    gap
        Relative gap between bound and objective (`gap_between`).
    prices
        Value of one more unit of a resource, by constraint name.
    memory
        What the policy remembers for its next decision, by kind (`PlanMemory`), as plain JSON
        values.
    details
        What else the plan says of itself.
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
        """Return what it is in one line; its fields hold the rest."""
        worth = {"objective": self.objective, "gap": self.gap}
        told = "".join(f", {name} {x:.6g}" for name, x in worth.items() if x is not None)
        return f"<Plan of {self.policy!r}: {len(self.allocations)} jobs run, {self.status}{told}>"

    def to_frame(self) -> "DataFrame":
        """Return a data frame of pandas: a row for each job that runs, and the GPUs by node."""
        from ronda.instances.tables.frames import plan_frame

        return plan_frame(self)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from ronda.instances.tables.documents import plan_table

        return plan_table(self).html()


class PlanMemory(Record, frozen=True):
    """What a policy, or a mechanism that policies share, must know of the last decision.

    A subclass has a `key`, under which it stands in `Plan.memory`, and fields that all have
    defaults: numbers, texts, lists, dictionaries and records of these.
    """

    key: ClassVar[str]

    @classmethod
    def recall(cls, plan: Plan | None) -> Self:
        """Return what a plan remembers of this kind; the defaults, if nothing.

        Raises
        ------
        InputError
            If what the plan has under the key is not of this kind.
        """
        kept = {} if plan is None else plan.memory.get(cls.key, {})
        try:
            return msgspec.convert(kept, cls, str_keys=True)
        except msgspec.ValidationError as error:
            expected = "what this version of ronda remembers, or a plan without it"
            raise InputError(f"plan: memory.{cls.key}", str(error), expected) from None

    def noted(self) -> dict[str, Any]:
        """Return it as a plan's `memory` has it: plain JSON values under the key."""
        return {self.key: msgspec.to_builtins(self, str_keys=True)}
