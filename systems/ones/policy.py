"""The policy `ones`: one tick, from a round to a plan."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.random import Generator

from ronda.formulations.sleeping import woken
from ronda.instances.base import Ints
from ronda.instances.clock import Deadline
from ronda.instances.job import Allocation
from ronda.instances.plan import Plan, SolveRecord
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.policy import TimelyPolicy
from ronda.systems.ones.deploy import account, affordable, update
from ronda.systems.ones.genome import IDLE
from ronda.systems.ones.learn import predictor, trained
from ronda.systems.ones.limits import candidates
from ronda.systems.ones.memory import OnesMemory, Population
from ronda.systems.ones.scoring import first_population, generation, tick_of
from ronda.systems.ones.subproblem import Subproblem, subproblems


@dataclass(frozen=True, kw_only=True)
class Ones(TimelyPolicy):
    """Evolve the assignment of GPUs to jobs by one generation per tick, as ONES's artifact does.

    The genome gives every GPU to a job, and the number of GPUs decides the batch and the learning
    rate of a job. docs/ones.md lists all rules and their sources. The policy is meant for ticks of
    1 s.

    Parameters
    ----------
    refit
        Share by which the number of training jobs must grow before the predictor is retrained; with
        0 it is retrained whenever a job ends, as in the artifact.
    """

    refit: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.25

    name: ClassVar[str] = "ones"
    capabilities: ClassVar[Capability] = (
        Capability.RANDOM | Capability.ELASTIC | Capability.PREEMPTS | Capability.HISTORY
    )

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Evolve by one generation and deploy the best genome if the rule allows it."""
        memory = OnesMemory.recall(initial)
        if any(s.since_s > round.now_s for s in round.running):
            # ONES waits until all workers of a deployment are running.
            return Plan(policy=self.name, allocations=round.held, memory=memory.noted())
        allocations, memory = self._decide(round, memory, deadline, np.random.default_rng(seed))
        plan = Plan(
            policy=self.name,
            allocations=allocations,
            memory=memory.noted(),
            record=SolveRecord(seed=seed, total_s=deadline.elapsed(), solver="ones"),
        )
        return woken(round, plan)

    def _decide(
        self, round: Round, last: OnesMemory, deadline: Deadline, rng: Generator
    ) -> tuple[dict[str, Allocation], OnesMemory]:
        """Return the new allocations, decided pool by pool, and the new memory."""
        problems = list(subproblems(round, last.deployed))
        memory = last.at(round.now_s, {job.id: job for each in problems for job in each.jobs})
        training = trained(memory, self.refit, deadline)
        memory = replace(memory, predictor=training, population={}, deployed={})
        expected = predictor(training)
        allocations = round.held  # running jobs may have to go on until their pool is decided
        for problem in problems:
            found = candidates(problem, memory.jobs)
            tick = tick_of(problem, found, memory, expected, rng)
            genomes = _renumbered(problem, last.population.get(problem.index))
            # The sizes and probabilities come from the artifact's configuration.
            if genomes is None:
                genomes = first_population(tick, 16, rng)
            else:
                genomes, _ = generation(genomes, tick, rng, crossed=0.5, mutated=0.3)
            genome, whole = update(problem, genomes[0], found)
            ids = [job.id for job in problem.jobs]
            others = {i: held for i, held in allocations.items() if i not in ids}
            run, given = affordable(round, problem, genome, others)
            allocations = others | given
            whole = whole and bool((run == genome).all())
            kept, runs = Population(ids, genomes.tolist()), problem.written(run)
            memory = replace(
                account(problem, run, found, memory, whole=whole),
                population=memory.population | {problem.index: kept},
                deployed=memory.deployed | {problem.index: runs},
            )
        return allocations, memory


def _renumbered(problem: Subproblem, known: Population | None) -> Ints | None:
    """Return the last population with the job numbers of this tick; ended jobs leave gaps.

    The result is None if there is no population or it has another number of GPUs.
    """
    if known is None or len(known.genomes[0]) != len(problem.node):
        return None
    number = {job.id: j for j, job in enumerate(problem.jobs)}
    names = [number.get(job_id, IDLE) for job_id in known.ids]
    return np.array([*names, IDLE])[np.array(known.genomes, dtype=np.int64)]
