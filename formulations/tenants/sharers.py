"""The tenants and groups of a site, whose jobs are numbered so that limits hold for ranges of them.

A limit (`Cap`) is on what the jobs of one tenant or group hold. Quotas that are lent and borrowed
count what leaves home (`ronda.formulations.tenants.lending`).
"""

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from ronda.instances.job import Job
from ronda.instances.site import GPUS, LimitGroup, Quota, Site, Tenant


class Count(Enum):
    """What a limit counts of a job.

    It is what the job holds (of jobs that may not be stopped alone, if FIRM), the job itself, where
    an array counts once, or the GPU-seconds until its time limit.
    """

    HELD = "held"
    FIRM = "firm"
    JOBS = "jobs"
    TIME = "time"


class Cap(NamedTuple):
    """A limit on the jobs with numbers from `first` to below `end`.

    `most` is the limit, `of` the resource, and `name` that of the row.
    """

    name: str
    counts: Count
    of: str
    most: float
    first: int
    end: int


class Sharers(NamedTuple):
    """The limits on numbered jobs; `number` returns -1 for a job that none of them concerns."""

    number: Callable[[Job], int]
    caps: list[Cap]


class Shares(NamedTuple):
    """A tenant's part of a resource.

    `owned` is what is guaranteed to it and what tenants below it lend, `kept` is the part of it
    that it does not lend (Kueue: the subtree's quota, and its local part), and `guaranteed` is what
    is guaranteed to it and to all tenants below it, or None if nothing is stated.
    """

    owned: float
    kept: float
    guaranteed: float | None


class Tree:
    """The tenants of a site as a tree, with the leaves numbered depth first.

    Attributes
    ----------
    order
        The tenants, each after all tenants below it.
    leaf
        The number of each leaf.
    below
        The tenants directly below each tenant.
    span
        The numbers (first, end) of the leaves at or below each tenant.
    """

    def __init__(self, site: Site) -> None:
        self._tenant = {tenant.name: tenant for tenant in site.tenants}
        self._quota = {(t.name, q.of): q for t in site.tenants for q in t.quotas}
        self.below: dict[str, list[str]] = {tenant.name: [] for tenant in site.tenants}
        for tenant in site.tenants:
            if tenant.parent is not None:
                self.below[tenant.parent].append(tenant.name)
        self.order: list[Tenant] = []
        self.leaf: dict[str, int] = {}
        self.span: dict[str, tuple[int, int]] = {}
        for tenant in site.tenants:
            if tenant.parent is None:
                self._number(tenant)

    def _number(self, root: Tenant) -> None:
        stack: list[tuple[str, int | None]] = [(root.name, None)]
        while stack:
            name, first = stack.pop()
            if first is None:
                if not self.below[name]:
                    self.leaf[name] = len(self.leaf)
                first = self.leaf.get(name, len(self.leaf))
                stack += [(name, first), *((child, None) for child in self.below[name])]
            else:
                self.span[name] = (first, len(self.leaf))
                self.order.append(self._tenant[name])

    def number(self, job: Job) -> int:
        """Return the number of a job's leaf, or -1 for a job without a tenant."""
        return -1 if job.tenant is None else self.leaf[job.tenant]

    def quota(self, name: str, of: str) -> Quota:
        """Return the quota of a tenant for a resource, by default one that says nothing."""
        return self._quota.get((name, of), NOTHING)

    def path(self, name: str) -> list[str]:
        """Return a tenant and those above it, up to the root."""
        found = [name]
        while (parent := self._tenant[found[-1]].parent) is not None:
            found.append(parent)
        return found

    def shares(self, of: str) -> dict[str, Shares]:
        """Return every tenant's part of a resource, the tenants below it first.

        As in Kueue, S_v = N_v + Σ_c (S_c − h_c), and h_c = max(0, S_c − L_c) with a lending limit.
        """
        found: dict[str, Shares] = {}
        for tenant in self.order:
            quota, own = self.quota(tenant.name, of), [found[c] for c in self.below[tenant.name]]
            owned = (quota.guaranteed or 0.0) + sum(each.owned - each.kept for each in own)
            kept = 0.0 if quota.lend is None else max(0.0, owned - quota.lend)
            stated = [quota.guaranteed, *(each.guaranteed for each in own)]
            known = [amount for amount in stated if amount is not None]
            found[tenant.name] = Shares(owned, kept, sum(known) if known else None)
        return found


NOTHING = Quota()


def resources(site: Site) -> list[str]:
    """Return the resources that the quotas of tenants name."""
    return list(dict.fromkeys(quota.of for tenant in site.tenants for quota in tenant.quotas))


def sharers(site: Site, jobs: Iterable[Job]) -> list[Sharers]:
    """Return the limits on the tenants of a site, and on each of its groups, for live jobs."""
    tree, live = Tree(site), list(jobs)
    found = [Sharers(tree.number, [*_caps_of_tenants(site, tree)])] if site.tenants else []
    return [*found, *(_of_group(group, tree, live) for group in site.groups)]


def _caps_of_tenants(site: Site, tree: Tree) -> Iterator[Cap]:
    for tenant in site.tenants:
        name, span = tenant.name, tree.span[tenant.name]
        limits = ((q.of, q.limit) for q in tenant.quotas)
        yield from _caps(name, limits, tenant.max_jobs, tenant.max_gpu_s, span)
    for of in resources(site) if site.firm_within_guarantee else ():
        for name, share in tree.shares(of).items():
            if share.guaranteed is not None:
                row = f"firm[{name},{of}]"
                yield Cap(row, Count.FIRM, of, share.guaranteed, *tree.span[name])


def _caps(
    name: str,
    limits: Iterable[tuple[str, float | None]],
    jobs: int | None,
    gpu_s: float | None,
    span: tuple[int, int],
) -> Iterator[Cap]:
    for of, most in limits:
        if most is not None:
            yield Cap(f"limit[{name},{of}]", Count.HELD, of, most, *span)
    if jobs is not None:
        yield Cap(f"jobs[{name}]", Count.JOBS, "", jobs, *span)
    if gpu_s is not None:
        yield Cap(f"run[{name},{GPUS}]", Count.TIME, GPUS, gpu_s, *span)


def inside(group: LimitGroup, tree: Tree) -> Callable[[Job], bool]:
    """Return the test of whether a job is in a group of a site with a tree of tenants."""
    spans = [tree.span[name] for name in group.tenants]

    def of(job: Job) -> bool:
        number = tree.number(job)
        return (
            (not group.users or job.user in group.users)
            and (not group.classes or job.priority in group.classes)
            and (not group.partitions or job.partition in group.partitions)
            and (not spans or any(first <= number < end for first, end in spans))
        )

    return of


def _of_group(group: LimitGroup, tree: Tree, jobs: Iterable[Job]) -> Sharers:
    """Return the limits of a group on its live jobs, numbered by whoever shares the limits."""
    member = inside(group, tree)

    def shares(job: Job) -> str | None:
        """Return who of the group shares limits with a job, or None if it is not in the group."""
        who = {"group": "", "user": job.user or "", "tenant": job.tenant or "", "job": job.id}[
            group.per
        ]
        return who if member(job) else None

    known = sorted({who for job in jobs if (who := shares(job)) is not None})
    number = {who: k for k, who in enumerate(known)}
    caps = list[Cap]()
    for who, k in number.items():
        name = group.name if group.per == "group" else f"{group.name}/{who}"
        caps += _caps(name, group.most.items(), group.max_jobs, group.max_gpu_s, (k, k + 1))
    return Sharers(lambda job: -1 if (who := shares(job)) is None else number[who], caps)
