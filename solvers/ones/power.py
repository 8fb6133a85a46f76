"""What of a genome can be run within the limits on power, which ONES itself does not know."""

import numpy as np

from ronda.formulations.models.power import extra_gpu_w
from ronda.formulations.ones.genome import IDLE
from ronda.formulations.placement.moves import idle_w
from ronda.formulations.watts.racks import RackPower, capped
from ronda.instances.arrays import Ints
from ronda.instances.job import Allocation
from ronda.instances.round import Round
from ronda.solvers.ones.board import Board, allocation

ROUNDING = 1e-9

Allocations = dict[str, Allocation]


def affordable(
    round: Round, board: Board, genome: Ints, others: Allocations
) -> tuple[Ints, Allocations]:
    """Return the (C,) genome to run, and what its jobs run on, beside `others`.

    If the genome's power is more than the round allows, what runs goes on and only such jobs start
    of which there is power enough, in the genome's order. Jobs whose profile knows no speed on
    their nodes are left out.
    """
    genome, wanted = _possible(board, genome)
    if within(round, others | wanted):
        return genome, wanted
    kept, given = _possible(board, board.deployed)
    for j in dict.fromkeys(genome[genome != IDLE].tolist()):
        genes = genome == j
        name = board.states[j].job.id
        if name in given or (kept[genes] != IDLE).any():
            continue
        if within(round, others | given | {name: wanted[name]}):
            given[name] = wanted[name]
            kept[genes] = j
    return kept, given


def _possible(board: Board, genome: Ints) -> tuple[Ints, Allocations]:
    """Return a genome's allocations, and the genome without jobs that cannot run there."""
    found, left = {}, genome.copy()
    for j, placement in board.placements(genome).items():
        state = board.states[j]
        given = allocation(state, board.ways[j], placement)
        if given is None:
            left[left == j] = IDLE
        else:
            found[state.job.id] = given
    return left, found


def within(round: Round, allocations: Allocations) -> bool:
    """Tell whether allocations keep to the limits on power of the cluster and of its racks."""
    limit = round.watts
    if limit is None and not capped(round.cluster):
        return True
    pieces = []
    for each in allocations.values():
        each_w = extra_gpu_w(round, each.option)
        pieces += [(node, gpus * each_w) for node, gpus in each.placement]
    if limit is not None:
        drawn_w = idle_w(round, None) + float(np.sum([watts for _, watts in pieces]))
        if drawn_w > limit * (1 + ROUNDING):
            return False
    return RackPower(round.cluster, round.asleep).fits(pieces)
