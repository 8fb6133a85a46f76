"""The memetic policy: the evolutionary engine with everything on."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import msgspec
import numpy as np

from ronda.formulations.allocation.limits import Limits
from ronda.formulations.genes.neighbourhood import move_losses, settle
from ronda.formulations.objectives.outlook import outlook
from ronda.instances.arrays import Floats, Rows
from ronda.instances.plan import Plan, SolutionStatus
from ronda.solvers import stopping
from ronda.solvers.contract import Deadline
from ronda.solvers.decision.choice import Setting, price_of_a_watt, reserve_s
from ronda.solvers.decision.realise import realise
from ronda.solvers.genetic.engine import Outcome, evolve
from ronda.solvers.genetic.island import Settings, check_settings
from ronda.solvers.genetic.starts import priced, shortest_first
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
    islands
        Populations that evolve apart and exchange their best individuals every five generations.
    """

    name: ClassVar[str] = "evolve"
    packages: ClassVar[tuple[str, ...]] = ("numpy", "deap")

    population: int = 100
    generations: int = 100
    stagnation: int = 25
    exchanges: int = 2
    islands: int = 1

    def __post_init__(self) -> None:
        """Refuse parameters that make no sense."""
        super().__post_init__()
        check_settings(self.name, self)

    @property
    def settings(self) -> Settings:
        """The engine's parameters."""
        return replace(
            super().settings, exchanges=self.exchanges, adaptive=True, islands=self.islands
        )

    def case(self, setting: Setting, bounds: Limits, *, unlimited: bool) -> Case:
        """Return the round as genes that know where jobs run."""
        case = super().case(setting, bounds, unlimited=unlimited)
        losses = move_losses(setting.round, setting.table, setting.values)
        pool = settle(case.pool, setting.round, setting.table, losses)
        return replace(case, pool=pool, losses=losses)

    def search(self, case: Case, seeds: Rows, stop: stopping.Criterion, at: Deadline) -> Outcome:
        """Run the engine from two more genomes: best response to the prices, and SRPT."""
        pool, table = case.pool, case.setting.table
        left_s = outlook(case.setting.round, table, case.setting.round.length_s).left_s
        shortest = np.full(len(table.jobs), np.inf)
        np.minimum.at(shortest, table.job, left_s)
        more = [priced(pool), shortest_first(pool, shortest[pool.column])]
        seeds = np.unique(np.vstack([seeds, *more]), axis=0)
        return evolve(pool, seeds, self.settings, stop, seed=case.setting.seed, deadline=at)

    def pick(
        self, case: Case, found: Outcome, starts: Sequence[Rows], deadline: Deadline
    ) -> tuple[Rows, tuple[str, ...]]:
        """Place the best few genomes and the starts; return what is worth most on nodes.

        Each is placed twice: with the running jobs making room that the estimate names, and with
        those that placement finds by itself.
        """
        pool, table = case.pool, case.setting.table
        genomes = np.vstack([found.population[:JUDGED], *(pool.genome(r)[None] for r in starts)])
        best: tuple[Rows, tuple[str, ...]] = (pool.rows(found.genome), ())
        most = -np.inf
        for genome in genomes[pool.feasible(genomes)]:
            rows = pool.rows(genome)
            given = self._making_room(case, genome)
            for yielding in dict.fromkeys((given, ())):
                if most > -np.inf and deadline.left() < 2 * reserve_s(table):
                    return best
                worth = self._placed_worth(case, rows, yielding)
                if worth > most:
                    best, most = (rows, yielding), worth
        return best

    def _making_room(self, case: Case, genome: Rows) -> tuple[str, ...]:
        """Return the running jobs that make room for others by the estimate."""
        jobs = case.pool.column[case.pool.making_room(genome)]
        return tuple(case.setting.table.jobs[j].job.id for j in jobs.tolist())

    def reserve_s(self, case: Case) -> float:
        """Return the seconds to judge some plans and to place one."""
        return 2 * (JUDGED + 1) * reserve_s(case.setting.table)

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
        of = case.setting
        watt_value = price_of_a_watt(of.round, case.prices)
        placed = realise(
            of.round, of.table, of.values, rows, watt_value=watt_value, yielding=yielding
        )
        return placed.objective - _moved_loss(case, placed.moved)


def _moved_loss(case: Case, moved: tuple[str, ...]) -> float:
    """Return what the moves of jobs that keep their option cost."""
    losses: Floats = case.losses
    index = {state.job.id: j for j, state in enumerate(case.setting.table.jobs)}
    return float(sum(losses[index[job]] for job in moved))
