"""The resources of hosts as rows over options, and as an account.

In pool p with M GPUs on its largest nodes, an option has q whole nodes and perhaps a block of r
GPUs. With w and b for what it needs there, of one resource (`flat` is needed with the block, or
else on one whole node), ::

    Σ_k (q_k w_k + b_k) x_k ≤ Σ_n left_n                            host[p,d]
    Σ_k (q_k f(w_k / L) + f(b_k / L)) x_k ≤ Σ_n (1 − f(1 − left_n / L))    host_nodes[p,d,i]

where left_n is what others leave on node n or, if more, what runs there now (nobody is stopped
because others took more), L is the most of these, and f = f_i is a dual feasible function
(`ronda.formulations.dual_feasible`). What a node lacks of L counts as one more piece on it, so the
row holds for unequal nodes too. Both are necessary: no choice that can be placed breaks them, but a
choice that keeps them may find no room. An option with a piece that no node can hold is forbidden.
"""

from typing import NamedTuple

import numpy as np

from ronda.formulations.node_rules.hosts import (
    ROUNDED,
    all_needs,
    binding,
    host_has,
    needs_of,
    resources,
    room_on,
)
from ronda.formulations.options.stated_rows import Sheet
from ronda.formulations.options.table import OptionTable
from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.job import Allocation, JobState
from ronda.instances.round import Round

KINDS = (1, 2, 3, 4)
"""The dual feasible functions f_i that have rows where they are tighter than the sum."""


class _Pieces(NamedTuple):
    """What options `rows` (n,) need of a resource on a whole node, on their last node, and in all.

    `whole` counts the whole nodes without the last one.
    """

    rows: Rows
    whole: Floats
    wide: Floats
    last: Floats

    @property
    def total(self) -> Floats:
        return self.whole * self.wide + self.last


def host_rows(round: Round, table: OptionTable, values: Floats, sheet: Sheet) -> None:
    """State what options need of the resources of hosts that can bind."""
    names, able = resources(round.cluster), binding(round)
    for p, d in np.argwhere(able).tolist():
        name, left = f"{table.pools[p].name},{names[d]}", _left(round, p, d)
        pieces = _pieces(round, table, p, d)
        _state(sheet, f"host[{name}]", table, pieces.rows, pieces.total, float(left.sum()))
        most = float(left.max(initial=0.0))
        if most <= 0:
            continue
        linear = pieces.total / most
        stated: list[tuple[Floats, float]] = []
        for i in KINDS:
            wide, last = dff(pieces.wide / most, i), dff(pieces.last / most, i)
            use = pieces.whole * wide + last
            room = float((1 - dff(1 - np.maximum(left, 0.0) / most, i)).sum())
            if not (use > linear * (1 + ROUNDED)).any():
                continue
            if any((other >= use).all() and less <= room for other, less in stated):
                continue
            stated.append((use, room))
            use = _least(round, table, pieces, use, most, i, d)
            _state(sheet, f"host_nodes[{name},{i}]", table, pieces.rows, use, room)


def too_much(round: Round, table: OptionTable) -> Mask | None:
    """Return the options (K,) with a piece that no node of their pool can hold, or None."""
    able, found = binding(round), np.zeros(len(table), dtype=bool)
    for p, d in np.argwhere(able).tolist():
        left, pieces = np.sort(_left(round, p, d))[::-1], _pieces(round, table, p, d)
        if _unequal(table, p):
            left = np.full(len(left), left.max(initial=0.0))
        slack = ROUNDED * abs(left).max(initial=0.0)
        nth = np.minimum(pieces.whole.astype(int), len(left)) - 1
        bad = np.asarray(pieces.last > left.max(initial=0.0) + slack)
        bad |= (pieces.whole > 0) & (pieces.wide > left[nth] + slack)
        found[pieces.rows[bad]] = True
    return found if found.any() else None


def dff(shares: Floats, k: int) -> Floats:
    """Return f_k of shares of a node, shape (n,); what is nearly a multiple of 1 / (k + 1) is."""
    scaled = (k + 1) * shares
    exact: Mask = np.abs(scaled - np.rint(scaled)) <= ROUNDED
    return np.where(exact, np.minimum(shares, np.rint(scaled) / (k + 1)), np.floor(scaled) / k)


def _left(round: Round, p: int, d: int) -> Floats:
    """Return the most that jobs may take of resource d on pool p's nodes in service, shape (n,)."""
    return np.asarray(room_on(round)[d][round.cluster.topology.in_service(p)])


def _unequal(table: OptionTable, p: int) -> bool:
    pool = table.pools[p]
    return pool.gpus != pool.nodes * pool.gpus_per_node


def _pieces(round: Round, table: OptionTable, p: int, d: int) -> _Pieces:
    """Return what the options of pool p that need anything of resource d need on their nodes."""
    needs = all_needs(round)[:, d]
    some = np.asarray(needs.any(axis=0))
    rows = np.flatnonzero((table.pool == p) & some[table.job])
    per_gpu, per_node, flat = needs[:, table.job[rows]]
    size = table.pools[p].gpus_per_node
    whole, rest = np.divmod(table.gpus[rows], size)
    whole, rest = np.where(rest > 0, whole, whole - 1), np.where(rest > 0, rest, size)
    wide = np.where(whole > 0, per_gpu * size + per_node, 0.0)
    return _Pieces(rows, whole.astype(float), wide, per_gpu * rest + per_node + flat)


def _least(
    round: Round, table: OptionTable, pieces: _Pieces, use: Floats, most: float, i: int, d: int
) -> Floats:
    """Return the use (n,) of options as they would be placed or, if that is less, as they run.

    It is 0 for options that may be cut in another way: the largest nodes cannot hold them.
    """
    names, use = resources(round.cluster), use.copy()
    if len(pieces.rows) and _unequal(table, int(table.pool[pieces.rows[0]])):
        use[pieces.whole > 0] = 0.0
    for n in np.flatnonzero(table.current[pieces.rows]).tolist():
        state = table.jobs[int(table.job[pieces.rows[n]])]
        if state.allocation is not None:
            on = needs_of(state.job, names).on(state.allocation.placement)[d]
            use[n] = min(use[n], float(dff(on / most, i).sum()))
    return use


def _state(
    sheet: Sheet, name: str, table: OptionTable, rows: Rows, use: Floats, room: float
) -> None:
    """State a row, unless all jobs together cannot break it."""
    if table.most_together(rows, use) > room * (1 + ROUNDED):
        sheet.state(name, rows, use, room)


class HostAccount:
    """What hosts have left while jobs are added; an array counts once."""

    def __init__(self, round: Round) -> None:
        self._names = resources(round.cluster)
        has = host_has(round.cluster)
        self._left: Floats = has + ROUNDED * np.abs(has)
        self._arrays: set[object] = set()

    def fits(self, state: JobState, given: Allocation) -> bool:
        """Return whether the nodes of an allocation have what a job needs."""
        if (needed := self._needed(state, given)) is None:
            return True
        left = self._left[:, [node for node, _ in given.placement]]
        return bool(((needed <= left) | (needed <= 0)).all())

    def take(self, state: JobState, given: Allocation) -> None:
        """Take what a job needs on the nodes of an allocation."""
        if (needed := self._needed(state, given)) is None:
            return
        if given.array is not None:
            self._arrays.add((given.array, given.placement))
        for (node, _), amounts in zip(given.placement, needed.T, strict=True):
            self._left[:, node] -= amounts

    def _needed(self, state: JobState, given: Allocation) -> Floats | None:
        """Return what a job needs on its nodes (D, n), or None if its array has it already."""
        counts = given.placement and state.job.needs
        if not counts or (given.array, given.placement) in self._arrays:
            return None
        return needs_of(state.job, self._names).on(given.placement)


def host_account(round: Round) -> HostAccount | None:
    """Return the account of hosts, or None if no job needs anything that hosts have."""
    if not resources(round.cluster) or not any(state.job.needs for state in round.jobs):
        return None
    return HostAccount(round)
