"""Quotas of tenants who lend to and borrow from each other, as Kueue counts them.

The recursion and the dominant resource share are those of Kueue's pkg/cache/scheduler
(resource_node.go, fair_sharing.go). A tree counts a resource if a tenant in it is guaranteed some.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from ronda.formulations.tenants.sharers import Tree
from ronda.instances.site import Quota, Site, Tenant

Amounts = Mapping[str, float]
"""Amounts by resource, as in `Quota.of`."""

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
    whole, home, guaranteed
        Its quota with what it gets from below, the part of it that it does not lend, and what is
        guaranteed to it and to all below it.
    kinds
        The resources that its tree counts, with the kind of each: all GPU types are one kind.
    """

    def __init__(self, tenant: Tenant, parent: "Branch | None") -> None:
        self.tenant, self.parent = tenant, parent
        self.quotas = defaultdict(Quota, {quota.of: quota for quota in tenant.quotas})
        self.children: list[Branch] = []
        self.use, self.held = defaultdict[str, float](float), defaultdict[str, float](float)
        self.whole, self.home = dict[str, float](), dict[str, float]()
        self.guaranteed = defaultdict[str, float](float)
        self.kinds: dict[str, str] = {} if parent is None else parent.kinds
        if parent is not None:
            parent.children.append(self)

    @property
    def path(self) -> "list[Branch]":
        """The branch, its parent, and so on up to the root."""
        return [self] if self.parent is None else [self, *self.parent.path]

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

    def below_meeting(self, other: "Branch") -> "tuple[list[Branch], list[Branch]]":
        """Return the parts of its path, and of another's, below the branch where they meet."""
        ours, theirs = self.path, other.path
        return [b for b in ours if b not in theirs], [b for b in theirs if b not in ours]

    def nominal(self, of: str) -> float:
        """Return its own quota of a resource."""
        return self.quotas[of].guaranteed or 0.0

    def counted(self, need: Collection[str]) -> set[str]:
        """Return the resources of a job that its tree counts."""
        return self.kinds.keys() & set(need)

    def add(self, more: Amounts, sign: int = 1) -> None:
        """Add what a job holds, here and above."""
        for of, amount in more.items():
            change = sign * amount
            for branch in self.path:
                branch.held[of] += sign * amount
                if of in self.kinds:
                    before = branch.abroad(of)
                    branch.use[of] += change
                    change = branch.abroad(of) - before

    def remove(self, less: Amounts) -> None:
        """Undo `add`."""
        self.add(less, -1)

    def abroad(self, of: str) -> float:
        """Return what it uses beyond the quota that it does not lend."""
        return max(0.0, self.use[of] - self.home[of])

    def free(self, of: str, *, idle: bool = False) -> float:
        """Return what it may still use of a resource, or could if all were `idle`."""
        use, home, whole = 0.0 if idle else self.use[of], self.home[of], self.whole[of]
        if self.parent is None:
            return whole - use
        above, borrow = self.parent.free(of, idle=idle), self.quotas[of].borrow
        if borrow is not None:
            above = min(above, whole - home - max(0.0, use - home) + borrow)
        return max(0.0, home - use) + above

    def fits(self, need: Amounts, *, idle: bool = False) -> bool:
        """Return whether a job may be added, or could if all were `idle`."""
        if any(need[of] > self.free(of, idle=idle) + EXACT for of in self.counted(need)):
            return False
        return all(
            most is None or need[of] + (0.0 if idle else branch.held[of]) <= most + EXACT
            for branch in self.path
            for of in need
            for most in [branch.quotas[of].limit]
        )

    def above_quota(self, among: Collection[str], more: Amounts = MappingProxyType({})) -> bool:
        """Return whether it uses more than its quota of any resource, with `more` added."""
        return any(
            self.use[of] + more.get(of, 0.0) > self.whole[of] + EXACT for of in self.counted(among)
        )

    def reach(self, need: Amounts) -> "Branch":
        """Return the least branch above it whose quota holds a job, or the root."""
        if self.parent is None or not self.above_quota(need, need):
            return self
        left = {of: need[of] - max(0.0, self.home[of] - self.use[of]) for of in self.counted(need)}
        return self.parent.reach(left)

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
        return most / self.tenant.weight if self.tenant.weight else math.inf


def branches(tenants: Sequence[Tenant], gpu_types: Collection[str]) -> dict[str, Branch]:
    """Return the branches of all tenants by name; each tenant comes after its parent."""
    found, tree = dict[str, Branch](), Tree(Site(tenants=tuple(tenants)))
    for tenant in tenants:
        branch = Branch(tenant, found.get(tenant.parent or ""))
        found[tenant.name] = branch
        for quota in tenant.quotas:
            if quota.guaranteed is not None:
                branch.kinds[quota.of] = "gpu" if quota.of in gpu_types else quota.of
    for of in {of for branch in found.values() for of in branch.kinds}:
        for name, shares in tree.shares(of).items():
            branch = found[name]
            branch.whole[of], branch.home[of] = shares.owned, shares.kept
            branch.guaranteed[of] = shares.guaranteed or 0.0
    return found
