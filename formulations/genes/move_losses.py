"""The losses by moves in a round, in the form that genes use."""

from dataclasses import replace
from typing import Any

import numpy as np

from ronda.formulations.allocation.model_data import Case
from ronda.formulations.allocation.rows import is_limit
from ronda.formulations.genes.genome import Genes
from ronda.formulations.genes.move_cost import PoolMoves
from ronda.formulations.objectives.switching_cost import loss_of_moves
from ronda.formulations.options.table import OptionTable
from ronda.instances.base import Floats, Rows
from ronda.instances.clock import checkpoint
from ronda.instances.round import Round


def move_losses(round: Round, table: OptionTable, worth: Floats) -> Floats:
    """Return the value that each running job loses if it moves to other nodes, shape (J,).

    The loss comes from `loss_of_moves` and is rounded up to 30 bits of the greatest loss. It is 0
    for jobs that wait or may not be moved. `worth` (K,) are the values of the options.
    """
    losses = np.zeros(len(table.jobs))
    for k in np.flatnonzero(table.current & ~table.must_run[table.job]).tolist():
        checkpoint()
        j = int(table.job[k])
        moved = (table.jobs[j].job.id,)
        losses[j] = max(0.0, loss_of_moves(round, table, worth, np.array([k]), moved))
    grain = 2.0**-30 * float(losses.max(initial=0.0))  # sums are exact in any order
    return np.ceil(losses / grain) * grain if grain else losses


def with_moves(genes: Genes, case: Case, losses: Floats) -> Genes:
    """Return genes with the places of jobs and the costs of moving them (`move_losses`)."""
    pools = [_pool_moves(genes, case, losses, p) for p in range(len(case.table.pools))]
    moving = tuple(pool for pool in pools if len(pool.job) and len(pool.sizes))
    return replace(genes, moving=moving)


def _pool_moves(genes: Genes, case: Case, losses: Floats, pool: int) -> PoolMoves:
    table, topology = case.table, case.round.cluster.topology
    nodes = np.flatnonzero(topology.in_service(pool))
    position = {int(node): i for i, node in enumerate(nodes)}
    whole = table.pools[pool].gpus_per_node
    gpus = np.append(np.where(case.pool == pool, case.gpus, 0), 0)
    rest = gpus % whole
    blocks = np.unique(rest[rest > 1])[::-1]
    sizes = np.concatenate([[whole] if whole > 1 else [], blocks]).astype(np.int64)
    need = np.array([gpus - np.where(rest < size, rest, 0) for size in sizes], dtype=float)

    free = topology.node_gpus[nodes].astype(float)
    needed = np.zeros(len(nodes), dtype=bool)
    current = np.flatnonzero(table.current[case.rows])
    row_of = dict(zip(case.job[current].tolist(), current.tolist(), strict=True))
    job, held, at, block = [], [], [], []
    for j, state in enumerate(table.jobs):
        checkpoint()
        if state.allocation is None or state.allocation.option.pool != pool:
            continue
        line = np.zeros(len(nodes))
        for node, count in state.allocation.placement:
            line[position[node]] += count
        if table.must_run[j]:
            free -= line
            needed |= line > 0
        elif j in row_of:
            job.append(j)
            held.append(row_of[j])
            at.append(line)
            single = len(state.allocation.placement) == 1 and line.sum() < whole
            block.append(int(line.sum()) if single else 0)
    index = np.array(job, dtype=np.int64)
    return PoolMoves(
        sizes=sizes,
        need=need.reshape(len(sizes), len(gpus)),
        job=index,
        row=np.array(held, dtype=np.int64),
        at=np.array(at).reshape(len(index), len(nodes)),
        loss=losses[index],
        block=np.array(block, dtype=np.int64),
        free=free,
        needed=needed,
        pool=pool,
        gpus_per_node=whole,
        **_sleep(genes, case, pool, gpus),
    )


def _sleep(genes: Genes, case: Case, pool: int, gpus: Rows) -> dict[str, Any]:
    """Return the power limits on awake nodes, empty where racks have power caps."""
    problem = genes.problem
    limits = [r for r, name in enumerate(problem.names) if is_limit(name)]
    if not case.sleeps or case.racks:
        limits = []
    own = [b for b, kind in enumerate(case.classes) if kind.pool == pool] if limits else []
    return {
        "awake_w": problem.block_use[np.ix_(limits, own)].max(axis=1, initial=0.0),
        "gpus": gpus.astype(float),
        "extra": genes.use[limits],
        "cap": problem.capacity[limits],
    }
