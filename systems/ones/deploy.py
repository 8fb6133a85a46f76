"""The rule by which ONES deploys a genome, and its effect on the limits (artifact).

A job starts at once if all its GPUs are free. All other changes wait until every running job that
would change has completed an epoch since it was last placed. In that case the whole genome is
deployed. GPUs of a node are interchangeable, so only a different number of GPUs on a node is a
change. Power limits, which ONES itself does not have, are kept.
"""

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from ronda.formulations.placement.nodes import Placement
from ronda.formulations.placement.rack_power import keeps_limits
from ronda.instances.base import Ints
from ronda.instances.clock import checkpoint
from ronda.instances.job import Allocation, same_nodes
from ronda.instances.round import Round
from ronda.systems.ones.genome import IDLE
from ronda.systems.ones.limits import Candidate, halved
from ronda.systems.ones.memory import OnesMemory, Speeds, noted
from ronda.systems.ones.subproblem import Subproblem

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
