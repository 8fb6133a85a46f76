"""Plans, the answers to rounds, with records of how they were found."""

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

    COMPLETE = "complete"  # nothing was left to do (a rule or a proof)
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
    FALLBACK = "fallback"  # the solver had no answer, so running jobs continue
    NONE = "none"


NOISE = 1e-14
"""The rounding error of a sum that is 0, relative to its largest number."""


def closes(bound: float, objective: float, gap: float, scale: float = 0.0) -> bool:
    """Return whether an upper bound proves a maximised objective to within a relative gap.

    It does if ``bound - objective <= max(gap most, ROUNDING most, NOISE scale)``, where ``most`` is
    the larger of both magnitudes. `scale` is the magnitude of the largest number in the sums behind
    them, because the bound is a rounding error of such numbers if the optimum is 0. Every plan
    called *optimal* passes this test.
    """
    if not isfinite(objective) or not isfinite(bound):
        return False
    most = max(abs(bound), abs(objective))
    return bound - objective <= max(gap * most, ROUNDING * most, NOISE * scale)


def trusted_bound(told: float, safe: float, known: float | None) -> float:
    """Return the tightest trusted bound from a solver's reported bound and a safe one.

    The reported bound `told` is used if it is tighter than the `safe` one, which always holds. It
    is ignored if a `known` plan has a greater value, as the solver must be wrong in that case.
    """
    if known is None:
        return min(told, safe)
    wrong = known - told > 1e-6 * max(abs(told), abs(known))
    return max(safe if wrong else min(told, safe), known)


def gap_between(bound: float, objective: float, scale: float = 0.0) -> float:
    """Return the relative gap between an objective and an upper bound, 0 if it `closes`."""
    if closes(bound, objective, 0.0, scale):
        return 0.0
    return (bound - objective) / max(abs(bound), abs(objective))


class SolveRecord(Record, frozen=True, kw_only=True):
    """The cost of one decision, with times in seconds by ronda's own clock.

    Attributes
    ----------
    seed
        Seed of all random numbers.
    build_s
        Time to build the options and the model.
    solve_s
        Time to solve the model.
    extract_s
        Time to read the solution and to place jobs on nodes.
    total_s
        Total time.
    nodes
        Number of branch-and-bound nodes, or of evaluations in a search.
    options
        Number of options of all jobs.
    variables, constraints
        Size of the mathematical model.
    incumbents
        Pairs (seconds since entry, objective), ascending in time.
    solver
        Name of the solver.
    versions
        Versions of the solver's packages, by name.
    message
        Message of the solver.
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
    """A set of limits that no plan can keep together.

    Attributes
    ----------
    constraints
        Names of their constraints in the model.
    message
        Explanation in words.
    """

    constraints: tuple[str, ...]
    message: str


class Stage(Record, frozen=True, kw_only=True):
    """An aim of the site that was served before the objective.

    Attributes
    ----------
    name
        Name of the row by which later stages keep what was reached, such as ``class[prod]``.
    reached
        What the plan of the stage reached; for a priority class the worth of its jobs, each at most
        as at the size that it asks for.
    bound
        Upper bound on what any plan reaches, given what earlier stages reached.
    """

    name: str
    reached: float
    bound: float


class PlanDetails(Record, frozen=True, kw_only=True):
    """Details of a plan for users, which no policy reads.

    Attributes
    ----------
    objective
        Name of the objective that was maximised.
    parameters
        Parameters of the objective that are specific to the round.
    regret
        Loss of each job at the plan's prices if it took its next best option, in units of the
        objective. Jobs without another option are left out.
    unplaced
        Jobs that were chosen to run but could not be placed on nodes, with reasons.
    placement_loss
        Value lost because chosen options were placed differently or not at all.
    widened
        Jobs that run in several racks because no single rack had room.
    moved
        Running jobs that keep their option but move to other nodes.
    moved_gpus
        Number of GPUs of moved jobs.
    move_loss
        Value lost by moves, if moves have a cost; the objective is net of it.
    joint
        Whether racks were chosen together with the options.
    node_cuts
        Number of cuts that the placement on nodes added to the choice of options.
    generations
        Number of generations of the evolutionary search.
    solver_lacks
        Features and statistics that the solver lacks.
    dual_bound
        Upper bound that follows from prices alone, rounded outwards. No plan's objective exceeds
        it, whatever a solver reports. None without prices.
    proven_by
        Proof of an optimal plan. ``prices`` can be verified by addition, with `dual_bound` within
        the gap. Any other proof is a trusted search: ronda's own ``labels`` or ``cuts``
        (docs/prices.md), or a solver by name.
    conflicts
        Limits that were relaxed for jobs which may not be stopped. For an infeasible round also the
        reasons why no plan exists.
    owed
        GPUs that each tenant, with all below it, gets of what is owed to it, and what is owed: as
        much as it asks for, up to its guarantee. Keys are names of rows, ``owed[tenant,resource]``.
    owed_worth
        Part of the objective that is for what is owed to tenants, and for their fair shares. The
        plan's gap is relative to the rest.
    unpriced
        User rules that bind in the plan but whose value the prices do not show, because the bound
        from the prices is above the plan.
    stages
        Aims that were served before the objective, the first first. The plan's objective, bound and
        gap are those of the last stage, which keeps what these reached.
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
    stages: tuple[Stage, ...] = ()
    owed: dict[str, tuple[float, float]] = {}
    owed_worth: float = 0.0


class Plan(Record, frozen=True, kw_only=True):
    """The answer to a `Round`.

    Attributes
    ----------
    format
        Version of the file format.
    policy
        Name of the policy that made the plan.
    stop
        Reason why the solver stopped.
    status
        Kind of answer that the solver returned.
    record
        Cost of the decision.
    allocations
        Allocation of every job that runs from now on, by job id. Other jobs wait or stop. A policy
        that does not change a running job returns the same `Allocation` object.
    discarded
        Trials of sweeps that are given up for good.
    asleep
        Nodes that sleep from now on; None leaves them as they are.
    objective
        Objective value of the plan, to be maximised; None if the policy has no objective.
    bound
        Upper bound on the objective of any plan; None if unknown.
    gap
        Relative gap between bound and objective (see `gap_between`), both without
        `PlanDetails.owed_worth`, which could hide a gap of worth.
    prices
        Value of one more unit of each resource, by constraint name.
    memory
        Memory of the policy for its next decision, by kind of `PlanMemory`, as plain JSON values.
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
        """The relative gap between bound and objective; None unless both are known.

        Worth for what is owed to tenants counts in neither.
        """
        if self.objective is None or self.bound is None:
            return None
        apart = self.details.owed_worth
        return gap_between(self.bound - apart, self.objective - apart)

    def __repr__(self) -> str:
        """Return the plan in one line."""
        worth = {"objective": self.objective, "gap": self.gap}
        told = "".join(f", {name} {x:.6g}" for name, x in worth.items() if x is not None)
        return f"<Plan of {self.policy!r}: {len(self.allocations)} jobs run, {self.status}{told}>"

    def to_frame(self) -> "DataFrame":
        """Return a pandas data frame with a row for each running job and its GPUs per node."""
        from ronda.instances.tables.frames import plan_frame

        return plan_frame(self)

    def _repr_html_(self) -> str:
        from ronda.instances.tables.documents import plan_table

        return plan_table(self).html()


class PlanMemory(Record, frozen=True):
    """The memory of the last decision that a policy or a mechanism of policies needs.

    A subclass has a `key`, under which it is stored in `Plan.memory`, and fields with defaults.
    Fields are numbers, strings, lists, dictionaries and records of such values.
    """

    key: ClassVar[str]

    @classmethod
    def recall(cls, plan: Plan | None) -> Self:
        """Return the plan's memory of the class's kind, or the defaults.

        Raises
        ------
        InputError
            If the memory under the key is not of the class's kind.
        """
        kept = {} if plan is None else plan.memory.get(cls.key, {})
        try:
            return msgspec.convert(kept, cls, str_keys=True)
        except msgspec.ValidationError as error:
            expected = "what this version of ronda remembers, or a plan without it"
            raise InputError(f"plan: memory.{cls.key}", str(error), expected) from None

    def noted(self) -> dict[str, Any]:
        """Return the entry for a plan's `memory`: plain JSON values under the key."""
        return {self.key: msgspec.to_builtins(self, str_keys=True)}
