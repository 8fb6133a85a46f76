"""The genetic policies: they value options, search over batches and place the result.

`genetic` is the plain algorithm. `evolve` is memetic: it adds exchanges and the cost of moves.
"""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from msgspec.structs import replace

from ronda.formulations.allocation.model_data import Case, make_case
from ronda.formulations.allocation.rows import separable, shortages
from ronda.formulations.allocation.separable import Separable
from ronda.formulations.genes.genome import Genes, genes, genome_of, table_rows
from ronda.formulations.genes.move_losses import move_losses, with_moves
from ronda.formulations.objectives.switching_cost import loss_of_moves
from ronda.formulations.options.table import rows_of, running_rows
from ronda.instances.base import Floats, Rows
from ronda.instances.clock import Deadline, OutOfTimeError, ending
from ronda.instances.errors import InputError
from ronda.instances.plan import (
    Plan,
    PlanDetails,
    SolutionStatus,
    SolveRecord,
    StopReason,
    closes,
)
from ronda.solvers import stopping
from ronda.solvers.decision.metered import Metered
from ronda.solvers.decision.plan import (
    Choice,
    Optimising,
    Question,
    filled,
    nobody,
    price_of_a_watt,
    reserve_s,
)
from ronda.solvers.decision.realise import realise
from ronda.solvers.genetic.engine import EvolutionSettings, Evolved, check_settings, evolve
from ronda.solvers.genetic.operators import repair
from ronda.solvers.prices.dual import Search
from ronda.solvers.prices.engine import Answer, first_answer

SHORT = 0.05
"""The gap between a placed plan and its bound above which options are chosen again with the
nodes."""


@dataclass(frozen=True, slots=True)
class Task:
    """The task of the search: a round with its genes and start genomes."""

    question: Question
    case: Case
    genes: Genes
    starts: list[Rows]  # feasible start genomes
    greedy: Choice  # choice at the dual prices, with a bound that no plan exceeds


@dataclass(frozen=True, kw_only=True)
class Evolving(Optimising):
    """A policy that evolves each job's batch, GPUs and clock by DEAP's (mu + lambda) algorithm."""

    packages: ClassVar[tuple[str, ...]] = ("numpy", "deap")

    population: int = 24
    generations: int = 40
    stagnation: int = 8
    seeded = True  # a parameter of `genetic`

    def __post_init__(self) -> None:
        """Refuse impossible parameters."""
        super().__post_init__()
        check_settings(self.name, self)
        for key in ("generations", "stagnation"):
            if getattr(self, key) < 1:
                raise InputError(f"{self.name}: {key}", str(getattr(self, key)), "at least 1")

    @property
    def settings(self) -> EvolutionSettings:
        """The engine's parameters."""
        return EvolutionSettings(population=self.population, priced=self.seeded)

    def allocate(self, question: Question, deadline: Deadline, initial: Plan | None) -> Choice:
        """Choose options by evolution, or return a start that is proven good enough."""
        kept_s = reserve_s(question)
        search = Search(deadline=deadline, seed=question.seed, reserve_s=kept_s)
        whole = make_case(question.round, question.table, question.values)
        if conflicts := shortages(whole):
            return nobody(question.table, StopReason.INFEASIBLE, search, conflicts)
        cases = Metered(whole, search)
        for case in cases:
            problem = separable(case)
            priced = first_answer(problem, search)
            greedy = filled(case, problem, priced, search)
            prices = priced.dual.prices if self.seeded else even_prices(problem)
            try:
                with ending(deadline.end - kept_s):
                    task = self.task(question, case, genes(case, problem, prices), greedy, initial)
                    worth = task.genes.worth(np.array(task.starts))
                    best = int(worth.argmax())
                    good = replace(greedy, objective=float(worth[best])).closed(self.gap)
                    if good or not len(task.genes.free):
                        cases.choice = self._without_search(task, task.starts[best], priced)
                    else:
                        cases.choice = self._searched(task, deadline)
            except OutOfTimeError:
                cases.choice = replace(greedy, stop=StopReason.TIME_LIMIT)
        return cases.choice

    def task(
        self,
        question: Question,
        case: Case,
        pool: Genes,
        greedy: Choice,
        initial: Plan | None,
    ) -> Task:
        """Return the task of the search, with its start genomes."""
        nobody_runs = np.full(len(question.table.jobs), -1)
        plans = [nobody_runs]
        if self.seeded:
            plans = [greedy.chosen, running_rows(question.table)]
            if initial is not None:
                plans.append(rows_of(question.table, initial))
        starts = [repair(pool, genome_of(case, rows)) for rows in plans]
        return Task(question, case, pool, starts, greedy)

    def on_nodes(
        self, question: Question, choice: Choice, plan: Plan, deadline: Deadline
    ) -> Choice | None:
        """Choose again with the nodes as `prices` does, if placement lost more than `SHORT`."""
        if not self.seeded or closes(choice.bound, plan.objective or 0.0, SHORT):
            return None
        from ronda.solvers.decision.by_milp import search_of
        from ronda.solvers.decision.by_positions import again_on_nodes

        search = search_of(question, self.gap, deadline)
        again = again_on_nodes(question, replace(choice, yielding=()), plan, search)
        if again is None or again.realised is None:
            return again
        lost = [
            self.moves_lose(question, rows, moved)
            for rows, moved in (
                (again.chosen, again.realised.moved),
                (rows_of(question.table, plan), plan.details.moved),
            )
        ]
        better = again.objective - lost[0] > (plan.objective or 0.0) - lost[1]
        return again if better else None

    def moves_lose(self, question: Question, rows: Rows, moved: tuple[str, ...]) -> float:
        """Return the loss of a plan by its moves, which is 0 here."""
        return 0.0

    def pick(self, task: Task, found: Evolved, deadline: Deadline) -> tuple[Rows, tuple[str, ...]]:
        """Return the rows to place, shape (J,), and the running jobs that make room for others."""
        return table_rows(task.case, found.best[0]), ()

    def reserve_s(self, question: Question) -> float:
        """Return the seconds that the search must leave."""
        return reserve_s(question)

    def _searched(self, task: Task, deadline: Deadline) -> Choice:
        """Search for better rows than the starts have."""
        greedy, question = task.greedy, task.question
        began = deadline.elapsed()
        stop = stopping.first_of(
            stopping.gap(greedy.bound, self.gap),
            stopping.generations(self.generations),
            stopping.stagnation(self.stagnation),
            stopping.deadline(deadline, self.reserve_s(question)),
        )
        with ending(deadline.end - self.reserve_s(question)):
            found = evolve(
                task.genes, task.starts, self.settings, stop, seed=question.seed, deadline=deadline
            )
        rows, yielding = self.pick(task, found, deadline)
        value = float(question.values[rows[rows >= 0]].sum())
        return replace(
            greedy,
            chosen=rows,
            objective=value,
            bound=max(greedy.bound, value),
            stop=found.stop,
            incumbents=found.incumbents,
            details=PlanDetails(generations=found.generations),
            record=SolveRecord(
                build_s=began,
                solve_s=deadline.elapsed() - began,
                variables=len(task.genes.free),
                nodes=found.evaluations,
                solver="deap",
                message=f"{found.generations} generations",
            ),
            yielding=yielding,
        ).judged(self.gap)

    def _without_search(self, task: Task, start: Rows, priced: Answer) -> Choice:
        """Return the choice of a start that is proven good enough or has no alternative."""
        rows = table_rows(task.case, start)
        value = float(task.question.values[rows[rows >= 0]].sum())
        made = replace(
            task.greedy,
            chosen=rows,
            objective=value,
            bound=max(task.greedy.bound, value),
            details=PlanDetails(),
        ).judged(self.gap)
        # Without prices nothing was scarce: every job has its best option.
        scarce = made.closed(self.gap) and bool(priced.dual.prices.any())
        return replace(made, stop=StopReason.GAP if scarce else StopReason.COMPLETE)


@dataclass(frozen=True, kw_only=True)
class Genetic(Evolving):
    """Evolve each job's batch, GPUs and clock by a plain genetic algorithm.

    This is DEAP's (mu + lambda) algorithm. It knows the bound of the prices and stops when a plan
    meets that bound.

    Parameters
    ----------
    objective
        Objective that values the options (`ronda.formulations.objectives.by_name.values`).
    gap
        Relative gap to the bound at which the search stops.
    parameters
        Parameters of the objective, by name.
    population
        Individuals, and also children, per generation.
    generations, stagnation
        Generations after which the search stops, and generations without a better plan after which
        it stops.
    seeded
        Whether the search starts from the greedy choice at the dual prices, from responses to
        similar prices, from the running jobs and from the last plan. False: it starts from random
        genomes, without prices to guide it.
    """

    name: ClassVar[str] = "genetic"

    seeded: bool = True


def even_prices(problem: Separable) -> Floats:
    """Return prices at which all resources are equally scarce, shape (R,)."""
    return np.asarray(1.0 / np.maximum(np.abs(problem.capacity), 1e-12))


JUDGED = 3
"""The number of genomes, in addition to the starts, that are placed on nodes to choose the best."""

IMPROVED = 4
"""The number of children per generation in which exchanges are tried."""


@dataclass(frozen=True, kw_only=True)
class Evolve(Evolving):
    """Evolve each job's batch, GPUs and clock, and take placement and moves into account.

    This is a memetic algorithm: the genetic one with exchanges of two jobs as local search. The net
    value of a plan is the value of its options minus the cost of moving running jobs that keep
    their options. Without moves it is the objective of `milp` and `prices`, so their bounds hold.

    Parameters
    ----------
    objective, gap, parameters, population, generations, stagnation
        As for `genetic`.
    exchanges
        Most exchanges of two jobs tried for each child that is improved.
    """

    name: ClassVar[str] = "evolve"

    generations: int = 60
    stagnation: int = 20
    exchanges: int = 2

    @property
    def settings(self) -> EvolutionSettings:
        """The engine's parameters."""
        return dataclasses.replace(
            super().settings, improved=IMPROVED, exchanges=self.exchanges, kept=JUDGED
        )

    def task(
        self, question: Question, case: Case, pool: Genes, greedy: Choice, initial: Plan | None
    ) -> Task:
        """Return the task of the search, with genes that know where jobs run."""
        losses = move_losses(question.round, question.table, question.values)
        return super().task(question, case, with_moves(pool, case, losses), greedy, initial)

    def pick(self, task: Task, found: Evolved, deadline: Deadline) -> tuple[Rows, tuple[str, ...]]:
        """Place the best few genomes and the starts; return the one of greatest net value on nodes.

        Each genome is placed twice: once with the running jobs that the estimate says must make
        room, and once with those that placement finds by itself.
        """
        of, table = task.question, task.question.table
        watt = price_of_a_watt(of.round, task.greedy.prices)
        best: tuple[Rows, tuple[str, ...]] = (table_rows(task.case, found.best[0]), ())
        most = -np.inf
        for genome in np.unique([*found.best, *task.starts], axis=0):
            rows = table_rows(task.case, genome)
            making_room = task.genes.making_room(genome).tolist()  # according to the estimate
            given = tuple(table.jobs[j].job.id for j in making_room)
            for yielding in dict.fromkeys((given, ())):
                if most > -np.inf and deadline.left() < 2 * reserve_s(of):
                    return best
                try:
                    placed = realise(
                        of.round, table, of.values, rows, watt_value=watt, yielding=yielding
                    )
                    worth = placed.objective - _moved_loss(of, rows, placed.moved)
                except OutOfTimeError:
                    return best
                if worth > most:
                    best, most = (rows, yielding), worth
        return best

    def reserve_s(self, question: Question) -> float:
        """Return the seconds for judging some plans and placing one."""
        return 2 * (JUDGED + 1) * reserve_s(question)

    def moves_lose(self, question: Question, rows: Rows, moved: tuple[str, ...]) -> float:
        """Return the loss of a plan by its moves."""
        return _moved_loss(question, rows, moved) if moved else 0.0

    def finish(self, question: Question, choice: Choice, plan: Plan, initial: Plan | None) -> Plan:
        """Subtract the loss of the actual moves from the plan's objective."""
        moved = plan.details.moved
        if plan.objective is None or not moved:
            return plan
        lost = _moved_loss(question, rows_of(question.table, plan), moved)
        net = plan.objective - lost
        proven = closes(choice.bound, net, self.gap, choice.scale)
        status = plan.status if proven else SolutionStatus.FEASIBLE
        details = replace(plan.details, move_loss=lost)
        return replace(plan, objective=net, status=status, details=details)


def _moved_loss(question: Question, rows: Rows, moved: tuple[str, ...]) -> float:
    round_, table, values = question.round, question.table, question.values
    return loss_of_moves(round_, table, values, rows[rows >= 0], moved)
