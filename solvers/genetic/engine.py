"""Evolutionary search over each job's option: when to stop, and what is noted on the way.

`ronda.solvers.genetic.evolution` makes the generations.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from deap import tools

from ronda.formulations.genes.genome import Genes, Population
from ronda.instances.arrays import Rows
from ronda.instances.plan import StopReason
from ronda.solvers.contract import Deadline
from ronda.solvers.genetic.evolution import Evolution, Settings
from ronda.solvers.stopping import Criterion, Status


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search found."""

    genome: Rows  # (n,) the best individual, within all limits
    objective: float  # its worth (values less moves)
    population: Population  # (P, n) the last generation, the best first
    generations: int
    evaluations: int
    stop: StopReason
    incumbents: tuple[tuple[float, float], ...]  # (seconds since entry, objective)
    logbook: tools.Logbook  # generation, evaluations, best, mean, distinct


def evolve(
    genes: Genes,
    seeds: Population,
    settings: Settings,
    stop: Criterion,
    *,
    seed: int,
    deadline: Deadline,
    on_generation: Callable[[Status], None] | None = None,
) -> Outcome:
    """Search for the genome of the greatest worth within all limits; there is at least one gene.

    The same arguments give the same trajectory, unless `stop` looks at the clock. The caller's
    global `random` is neither used nor changed.

    Parameters
    ----------
    seeds
        (S, n) genomes to start from; they are repaired. The result is never worse than any.
    deadline
        Only for the times of `Outcome.incumbents`; to stop in time is the matter of `stop`.
    on_generation
        Called after every generation; what it raises ends the search.
    """
    evolution = Evolution(genes, settings, seed)
    diary = _Diary(evolution, deadline)
    evolution.begin(seeds)
    diary.note(on_generation)
    while (told := stop(diary.status))[0] < 1.0:
        evolution.step()
        diary.note(on_generation)
    order = np.argsort(-evolution.worth, kind="stable")
    return Outcome(
        genome=evolution.population[order[0]],
        objective=float(evolution.worth[order[0]]),
        population=evolution.population[order],
        generations=diary.status.generations,
        evaluations=evolution.evaluations,
        stop=told[1],
        incumbents=tuple(diary.incumbents),
        logbook=diary.logbook,
    )


class _Diary:
    """What is noted of an evolution, generation by generation."""

    def __init__(self, evolution: Evolution, deadline: Deadline) -> None:
        self.evolution, self.deadline = evolution, deadline
        self.logbook = tools.Logbook()
        self.incumbents: list[tuple[float, float]] = []
        self.stagnant = 0
        self.ended_s, self.generation_s = deadline.elapsed(), 0.0

    @property
    def status(self) -> Status:
        """How far the search is."""
        return Status(
            generations=len(self.logbook) - 1,
            stagnant=self.stagnant,
            best=self.incumbents[-1][1],
            generation_s=self.generation_s,
        )

    def note(self, on_generation: Callable[[Status], None] | None) -> None:
        """Note the last generation, and the incumbent where it is a better one."""
        now, worth = self.deadline.elapsed(), self.evolution.worth
        self.generation_s, self.ended_s = now - self.ended_s, now
        best = float(worth[0])
        if not self.incumbents or best > self.incumbents[-1][1]:
            self.incumbents.append((now, best))
            self.stagnant = 0
        else:
            self.stagnant += 1
        self.logbook.record(
            generation=len(self.logbook),
            evaluations=self.evolution.evaluations,
            best=best,
            mean=float(worth.mean()),
            distinct=len(np.unique(worth)),
        )
        if on_generation:
            on_generation(self.status)
