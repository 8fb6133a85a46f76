"""The cost of moving running jobs that keep their option, estimated for whole populations.

Packing decides which running jobs must move. Cut every job into whole nodes of M GPUs and at
most one smaller *block* (see `ronda.formulations.placement.packing`). If sizes divide each other
and M, a node with f free GPUs holds floor(f / s) blocks of s, whatever larger blocks it took. So
all new pieces fit next to the jobs that stay exactly if, for every size s,

    GPUs needed in pieces of at least s  <=  s * sum over nodes of floor(f / s).

Where that fails, nodes are cleared of smaller blocks until it holds, the largest size first and
the cheapest nodes first; the jobs pushed out are the moves. Where power limits the number of awake
nodes, all jobs must leave the nodes whose jobs cost the least to move. Every genome within the
limits has enough GPUs, so all jobs find a place in the end. Only the moves are estimated, without
regard to racks. The estimate guides the search and tells placement which jobs make room
(`yielding`); plans report the real moves.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ronda.instances.base import Floats, Mask, Rows


@dataclass(frozen=True, slots=True)
class PoolMoves:
    """The running jobs of a `pool`, and the sizes that its rows ask for.

    * `sizes` (S,) are the sizes of pieces above one GPU, descending, the largest node first.
    * `need` (S, K + 1) are the GPUs that each row takes in pieces of at least each size; the last
      column stands for no row.
    * `job` and `row` (H,) are the running jobs of the pool and the rows that they hold.
    * `at` (H, N) are the GPUs that each job holds on each node; `loss` (H,) is its cost of a move.
    * `block` (H,) is the job's size if it is one movable block smaller than a node, else 0.
    * `free` (N,) are the GPUs of each node that jobs without a choice leave.
    * `needed` (N,) tells whether a job without a choice holds GPUs of the node.
    * `awake_w` (R,) is the use of each power limit by an awake node beyond a sleeping one, empty if
      nodes may not sleep. `gpus` (K + 1,) are the GPUs that each row takes in this pool, and
      `extra` (R, K + 1) its use of each limit. `cap` (R,) is the room of each limit above sleep.
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
        """Return the estimated cost of moves (P,); `awake` (P,) nodes may be awake, None: all."""
        state, cost = self._state(population, awake)
        short = state.short(self.sizes)
        if short.any():
            for _, more, _ in self._clear(state.of(short)):
                cost[short] += more
        return cost

    def yielding(self, genome: Rows, awake: Floats | None) -> list[int]:
        """Return the indices in `job` of the jobs that a genome moves, the cheapest per node."""
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
        """Return the state of individuals, and the cost (P,) to leave nodes that must sleep.

        These are the nodes that power limits do not allow to be awake.
        """
        stays = (population[:, self.job] == self.row).astype(float)
        cost, open_ = np.zeros(len(population)), np.ones((1, len(self.free)))
        if awake is not None and (awake < len(self.free)).any():
            holds = self.at > 0
            worth = stays @ (self.loss[:, None] * holds) + self.needed * float(self.loss.sum())
            busy = 1e-9 * (stays @ self.at)  # among equal nodes, those in use
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
        """Yield the size, cost (P,) and freed GPUs (P, N) of each step until all pieces fit."""
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
    """1 for jobs that keep their option, else 0, shape (P, H)."""
    free: Floats
    """The GPUs that these jobs leave free, shape (P, N)."""
    need: Floats
    """The GPUs that new pieces of at least each size need, shape (S, P)."""

    def short(self, sizes: Rows) -> Mask:
        """Return whether the pieces of some size do not fit, shape (P,)."""
        room = [size * np.floor(self.free / size).sum(axis=1) for size in sizes.tolist()]
        return np.asarray((self.need > np.array(room)).any(axis=0))

    def of(self, some: Mask) -> "_State":
        """Return the state of the individuals where `some` is true."""
        return _State(self.stays[some], self.free[some], self.need[:, some])
