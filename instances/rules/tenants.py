"""Rules for tenants and groups with limits: names, the tree, resources, and the tenants of jobs."""

from collections.abc import Iterator, Sequence

from ronda.instances.cluster import Cluster
from ronda.instances.job import Job
from ronda.instances.round import Round
from ronda.instances.rules.cluster import owners, repeated, tree_problems
from ronda.instances.rules.jobs import Places, at
from ronda.instances.rules.problem import Problem, join, one_of, show
from ronda.instances.site import GPUS, Quota, Site, Tenant


def tenant_problems(
    site: Site, jobs: Sequence[Job], places: Places, cluster: Cluster | None = None
) -> Iterator[Problem]:
    """Yield the inconsistencies in the tenants of a site, in its groups, and in jobs' tenants.

    Resources must be those of the `cluster` of an instance. A round passes none, since nodes may be
    missing there.
    """
    names = [tenant.name for tenant in site.tenants]
    groups = [group.name for group in site.groups]
    for name in repeated(names):
        yield Problem("site.tenants", f"the name {show(name)} twice", "unique names")
    for name in repeated([*dict.fromkeys(names), *groups]):
        yield Problem("site.groups", f"the name {show(name)} twice", "names of no other group")
    yield from list(tree_problems(site.tenants, "site.tenants")) or _early(site)
    known = None if cluster is None else _resources(cluster, jobs)
    for k, tenant in enumerate(site.tenants):
        yield from _quotas(tenant, f"site.tenants[{k}].quotas", known)
    for k, group in enumerate(site.groups):
        place = f"site.groups[{k}]"
        for field, words in (
            ("tenants", names),
            ("classes", [each.name for each in site.classes]),
            ("partitions", sorted(owners(cluster)) if cluster else group.partitions),
        ):
            for name in getattr(group, field):
                if name not in words:
                    yield Problem(f"{place}.{field}", show(name), one_of(words))
        for name in group.most:
            if known is not None and name not in known:
                yield Problem(f"{place}.most", show(name), one_of(known))
    if cluster is not None and not repeated(names):
        yield from _above_cluster(site, cluster)
    yield from _jobs(site, jobs, places)


def used_problems(round: Round) -> Iterator[Problem]:
    """Yield the names for which a round has past use but no tenant without tenants below it."""
    leaves = _leaves(round.site)
    for name in round.used:
        if name not in leaves:
            yield Problem(join("used", name), show(name), one_of(leaves))


def _leaves(site: Site) -> list[str]:
    """Return the tenants without tenants below them."""
    inner = {tenant.parent for tenant in site.tenants}
    return [tenant.name for tenant in site.tenants if tenant.name not in inner]


def _early(site: Site) -> Iterator[Problem]:
    """Check that each tenant comes after its parent."""
    before: set[str | None] = {None}
    for k, tenant in enumerate(site.tenants):
        if tenant.parent not in before:
            found = f"{show(tenant.parent)}, which comes later"
            yield Problem(f"site.tenants[{k}].parent", found, "each tenant after its parent")
        before.add(tenant.name)


def _resources(cluster: Cluster, jobs: Sequence[Job]) -> list[str]:
    """Return the names of GPUs, of GPU types, and of what hosts have or jobs need."""
    types = [gpu_type.name for gpu_type in cluster.gpu_types]
    hosts = [name for group in cluster.node_groups for name in group.has]
    return list(dict.fromkeys([GPUS, *types, *hosts, *(n for job in jobs for n in job.needs)]))


def _quotas(tenant: Tenant, place: str, known: Sequence[str] | None) -> Iterator[Problem]:
    owner = f" (tenant {show(tenant.name)})"
    for name in repeated(quota.of for quota in tenant.quotas):
        yield Problem(place + owner, f"{show(name)} twice", "one quota for each resource")
    for k, quota in enumerate(tenant.quotas):
        if known is not None and quota.of not in known:
            yield Problem(f"{place}[{k}].of{owner}", show(quota.of), one_of(known))
        for field in ("borrow", "lend"):
            amount = getattr(quota, field)
            if amount is not None and tenant.parent is None:
                found = f"{amount:g} without a parent"
                yield Problem(f"{place}[{k}].{field}{owner}", found, "a parent to share with")
        has = quota.guaranteed or 0.0
        if quota.lend is not None and quota.lend > has:
            expected = f"at most {has:g}, its guaranteed amount"
            yield Problem(f"{place}[{k}].lend{owner}", f"{quota.lend:g}", expected)


def _above_cluster(site: Site, cluster: Cluster) -> Iterator[Problem]:
    """Check that no more GPUs are guaranteed than the cluster has, of any type and of each type."""
    has = {GPUS: cluster.gpus}
    for group in cluster.node_groups:
        has[group.gpu_type] = has.get(group.gpu_type, 0) + group.count * group.gpus_per_node
    every: list[Quota] = [quota for tenant in site.tenants for quota in tenant.quotas]
    for name, gpus in has.items():
        total = sum(quota.guaranteed or 0.0 for quota in every if quota.of == name)
        if total > gpus:
            found = f"{total:g} of {show(name)} guaranteed in all"
            yield Problem("site.tenants", found, f"at most the {gpus} that there are")


def _jobs(site: Site, jobs: Sequence[Job], places: Places) -> Iterator[Problem]:
    leaves = _leaves(site)
    allowed, timed = {None, *leaves}, _timed(site)
    for k, job in enumerate(jobs):
        if job.tenant not in allowed:
            below = "a tenant without tenants below it, "
            yield Problem(at(places, k, ".tenant", job), show(job.tenant), below + one_of(leaves))
        if job.limit_s is None and (timed is None or job.tenant in timed):
            expected = "a time limit: max_gpu_s counts the time that is left"
            yield Problem(at(places, k, ".limit_s", job), "none", expected)


def _timed(site: Site) -> set[str] | None:
    """Return the tenants whose jobs need time limits; None if all jobs do."""
    if any(group.max_gpu_s is not None for group in site.groups):
        return None
    found = {tenant.name for tenant in site.tenants if tenant.max_gpu_s is not None}
    for _ in site.tenants:
        found |= {tenant.name for tenant in site.tenants if tenant.parent in found}
    return found
