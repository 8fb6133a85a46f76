"""The cost of moving running jobs that keep their option, estimated for whole populations.

Packing decides which running jobs must move. Cut every job into whole nodes of M GPUs and at
most one *block* below (see `ronda.formulations.placement.packing`). If sizes divide each other and
M, a node with f free GPUs holds floor(f / s) blocks of s whatever larger blocks went there, so all
new pieces fit next to the jobs that stay exactly if for every size s

    GPUs needed in pieces of at least s  <=  s * sum over nodes of floor(f / s).

Where that fails, nodes are cleared of smaller blocks until it holds, the cheapest nodes first and
the largest size first; the jobs pushed out are the moves. Where power limits how many nodes may
be awake, all jobs must leave the other nodes, those whose jobs cost the least. GPUs suffice for
every genome within the limits, so all jobs are placed in the end; only the moves are estimated, and
racks are left aside. The estimate guides the search, and tells placement which jobs make room
(`yielding`); plans report the real moves.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ronda.instances.arrays import Floats, Mask, Rows


@dataclass(frozen=True, slots=True)
class PoolMoves:
    """The running jobs of a `pool`, and the sizes that its rows ask for.

    * `sizes` (S,): of pieces above one GPU, descending, the largest node first.
    * `need` (S, K + 1): GPUs that each row takes in pieces of at least this size; last, no row.
    * `job`, `row` (H,): running jobs of the pool and the rows that they hold.
    * `at` (H, N): GPUs that each holds on each node; `loss` (H,): the cost of moving it.
    * `block` (H,): its size if it is one block below a node and may be moved, else 0.
    * `free` (N,): GPUs of each node next to those of jobs without a choice.
    * `needed` (N,): whether a job without a choice holds GPUs of the node.
    * `awake_w` (R,): the use of each limit on power by a node awake beyond one asleep; empty if
      nodes may not sleep. Then `gpus` (K + 1,) and `extra` (R, K + 1) of each row (in this pool; in
      all), and `cap` (R,) above sleep.
    """

    sizes: Rows
    need: Floats
    job: Rows
    row: Rows
    at: Floats
    loss: Floats
    block: Rows
    free: Floats
    needed: Mask
    pool: int
    gpus_per_node: int
    awake_w: Floats
    gpus: Floats
    extra: Floats
    cap: Floats

    def cost(self, population: Rows, awake: Floats | None) -> Floats:
        """Return (P,) the estimated cost of moves; (P,) nodes may be `awake` (None: all)."""
        state, cost = self._state(population, awake)
        short = state.short(self.sizes)
        if short.any():
            for _, more, _ in self._clear(state.of(short)):
                cost[short] += more
        return cost

    def yielding(self, genome: Rows, awake: Floats | None) -> list[int]:
        """Return the running jobs (0..H) that an individual moves, on each node the cheapest."""
        state, _ = self._state(genome[None], awake)
        stays = (genome[self.job] == self.row) & (state.stays[0] == 0)
        gone = set(np.flatnonzero(stays).tolist())
        for size, _, freed in self._clear(state):
            small = (self.block > 0) & (self.block < size) & (state.stays[0] > 0)
            for node in np.flatnonzero(freed[0]).tolist():
                there = np.flatnonzero(small & (self.at[:, node] > 0))
                missing = float(freed[0, node])
                for i in there[np.argsort(self.loss[there] / self.block[there])].tolist():
                    if missing > 0 and i not in gone:
                        gone.add(i)
                        missing -= float(self.at[i, node])
        return sorted(gone)

    def _state(self, population: Rows, awake: Floats | None) -> tuple["_State", Floats]:
        """Return the state of individuals, and (P,) the cost of leaving nodes that must sleep.

        Those are the nodes that power does not allow to be awake.
        """
        stays = (population[:, self.job] == self.row).astype(float)
        cost, open_ = np.zeros(len(population)), np.ones((1, len(self.free)))
        if awake is not None and (awake < len(self.free)).any():
            holds = self.at > 0
            worth = stays @ (self.loss[:, None] * holds) + self.needed * float(self.loss.sum())
            busy = 1e-9 * (stays @ self.at)  # of equal ones, those in use
            rank = (-(worth + busy)).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
            open_ = (rank < awake[:, None]).astype(float)
            goes = stays * (((1.0 - open_) @ holds.T) > 0)
            cost, stays = goes @ self.loss, stays - goes
        need = np.empty((len(self.sizes), len(population)))
        for i, of_row in enumerate(self.need):
            need[i] = of_row[population].sum(axis=1)
            need[i] -= stays @ of_row[self.row]
        return _State(stays, open_ * (self.free - stays @ self.at), need), cost

    def _clear(self, state: "_State") -> Iterator[tuple[int, Floats, Floats]]:
        """Yield the size, cost (P,) and GPUs (P, N) of each clearing, until all pieces fit."""
        stays, free, need = state.stays, state.free, state.need.copy()
        remain = np.ones_like(free)  # share of a node's small blocks that is still there
        for i, size in enumerate(self.sizes.tolist()):
            small = (self.block > 0) & (self.block < size)
            if not small.any():
                continue
            held = stays[:, small] @ self.at[small]
            price = stays[:, small] @ (self.loss[small, None] * (self.at[small] > 0))
            for _ in range(int(self.sizes[0]) // size):
                slots = np.floor(free / size)
                short = np.ceil(need[i] / size - slots.sum(axis=1))
                if not (short > 0).any():
                    break
                missing = size * (slots + 1.0) - free
                possible = held * remain >= missing - 1e-6
                share = missing / np.maximum(held, 1.0)  # of the blocks that were there at first
                each = np.where(possible, price * share, np.inf)
                rank = each.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
                take = possible & (rank < short[:, None])
                freed = np.where(take, missing, 0.0)
                yield size, np.where(take, price * share, 0.0).sum(axis=1), freed
                free, remain = free + freed, remain - np.where(take, share, 0.0)
                for j in range(i + 1, len(self.sizes)):
                    large = small & (self.block >= self.sizes[j])
                    ratio = (stays[:, large] @ self.at[large]) / np.maximum(held, 1.0)
                    need[j] += (freed * ratio).sum(axis=1)


@dataclass(frozen=True, slots=True)
class _State:
    stays: Floats
    """(P, H) 1 for jobs that keep their option, else 0."""
    free: Floats
    """(P, N) the GPUs free beside these jobs."""
    need: Floats
    """(S, P) the GPUs that new pieces of at least each size need."""

    def short(self, sizes: Rows) -> Mask:
        """Return whether some size does not find room, shape (P,)."""
        room = [size * np.floor(self.free / size).sum(axis=1) for size in sizes.tolist()]
        return np.asarray((self.need > np.array(room)).any(axis=0))

    def of(self, some: Mask) -> "_State":
        """Return some of the individuals."""
        return _State(self.stays[some], self.free[some], self.need[:, some])
