"""The evolutionary policy: options, values, search, placement."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ronda.formulations.allocation_case import make_case
from ronda.formulations.allocation_reading import Conflict, shortages
from ronda.formulations.genome import favourites, genes, within
from ronda.formulations.greedy_fill import dual_bound, fill
from ronda.formulations.limits import Floats, limits
from ronda.formulations.objectives import minds_power, values
from ronda.formulations.options import OptionTable, build
from ronda.instances.errors import InputError
from ronda.instances.instance import Round
from ronda.instances.plan import Plan, SolutionStatus, SolveRecord, StopReason
from ronda.solvers import stopping
from ronda.solvers.contract import Capability, Deadline
from ronda.solvers.genetic import Outcome, Settings, evolve
from ronda.solvers.realise import realise
from ronda.solvers.starts import rows_of, running_rows
from ronda.solvers.versions import versions

RESERVE_S, RESERVE_PER_JOB_S = 0.01, 5e-5
"""Seconds kept for placing the answer: measured 2 ms and 20 microseconds a job on one slow core."""


@dataclass(frozen=True, kw_only=True)
class Genetic:
    """Evolve each job's option (GPUs, batch size, clock) with `ronda.solvers.genetic`.

    Parameters
    ----------
    objective
        What options are worth (`ronda.formulations.objectives.values`).
    population, generations, crossover, mutation, tournament
        As in `ronda.solvers.genetic.Settings`; `generations` at most.
    stagnation
        Stop after so many generations without a better plan.
    gap
        Stop once the plan is proven to be within this of the best one, relative to the bound.
    """

    name: ClassVar[str] = "genetic"
    capabilities: ClassVar[Capability] = (
        Capability.BOUND
        | Capability.WARM_START
        | Capability.DEADLINE
        | Capability.RANDOM
        | Capability.ELASTIC
        | Capability.PREEMPTS
        | Capability.ENERGY
        | Capability.OBJECTIVE
    )

    objective: str = "rank"
    population: int = 64
    generations: int = 40
    crossover: float = 0.9
    mutation: float = 0.6
    tournament: int = 2
    stagnation: int = 12
    gap: float = 1e-4

    def __post_init__(self) -> None:
        """Refuse parameters that make no sense."""
        minds_power(self.objective)  # refuses what it does not know
        for key, least in (
            ("population", 4),
            ("generations", 1),
            ("tournament", 1),
            ("stagnation", 1),
        ):
            if getattr(self, key) < least:
                raise InputError(f"genetic: {key}", str(getattr(self, key)), f"at least {least}")
        for key in ("crossover", "mutation", "gap"):
            if not 0 <= getattr(self, key) <= 1:
                raise InputError(f"genetic: {key}", f"{getattr(self, key):g}", "a number in 0..1")

    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Decide a round by evolution."""
        table = build(round, mind_power=True if minds_power(self.objective) else None)
        worth = values(round, table, self.objective)
        build_s = deadline.elapsed()
        answer = self._answer(round, table, worth, deadline, seed, initial)
        found = answer.found
        record = SolveRecord(
            seed=seed,
            build_s=build_s,
            solve_s=deadline.elapsed() - build_s,
            nodes=found.evaluations if found else 0,
            options=len(table),
            variables=len(found.genome) if found else 0,
            incumbents=found.incumbents if found else ((deadline.elapsed(), answer.worth(worth)),),
            solver="deap" if found else "prices",
            versions={key: versions()[key] for key in ("ronda", "numpy", "deap")},
        )
        if answer.conflicts:
            return self._fallback(round, answer.conflicts, record, deadline)
        return self._plan(round, table, worth, answer, record, deadline)

    def _answer(
        self,
        round: Round,
        table: OptionTable,
        worth: Floats,
        deadline: Deadline,
        seed: int,
        initial: Plan | None,
    ) -> "_Answer":
        """Return the best rows found, or why there can be none."""
        bounds = limits(round, table)
        wishes = favourites(table, worth)
        if within(table, wishes, bounds):
            best = float(worth[wishes[wishes >= 0]].sum())
            return _Answer(wishes, best, StopReason.COMPLETE)
        bound, prices = dual_bound(round, table, worth, sleeping=bool(bounds.node_w))
        starts = [fill(round, table, worth), running_rows(table)]
        if initial is not None:
            starts.append(rows_of(table, initial))
        for rows in starts:
            proven = bound - worth[rows[rows >= 0]].sum() <= self.gap * abs(bound)
            if proven and within(table, rows, bounds):
                return _Answer(rows, bound, StopReason.GAP, prices)
        pool = genes(table, worth, bounds, prices)
        if not len(pool):
            conflicts = shortages(make_case(round, table, worth))
            return _Answer(pool.fixed, bound, StopReason.COMPLETE, prices, None, tuple(conflicts))
        found = evolve(
            pool,
            np.unique([pool.genome(rows) for rows in starts], axis=0),
            Settings(
                population=self.population,
                crossover=self.crossover,
                mutation=self.mutation,
                tournament=self.tournament,
            ),
            self._criterion(bound, deadline, len(table.jobs)),
            seed=seed,
            deadline=deadline,
        )
        return _Answer(pool.rows(found.genome), bound, found.stop, prices, found)

    def _criterion(self, bound: float, deadline: Deadline, jobs: int) -> stopping.Criterion:
        """Return when to stop."""
        return stopping.first_of(
            stopping.gap(bound, self.gap),
            stopping.generations(self.generations),
            stopping.stagnation(self.stagnation),
            stopping.deadline(deadline, RESERVE_S + RESERVE_PER_JOB_S * jobs),
        )

    def _plan(
        self,
        round: Round,
        table: OptionTable,
        worth: Floats,
        answer: "_Answer",
        record: SolveRecord,
        deadline: Deadline,
    ) -> Plan:
        """Place the answer; the plan's objective and gap are those of what is placed."""
        began = deadline.elapsed()
        placed = realise(
            round, table, worth, answer.rows, save_energy=_energy_is_short(round, answer.prices)
        )
        ended = deadline.elapsed()
        bound = max(answer.bound, placed.objective)
        proven = bound - placed.objective <= self.gap * abs(bound)
        details: dict[str, Any] = {"objective": self.objective}
        if answer.found is not None:
            details["generations"] = answer.found.generations
        if placed.unplaced:
            details |= {"placement_loss": placed.lost, "unplaced": list(placed.unplaced)}
        if placed.moved:
            details["moved"] = list(placed.moved)
        return Plan(
            policy=self.name,
            allocations=placed.allocations,
            asleep=placed.asleep,
            objective=placed.objective,
            bound=bound,
            stop=answer.stop,
            status=SolutionStatus.OPTIMAL if proven else SolutionStatus.FEASIBLE,
            prices=answer.prices,
            record=replace(record, extract_s=ended - began, total_s=ended),
            details=details,
        )

    def _fallback(
        self,
        round: Round,
        conflicts: tuple[Conflict, ...],
        record: SolveRecord,
        deadline: Deadline,
    ) -> Plan:
        """Keep what runs, and say which constraints conflict."""
        return Plan(
            policy=self.name,
            allocations={s.job.id: s.allocation for s in round.running if s.allocation is not None},
            stop=StopReason.INFEASIBLE,
            status=SolutionStatus.FALLBACK,
            record=replace(record, total_s=deadline.elapsed()),
            details={
                "objective": self.objective,
                "conflicts": [
                    {"constraints": list(c.constraints), "message": c.message} for c in conflicts
                ],
            },
        )


@dataclass(frozen=True, slots=True)
class _Answer:
    """Rows for all jobs, and what is known about them."""

    rows: NDArray[np.int64]
    bound: float
    stop: StopReason
    prices: dict[str, float] = field(default_factory=dict)
    found: Outcome | None = None
    conflicts: tuple[Conflict, ...] = ()

    def worth(self, values: Floats) -> float:
        """Return what the rows are worth together."""
        return float(values[self.rows[self.rows >= 0]].sum())


def _energy_is_short(round: Round, prices: Mapping[str, float]) -> bool:
    """Tell whether the energy budget, not the power cap, is what limits the round's watts."""
    if round.energy_j is None or prices.get("watts", 0.0) <= 0:
        return False
    return round.power_cap_w is None or round.energy_j / round.window_s < round.power_cap_w
