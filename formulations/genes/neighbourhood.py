"""Where the jobs of a round run, as genes need it: who is near whom, and what moving costs."""

from dataclasses import replace

import numpy as np

from ronda.formulations.genes.genome import Genes
from ronda.formulations.genes.moving import PoolMoves
from ronda.formulations.objectives.outlook import loss_of_moves
from ronda.formulations.options.table import OptionTable
from ronda.formulations.watts import rack_caps
from ronda.instances.arrays import Floats, Rows
from ronda.instances.round import Round

GRAIN = 2.0**-30
"""Losses are multiples of this share of the greatest one: their sums are exact in any order."""


def move_losses(round: Round, table: OptionTable, worth: Floats) -> Floats:
    """Return (J,) what a running job's option is worth less if the job changes nodes for it.

    As `loss_of_moves` counts it for what is placed, rounded up to multiples of `GRAIN` of the
    greatest; 0 for jobs that wait or may not be moved. `worth` are the (K,) values of the options.
    """
    losses = np.zeros(len(table.jobs))
    for k in np.flatnonzero(table.current & ~table.must_run[table.job]).tolist():
        j = int(table.job[k])
        moved = (table.jobs[j].job.id,)
        losses[j] = max(0.0, loss_of_moves(round, table, worth, np.array([k]), moved))
    grain = GRAIN * float(losses.max(initial=0.0))
    return np.ceil(losses / grain) * grain if grain else losses


def settle(genes: Genes, round: Round, table: OptionTable, losses: Floats) -> Genes:
    """Return genes that know where jobs run and what it costs to move them (`move_losses`)."""
    pools = [_pool_moves(genes, round, table, losses, p) for p in range(len(table.pools))]
    return replace(
        genes,
        group=_groups(genes, round, table),
        moving=tuple(pool for pool in pools if len(pool.gene) and len(pool.sizes)),
    )


def _groups(genes: Genes, round: Round, table: OptionTable) -> Rows:
    """Return (n,) the rack of each running job, or its node where there is but one rack.

    Waiting jobs are dealt out to the neighbourhoods in turn.
    """
    topology = round.cluster.topology
    racks = len(topology.racks) > 1
    near = topology.node_rack if racks else np.arange(len(topology.node_gpus))
    group = np.arange(len(genes)) % (int(near.max()) + 1)
    for i, j in enumerate(genes.column.tolist()):
        held = table.jobs[j].allocation
        if held is not None and held.placement:
            group[i] = near[held.placement[0][0]]
    return group


def _pool_moves(
    genes: Genes, round: Round, table: OptionTable, losses: Floats, pool: int
) -> PoolMoves:
    """Return what one pool's moves are estimated from."""
    topology = round.cluster.topology
    nodes = np.flatnonzero(topology.node_pool == pool)
    position = {int(node): i for i, node in enumerate(nodes)}
    whole = table.pools[pool].gpus_per_node
    own = (genes.row >= 0) & (table.pool[genes.row] == pool)
    gpus = np.where(own, table.gpus[genes.row], 0)
    rest = gpus % whole
    blocks = np.unique(rest[rest > 1])[::-1]
    sizes = np.concatenate([[whole] if whole > 1 else [], blocks]).astype(np.int64)
    need = np.array([gpus - np.where(rest < size, rest, 0) for size in sizes], dtype=float)

    free = topology.node_gpus[nodes].astype(float)
    needed = np.zeros(len(nodes), dtype=bool)
    gene_of = {int(j): i for i, j in enumerate(genes.column)}
    gene, held, at, block = [], [], [], []
    for j, state in enumerate(table.jobs):
        if state.allocation is None or state.allocation.option.pool != pool:
            continue
        line = np.zeros(len(nodes))
        for node, count in state.allocation.placement:
            line[position[node]] += count
        i = gene_of.get(j)
        if table.must_run[j]:
            free -= line
            needed |= line > 0
        elif i is not None and genes.row[genes.held[i]] >= 0:
            gene.append(i)
            held.append(int(genes.held[i]))
            at.append(line)
            single = len(state.allocation.placement) == 1 and line.sum() < whole
            block.append(int(line.sum()) if single else 0)
    awake_w = 0.0  # where racks' power is capped, placement does not count nodes
    if genes.step_w and not rack_caps(round.cluster):
        awake_w = float(genes.step_w[pool].max(initial=0.0)) / len(nodes)
    index = np.array(gene, dtype=np.int64)
    return PoolMoves(
        sizes=sizes,
        need=need.reshape(len(sizes), len(genes.row)),
        gene=index,
        row=np.array(held, dtype=np.int64),
        at=np.array(at).reshape(len(index), len(nodes)),
        loss=losses[genes.column[index]],
        block=np.array(block, dtype=np.int64),
        free=free,
        needed=needed,
        pool=pool,
        awake_w=awake_w,
    )
