"""The evolutionary policy: options, values, search, placement."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.allocation_case import make_case
from ronda.formulations.allocation_reading import shortages
from ronda.formulations.genome import favourites, genes, within
from ronda.formulations.greedy_fill import dual_bound, fill
from ronda.formulations.limits import Floats, limits
from ronda.formulations.objectives import minds_power
from ronda.formulations.options import OptionTable
from ronda.instances.errors import InputError
from ronda.instances.instance import Round
from ronda.instances.plan import Plan, SolutionStatus, StopReason
from ronda.solvers import stopping
from ronda.solvers.choice import Choice, Setting, named_prices, reserve_s, to_plan
from ronda.solvers.contract import OPTIMISING, Capability, Deadline
from ronda.solvers.genetic import Outcome, Settings, evolve
from ronda.solvers.starts import rows_of, running_rows

Rows = NDArray[np.int64]


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
    capabilities: ClassVar[Capability] = OPTIMISING

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
        setting = Setting.of(
            self.name,
            self.objective,
            ("numpy", "deap"),
            round=round,
            seed=seed,
            deadline=deadline,
        )
        choice, generations = self._choose(setting, deadline, initial)
        return to_plan(setting, choice, deadline, {"generations": generations})

    def _choose(
        self, setting: Setting, deadline: Deadline, initial: Plan | None
    ) -> tuple[Choice, int]:
        """Choose every job's option; also returns how many generations that took."""
        round_, table, worth = setting.round, setting.table, setting.values
        bounds = limits(round_, table)
        wishes = favourites(table, worth)
        if within(table, wishes, bounds):
            best = _worth(wishes, worth)
            return _without_search(wishes, best, best, StopReason.COMPLETE, {}, deadline), 0
        bound, named = dual_bound(round_, table, worth, sleeping=bool(bounds.node_w))
        prices = named_prices(round_, named)
        starts = [fill(round_, table, worth), running_rows(table)]
        if initial is not None:
            starts.append(rows_of(table, initial))
        for rows in starts:
            value = _worth(rows, worth)
            if bound - value <= self.gap * abs(bound) and within(table, rows, bounds):
                return _without_search(rows, value, bound, StopReason.GAP, prices, deadline), 0
        pool = genes(table, worth, bounds, named)
        if not len(pool):
            return _without_genes(setting, pool.fixed, bound, prices, deadline), 0
        began = deadline.elapsed()
        found = evolve(
            pool,
            np.unique([pool.genome(rows) for rows in starts], axis=0),
            Settings(
                population=self.population,
                crossover=self.crossover,
                mutation=self.mutation,
                tournament=self.tournament,
            ),
            self._criterion(bound, deadline, table),
            seed=setting.seed,
            deadline=deadline,
        )
        return self._found(pool.rows(found.genome), found, bound, prices, began, setting, deadline)

    def _found(
        self,
        rows: Rows,
        found: Outcome,
        bound: float,
        prices: dict[str, float],
        began: float,
        setting: Setting,
        deadline: Deadline,
    ) -> tuple[Choice, int]:
        """Return what the search found, and its generations."""
        value = _worth(rows, setting.values)
        proven = bound - value <= self.gap * abs(bound)
        choice = Choice(
            chosen=rows,
            objective=value,
            bound=max(bound, value),
            prices=prices,
            stop=found.stop,
            status=SolutionStatus.OPTIMAL if proven else SolutionStatus.FEASIBLE,
            build_s=began,
            solve_s=deadline.elapsed() - began,
            variables=len(found.genome),
            nodes=found.evaluations,
            incumbents=found.incumbents,
            solver="deap",
            message=f"{found.generations} generations",
        )
        return choice, found.generations

    def _criterion(
        self, bound: float, deadline: Deadline, table: OptionTable
    ) -> stopping.Criterion:
        """Return when to stop."""
        return stopping.first_of(
            stopping.gap(bound, self.gap),
            stopping.generations(self.generations),
            stopping.stagnation(self.stagnation),
            stopping.deadline(deadline, reserve_s(table)),
        )


def _worth(rows: Rows, values: Floats) -> float:
    """Return what rows (-1: none) are worth together."""
    return float(values[rows[rows >= 0]].sum())


def _without_search(
    rows: Rows,
    value: float,
    bound: float,
    stop: StopReason,
    prices: dict[str, float],
    deadline: Deadline,
    status: SolutionStatus = SolutionStatus.OPTIMAL,
) -> Choice:
    """Return a choice that needed no search: it is proven good enough, or all that there is."""
    return Choice(
        chosen=rows,
        objective=value,
        bound=max(bound, value),
        prices=prices,
        stop=stop,
        status=status,
        build_s=deadline.elapsed(),
        incumbents=((deadline.elapsed(), value),),
        solver="prices",
        message="greedy choice at the dual prices",
    )


def _without_genes(
    setting: Setting, fixed: Rows, bound: float, prices: dict[str, float], deadline: Deadline
) -> Choice:
    """Return the choice of a round in which nothing is left to choose, or why there is none."""
    conflicts = shortages(make_case(setting.round, setting.table, setting.values))
    if not conflicts:
        value = _worth(fixed, setting.values)
        return _without_search(
            fixed, value, bound, StopReason.COMPLETE, prices, deadline, SolutionStatus.FEASIBLE
        )
    return Choice(
        chosen=fixed,
        stop=StopReason.INFEASIBLE,
        status=SolutionStatus.NONE,
        build_s=deadline.elapsed(),
        conflicts=tuple(conflicts),
    )
