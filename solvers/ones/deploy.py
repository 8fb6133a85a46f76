"""When ONES deploys a genome, and what a deployment does to limits (Bian et al., SC'21, artifact).

A job whose GPUs are all free starts immediately. All else waits until every running job that would
be moved, scaled or stopped has completed an epoch since it was last placed; then the whole genome
is deployed. GPUs of a node are interchangeable: only another number of them on a node is a change.
"""

from ronda.formulations.ones.genome import IDLE
from ronda.formulations.ones.limits import halved
from ronda.instances.arrays import Ints
from ronda.instances.job import same_nodes
from ronda.solvers.ones.board import Board, held
from ronda.solvers.ones.memory import Memory
from ronda.solvers.ones.state import Seat

EPOCHS = 1
"""Epochs that a job completes before it is changed again (update_interval)."""


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

    A change of a running job ends its epoch early: its speed is noted. A job that waits to be
    resumed, and is left out of a whole genome, has its limit halved; every such job, at every
    deployment that changes anything.
    """
    target = board.placements(genome)
    changes = False
    for j, (state, seat) in enumerate(zip(board.states, found, strict=True)):
        new = target.get(j, ())
        if same_nodes(held(state), new):
            continue
        changes, job_id = True, state.job.id
        if state.allocation is not None:
            option = state.allocation.option
            speed = board.ways[j].samples_per_s(
                option.gpus, len(state.allocation.placement), option.batch
            )
            memory.measure(job_id, option.gpus, speed)
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
