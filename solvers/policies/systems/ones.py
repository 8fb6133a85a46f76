"""ONES: online evolutionary orchestration of batch sizes (Bian, Li, Wang, You, SC 2021)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from ronda.formulations.clock import Deadline
from ronda.formulations.ones import IDLE
from ronda.formulations.sleeping import woken
from ronda.instances.arrays import Ints
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation
from ronda.instances.plan import Plan, SolveRecord
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.in_time import in_time
from ronda.solvers.ones.board import Board, boards, remember
from ronda.solvers.ones.deploy import account, affordable, update
from ronda.solvers.ones.learn import predictor
from ronda.solvers.ones.memory import Memory, epoch_of, look
from ronda.solvers.ones.state import seats, tick_of
from ronda.solvers.ones.tick import Tick, first_population, generation

VARIANTS = ("intended", "artifact")


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
        "artifact" reproduces three slips of the artifact: jobs may be scaled again without two
        epochs in between; the predictor reads the raw size of the data set though its logarithm
        was learnt; its likelihood pairs every row with every other. "intended": without them.
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
        running = round.held
        details = dict(initial.details) if initial is not None else {}
        if any(s.since_s > round.now_s for s in round.running):
            # ONES waits until all workers of a deployment run.
            return Plan(policy=self.name, allocations=running, details=details)
        rng = np.random.default_rng(seed)
        allocations, carried = self._decide(round, details, deadline, rng)
        plan = Plan(
            policy=self.name,
            allocations=allocations,
            details=carried,
            record=SolveRecord(seed=seed, total_s=deadline.elapsed(), solver="ones"),
        )
        return woken(round, plan)

    def _decide(
        self, round: Round, details: dict[str, Any], deadline: Deadline, rng: Generator
    ) -> tuple[dict[str, Allocation], dict[str, Any]]:
        """Decide every pool; returns what runs from now on and the details to carry."""
        memory, artifact = Memory.read(details), self.variant == "artifact"
        found = list(boards(round, details.get("ones.deployed", {})))
        ways = {way.state.job.id: way for board in found for way in board.ways}
        epochs = {i: epoch_of(way) for i, way in ways.items()}
        look(memory, ways, epochs, round.now_s)
        learnt, kept = predictor(
            memory, details.get("ones.predictor", {}), self.refit, deadline, artifact=artifact
        )
        allocations = round.held  # until its pool is decided, what runs may have to go on
        last = details.get("ones.population", {})
        population, deployed = {}, {}
        for board in found:
            taken = seats(board, memory, epochs, artifact=artifact)
            known = last.get(str(board.index), {})
            tick = tick_of(board, taken, memory, epochs, learnt, rng)
            genomes = self._evolve(board, tick, known, rng)
            genome, whole = update(board, genomes[0], taken)
            own = {state.job.id for state in board.states}
            others = {i: held for i, held in allocations.items() if i not in own}
            run, given = affordable(round, board, genome, others)
            allocations = others | given
            whole = whole and bool((run == genome).all())
            account(board, run, taken, memory, whole=whole)
            ids = [state.job.id for state in board.states]
            population[str(board.index)] = {"ids": ids, "genomes": genomes.tolist()}
            deployed[str(board.index)] = remember(board, run)
        carried = memory.write() | {
            "ones.predictor": kept,
            "ones.population": population,
            "ones.deployed": deployed,
        }
        return allocations, carried

    def _evolve(self, board: Board, tick: Tick, known: dict[str, Any], rng: Generator) -> Ints:
        """Return the next population of a board, best first."""
        last = _renumbered(board, known)
        if last is None or len(last) != self.population:
            return first_population(tick, self.population, rng)
        return generation(last, tick, rng, crossed=self.crossover, mutated=self.mutation)[0]


def _renumbered(board: Board, known: dict[str, Any]) -> Ints | None:
    """Return the last population with this tick's job numbers; jobs that ended leave gaps.

    None if there is none, or if it is of another number of GPUs.
    """
    if not known or len(known["genomes"][0]) != len(board.node):
        return None
    number = {state.job.id: j for j, state in enumerate(board.states)}
    names = [number.get(job_id, IDLE) for job_id in known["ids"]]
    return np.array([*names, IDLE])[np.array(known["genomes"], dtype=np.int64)]
