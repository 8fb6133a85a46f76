"""The memetic policy: the evolutionary engine with everything on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import msgspec
import numpy as np

from ronda.formulations.allocation.limits import Limits
from ronda.formulations.genes import Population, move_losses, settle
from ronda.formulations.objectives.outlook import outlook
from ronda.instances.arrays import Floats, Rows
from ronda.instances.plan import Plan, SolutionStatus
from ronda.solvers.contract import Deadline
from ronda.solvers.decision.plan import price_of_a_watt, reserve_s
from ronda.solvers.decision.question import Question
from ronda.solvers.decision.realise import realise
from ronda.solvers.genetic.engine import Outcome
from ronda.solvers.genetic.evolution import Settings, shortest_first
from ronda.solvers.policies.optimising.genetic import Case, Genetic

JUDGED = 3
"""Genomes that are placed on nodes before one is chosen, besides the starts."""


@dataclass(frozen=True, kw_only=True)
class Evolve(Genetic):
    """Evolve each job's option (GPUs, batch size, clock) with its placement and moves in view.

    A memetic algorithm: the genetic one with seeds from prices and SRPT, crossover over racks,
    exchanges of two jobs as local search, and operators that compete by their success. What a
    plan is worth is the value of its options less what it costs to move running jobs that keep
    theirs; without moves it is what `milp` and `prices` maximise, so their bounds hold.

    Parameters
    ----------
    objective, population, generations, crossover, mutation, tournament, stagnation, gap
        As of `genetic`.
    exchanges
        Exchanges of two jobs tried for each child.
    """

    name: ClassVar[str] = "evolve"
    packages: ClassVar[tuple[str, ...]] = ("numpy", "deap")

    population: int = 100
    generations: int = 100
    stagnation: int = 25
    exchanges: int = 2

    @property
    def settings(self) -> Settings:
        """The engine's parameters."""
        return replace(super().settings, exchanges=self.exchanges, adaptive=True)

    def case(self, question: Question, bounds: Limits, *, unlimited: bool) -> Case:
        """Return the round as genes that know where jobs run."""
        case = super().case(question, bounds, unlimited=unlimited)
        losses = move_losses(question.round, question.table, question.values)
        pool = settle(case.pool, question.round, question.table, losses)
        return replace(case, pool=pool, losses=losses)

    def seeds(self, case: Case, genomes: Population) -> Population:
        """Return the genomes with two more: best response to the prices, and SRPT."""
        pool, table = case.pool, case.question.table
        left_s = outlook(case.question.round, table, case.question.round.length_s).left_s
        shortest = np.full(len(table.jobs), np.inf)
        np.minimum.at(shortest, table.job, left_s)
        served = shortest_first(pool, shortest[pool.column])
        return np.vstack([genomes, pool.favourites(pool.surplus), served])

    def pick(
        self, case: Case, found: Outcome, starts: Sequence[Rows], deadline: Deadline
    ) -> tuple[Rows, tuple[str, ...]]:
        """Place the best few genomes and the starts; return what is worth most on nodes.

        Each is placed twice: with the running jobs making room that the estimate names, and with
        those that placement finds by itself.
        """
        pool, table = case.pool, case.question.table
        genomes = np.vstack([found.population[:JUDGED], *(pool.genome(r)[None] for r in starts)])
        best: tuple[Rows, tuple[str, ...]] = (pool.rows(found.genome), ())
        most = -np.inf
        for genome in genomes[pool.feasible(genomes)]:
            rows = pool.rows(genome)
            making_room = pool.column[pool.making_room(genome)]  # by the estimate
            given = tuple(table.jobs[j].job.id for j in making_room.tolist())
            for yielding in dict.fromkeys((given, ())):
                if most > -np.inf and deadline.left() < 2 * reserve_s(table):
                    return best
                worth = self._placed_worth(case, rows, yielding)
                if worth > most:
                    best, most = (rows, yielding), worth
        return best

    def reserve_s(self, case: Case) -> float:
        """Return the seconds to judge some plans and to place one."""
        return 2 * (JUDGED + 1) * reserve_s(case.question.table)

    def finish(self, case: Case, plan: Plan) -> Plan:
        """Return the plan with the moves that it really makes taken off its objective."""
        if plan.objective is None:
            return plan
        lost = _moved_loss(case, tuple(plan.details.get("moved", ())))
        if not lost:
            return plan
        net = plan.objective - lost
        proven = case.bound - net <= self.gap * abs(case.bound)
        status = plan.status if proven else SolutionStatus.FEASIBLE
        details = plan.details | {"migration_loss": lost}
        return msgspec.structs.replace(plan, objective=net, status=status, details=details)

    def _placed_worth(self, case: Case, rows: Rows, yielding: tuple[str, ...]) -> float:
        """Return what rows are worth on nodes: values of what is placed, less real moves."""
        of = case.question
        watt = price_of_a_watt(of.round, case.prices)
        placed = realise(of.round, of.table, of.values, rows, watt_value=watt, yielding=yielding)
        return placed.objective - _moved_loss(case, placed.moved)


def _moved_loss(case: Case, moved: tuple[str, ...]) -> float:
    """Return what the moves of jobs that keep their option cost."""
    losses: Floats = case.losses
    index = {state.job.id: j for j, state in enumerate(case.question.table.jobs)}
    return float(sum(losses[index[job]] for job in moved))
