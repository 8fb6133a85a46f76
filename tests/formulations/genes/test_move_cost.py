"""The estimate of moves, against cases counted by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.formulations.genes.move_cost import PoolMoves

# Rows of the genes: 0 waits, then a job of 1, 2, 4 and 8 GPUs, and the same as held by others.
NEED = {8: 8, 4: 4, 2: 2}


def pool(at, loss, *, block, new, free=(8, 8), awake_w=0.0):
    """Return moves of jobs on two nodes of 8 GPUs; job 0 is new and asks of `new` GPUs.

    Row 0 waits, row 1 is the new job's, row 2 + i is what running job i holds.
    """
    gpus = np.array([0, new, *(sum(line) for line in at), 0], dtype=float)
    sizes = np.array([8, 4, 2])
    return PoolMoves(
        sizes=sizes,
        need=np.array([np.where(gpus >= size, gpus, 0) for size in sizes]),
        job=np.arange(1, len(at) + 1),
        row=np.arange(2, len(at) + 2),
        at=np.array(at, dtype=float),
        loss=np.array(loss, dtype=float),
        block=np.array(block),
        free=np.array(free, dtype=float),
        needed=np.zeros(2, dtype=bool),
        pool=0,
        gpus_per_node=8,
        awake_w=np.array([awake_w] if awake_w else []),
        gpus=gpus,
        extra=np.zeros((1, len(gpus))),
        cap=np.zeros(1),
    )


def everyone(moves):
    """Return the individual in which the new job runs and all others keep what they hold."""
    return np.array([1, *moves.row])


def test_nothing_moves_where_there_is_room():
    """Node 1 is empty: a job of 8 GPUs takes it."""
    moves = pool([(1, 0)], [5.0], block=[1], new=8)
    assert moves.cost(everyone(moves)[None], None).tolist() == [0.0]
    assert moves.yielding(everyone(moves), None) == []


def test_the_cheapest_node_is_cleared():
    """One small job on each node, of losses 5 and 3: a job of 8 GPUs moves the one on node 1."""
    moves = pool([(1, 0), (0, 2)], [5.0, 3.0], block=[1, 2], new=8)
    individual = everyone(moves)
    assert moves.cost(individual[None], None).tolist() == [3.0]
    assert moves.yielding(individual, None) == [1]
    waiting = individual.copy()
    waiting[0] = 0
    assert moves.cost(np.array([waiting, individual]), None).tolist() == [0.0, 3.0]
    leaves = individual.copy()
    leaves[2] = 0  # job 1 does not keep its option: node 1 is empty
    assert moves.cost(leaves[None], None).tolist() == [0.0]


def test_a_block_takes_part_of_a_node():
    """Nodes hold 4 + 1 and 4 + 2: a block of 4 needs 1 more GPU of node 0 or 2 of node 1.

    Of node 0, floor((3 + 1) / 4) = 1 once the job of one GPU (loss 1) is gone; on node 1 the job of
    two costs 9.
    """
    at = [(4, 0), (1, 0), (0, 4), (0, 2)]
    moves = pool(at, [50.0, 1.0, 50.0, 9.0], block=[4, 1, 4, 2], new=4)
    assert moves.cost(everyone(moves)[None], None).tolist() == [1.0]
    assert moves.yielding(everyone(moves), None) == [1]


def test_nodes_that_must_sleep_lose_their_jobs():
    """Power allows one node: of losses 5 and 3 + 1, node 1 is given up at 4; the rest stays."""
    moves = pool([(1, 0), (0, 2), (0, 1)], [5.0, 3.0, 1.0], block=[1, 2, 1], new=2)
    individual, one = everyone(moves), np.array([1.0])
    assert moves.cost(individual[None], one).tolist() == [4.0]
    assert moves.yielding(individual, one) == [1, 2]
    assert moves.cost(individual[None], np.array([2.0])).tolist() == [0.0]


@given(st.integers(0, 2**20))
@settings(max_examples=30, deadline=None)
def test_whole_populations_are_counted_like_individuals(seed):
    """The cost of an individual does not depend on those beside it, to the last bit."""
    rng = np.random.default_rng(seed)
    at, loss, block = [], [], []
    room = [8, 8]
    for _ in range(6):
        node, size = int(rng.integers(2)), int(rng.choice([1, 2, 4]))
        if room[node] >= size:
            room[node] -= size
            at.append((size, 0) if node == 0 else (0, size))
            loss.append(float(rng.integers(1, 2**20)) / 2**10)
            block.append(size)
    moves = pool(at, loss, block=block, new=int(rng.choice([2, 4, 8])))
    everywhere = everyone(moves)
    population = np.where(rng.random((7, len(everywhere))) < 0.7, everywhere, 0)
    awake = rng.integers(1, 3, size=7).astype(float)
    for limit in (None, awake):
        together = moves.cost(population, limit)
        assert (together >= 0).all()
        assert together.max() <= sum(loss) + 1e-9
        for i, individual in enumerate(population):
            own = None if limit is None else limit[i : i + 1]
            assert moves.cost(individual[None], own)[0] == together[i]
            moved = moves.yielding(individual, own)
            assert (together[i] > 0) == bool(moved)
            assert all(individual[moves.job[j]] == moves.row[j] for j in moved)


def test_sums_of_losses_are_exact_in_any_order():
    """Losses are multiples of a grain (see `move_losses.move_losses`)."""
    grain = 2.0**-30
    losses = np.ceil(np.random.default_rng(0).random(1000) / grain) * grain
    assert losses.sum() == losses[::-1].sum() == pytest.approx(float(sum(losses)), abs=0)
