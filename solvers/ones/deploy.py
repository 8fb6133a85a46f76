"""When ONES deploys a genome, and what a deployment does to limits (artifact).

A job whose GPUs are all free starts immediately. All else waits until every running job that would
be changed has completed an epoch since it was last placed; then the whole genome is deployed. GPUs
of a node are interchangeable: only another number of them on a node is a change. The limits on
power, which ONES itself does not know, are kept.
"""

from collections.abc import Iterator

import numpy as np

from ronda.formulations.clock import checkpoint
from ronda.formulations.placement.nodes import Placement
from ronda.formulations.placement.rack_power import keeps_limits
from ronda.instances.arrays import Ints
from ronda.instances.job import Allocation, same_nodes
from ronda.instances.round import Round
from ronda.solvers.ones.board import Board
from ronda.solvers.ones.genome import IDLE
from ronda.solvers.ones.limits import Seat, halved
from ronda.solvers.ones.memory import OnesMemory

EPOCHS = 1
"""Epochs that a job completes before it is changed again (update_interval)."""

Allocations = dict[str, Allocation]


def update(board: Board, genome: Ints, found: list[Seat]) -> tuple[Ints, bool]:
    """Return the genome to run from now on, and whether it is the whole of the new (best) one."""
    target = board.placements(genome)
    if all(
        seat.epochs - seat.known.placed >= EPOCHS
        for j, seat in enumerate(found)
        if seat.job.gpus and not same_nodes(seat.job.held, target.get(j, ()))
    ):
        return genome, True
    deployed = board.deployed.copy()
    for j in target:
        genes = genome == j
        if not found[j].job.gpus and (deployed[genes] == IDLE).all():
            deployed[genes] = j
    return deployed, False


def account(
    board: Board, genome: Ints, found: list[Seat], memory: OnesMemory, *, whole: bool
) -> None:
    """Enter what a deployment does into the memory.

    A change of a running job ends its epoch early: its speed is noted. At every deployment of a
    `whole` genome that changes anything, the limits of jobs that wait to be resumed and are left
    out are halved.
    """
    target = board.placements(genome)
    changed = [j for j, job in enumerate(board.jobs) if not same_nodes(job.held, target.get(j, ()))]
    for j in changed:
        job, seat = board.jobs[j], found[j]
        gpus = sum(count for _, count in target.get(j, ()))
        if job.state.allocation is not None:
            memory.measure(job.id, job.gpus, job.speed(job.state.allocation))
        if gpus:
            memory.change(job.id, placed=seat.epochs, limit=max(seat.known.limit, gpus))
        if gpus and job.gpus and gpus != job.gpus:
            memory.change(job.id, scaled=seat.epochs)
    if not (whole and changed):
        return
    for j, (job, seat) in enumerate(zip(board.jobs, found, strict=True)):
        if j not in target and not job.gpus and job.state.started:
            memory.change(job.id, limit=halved(seat.known.limit, seat.start))


def affordable(
    round: Round, board: Board, genome: Ints, others: Allocations
) -> tuple[Ints, Allocations]:
    """Return the (C,) genome to run, and what its jobs run on, next to `others`.

    If the genome's power is more than the round allows, what runs goes on and only such jobs start
    of which there is power enough, in the genome's order. Jobs that are not worth a start on their
    nodes are left out.
    """
    genome, wanted = _possible(round, board, genome)
    if keeps_limits(round, others | wanted):
        return genome, wanted
    kept, given = _possible(round, board, board.deployed)
    for j in dict.fromkeys(genome[genome != IDLE].tolist()):
        checkpoint()
        genes = genome == j
        name = board.jobs[j].id
        if name in given or (kept[genes] != IDLE).any():
            continue
        if keeps_limits(round, others | given | {name: wanted[name]}):
            given[name] = wanted[name]
            kept[genes] = j
    return kept, given


def _possible(round: Round, board: Board, genome: Ints) -> tuple[Ints, Allocations]:
    """Return the genome as it can run, and its allocations.

    ONES packs jobs regardless of where nodes and racks end: a job that is not worth a start there
    goes to idle GPUs of one rack, or waits.
    """
    found, left = Allocations(), genome.copy()
    again = dict[int, int]()
    for j, placement in board.placements(genome).items():
        checkpoint()
        given = board.jobs[j].on(round, placement)
        if given is None:
            left[left == j] = IDLE
            again[j] = sum(count for _, count in placement)
        else:
            found[board.jobs[j].id] = given
    for j, gpus in again.items():
        checkpoint()
        placements = _in_one_rack(round, board, left, gpus)
        given = next(filter(None, (board.jobs[j].on(round, p) for p in placements)), None)
        if given is not None:
            found[board.jobs[j].id] = given
            for node, count in given.placement:
                left[np.flatnonzero((board.node == node) & (left == IDLE))[:count]] = j
    return left, found


def _in_one_rack(round: Round, board: Board, genome: Ints, gpus: int) -> Iterator[Placement]:
    """Yield where a genome has idle GPUs in each rack with enough, on as few nodes as possible."""
    nodes, free = np.unique(board.node[genome == IDLE], return_counts=True)
    rack = round.cluster.topology.node_rack[nodes]
    for own in (np.flatnonzero(rack == each) for each in np.unique(rack)):
        order = own[np.argsort(-free[own], kind="stable")]
        upto = free[order].cumsum()
        if len(upto) and upto[-1] >= gpus:
            taken = np.minimum(free[order], np.maximum(gpus - (upto - free[order]), 0))
            pairs = zip(nodes[order].tolist(), taken.tolist(), strict=True)
            yield tuple(sorted((node, count) for node, count in pairs if count))
