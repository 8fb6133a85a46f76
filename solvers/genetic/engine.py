"""Evolutionary search over each job's option: islands, when to stop, and what is remembered.

`ronda.solvers.genetic.island` makes the generations; here they are counted, the best individual
is noted with its time, and islands exchange individuals.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from deap import tools
from numpy.typing import NDArray

from ronda.formulations.genes.genome import Genes, Population
from ronda.instances.plan import StopReason
from ronda.solvers.contract import Deadline
from ronda.solvers.genetic.island import Island, Settings
from ronda.solvers.stopping import Criterion, Status

EMIGRANTS = 2
"""Individuals that each island sends to the next."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search found.

    Attributes
    ----------
    genome, objective
        (n,) the best individual, within all limits, and its worth (values less moves).
    population
        (P, n) the last generation of all islands, the best first.
    generations, evaluations
        How long it searched.
    stop
        Why it stopped.
    incumbents
        Pairs (seconds since entry, objective), each better than the one before.
    logbook
        One record per generation: ``generation, evaluations, best, mean, distinct``.
    """

    genome: NDArray[np.int64]
    objective: float
    population: Population
    generations: int
    evaluations: int
    stop: StopReason
    incumbents: tuple[tuple[float, float], ...]
    logbook: tools.Logbook


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
    """Search for the genome of the greatest worth within all limits.

    The same arguments give the same trajectory, unless `stop` looks at the clock. The
    caller's global `random` is neither used nor changed. With islands, `stop` is
    asked and individuals wander every `Settings.interval` generations.

    Parameters
    ----------
    genes
        What is searched; at least one gene.
    seeds
        (S, n) genomes to start from; they are repaired. The result is never worse than any.
    settings, stop
        How to search, and for how long.
    seed
        Of all randomness.
    deadline
        Only for the times of `Outcome.incumbents`; to stop in time is the matter of `stop`.
    on_generation
        Called after every generation; what it raises ends the search.
    """
    search = _Search(genes, settings, seed, deadline, on_generation)
    search.begin(seeds)
    steps = settings.interval if settings.islands > 1 else 1
    while (told := stop(search.status))[0] < 1.0:
        search.go_on(steps)
    return search.outcome(told[1])


class _Search:
    """The islands, and what is known of all of them together."""

    def __init__(
        self,
        genes: Genes,
        settings: Settings,
        seed: int,
        deadline: Deadline,
        on_generation: Callable[[Status], None] | None,
    ) -> None:
        self.deadline, self.on_generation = deadline, on_generation
        seeds = [seed] if settings.islands == 1 else [[seed, i] for i in range(settings.islands)]
        self.islands = [Island(genes, settings, each) for each in seeds]
        self.records: list[dict[str, Any]] = []
        self.incumbents: list[tuple[float, float]] = []
        self.stagnant = 0
        self.ended_s = deadline.elapsed()
        self.generation_s = 0.0

    @property
    def status(self) -> Status:
        """How far the search is."""
        return Status(
            generations=len(self.records) - 1,
            evaluations=self.records[-1]["evaluations"],
            stagnant=self.stagnant,
            best=self.incumbents[-1][1],
            generation_s=self.generation_s,
        )

    def begin(self, seeds: Population) -> None:
        """Make every island's first generation."""
        for island in self.islands:
            island.begin(seeds)
        self._record(1)

    def go_on(self, steps: int) -> None:
        """Make some more generations; afterwards each island's best ones visit the next."""
        for island in self.islands:
            for _ in range(steps):
                island.step()
        self._record(steps)
        if len(self.islands) > 1:
            leaving = [(i.population[:EMIGRANTS], i.worth[:EMIGRANTS]) for i in self.islands]
            for island, (travellers, worth) in zip(
                self.islands[1:] + self.islands[:1], leaving, strict=True
            ):
                island.compete(travellers, worth)

    def _record(self, steps: int) -> None:
        """Note the last generations in the logbook, and the incumbent where it is a better one."""
        now = self.deadline.elapsed()
        self.generation_s, self.ended_s = now - self.ended_s, now
        for back in range(steps, 0, -1):
            of = [island.records[-back] for island in self.islands]
            best = max(each["best"] for each in of)
            if not self.incumbents or best > self.incumbents[-1][1]:
                self.incumbents.append((now, best))
                self.stagnant = 0
            else:
                self.stagnant += 1
            self.records.append(
                {
                    "generation": len(self.records),
                    "evaluations": sum(each["evaluations"] for each in of),
                    "best": best,
                    "mean": sum(each["mean"] for each in of) / len(of),
                    "distinct": sum(each["distinct"] for each in of),
                }
            )
            if self.on_generation:
                self.on_generation(self.status)

    def outcome(self, stop: StopReason) -> Outcome:
        """Return the best individual and the history."""
        population = np.concatenate([island.population for island in self.islands])
        worth = np.concatenate([island.worth for island in self.islands])
        order = np.argsort(-worth, kind="stable")
        logbook = tools.Logbook()
        for record in self.records:
            logbook.record(**record)
        return Outcome(
            genome=population[order[0]],
            objective=float(worth[order[0]]),
            population=population[order],
            generations=len(self.records) - 1,
            evaluations=self.records[-1]["evaluations"],
            stop=stop,
            incumbents=tuple(self.incumbents),
            logbook=logbook,
        )
