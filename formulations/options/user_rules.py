"""The rows and terms that the user's rules return for the options of a round.

A rule is a function of a round and its `OptionTable`. It returns a `Limit`, a `Term`, or several of
them; `ronda.solvers.rules` calls it. The limits of all rules are the `OwnRows` of the table, so
that every reader of the table respects them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ronda.instances.arrays import Floats, Mask, Rows

RULE = "rule"
"""The family of limits, as in ``rule[name]``, and the code of a violation of such a limit."""

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
        The cost of a unit beyond a soft limit, in the objective; None for a limit that is never
        exceeded.
    """

    coefficients: ArrayLike
    sense: str
    limit: float
    name: str = ""
    penalty: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A term of a rule in the objective, with an additional value for each option, shape (K,)."""

    coefficients: ArrayLike


@dataclass(frozen=True, slots=True, eq=False)
class OwnRows:
    """The limits of all rules over K options: Σ_k use_rk x_k − s_r ≤ capacity_r, s_r ≥ 0.

    ``use`` has shape (R, K) and ``capacity`` (R,). ``penalty`` (R,) is the cost of a unit of s_r,
    infinite where s_r is 0. ``turned`` (R,) is true for lower limits, which have changed signs.
    """

    names: tuple[str, ...]
    use: Floats
    capacity: Floats
    penalty: Floats
    turned: Mask

    @property
    def soft(self) -> list[int]:
        """The indices of the soft rows, which may be exceeded at a price."""
        found: list[int] = np.flatnonzero(np.isfinite(self.penalty)).tolist()
        return found

    @property
    def soft_names(self) -> list[str]:
        """The names of the soft rows."""
        return [self.names[r] for r in self.soft]

    def only(self, kept: Mask) -> "OwnRows":
        """Return the limits where `kept` (R,) is true."""
        names = tuple(name for name, own in zip(self.names, kept.tolist(), strict=True) if own)
        use, capacity, penalty = self.use[kept], self.capacity[kept], self.penalty[kept]
        return OwnRows(names, use, capacity, penalty, self.turned[kept])

    def excess(self, rows: Rows) -> Floats:
        """Return the excess of options over each limit, 0 if it is rounding, shape (R,)."""
        use = self.use[:, rows]
        over = use.sum(axis=1) - self.capacity
        rounding = ROUNDED * (np.abs(self.capacity) + np.abs(use).sum(axis=1))
        return np.where(over > rounding, over, 0.0)

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
        has, limit = sign * self.use[r, rows].sum() + 0.0, sign * self.capacity[r]  # no -0
        return f"{has:g}, {most} {limit:g}"
