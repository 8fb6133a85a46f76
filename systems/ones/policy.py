"""The policy `ones`: one tick, from a round to a plan, and the rule of its deployment (artifact).

A job starts at once if all its GPUs are free. All other changes wait until every running job that
would change has completed an epoch since it was last placed. In that case the whole genome is
deployed. GPUs of a node are interchangeable, so only a different number of GPUs on a node is a
change. Power limits, which ONES itself does not have, are kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.random import Generator

from ronda.formulations.placement.nodes import Placement
from ronda.formulations.placement.rack_power import keeps_limits
from ronda.formulations.sleeping import woken
from ronda.instances.base import Ints
from ronda.instances.clock import Deadline, checkpoint
from ronda.instances.job import Allocation, same_nodes
from ronda.instances.plan import Plan, SolveRecord
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.policy import TimelyPolicy
from ronda.systems.ones.genome import IDLE
from ronda.systems.ones.learn import predictor, trained
from ronda.systems.ones.limits import Candidate, candidates, halved
from ronda.systems.ones.memory import OnesMemory, Population, Speeds, noted
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


Allocations = dict[str, Allocation]


def update(problem: Subproblem, genome: Ints, found: list[Candidate]) -> tuple[Ints, bool]:
    """Return the genome to run from now on, and whether it is the whole new genome."""
    target = problem.placements(genome)
    if all(
        each.epochs - each.known.placed >= 1  # one epoch (update_interval)
        for j, each in enumerate(found)
        if each.job.gpus and not same_nodes(each.job.held, target.get(j, ()))
    ):
        return genome, True
    deployed = problem.deployed.copy()
    for j in target:
        genes = genome == j
        if not found[j].job.gpus and (deployed[genes] == IDLE).all():
            deployed[genes] = j
    return deployed, False


def account(
    problem: Subproblem, genome: Ints, found: list[Candidate], memory: OnesMemory, *, whole: bool
) -> OnesMemory:
    """Return the memory after a deployment.

    A change ends the epoch of a running job early, and its speed is recorded. If a `whole` genome
    is deployed with any change, the limits of stopped jobs that it leaves out are halved.
    """
    jobs, speeds = {each.job.id: each.known for each in found}, dict[str, Speeds]()
    target, changes = problem.placements(genome), False
    for j, each in enumerate(found):
        job, known, held = each.job, each.known, each.job.state.allocation
        if same_nodes(job.held, target.get(j, ())):
            continue
        changes = True
        gpus = sum(count for _, count in target.get(j, ()))
        if held is not None:
            speeds[job.id] = noted(memory.speeds.get(job.id, {}), job.gpus, job.speed(held))
        if gpus:
            scaled = each.epochs if job.gpus and gpus != job.gpus else known.scaled
            limit = max(known.limit, gpus)
            jobs[job.id] = replace(known, placed=each.epochs, limit=limit, scaled=scaled)
    for j, each in enumerate(found if whole and changes else ()):
        if j not in target and not each.job.gpus and each.job.state.started:
            limit = halved(each.known.limit, each.start)
            jobs[each.job.id] = replace(each.known, limit=limit)
    return replace(memory, jobs=memory.jobs | jobs, speeds=memory.speeds | speeds)


def affordable(
    round: Round, problem: Subproblem, genome: Ints, others: Allocations
) -> tuple[Ints, Allocations]:
    """Return the genome, shape (C,), that can run together with `others`, and its allocations.

    If the genome draws too much power, running jobs go on, and other jobs start in the order of the
    genome while the power is enough. Jobs that are not worth a start on their nodes are left out.
    """
    genome, wanted = _possible(round, problem, genome)
    if keeps_limits(round, others | wanted):
        return genome, wanted
    kept, given = _possible(round, problem, problem.deployed)
    for j in dict.fromkeys(genome[genome != IDLE].tolist()):
        checkpoint()
        genes = genome == j
        name = problem.jobs[j].id
        if name in given or (kept[genes] != IDLE).any():
            continue
        if keeps_limits(round, others | given | {name: wanted[name]}):
            given[name] = wanted[name]
            kept[genes] = j
    return kept, given


def _possible(round: Round, problem: Subproblem, genome: Ints) -> tuple[Ints, Allocations]:
    """Return the part of a genome that can run, and its allocations.

    ONES packs jobs across the borders of nodes and racks. A job that is not worth a start there
    moves to idle GPUs of one rack, or waits.
    """
    found, left = Allocations(), genome.copy()
    again = dict[int, int]()
    for j, placement in problem.placements(genome).items():
        checkpoint()
        given = problem.jobs[j].on(round, placement)
        if given is None:
            left[left == j] = IDLE
            again[j] = sum(count for _, count in placement)
        else:
            found[problem.jobs[j].id] = given
    for j, gpus in again.items():
        checkpoint()
        placements = _in_one_rack(round, problem, left, gpus)
        given = next(filter(None, (problem.jobs[j].on(round, p) for p in placements)), None)
        if given is not None:
            found[problem.jobs[j].id] = given
            for node, count in given.placement:
                left[np.flatnonzero((problem.node == node) & (left == IDLE))[:count]] = j
    return left, found


def _in_one_rack(round: Round, problem: Subproblem, genome: Ints, gpus: int) -> Iterator[Placement]:
    """Yield, for each rack with enough idle GPUs, a placement on as few nodes as possible."""
    nodes, free = np.unique(problem.node[genome == IDLE], return_counts=True)
    rack = round.cluster.topology.node_rack[nodes]
    for own in (np.flatnonzero(rack == each) for each in np.unique(rack)):
        order = own[np.argsort(-free[own], kind="stable")]
        upto = free[order].cumsum()
        if len(upto) and upto[-1] >= gpus:
            taken = np.minimum(free[order], np.maximum(gpus - (upto - free[order]), 0))
            pairs = zip(nodes[order].tolist(), taken.tolist(), strict=True)
            yield tuple(sorted((node, count) for node, count in pairs if count))
