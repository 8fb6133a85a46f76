"""Quotas of tenants who lend to and borrow from each other, as Kueue counts them.

The recursion and the dominant resource share are those of Kueue's pkg/cache/scheduler
(resource_node.go, fair_sharing.go). A tree counts a resource if a tenant in it is guaranteed some.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator

from ronda.instances.site import Tenant
from ronda.solvers.policies.production.resources import Amounts

EXACT = 1e-9
"""The absolute error of sums of amounts."""


class Branch:
    """A tenant with its quotas, and all tenants below it.

    Attributes
    ----------
    use
        What it uses of each resource. Of what children use, only the part counts that their own
        quotas do not keep at home.
    held
        What all jobs of it and below it hold of each resource.
    whole, home
        Its quota with what it gets from below, and the part of it that it does not lend.
    kinds
        The resources that its tree counts, with the kind of each: all GPU types are one kind.
    """

    def __init__(self, tenant: Tenant, parent: "Branch | None") -> None:
        self.name, self.weight, self.parent = tenant.name, tenant.weight, parent
        self.quotas = {quota.of: quota for quota in tenant.quotas}
        self.children: list[Branch] = []
        self.use, self.held = defaultdict[str, float](float), defaultdict[str, float](float)
        self.whole, self.home = dict[str, float](), dict[str, float]()
        self.kinds: dict[str, str] = {} if parent is None else parent.kinds
        if parent is not None:
            parent.children.append(self)

    @property
    def path(self) -> "Iterator[Branch]":
        """The branch, its parent, and so on up to the root."""
        yield self
        if self.parent is not None:
            yield from self.parent.path

    def below_meeting(self, other: "Branch") -> "tuple[list[Branch], list[Branch]]":
        """Return the parts of its path, and of another's, below the branch where they meet."""
        ours, theirs = [*self.path], [*other.path]
        while ours and theirs and ours[-1] is theirs[-1]:
            ours.pop()
            theirs.pop()
        return ours, theirs

    @property
    def root(self) -> "Branch":
        """The branch without a parent."""
        return self if self.parent is None else self.parent.root

    @property
    def leaves(self) -> "Iterator[Branch]":
        """The branches at and below this one that have no children."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves

    @property
    def height(self) -> int:
        """The distance to the farthest leaf."""
        return max((1 + child.height for child in self.children), default=0)

    def settle(self) -> None:
        """Compute the quotas of the branch and of all below it."""
        for child in self.children:
            child.settle()
        for of in self.kinds:
            lend = self.quotas[of].lend if of in self.quotas else None
            below = sum(child.whole[of] - child.home[of] for child in self.children)
            self.whole[of] = self.nominal(of) + below
            self.home[of] = 0.0 if lend is None else max(0.0, self.whole[of] - lend)

    def nominal(self, of: str) -> float:
        """Return its own quota of a resource."""
        return (self.quotas[of].guaranteed or 0.0) if of in self.quotas else 0.0

    def guaranteed(self, of: str) -> float:
        """Return what is guaranteed to it and to all below it."""
        return self.nominal(of) + sum(child.guaranteed(of) for child in self.children)

    def add(self, more: Amounts) -> None:
        """Add what a job holds, here and above."""
        for of in self.kinds.keys() & more.keys():
            self._shift(of, more[of])
        for branch in self.path:
            for of, amount in more.items():
                branch.held[of] += amount

    def remove(self, less: Amounts) -> None:
        """Undo `add`."""
        self.add({of: -amount for of, amount in less.items()})

    def _shift(self, of: str, change: float) -> None:
        before = self._abroad(of)
        self.use[of] += change
        if self.parent is not None:
            self.parent._shift(of, self._abroad(of) - before)

    def _abroad(self, of: str) -> float:
        return max(0.0, self.use[of] - self.home[of])

    def at_home(self, of: str) -> float:
        """Return what is left of the quota that it does not lend."""
        return max(0.0, self.home[of] - self.use[of])

    def free(self, of: str, *, idle: bool = False) -> float:
        """Return what it may still use of a resource, or could if all were `idle`."""
        use = 0.0 if idle else self.use[of]
        if self.parent is None:
            return self.whole[of] - use
        above, borrow = self.parent.free(of, idle=idle), None
        if of in self.quotas:
            borrow = self.quotas[of].borrow
        if borrow is not None:
            home = self.home[of]
            above = min(above, self.whole[of] - home - max(0.0, use - home) + borrow)
        return max(0.0, self.home[of] - use) + above

    def fits(self, need: Amounts, *, idle: bool = False) -> bool:
        """Return whether a job may be added, or could if all were `idle`."""
        counted = self.kinds.keys() & need.keys()
        if any(need[of] > self.free(of, idle=idle) + EXACT for of in counted):
            return False
        return all(
            quota.limit is None
            or of not in need
            or need[of] + (0.0 if idle else branch.held[of]) <= quota.limit + EXACT
            for branch in self.path
            for of, quota in branch.quotas.items()
        )

    def above_quota(self, among: Collection[str], more: Amounts | None = None) -> bool:
        """Return whether it uses more than its quota of any resource, with `more` added."""
        more = more or {}
        return any(
            self.use[of] + more.get(of, 0.0) > self.whole[of] + EXACT
            for of in self.kinds.keys() & set(among)
        )

    def reach(self, need: Amounts) -> "Branch":
        """Return the least branch above it whose quota holds a job, or the root."""
        left = dict(need)
        for branch in self.path:
            if branch.parent is None or not branch.above_quota(left.keys(), left):
                return branch
            left = {of: x - branch.at_home(of) for of, x in left.items() if of in self.kinds}
        raise AssertionError

    def share(self) -> float:
        """Return the dominant resource share: of what its parent can lend, in thousandths.

        It is infinite if the branch borrows at weight 0.
        """
        if self.parent is None:
            return 0.0
        over, lendable = defaultdict[str, float](float), defaultdict[str, float](float)
        for of, kind in self.kinds.items():
            over[kind] += max(0.0, self.use[of] - self.whole[of])
            lendable[kind] += self.parent.free(of, idle=True)
        shares = [1000.0 * over[kind] / lendable[kind] for kind in over if lendable[kind] > 0]
        most = max(shares, default=0.0)
        if not most > EXACT:
            return 0.0
        return most / self.weight if self.weight else math.inf

    def share_with(self, leaf: "Branch", more: Amounts) -> float:
        """Return `share` if a leaf below held more."""
        leaf.add(more)
        found = self.share()
        leaf.remove(more)
        return found


def branches(tenants: Collection[Tenant], gpu_types: Collection[str]) -> dict[str, Branch]:
    """Return the branches of all tenants by name; each tenant comes after its parent."""
    found = dict[str, Branch]()
    for tenant in tenants:
        branch = Branch(tenant, found.get(tenant.parent or ""))
        found[tenant.name] = branch
        for quota in tenant.quotas:
            if quota.guaranteed is not None:
                branch.kinds[quota.of] = "gpu" if quota.of in gpu_types else quota.of
    for branch in found.values():
        if branch.parent is None:
            branch.settle()
    return found
