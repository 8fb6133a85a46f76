"""Quotas that tenants lend and borrow, as rows and as an account.

What a tenant uses beyond what it keeps at home leaves home, and counts for its parent. That is the
recursion of Kueue's quota tree, U_parent = Σ_c max(0, U_c − h_c). It is linear: the excess over a
soft row without a penalty stands for what leaves home.
"""

from collections.abc import Mapping

import numpy as np

from ronda.formulations.options.stated_rows import Sheet
from ronda.formulations.tenants.numbered import ByNumber, Use
from ronda.formulations.tenants.sharers import Shares, Tree
from ronda.instances.base import Floats, Rows


def borrowing(tree: Tree, of: str, shares: Mapping[str, Shares]) -> dict[str, tuple[str, float]]:
    """Return the row and the limit on what tenants use of a resource of the tree, by tenant.

    They are ``borrow[t,r]``, U_t ≤ S_t + B_t, and ``tree[root,r]``, U_root ≤ S_root.
    """
    found = {}
    for tenant in tree.order:
        name, share = tenant.name, shares[tenant.name]
        most = tree.quota(name, of).borrow
        if tenant.parent is None and share.guaranteed is not None:
            found[name] = f"tree[{name},{of}]", share.owned
        elif tenant.parent is not None and most is not None:
            found[name] = f"borrow[{name},{of}]", share.owned + most
    return found


def state_borrowing(
    tree: Tree,
    of: str,
    sheet: Sheet,
    numbered: ByNumber,
    amounts: Floats,
    there: float,
) -> None:
    """State the rows of a resource's quotas that are lent and borrowed, if they can bind.

    `numbered` has the options by leaf, `amounts` (K,) are what they hold, and `there` is what the
    cluster has in all.
    """
    shares, use_of = tree.shares(of), numbered.use(amounts)
    uses: dict[str, Use] = {}
    for tenant in tree.order:
        below = tree.below[tenant.name]
        pairs = [(uses[child], shares[child].kept) for child in below]
        left = [Use(max(0.0, u.now - kept), max(0.0, u.most - kept)) for u, kept in pairs]
        own = Use(*(sum(part) for part in zip(*left, strict=True))) if left else None
        uses[tenant.name] = own or use_of(*tree.span[tenant.name])

    def inside(name: str) -> tuple[list[Rows], dict[str, float]]:
        """Return the options, and the rows of lenders, whose use counts for a tenant."""
        if not tree.below[name]:
            return [numbered.rows(*tree.span[name])], {}
        rows, counts = list[Rows](), dict[str, float]()
        for child in tree.below[name]:
            kept, lender = shares[child].kept, f"lent[{child},{of}]"
            if uses[child].most <= kept:
                continue
            own, more = ([], {lender: 1.0}) if lender in sheet else inside(child)
            if kept > 0 and lender not in sheet:
                state(lender, own, kept, more, penalty=0.0)
                own, more = [], {lender: 1.0}
            rows, counts = rows + own, counts | more
        return rows, counts

    def state(
        name: str, rows: list[Rows], most: float, counts: dict[str, float], penalty: float
    ) -> None:
        every = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
        sheet.state(name, every, amounts[every], most, penalty=penalty, counts=counts)

    for name, (row, most) in borrowing(tree, of, shares).items():
        most = max(most, uses[name].now)
        if most < min(uses[name].most, there):
            rows, counts = inside(name)
            state(row, rows, most, counts, penalty=np.inf)


class Loans:
    """What tenants use of a resource while jobs are added; what was held `before` stays allowed."""

    def __init__(self, tree: Tree, of: str, before: Mapping[str, float]) -> None:
        self._tree, self._shares = tree, tree.shares(of)
        self._use = dict.fromkeys(self._shares, 0.0)
        for leaf, amount in before.items():
            self.add(leaf, amount)
        limits = borrowing(tree, of, self._shares)
        self._row = {name: row for name, (row, _) in limits.items()}
        self._most = {name: max(most, self._use[name]) for name, (_, most) in limits.items()}
        self._use = dict.fromkeys(self._shares, 0.0)

    def room(self, leaf: str, amount: float) -> bool:
        """Return whether a leaf may use an amount more."""
        return all(
            use + more <= most + SLACK * max(1.0, most)
            for _, most, use, more in self.met(leaf, amount)
        )

    def met(self, leaf: str, amount: float) -> list[tuple[str, float, float, float]]:
        """Return each row that an amount more of a leaf meets.

        With the row come its limit, its use, and what the amount adds to the use.
        """
        return [
            (self._row[name], self._most[name], self._use[name], more)
            for name, more in self._flow(leaf, amount)
            if name in self._most
        ]

    def add(self, leaf: str, amount: float) -> None:
        """Add an amount to a leaf's use."""
        for name, more in self._flow(leaf, amount):
            self._use[name] += more

    def _flow(self, leaf: str, amount: float) -> list[tuple[str, float]]:
        """Return what an amount adds to the use of a leaf and of each tenant above it."""
        found = []
        for name in self._tree.path(leaf):
            found.append((name, amount))
            use, kept = self._use[name], self._shares[name].kept
            amount = max(0.0, use + amount - kept) - max(0.0, use - kept)
        return found


SLACK = 1e-9
"""The part of a limit that counts as rounding."""
