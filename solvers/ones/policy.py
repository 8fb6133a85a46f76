"""ONES as a policy: one tick, from a round to a plan."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from ronda.formulations.clock import Deadline
from ronda.formulations.sleeping import woken
from ronda.instances.arrays import Ints
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation
from ronda.instances.plan import Plan, SolveRecord
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.in_time import in_time
from ronda.solvers.ones.artifact import ArtifactPredictor, forget_scaling
from ronda.solvers.ones.board import Board, boards
from ronda.solvers.ones.deploy import account, affordable, update
from ronda.solvers.ones.genome import IDLE
from ronda.solvers.ones.learn import predictor
from ronda.solvers.ones.limits import seats
from ronda.solvers.ones.memory import OnesMemory, Population
from ronda.solvers.ones.progress import ProgressPredictor
from ronda.solvers.ones.tick import first_population, generation, tick_of

VARIANTS = {"intended": ProgressPredictor, "artifact": ArtifactPredictor}


@dataclass(frozen=True, kw_only=True)
class Ones:
    """Evolve which job has which GPU, one generation a tick, as ONES's artifact does.

    The genome gives every GPU to a job; the number of GPUs decides a job's batch and learning
    rate. See docs/ones.md for every rule and where it comes from. Meant for ticks of 1 s.

    Parameters
    ----------
    population
        K, genomes that are kept.
    crossover
        Probability that two parents exchange a gene.
    mutation
        Probability that a genome loses a job.
    variant
        "artifact" brings back three slips of the artifact (`ronda.solvers.ones.artifact`);
        "intended": without them.
    refit
        The predictor is retrained once this share of jobs has been added to those that it was
        trained on; 0: whenever a job ends, as in the artifact.
    """

    name: ClassVar[str] = "ones"
    capabilities: ClassVar[Capability] = (
        Capability.RANDOM | Capability.ELASTIC | Capability.PREEMPTS | Capability.HISTORY
    )

    population: int = 16
    crossover: float = 0.5
    mutation: float = 0.3
    variant: str = "intended"
    refit: float = 0.25

    def __post_init__(self) -> None:
        """Refuse parameters that make no sense."""
        if self.population < 4:
            raise InputError("ones: population", str(self.population), "at least 4")
        for key in ("crossover", "mutation", "refit"):
            if not 0 <= getattr(self, key) <= 1:
                raise InputError(f"ones: {key}", f"{getattr(self, key):g}", "a number in 0..1")
        if self.variant not in VARIANTS:
            raise InputError("ones: variant", repr(self.variant), f"one of {', '.join(VARIANTS)}")

    @in_time
    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Evolve by one generation and deploy the best genome if the rule allows it."""
        memory = OnesMemory.recall(initial)
        if any(s.since_s > round.now_s for s in round.running):
            # ONES waits until all workers of a deployment run.
            return Plan(policy=self.name, allocations=round.held, memory=memory.noted())
        allocations = self._decide(round, memory, deadline, np.random.default_rng(seed))
        plan = Plan(
            policy=self.name,
            allocations=allocations,
            memory=memory.noted(),
            record=SolveRecord(seed=seed, total_s=deadline.elapsed(), solver="ones"),
        )
        return woken(round, plan)

    def _decide(
        self, round: Round, memory: OnesMemory, deadline: Deadline, rng: Generator
    ) -> dict[str, Allocation]:
        """Return what runs from now on, pool by pool; the memory is brought up to date."""
        found = list(boards(round, memory.deployed))
        memory.look({job.id: job for board in found for job in board.jobs}, round.now_s)
        if self.variant == "artifact":
            forget_scaling(memory)
        learnt = predictor(memory, self.refit, deadline, VARIANTS[self.variant])
        last, memory.population, memory.deployed = memory.population, {}, {}
        allocations = round.held  # until its pool is decided, what runs may have to go on
        for board in found:
            known = seats(board, memory)
            tick = tick_of(board, known, memory, learnt, rng)
            genomes = _renumbered(board, last.get(board.index))
            if genomes is None or len(genomes) != self.population:
                genomes = first_population(tick, self.population, rng)
            else:
                crossed, mutated = self.crossover, self.mutation
                genomes, _ = generation(genomes, tick, rng, crossed=crossed, mutated=mutated)
            genome, whole = update(board, genomes[0], known)
            ids = [job.id for job in board.jobs]
            others = {i: held for i, held in allocations.items() if i not in ids}
            run, given = affordable(round, board, genome, others)
            allocations = others | given
            account(board, run, known, memory, whole=whole and bool((run == genome).all()))
            memory.population[board.index] = Population(ids, genomes.tolist())
            memory.deployed[board.index] = board.written(run)
        return allocations


def _renumbered(board: Board, known: Population | None) -> Ints | None:
    """Return the last population with this tick's job numbers; jobs that ended leave gaps.

    None if there is none, or if it is of another number of GPUs.
    """
    if known is None or len(known.genomes[0]) != len(board.node):
        return None
    number = {job.id: j for j, job in enumerate(board.jobs)}
    names = [number.get(job_id, IDLE) for job_id in known.ids]
    return np.array([*names, IDLE])[np.array(known.genomes, dtype=np.int64)]
