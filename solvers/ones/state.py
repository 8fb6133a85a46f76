"""The state of a tick of ONES: limits, predictions and order of the jobs of a board."""

from dataclasses import dataclass, replace
from statistics import median

import numpy as np
from numpy.random import Generator

from ronda.formulations.clock import checkpoint
from ronda.formulations.ones.limits import grown, shrunk, speeds
from ronda.formulations.prediction.progress import ProgressPredictor
from ronda.solvers.ones.board import Board
from ronda.solvers.ones.memory import Member, Memory, features
from ronda.solvers.ones.tick import Tick

EXECUTED = 2
"""Epochs after which a job counts as executed (num_epochs_before_next_scaling)."""


@dataclass(slots=True)
class Seat:
    """A job of a board for the length of a tick: how far it is, and its least and most GPUs.

    `epochs` are those completed; `started`: it has run before; `target` is ones_max, the GPUs that
    it may keep or come back to.
    """

    member: Member
    epochs: int
    gpus: int
    most: int
    start: int
    started: bool
    target: int = 0

    @property
    def executed(self) -> bool:
        """Whether it has been executed for long enough to be predicted, scaled and stopped."""
        return self.epochs >= EXECUTED

    @property
    def new(self) -> bool:
        """Whether it waits and has not been executed for long enough."""
        return self.gpus == 0 and not self.executed


def seats(board: Board, memory: Memory, epochs: dict[str, float], *, artifact: bool) -> list[Seat]:
    """Return the seats of a board's jobs; limits grow in memory too, the dominant job's shrinks."""
    found = []
    capacity = len(board.node)
    for state, ways in zip(board.states, board.ways, strict=True):
        checkpoint()
        member, sizes = memory.members[state.job.id], ways.sizes()
        most = int(sizes[min(capacity, len(sizes) - 1)])
        start = int(sizes[sizes > 0].min(initial=capacity + 1))
        if not state.job.preemptible:
            start = int(sizes[min(max(state.job.gpus, start), len(sizes) - 1)])
        gpus = state.allocation.option.gpus if state.allocation is not None else 0
        done = member.epochs(epochs[state.job.id])
        seat = Seat(member, done, gpus, most, start, state.started)
        seat.target = gpus if gpus else member.limit * state.started
        found.append(seat)
    _scale(found, capacity, artifact=artifact)
    for state, seat in zip(board.states, found, strict=True):
        memory.members[state.job.id] = seat.member
    return found


def _scale(found: list[Seat], capacity: int, *, artifact: bool) -> None:
    """Let executed running jobs grow; scale down the largest if it dominates and has run long.

    A job grows once it has completed two epochs since it was last scaled. In the artifact two keys
    differ in spelling, so that it only needs two epochs altogether.
    """
    eligible = []
    for seat in found:
        since = 0 if artifact else seat.member.scaled
        if seat.gpus and seat.epochs - since >= EXECUTED:
            limit = grown(seat.member.limit, seat.gpus, seat.most)
            seat.member = replace(seat.member, limit=limit)
            seat.target = max(seat.gpus, limit)
            eligible.append(seat)
    if not eligible:
        return
    largest = max(eligible, key=lambda seat: seat.gpus)
    middle = median(seat.member.ran_s for seat in found if seat.started or seat.executed)
    if 2 * largest.gpus >= capacity and largest.member.ran_s > middle > 0:
        target = shrunk(largest.gpus, largest.member.ran_s, middle)
        largest.target = min(largest.gpus, max(target, largest.start))


def tick_of(
    board: Board,
    found: list[Seat],
    memory: Memory,
    epochs: dict[str, float],
    predictor: ProgressPredictor,
    rng: Generator,
) -> Tick:
    """Return what a generation needs; the progress of each executed job is sampled once."""
    capacity, jobs = len(board.node), len(found)
    executed = [j for j, seat in enumerate(found) if seat.executed]
    weights = np.zeros((jobs, capacity + 1))
    remaining_s = np.zeros(len(executed))
    if executed:
        rows, measured = [], []
        for j in executed:
            checkpoint()
            state = board.states[j]
            job_id = state.job.id
            rows.append(features(state, epochs[job_id], found[j].member.samples))
            measured.append(_speeds(board, memory, j, found[j], capacity))
        to_come = predictor.predict(np.array(rows)).work_left(rng)
        left = np.array([found[j].member.samples for j in executed]) * to_come
        for j, samples, speed in zip(executed, left, measured, strict=True):
            checkpoint()
            weights[j, 1:] = samples * np.arange(1, capacity + 1) / speed[1:]
        remaining_s = left / np.array([speed[1] for speed in measured])
    limit = np.array([min(seat.member.limit, seat.most) for seat in found], dtype=np.int64)
    start = np.array([seat.start for seat in found], dtype=np.int64)
    sizes, upto = np.empty((jobs, capacity + 1), dtype=np.int64), np.arange(capacity + 1)
    for j, ways in enumerate(board.ways):
        checkpoint()
        each = ways.sizes()
        sizes[j] = each[np.minimum(upto, len(each) - 1)]
    return Tick(
        deployed=board.deployed,
        ones_max=np.array([min(seat.target, seat.most) for seat in found], dtype=np.int64),
        train_max=np.maximum(limit, start),
        start=start,
        sizes=sizes,
        new=np.array(
            [j for j, seat in enumerate(found) if seat.new and seat.start <= capacity],
            dtype=np.int64,
        ),
        executed=np.array(executed, dtype=np.int64)[np.argsort(remaining_s, kind="stable")],
        protected=np.array([not seat.executed for seat in found], dtype=bool),
        weights=weights,
    )


def _speeds(board: Board, memory: Memory, j: int, seat: Seat, capacity: int) -> np.ndarray:
    """Return (capacity + 1,) the speeds that are expected of a job."""
    known = memory.speeds.get(board.states[j].job.id)
    if known:
        return speeds({int(c): values for c, values in known.items()}, capacity)
    # It was executed before ONES took over: what it runs on, or would start on, is measured.
    gpus = seat.gpus or seat.start
    nodes = board.ways[j].of.shape.nodes(gpus)
    return speeds({gpus: (board.ways[j].samples_per_s(gpus, nodes),)}, capacity)
