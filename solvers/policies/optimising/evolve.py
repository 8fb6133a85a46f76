"""The memetic policy: the genetic one with exchanges, and moves in view."""

from dataclasses import dataclass, replace
from typing import ClassVar

import msgspec
import numpy as np

from ronda.formulations.allocation.case import Case
from ronda.formulations.clock import Deadline, OutOfTimeError
from ronda.formulations.genes.genome import Genes, table_rows
from ronda.formulations.genes.neighbourhood import move_losses, settle
from ronda.formulations.objectives.outlook import loss_of_moves
from ronda.formulations.options.table import OptionTable, rows_of
from ronda.instances.arrays import Rows
from ronda.instances.plan import Plan, SolutionStatus, closes
from ronda.solvers.decision.plan import Choice, Question, price_of_a_watt, reserve_s
from ronda.solvers.decision.realise import realise
from ronda.solvers.genetic.engine import EvolutionSettings, Evolved
from ronda.solvers.policies.optimising.genetic import Genetic, Task

JUDGED = 3
"""Genomes that are placed on nodes before one is chosen, besides the starts."""

IMPROVED = 4
"""Children of a generation in which exchanges are tried."""


@dataclass(frozen=True, kw_only=True)
class Evolve(Genetic):
    """Evolve each job's batch, GPUs and clock with its placement and moves in view.

    A memetic algorithm: the genetic one with exchanges of two jobs as local search. What a plan is
    worth is the value of its options less what it costs to move running jobs that keep theirs;
    without moves it is what `milp` and `prices` maximise, so their bounds hold.

    Parameters
    ----------
    objective, gap, elastic, population, generations, crossover, mutation, stagnation, seeded
        As of `genetic`.
    exchanges
        Exchanges of two jobs tried at most for each child that is improved.
    """

    name: ClassVar[str] = "evolve"

    generations: int = 60
    stagnation: int = 20
    exchanges: int = 2

    @property
    def settings(self) -> EvolutionSettings:
        """The engine's parameters."""
        return replace(super().settings, improved=IMPROVED, exchanges=self.exchanges, kept=JUDGED)

    def task(
        self, question: Question, case: Case, pool: Genes, greedy: Choice, initial: Plan | None
    ) -> Task:
        """Return what is searched: genes that know where jobs run."""
        losses = move_losses(question.round, question.table, question.values)
        return super().task(question, case, settle(pool, case, losses), greedy, initial)

    def pick(self, task: Task, found: Evolved, deadline: Deadline) -> tuple[Rows, tuple[str, ...]]:
        """Place the best few genomes and the starts; return what is worth most on nodes.

        Each is placed twice: with the running jobs making room that the estimate names, and with
        those that placement finds by itself.
        """
        table = task.question.table
        best: tuple[Rows, tuple[str, ...]] = (table_rows(task.case, found.best[0]), ())
        most = -np.inf
        for genome in np.unique([*found.best, *task.starts], axis=0):
            rows = table_rows(task.case, genome)
            making_room = task.genes.making_room(genome).tolist()  # by the estimate
            given = tuple(table.jobs[j].job.id for j in making_room)
            for yielding in dict.fromkeys((given, ())):
                if most > -np.inf and deadline.left() < 2 * reserve_s(table):
                    return best
                try:
                    worth = _placed_worth(task, rows, yielding)
                except OutOfTimeError:
                    return best
                if worth > most:
                    best, most = (rows, yielding), worth
        return best

    def reserve_s(self, table: OptionTable) -> float:
        """Return the seconds to judge some plans and to place one."""
        return 2 * (JUDGED + 1) * reserve_s(table)

    def finish(self, question: Question, choice: Choice, plan: Plan, initial: Plan | None) -> Plan:
        """Return the plan with the moves that it really makes taken off its objective."""
        moved = tuple(plan.details.get("moved", ()))
        if plan.objective is None or not moved:
            return plan
        lost = _moved_loss(question, rows_of(question.table, plan), moved)
        net = plan.objective - lost
        proven = closes(choice.bound, net, self.gap, choice.scale)
        status = plan.status if proven else SolutionStatus.FEASIBLE
        details = plan.details | {"migration_loss": lost}
        return msgspec.structs.replace(plan, objective=net, status=status, details=details)


def _placed_worth(task: Task, rows: Rows, yielding: tuple[str, ...]) -> float:
    """Return what rows are worth on nodes: values of what is placed, less real moves."""
    of = task.question
    watt = price_of_a_watt(of.round, task.greedy.prices)
    placed = realise(of.round, of.table, of.values, rows, watt_value=watt, yielding=yielding)
    return placed.objective - _moved_loss(of, rows, placed.moved)


def _moved_loss(question: Question, rows: Rows, moved: tuple[str, ...]) -> float:
    """Return what the moves of jobs that keep their option cost."""
    round_, table, values = question.round, question.table, question.values
    return loss_of_moves(round_, table, values, rows[rows >= 0], moved)
