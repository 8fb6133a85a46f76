"""The part of a round that one genome of ONES decides: a pool's free GPUs and the jobs for them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ronda.formulations.ones.genome import IDLE
from ronda.formulations.options.application import application_of, applications
from ronda.instances.arrays import Ints
from ronda.instances.job import Allocation, JobState
from ronda.instances.round import Round
from ronda.solvers.ones.ways import Ways

Placement = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Board:
    """GPUs and jobs of the pool of this `index`.

    `node` (C,) is the node of each GPU, ascending, without sleeping nodes and GPUs of jobs that may
    not be preempted. `states` and `ways` (J,) are the jobs that may be decided on, in order of
    submission. `deployed` (C,) is the genome that runs.
    """

    index: int
    node: Ints
    states: tuple[JobState, ...]
    ways: tuple[Ways, ...]
    deployed: Ints

    def placements(self, genome: Ints) -> dict[int, Placement]:
        """Return by job number, in order of the genome, how many GPUs it has on which nodes."""
        found: dict[int, dict[int, int]] = {}
        for job, node in zip(genome.tolist(), self.node.tolist(), strict=True):
            if job != IDLE:
                nodes = found.setdefault(job, {})
                nodes[node] = nodes.get(node, 0) + 1
        return {job: tuple(nodes.items()) for job, nodes in found.items()}


def held(state: JobState) -> Placement:
    """Return where a job runs, by node; empty if it waits."""
    return () if state.allocation is None else tuple(sorted(state.allocation.placement))


def boards(round: Round, last: dict[str, list[list[str]]]) -> Iterator[Board]:
    """Yield the board of every pool that any job may use.

    A waiting job belongs to the first pool that suits it; ONES knows equal GPUs only. `last` has,
    by pool (text), the job ids on the GPUs of the last tick's deployed genome, node by node: in
    which order jobs lie within a node, as long as the nodes still agree.
    """
    topology = round.cluster.topology
    free = topology.node_gpus.copy()
    free[list(round.asleep)] = 0
    members: dict[int, list[tuple[JobState, Ways]]] = {}
    for state in sorted(round.jobs, key=lambda s: (s.job.submit_s, s.job.id)):
        allocation = state.allocation
        if allocation is not None and not state.job.preemptible:
            for node, gpus in allocation.placement:
                free[node] -= gpus
            continue
        ways = _ways(round, state)
        if ways is not None:
            members.setdefault(ways.of.shape.index, []).append((state, ways))
    for index, jobs in sorted(members.items()):
        nodes = np.flatnonzero(topology.node_pool == index)
        slots: Ints = np.repeat(nodes, free[nodes])
        if not len(slots):
            continue
        states = tuple(state for state, _ in jobs)
        deployed = _deployed(slots, states, last.get(str(index), []))
        yield Board(index, slots, states, tuple(ways for _, ways in jobs), deployed)


def _ways(round: Round, state: JobState) -> Ways | None:
    """Return how a job may run in its pool; None if no pool suits it."""
    if state.allocation is not None:
        of = application_of(round, state, state.allocation.option.pool)
        return None if of is None else Ways(state, of)
    for of in applications(round, state.job):
        ways = Ways(state, of)
        if ways.sizes()[-1]:
            return ways
    return None


def _deployed(node: Ints, states: tuple[JobState, ...], last: list[list[str]]) -> Ints:
    """Return the genome that runs: in the order of the last one wherever a node still agrees."""
    number = {state.job.id: j for j, state in enumerate(states)}
    holds: dict[int, dict[int, int]] = {}
    for j, state in enumerate(states):
        for place, gpus in held(state):
            holds.setdefault(place, {})[j] = gpus
    genome = np.full(len(node), IDLE)
    places, begins = np.unique(node, return_index=True)
    before = _by_node(last)
    for place, begin in zip(places.tolist(), begins.tolist(), strict=True):
        here = holds.get(place, {})
        if not here:
            continue
        kept = [number.get(job_id, IDLE) for job_id in before.get(place, [])]
        counts = {j: kept.count(j) for j in kept if j != IDLE}
        end = begin + int((node == place).sum())
        if counts == here and len(kept) == end - begin:
            genome[begin:end] = kept
        else:
            packed = [j for j, gpus in here.items() for _ in range(gpus)]
            genome[begin : begin + len(packed)] = packed
    return genome


def _by_node(last: list[list[str]]) -> dict[int, list[str]]:
    """Return the last genome's job ids by node."""
    return {int(place): jobs for place, *jobs in last}


def remember(board: Board, genome: Ints) -> list[list[str]]:
    """Return a genome as lists of a node (text) and the ids of the jobs on its GPUs, "" if idle."""
    found: dict[int, list[str]] = {}
    for job, node in zip(genome.tolist(), board.node.tolist(), strict=True):
        name = "" if job == IDLE else board.states[job].job.id
        found.setdefault(node, [str(node)]).append(name)
    return list(found.values())


def allocation(state: JobState, ways: Ways, placement: Placement) -> Allocation | None:
    """Return what a job runs on at a placement; the very same object if it is there already.

    None where the profile knows no speed on these nodes.
    """
    gpus = sum(count for _, count in placement)
    if held(state) == tuple(sorted(placement)):
        return state.allocation
    option = ways.option(gpus, len(placement))
    return None if option is None else Allocation(option=option, placement=placement)
