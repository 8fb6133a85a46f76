"""The evolutionary policy: options, values, search, placement."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ronda.formulations.allocation.case import make_case
from ronda.formulations.allocation.conflicts import shortages
from ronda.formulations.allocation.limits import Limits, limits
from ronda.formulations.genes import Genes, Population, favourites, genes, within
from ronda.formulations.objectives.forms import minds_power
from ronda.formulations.options.table import rows_of, running_rows
from ronda.instances.arrays import Floats, Rows
from ronda.instances.errors import InputError
from ronda.instances.plan import Plan, SolutionStatus, StopReason
from ronda.instances.round import Round
from ronda.solvers import stopping
from ronda.solvers.contract import OPTIMISING, Capability, Deadline
from ronda.solvers.decision.by_prices import allocate_by_fill, unit_prices
from ronda.solvers.decision.plan import Choice, reserve_s, to_plan
from ronda.solvers.decision.question import Question
from ronda.solvers.genetic.engine import Outcome, evolve
from ronda.solvers.genetic.evolution import Settings, check_settings


@dataclass(frozen=True, slots=True)
class Case:
    """A round as the search sees it."""

    question: Question
    pool: Genes
    greedy: Rows  # (J,) the rows of a greedy choice
    bound: float  # no plan exceeds it
    prices: dict[str, float]  # value of one more unit of each resource
    losses: Floats  # (J,) what it costs to move a running job that keeps its option


@dataclass(frozen=True, kw_only=True)
class Genetic:
    """Evolve each job's option (GPUs, batch size, clock) by a plain genetic algorithm.

    The engine is `ronda.solvers.genetic.engine`; `evolve` is the same with everything on.

    Parameters
    ----------
    objective
        What options are worth (`ronda.formulations.objectives.forms.values`).
    population, crossover, mutation, tournament
        As in `ronda.solvers.genetic.evolution.Settings`.
    generations, stagnation
        Stop after this many generations; after this many without a better plan.
    gap
        Stop once the plan is proven to be within this of the best one, relative to the bound.
    """

    name: ClassVar[str] = "genetic"
    capabilities: ClassVar[Capability] = OPTIMISING
    packages: ClassVar[tuple[str, ...]] = ("numpy", "deap")

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
        check_settings(self.name, self)
        for key in ("generations", "stagnation"):
            if getattr(self, key) < 1:
                raise InputError(f"{self.name}: {key}", str(getattr(self, key)), "at least 1")
        if not 0 <= self.gap <= 1:
            raise InputError(f"{self.name}: gap", f"{self.gap:g}", "a number in 0..1")

    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Decide a round by evolution."""
        question = Question.of(
            round,
            self.objective,
            policy=self.name,
            packages=self.packages,
            seed=seed,
            deadline=deadline,
        )
        bounds = limits(question.round, question.table)
        wishes = favourites(question.table, question.values)
        starts = [wishes] if within(question.table, wishes, bounds) else []
        case = self.case(question, bounds, unlimited=bool(starts))
        if not starts:
            starts = [case.greedy]
        starts.append(running_rows(question.table))
        if initial is not None:
            starts.append(rows_of(question.table, initial))
        choice = self._choose(case, starts, deadline)
        return self.finish(case, to_plan(question, choice, deadline))

    def case(self, question: Question, bounds: Limits, *, unlimited: bool) -> Case:
        """Return the round as genes, with the bound; no resource has a price if `unlimited`."""
        table, values = question.table, question.values
        greedy, prices = favourites(table, values), dict[str, float]()
        bound = _worth(greedy, values)
        if not unlimited:
            filled = allocate_by_fill(question.round, table, values)
            greedy, bound, prices = filled.chosen, filled.bound, filled.prices
        pool = genes(table, values, bounds, unit_prices(question.round, prices))
        return Case(question, pool, greedy, bound, prices, np.zeros(len(table.jobs)))

    @property
    def settings(self) -> Settings:
        """The engine's parameters."""
        return Settings(
            population=self.population,
            crossover=self.crossover,
            mutation=self.mutation,
            tournament=self.tournament,
        )

    def seeds(self, case: Case, genomes: Population) -> Population:
        """Return the genomes to begin with, given those of the starts."""
        return genomes

    def pick(
        self, case: Case, found: Outcome, starts: Sequence[Rows], deadline: Deadline
    ) -> tuple[Rows, tuple[str, ...]]:
        """Return the (J,) rows to place, and the running jobs that make room for others."""
        return case.pool.rows(found.genome), ()

    def finish(self, case: Case, plan: Plan) -> Plan:
        """Return the plan as it is handed out."""
        return plan

    def reserve_s(self, case: Case) -> float:
        """Return the seconds that must be left when the search ends."""
        return reserve_s(case.question.table)

    def _choose(self, case: Case, starts: Sequence[Rows], deadline: Deadline) -> Choice:
        """Choose every job's option."""
        pool, bound, prices = case.pool, case.bound, case.prices
        if not len(pool):
            return _without_genes(case, deadline)
        genomes = np.array([pool.genome(rows) for rows in starts])
        worth = pool.worth(genomes)
        for i in np.flatnonzero(pool.feasible(genomes)).tolist():
            if bound - worth[i] <= self.gap * abs(bound):
                # Without prices nothing was scarce: the start is what every job wants most.
                stop = StopReason.GAP if prices else StopReason.COMPLETE
                rows, value = pool.rows(genomes[i]), float(worth[i])
                return _without_search(case, rows, value, stop, deadline)
        began = deadline.elapsed()
        stop_when = stopping.first_of(
            stopping.gap(bound, self.gap),
            stopping.generations(self.generations),
            stopping.stagnation(self.stagnation),
            stopping.deadline(deadline, self.reserve_s(case)),
        )
        seeds, seed = np.unique(self.seeds(case, genomes), axis=0), case.question.seed
        found = evolve(pool, seeds, self.settings, stop_when, seed=seed, deadline=deadline)
        rows, yielding = self.pick(case, found, starts, deadline)
        value = _worth(rows, case.question.values)
        proven = bound - found.objective <= self.gap * abs(bound)
        return Choice(
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
            yielding=yielding,
            details={"generations": found.generations},
        )


def _worth(rows: Rows, values: Floats) -> float:
    """Return what rows (-1: none) are worth together."""
    return float(values[rows[rows >= 0]].sum())


def _without_search(
    case: Case,
    rows: Rows,
    value: float,
    stop: StopReason,
    deadline: Deadline,
    status: SolutionStatus = SolutionStatus.OPTIMAL,
) -> Choice:
    """Return a choice that needed no search: proven good enough, or the only one."""
    return Choice(
        chosen=rows,
        objective=value,
        bound=max(case.bound, value),
        prices=case.prices,
        stop=stop,
        status=status,
        build_s=deadline.elapsed(),
        incumbents=((deadline.elapsed(), value),),
        solver="prices",
        message="greedy choice at the dual prices",
        details={"generations": 0},
    )


def _without_genes(case: Case, deadline: Deadline) -> Choice:
    """Return the choice of a round in which nothing is left to choose, or why there is none."""
    question, fixed = case.question, case.pool.fixed
    conflicts = shortages(make_case(question.round, question.table, question.values))
    if conflicts:
        return Choice(
            chosen=fixed,
            stop=StopReason.INFEASIBLE,
            status=SolutionStatus.NONE,
            build_s=deadline.elapsed(),
            conflicts=tuple(conflicts),
            details={"generations": 0},
        )
    value = _worth(fixed, question.values)
    status = SolutionStatus.OPTIMAL if value >= case.bound else SolutionStatus.FEASIBLE
    return _without_search(case, fixed, value, StopReason.COMPLETE, deadline, status)
