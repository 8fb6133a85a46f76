"""What is owed to tenants, and their fair shares, as concave terms of the objective.

A term ω min(Σ_k n′_k x_k, most) is a worth of ω for each GPU of an option, and a soft row that
takes ω back for each GPU beyond `most`. So a guaranteed GPU is worth v + ω to its owner and v to
whoever borrows it: reclaim follows, as far as restarts, minimum run times and the disruption budget
allow.

* ``owed[t,r]`` stands for what is guaranteed to a tenant and to all below it. Every tenant on the
  way from a leaf up has a part of ω, so that a GPU borrowed from a sibling is worth more than one
  from elsewhere (Kueue's hierarchical advantage). A root with tenants below it has no part: nothing
  is borrowed beyond it.
* ``fair[t,r]`` stands for the fair share of a leaf (`ronda.formulations.tenants.fair_shares`), at
  ω/2: guarantees come before fair shares.
* n′_k is at most the GPUs that the job asks for, so that growing is no claim; and it is 0 if the
  option alone exceeds `most`, as neither Kueue nor KAI stops a job for a request above the quota.
  Jobs that exceed it only together count in part.
* ω is the greatest worth of a GPU to any option, as if nobody ran yet: it does not depend on who
  holds what, so that no two tenants take GPUs from each other in turns (Kueue issue 14543).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ronda.formulations.options.stages import Aim
from ronda.formulations.options.stated_rows import Sheet
from ronda.formulations.options.table import OptionTable
from ronda.formulations.tenants.amounts import amounts
from ronda.formulations.tenants.fair_shares import fair_shares
from ronda.formulations.tenants.numbered import ByNumber, there_is
from ronda.formulations.tenants.sharers import Tree, resources
from ronda.instances.base import Floats, Rows
from ronda.instances.round import Round
from ronda.instances.site import GPUS

OWED, FAIR = "owed", "fair"
"""The families of the soft rows."""

FIRST = "owed_first"
"""The row that keeps what is owed before all else."""

PART = 0.5
"""The worth of a GPU of a fair share, as a part of that of a guaranteed one."""


class Guarantee(NamedTuple):
    """The term ``price min(Σ_k amount_k x_k, most)`` over the options `rows`.

    `name` is that of its soft row, and `asked` is the most that all jobs could have of it.
    """

    name: str
    price: float
    rows: Rows
    amount: Floats
    most: float
    asked: float

    @property
    def owed(self) -> float:
        """What is owed: as much as is asked for, up to the guarantee."""
        return float(min(self.most, self.asked))

    def given(self, chosen: Rows) -> float:
        """Return how much of what is owed the chosen options have."""
        return float(min(self.most, self.amount[np.isin(self.rows, chosen)].sum()))

    def copied(self, options: int, of: Rows) -> "Guarantee":
        """Return the same term over copies `of` some of the `options`."""
        amount = np.zeros(options)
        amount[self.rows] = self.amount
        rows = np.flatnonzero(amount[of])
        return self._replace(rows=rows, amount=amount[of[rows]])


def guarantees(round: Round, table: OptionTable) -> list[Guarantee]:
    """Return the guarantees of a round's tenants, and their fair shares, that somebody asks for.

    Their prices are parts of ω.
    """
    site, tree = round.site, Tree(round.site)
    types = {pool.gpu_type.name for pool in table.pools} | {GPUS}
    stated = [q.of for t in site.tenants for q in t.quotas if q.guaranteed is not None]
    kinds = [of for of in resources(site) if of in types and of in stated]
    if site.fair_shares and site.tenants:
        kinds = kinds or [GPUS]
    if not kinds:
        return []
    numbered, found = ByNumber(table, tree.number), list[Guarantee]()
    for of in kinds:
        claims = _Claims(round, table, tree, numbered, of)
        found += claims.owed()
        found += claims.fair() if site.fair_shares else ()
    return found


class _Claims:
    """The claims of tenants to a resource of GPUs."""

    def __init__(
        self, round: Round, table: OptionTable, tree: Tree, numbered: ByNumber, of: str
    ) -> None:
        self._round, self._tree, self._numbered, self._of = round, tree, numbered, of
        self._table, self._held = table, amounts(table, of)
        asked = np.array([state.job.gpus for state in table.jobs], dtype=float)[table.job]
        self._counted = self._held * np.minimum(1.0, asked / table.gpus)

    def owed(self) -> Iterator[Guarantee]:
        """Yield what is guaranteed to each tenant, with all below it."""
        tree, shares = self._tree, self._tree.shares(self._of)
        levels, left = dict[str, int](), dict[str, float]()
        stated = {n: bool(s.guaranteed) and not self._is_top(n) for n, s in shares.items()}
        for tenant in tree.order:
            below = (levels[child] for child in tree.below[tenant.name])
            levels[tenant.name] = max(below, default=0) + stated[tenant.name]
        for tenant in reversed(tree.order):  # from the roots down
            name, rest = tenant.name, left.get(tenant.parent or "", 1.0)
            part = rest / levels[name] if stated[name] else 0.0
            left[name] = rest - part
            if part:
                most = shares[name].guaranteed or 0.0
                yield from self._claim(OWED, name, part, most)

    def _is_top(self, name: str) -> bool:
        """Return whether a tenant is a root with tenants below it."""
        return bool(self._tree.below[name]) and len(self._tree.path(name)) == 1

    def fair(self) -> Iterator[Guarantee]:
        """Yield the fair share of each leaf."""
        tree, round, of = self._tree, self._round, self._of
        asking = self._numbered.use(self._counted)
        asked = {name: asking(*tree.span[name]).most for name in tree.leaf}
        every, there = tree.shares(of), there_is(round, of)
        roots = [every[t.name] for t in round.site.tenants if t.parent is None]
        if all(root.guaranteed is not None for root in roots):
            there = min(there, sum(root.owned for root in roots))
        gpus = max(there_is(round, GPUS), 1.0)
        used = {name: amount / gpus for name, amount in round.used.items()}
        shares = fair_shares(round.site.tenants, of, there, asked, used)
        for name in tree.leaf:
            yield from self._claim(FAIR, name, PART, shares[name])

    def _claim(self, family: str, name: str, share: float, most: float) -> Iterator[Guarantee]:
        """Yield a tenant's claim to `most` GPUs, unless nobody may have a part of it.

        If nobody is stopped for guarantees, the tenant's are what it holds if that is more.
        """
        rows, table = self._numbered.rows(*self._tree.span[name]), self._table
        if self._round.site.reclaim == "never":
            most = max(most, float(self._counted[rows][table.current[rows]].sum()))
        fits = self._held[rows] <= most * (1 + 1e-9)
        amount = np.where(fits, self._counted[rows], 0.0)
        if asked := table.most_together(rows, amount):
            own = amount > 0
            row = f"{family}[{name},{self._of}]"
            yield Guarantee(row, share, rows[own], amount[own], most, asked)


def price_of_a_gpu(table: OptionTable, at_rest: Floats) -> float:
    """Return ω, the greatest worth of a GPU, for options with values (K,) as if nobody ran."""
    gpus = amounts(table, GPUS)
    good = np.isfinite(at_rest) & (at_rest > 0) & (gpus > 0)
    return float((at_rest[good] / gpus[good]).max(initial=0.0))


def state_guarantees(
    round: Round, claims: Iterable[Guarantee], price: float, sheet: Sheet
) -> list[Guarantee]:
    """State the terms of guarantees at a price of ω for a GPU, and return them with their prices.

    Strict guarantees are an aim that comes before the objective (`owed_first`), and have no price
    in it.
    """
    strict, found = round.site.reclaim == "strict", list[Guarantee]()
    for claim in claims:
        worth = 0.0 if strict and claim.name.startswith(OWED) else price * claim.price
        found.append(claim._replace(price=worth))
        sheet.worth[claim.rows] += worth * claim.amount
        if claim.asked > claim.most:
            sheet.state(claim.name, claim.rows, claim.amount, claim.most, penalty=worth)
    return found


def owed_first(round: Round, table: OptionTable, values: Floats) -> list[Aim]:
    """Return the aim to give what is owed before all else, if guarantees are strict."""
    if round.site.reclaim != "strict":
        return []
    worth, penalties = np.zeros(len(table)), dict[str, float]()
    for claim in guarantees(round, table):
        if claim.name.startswith(OWED):
            worth[claim.rows] += claim.price * claim.amount
            if claim.asked > claim.most:
                penalties[claim.name] = claim.price
    return [Aim(FIRST, worth, penalties)] if worth.any() else []


def worth_share(values: Floats, claims: Sequence[Guarantee]) -> float:
    """Return the part of a plan's worth that is expected to be for anything but guarantees.

    `values` (K,) include those of guarantees.
    """
    most = sum(claim.price * claim.owed for claim in claims)
    if not most > 0:
        return 1.0
    good = np.isfinite(values) & (values > 0)
    claimed = np.zeros(len(values))
    for claim in claims:
        claimed[claim.rows] += claim.price * claim.amount
    worth, own = values[good] - claimed[good], claimed[good] > 0
    total = claimed[good].sum() + worth[own].sum()
    return float(np.clip(worth[own].sum() / total, 0.01, 1.0)) if total > 0 else 1.0
