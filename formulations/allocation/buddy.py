"""What nodes hold together, without a look at which job is where: the aggregate of positions.

Every job is cut as placement does it: whole nodes, the pool's largest (M GPUs), and one block. So
what the jobs take of a node of G GPUs are pieces of at most G in sum. For a function φ with
φ(a) + φ(b) ≤ φ(a + b), φ ≥ 0, the pieces on a node have Σ φ(piece) ≤ φ(G). So with nodes c awake ::

    Σ_k (q_k φ(M) + φ(r_k)) x_k ≤ Σ_c φ(G_c) a_c

holds in every plan on nodes: these rows cut off no choice that can be placed. φ(n) = n counts GPUs
(``gpus``).

**Buddy levels** are φ_l(n) = ⌊n / 2^l⌋. They are what is left of the flow of free blocks in a buddy
allocator: b_l blocks of 2^l GPUs are there, s_l of them are split in two of 2^(l-1), t_l are taken,
so t_l + s_l ≤ b_l + 2 s_(l+1) with b_l = Σ_c (⌊G_c / 2^l⌋ − 2 ⌊G_c / 2^(l+1)⌋). Level l and 2^(m-l)
times every level m above it, added, are the row of level l; a flow that keeps all rows exists by
splitting no more than is needed.

**Theorem.** If all blocks r_k are powers of two, these rows and Σ_k q_k x_k ≤ nodes of M GPUs are
exact: a choice that keeps them can be placed, with moves if need be.
*Proof.* Whole nodes go first; the last row leaves enough of M GPUs. Then blocks in descending
order. When one of 2^l comes, nodes have lost only pieces of more, each a multiple of 2^l, or all of
their GPUs. So the blocks of 2^l that are left are Σ_c φ_l(G_c) less what the pieces placed have of
them, which is at least the one of this block by the row of level l. ∎

Where all nodes have 2^L GPUs, ⌊n / 2^l⌋ 2^l ≤ n makes every level a consequence of ``gpus``: no row
is needed, and GPUs of the pool suffice.
"""

from collections.abc import Callable, Iterator

import numpy as np

from ronda.formulations.allocation.case import Case
from ronda.formulations.allocation.row import Row
from ronda.formulations.dual_feasible import node_shares, tightening
from ronda.instances.arrays import Floats, Rows

Weight = Callable[[Rows], Floats]
"""φ of (n,) numbers of GPUs on one node."""


def whole_nodes(case: Case) -> Iterator[Row]:
    """Σ_{k in p} (⌊n_k/G⌋ + f_i((n_k mod G)/G)) x_k ≤ Σ_{c in p} a_c for n GPUs on nodes of G.

    f_i are dual feasible functions of bin packing (`node_shares`). Only in pools of equal nodes,
    and only those f_i that say more than the count of GPUs does (none for powers of two). No buddy
    level of equal nodes says more: with m = ⌊G / 2^l⌋, f_m steps at i G/(m + 1) ≤ i 2^l.
    """
    pools, asked = case.pool, case.gpus
    for p, pool in enumerate(case.table.pools):
        size = pool.gpus_per_node
        if any(c.pool == p and c.gpus_per_node != size for c in case.classes):
            continue
        own = pools == p
        rest = asked[own] % size
        nodes = tuple(-float(c.pool == p) for c in case.classes)
        for i in tightening(rest[rest > 0].tolist(), size):

            def share(gpus: Rows, size: int = size, i: int = i) -> Floats:
                return node_shares(gpus, size, i)

            yield Row(f"whole_nodes[{pool.name},{i}]", _use(case, p, share), 0.0, nodes)


def buddy(case: Case) -> Iterator[Row]:
    """Σ_{k in p} (q_k φ(M) + φ(r_k)) x_k ≤ Σ_{c in p} φ(G_c) a_c, φ(n) = ⌊n/u⌋.

    For blocks of u = 2, 4, … and M GPUs in pools of unequal nodes; not where u divides the GPUs of
    all of them, as ``gpus`` says more there.
    """
    for p, pool in enumerate(case.table.pools):
        sizes = {c.gpus_per_node for c in case.classes if c.pool == p}
        if len(sizes) == 1 or not (case.pool == p).any():
            continue
        most = pool.gpus_per_node
        for unit in sorted({most, *(1 << level for level in range(1, most.bit_length()))}):
            if all(size % unit == 0 for size in sizes):
                continue

            def blocks(gpus: Rows, unit: int = unit) -> Floats:
                return np.asarray(gpus // unit, dtype=float)

            nodes = tuple(-float(c.gpus_per_node // unit) * (c.pool == p) for c in case.classes)
            yield Row(f"buddy[{pool.name},{unit}]", _use(case, p, blocks), 0.0, nodes)


def _use(case: Case, p: int, weight: Weight) -> Floats:
    """Return (n,) what every option takes of the nodes of pool p by a function φ of pieces.

    The least that it may take: a job may stay on other pieces than those that it would be given
    now. Nothing for options that the largest nodes cannot hold, which take some others.
    """
    most = case.table.pools[p].gpus_per_node
    sizes = [c for c in case.classes if c.pool == p]
    largest = sum(c.count for c in sizes if c.gpus_per_node == most)
    second = max((c.gpus_per_node for c in sizes if c.gpus_per_node < most), default=0)
    whole, rest = np.divmod(case.gpus, most)
    own = (case.pool == p) & (whole <= largest)
    own &= (rest == 0) | (whole < largest) | (rest <= second)
    use = np.where(own, whole * weight(np.array([most]))[0] + weight(rest), 0.0)
    for i in np.flatnonzero(own & case.table.current[case.rows]).tolist():
        held = case.table.jobs[int(case.job[i])].allocation
        if held is not None and len(held.placement) > 1:
            kept = weight(np.array([gpus for _, gpus in held.placement])).sum()
            use[i] = min(use[i], kept)
    return use
