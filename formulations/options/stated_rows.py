"""The rows and terms that the site's rules and the user's rules state over the options of a round.

The site's rules are data of the round (`ronda.formulations.site`). A rule of the user is a function
of a round and its `OptionTable`, which returns a `Limit`, a `Term`, or several of them;
`ronda.solvers.rules` calls it. The limits of all rules are the `StatedRows` of the table, so that
every reader of the table respects them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_fields
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ronda.instances.base import Floats, Mask, Rows

if TYPE_CHECKING:
    from scipy.sparse import csc_array, csr_array

RULE = "rule"
"""The family of the user's limits, as in ``rule[name]``, and the code of a violation of one."""

LEAST, EQUAL = ">=", "=="
SENSES = ("<=", LEAST, EQUAL)

ROUNDED = 1e-6
"""The excess over a limit that counts as the rounding of solvers, as a share of the terms."""


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """A row of a rule, which limits the total amount of the chosen options.

    Parameters
    ----------
    coefficients
        The amount of each option of the table, shape (K,).
    sense
        ``<=``, ``>=`` or ``==``.
    limit
        The right-hand side.
    name
        The name in prices, conflicts and models, ``rule[name]``; if empty, the name of the rule.
    penalty
        The cost of a unit beyond a soft limit, in the objective, 0 or more; None for a limit that
        is never exceeded.
    counts
        Soft limits, by name, whose excess this limit counts as well, with the amount for each unit.
        They come before this one.
    """

    coefficients: ArrayLike
    sense: str
    limit: float
    name: str = ""
    penalty: float | None = None
    counts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A term of a rule in the objective, with an additional value for each option, shape (K,)."""

    coefficients: ArrayLike


@dataclass(frozen=True, slots=True, eq=False)
class StatedRows:
    """The rows Σ_k use_rk x_k + Σ_q counts_rq s_q − s_r ≤ capacity_r over K options, with s_r ≥ 0.

    The excess s_r is 0 unless the row is soft. Rows may count the excess of soft rows before them,
    so that a tree of quotas can be said: what a tenant uses beyond what it keeps at home counts for
    its parent.

    Attributes
    ----------
    names
        The names of the R rows in prices and models, ``family[index]``.
    use
        The amount of each option in each row, (R, K).
    capacity
        The right-hand sides, shape (R,).
    penalty
        The cost of a unit of excess, infinite for a hard row, shape (R,).
    turned
        Whether a row is a lower limit with changed signs, shape (R,).
    counts
        The amount of each excess in each row, (R, R); a row counts only rows before it.
    moves
        The amount that each option has in addition if its job runs it on other nodes than now,
        (R, K); None if no row minds. Placement must leave room for it.
    """

    names: tuple[str, ...]
    use: "csc_array"
    capacity: Floats
    penalty: Floats
    turned: Mask
    counts: "csr_array"
    moves: "csc_array | None" = None

    @property
    def soft(self) -> list[int]:
        """The indices of the soft rows, which may be exceeded at a price."""
        found: list[int] = np.flatnonzero(np.isfinite(self.penalty)).tolist()
        return found

    @property
    def soft_names(self) -> list[str]:
        """The names of the soft rows."""
        return [self.names[r] for r in self.soft]

    def only(self, kept: Mask) -> "StatedRows":
        """Return the rows where `kept` (R,) is true."""
        names = tuple(name for name, own in zip(self.names, kept.tolist(), strict=True) if own)
        rows = np.flatnonzero(kept)
        return StatedRows(
            names,
            self.use[rows],
            self.capacity[kept],
            self.penalty[kept],
            self.turned[kept],
            self.counts[rows][:, rows],
            None if self.moves is None else self.moves[rows],
        )

    def of_options(self, rows: Rows) -> "StatedRows":
        """Return the same limits over the given options."""
        moves = None if self.moves is None else self.moves[:, rows]
        return with_fields(self, use=self.use[:, rows], moves=moves)

    def dense(self, rows: Rows | slice = slice(None)) -> Floats:
        """Return the amounts of the given options, by default of all, shape (R, n)."""
        return np.asarray(self.use[:, rows].toarray())  # type: ignore[index]

    def excess(self, rows: Rows) -> Floats:
        """Return the excess of options over each limit, 0 if it is rounding, shape (R,)."""
        return RowSums.of(self, rows).excess

    def beyond(self, over: Floats, rounding: Floats | float = 0.0) -> Floats:
        """Return the excesses, (R,), given those without counted excesses; 0 up to `rounding`."""
        found = np.where(over > rounding, over, 0.0)
        for r in np.flatnonzero(np.diff(self.counts.indptr)).tolist():  # in order
            at = slice(self.counts.indptr[r], self.counts.indptr[r + 1])
            more = over[r] + self.counts.data[at] @ found[self.counts.indices[at]]
            found[r] = more if more > np.broadcast_to(rounding, over.shape)[r] else 0.0
        return found

    def of_excesses(self) -> Floats:
        """Return the amount of the excess over each of the S soft limits in each row, (R, S)."""
        soft = self.soft
        found = np.asarray(self.counts.toarray()[:, soft])
        found[soft, np.arange(len(soft))] -= 1.0
        return found

    def broken(self, rows: Rows) -> Floats:
        """Return the excess of options over each hard limit, 0 for soft limits, shape (R,)."""
        return np.where(np.isinf(self.penalty), self.excess(rows), 0.0)

    def lost(self, rows: Rows) -> float:
        """Return the total penalty for the excess of options over soft limits."""
        over = self.excess(rows)[self.soft]
        return float(over @ self.penalty[self.soft])

    def words(self, r: int, rows: Rows) -> str:
        """Return a text with the amount that options have in limit r, and the limit."""
        sign, most = (-1, "at least") if self.turned[r] else (1, "at most")
        use = self.use[:, rows].sum(axis=1)[r]
        has, limit = sign * use + 0.0, sign * self.capacity[r]  # no -0
        return f"{has:g}, {most} {limit:g}"


@dataclass(frozen=True, slots=True, eq=False)
class RowSums:
    """What chosen options have beyond limits, before counted excesses, and the terms' size, (R,).

    Another option adds to it at the cost of its own entries.
    """

    own: StatedRows
    over: Floats
    size: Floats
    excess: Floats

    @classmethod
    def of(cls, own: StatedRows, rows: Rows) -> "RowSums":
        """Return the tally of options."""
        use = own.use[:, rows]
        over: Floats = np.asarray(use.sum(axis=1)).ravel() - own.capacity
        size: Floats = np.abs(own.capacity) + np.asarray(abs(use).sum(axis=1)).ravel()
        return cls(own, over, size, own.beyond(over, np.asarray(ROUNDED * size)))

    def plus(self, row: int) -> "RowSums":
        """Return the tally with one more option."""
        own, over, size = self.own, self.over.copy(), self.size.copy()
        at = slice(own.use.indptr[row], own.use.indptr[row + 1])
        over[own.use.indices[at]] += own.use.data[at]
        size[own.use.indices[at]] += np.abs(own.use.data[at])
        return RowSums(own, over, size, own.beyond(over, np.asarray(ROUNDED * size)))

    def allows(self, more: "RowSums", worth: float, least: float) -> bool:
        """Return whether a later tally breaks no limit further, and leaves `least` of a worth."""
        penalty, added = self.own.penalty, more.excess - self.excess
        hard = np.isinf(penalty)
        if (added[hard] > 0).any():
            return False
        return bool(worth - added[~hard] @ penalty[~hard] >= least)


def joined(parts: Sequence[StatedRows]) -> StatedRows:
    """Return the rows of several parts over the same options."""
    from scipy.sparse import block_diag, csc_array, csr_array, vstack

    if len(parts) == 1:
        return parts[0]
    return StatedRows(
        tuple(name for part in parts for name in part.names),
        csc_array(vstack([part.use for part in parts])),
        np.concatenate([part.capacity for part in parts]),
        np.concatenate([part.penalty for part in parts]),
        np.concatenate([part.turned for part in parts]),
        csr_array(block_diag([part.counts for part in parts])),
        _moves(parts),
    )


def _moves(parts: Sequence[StatedRows]) -> "csc_array | None":
    """Return the amounts of moves of several parts, or None if there are none."""
    if all(part.moves is None for part in parts):
        return None

    from scipy.sparse import csc_array, vstack

    return csc_array(vstack([part.use * 0 if part.moves is None else part.moves for part in parts]))


def with_row(
    own: StatedRows | None, name: str, amounts: Floats, capacity: float, counts: Mapping[str, float]
) -> StatedRows:
    """Return rows with one more, a lower limit: the `amounts` (K,) less the excess that it counts.

    The options chosen must have at least `capacity`. `counts` are soft rows, by name, with the
    amount that each unit of their excess takes away.
    """
    sheet = Sheet(len(amounts))
    (rows,) = np.nonzero(amounts)
    sheet.state(name, rows, -amounts[rows], -capacity, turned=True)
    if own is None:
        return sheet.rows()

    from scipy.sparse import csr_array

    more = joined([own, sheet.rows()])
    row = more.counts.tolil()
    for other, amount in counts.items():
        row[-1, own.names.index(other)] = amount
    return with_fields(more, counts=csr_array(row))


class Sheet:
    """Rows over K options while rules state them, and the `worth` (K,) that they add to options."""

    def __init__(self, options: int) -> None:
        self.worth: Floats = np.zeros(options)
        self._options = options
        self._at: dict[str, int] = {}
        self._rows: list[tuple[Rows, Floats]] = []
        self._numbers: list[tuple[float, float, bool]] = []
        self._counts: list[tuple[int, int, float]] = []
        self._moves: dict[int, tuple[Rows, Floats]] = {}

    def __contains__(self, name: str) -> bool:
        """Return whether there is a row of the name."""
        return name in self._at

    def soft(self, name: str) -> bool:
        """Return whether there is a soft row of the name."""
        return name in self._at and bool(np.isfinite(self._numbers[self._at[name]][1]))

    def state(
        self,
        name: str,
        rows: Rows,
        amounts: Floats,
        capacity: float,
        *,
        penalty: float = np.inf,
        counts: Mapping[str, float] | None = None,
        turned: bool = False,
        moves: tuple[Rows, Floats] | None = None,
    ) -> None:
        """State that chosen options among `rows` (n,) have at most `capacity` of `amounts` (n,).

        The row may be exceeded for `penalty` a unit. `counts` are rows stated before, by name,
        whose excess counts as well. `moves` are the rows (m,), and the amounts that they have in
        addition if their jobs run them on other nodes than now.
        """
        r = self._at[name] = len(self._rows)
        self._rows.append((rows, np.asarray(amounts, dtype=float)))
        self._numbers.append((capacity, penalty, turned))
        self._counts += [(r, self._at[other], more) for other, more in (counts or {}).items()]
        if moves is not None:
            self._moves[r] = moves

    def rows(self) -> StatedRows:
        """Return the stated rows."""
        from scipy.sparse import csc_array, csr_array

        size = len(self._rows)
        ends = [0, *accumulate(len(rows) for rows, _ in self._rows)]
        where = [rows for rows, _ in self._rows] or [np.zeros(0, dtype=np.int64)]
        amounts = [own for _, own in self._rows] or [np.zeros(0)]
        entries = np.concatenate(amounts), np.concatenate(where), np.array(ends)
        use = csc_array(csr_array(entries, shape=(size, self._options)))
        use.eliminate_zeros()
        r, q, more = np.array(self._counts, dtype=float).reshape(-1, 3).T
        numbers = np.array(self._numbers, dtype=float).reshape(size, 3)
        return StatedRows(
            tuple(self._at),
            use,
            numbers[:, 0],
            numbers[:, 1],
            numbers[:, 2] > 0,
            csr_array((more, (r.astype(int), q.astype(int))), shape=(size, size)),
            self._all_moves(size),
        )

    def _all_moves(self, size: int) -> "csc_array | None":
        if not self._moves:
            return None

        from scipy.sparse import csc_array

        r = np.repeat(list(self._moves), [len(rows) for rows, _ in self._moves.values()])
        where = np.concatenate([rows for rows, _ in self._moves.values()])
        amounts = np.concatenate([more for _, more in self._moves.values()])
        return csc_array((amounts, (r, where)), shape=(size, self._options))
