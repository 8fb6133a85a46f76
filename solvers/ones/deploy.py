"""When ONES deploys a genome, and what a deployment does to limits (Bian et al., SC'21, artifact).

A job whose GPUs are all free starts immediately. All else waits until every running job that would
be changed has completed an epoch since it was last placed; then the whole genome is deployed. GPUs
of a node are interchangeable: only another number of them on a node is a change. The limits on
power, which ONES itself does not know, are kept.
"""

from ronda.formulations.clock import checkpoint
from ronda.formulations.ones.genome import IDLE
from ronda.formulations.ones.limits import halved
from ronda.formulations.placement.rack_power import keeps_limits
from ronda.instances.arrays import Ints
from ronda.instances.job import Allocation, same_nodes
from ronda.instances.round import Round
from ronda.solvers.ones.board import Board, allocation, held
from ronda.solvers.ones.memory import Memory
from ronda.solvers.ones.state import Seat

EPOCHS = 1
"""Epochs that a job completes before it is changed again (update_interval)."""

Allocations = dict[str, Allocation]


def update(board: Board, genome: Ints, found: list[Seat]) -> tuple[Ints, bool]:
    """Return the genome to run from now on, and whether it is the whole of the new (best) one."""
    target, since = board.placements(genome), [seat.member.placed for seat in found]
    if all(
        seat.epochs - since[j] >= EPOCHS
        for j, seat in enumerate(found)
        if seat.gpus and not same_nodes(held(board.states[j]), target.get(j, ()))
    ):
        return genome, True
    deployed = board.deployed.copy()
    for j in target:
        genes = genome == j
        if not found[j].gpus and (deployed[genes] == IDLE).all():
            deployed[genes] = j
    return deployed, False


def account(board: Board, genome: Ints, found: list[Seat], memory: Memory, *, whole: bool) -> None:
    """Enter what a deployment does into the memory.

    A change of a running job ends its epoch early: its speed is noted. At every deployment of a
    `whole` genome that changes anything, the limits of jobs that wait to be resumed and are left
    out are halved.
    """
    target = board.placements(genome)
    changes = False
    for j, (state, seat) in enumerate(zip(board.states, found, strict=True)):
        new = target.get(j, ())
        if same_nodes(held(state), new):
            continue
        changes, job_id = True, state.job.id
        if state.allocation is not None:
            speed = board.ways[j].speed(state.allocation)
            memory.measure(job_id, state.allocation.option.gpus, speed)
        gpus = sum(count for _, count in new)
        if new:
            memory.change(job_id, placed=seat.epochs, limit=max(seat.member.limit, gpus))
        if new and seat.gpus and gpus != seat.gpus:
            memory.change(job_id, scaled=seat.epochs)
    if not (whole and changes):
        return
    for j, (state, seat) in enumerate(zip(board.states, found, strict=True)):
        if j not in target and not seat.gpus and seat.started:
            memory.change(state.job.id, limit=halved(seat.member.limit, seat.start))


def affordable(
    round: Round, board: Board, genome: Ints, others: Allocations
) -> tuple[Ints, Allocations]:
    """Return the (C,) genome to run, and what its jobs run on, beside `others`.

    If the genome's power is more than the round allows, what runs goes on and only such jobs start
    of which there is power enough, in the genome's order. Jobs whose profile knows no speed on
    their nodes are left out.
    """
    genome, wanted = _possible(board, genome)
    if keeps_limits(round, others | wanted):
        return genome, wanted
    kept, given = _possible(board, board.deployed)
    for j in dict.fromkeys(genome[genome != IDLE].tolist()):
        checkpoint()
        genes = genome == j
        name = board.states[j].job.id
        if name in given or (kept[genes] != IDLE).any():
            continue
        if keeps_limits(round, others | given | {name: wanted[name]}):
            given[name] = wanted[name]
            kept[genes] = j
    return kept, given


def _possible(board: Board, genome: Ints) -> tuple[Ints, Allocations]:
    """Return a genome's allocations, and the genome without jobs that cannot run there."""
    found, left = {}, genome.copy()
    for j, placement in board.placements(genome).items():
        checkpoint()
        state = board.states[j]
        given = allocation(state, board.ways[j], placement)
        if given is None:
            left[left == j] = IDLE
        else:
            found[state.job.id] = given
    return left, found
