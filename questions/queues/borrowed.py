"""Who borrows from whom: the use of each tenant beyond what is its own, and whose it is.

A tenant's own is what is guaranteed to it and what tenants below it lend (S_t), and it borrows what
leaves home below it beyond that, U_t − S_t (`ronda.formulations.tenants.lending`). As
U_p − S_p = Σ_c max(0, U_c − S_c) − N_p − Σ_c unused_c for a parent with a quota N_p of its own,
what its children borrow comes from N_p, then from what their siblings leave unused, and the rest is
exactly what the parent borrows in turn. Schedulers keep no account of single GPUs: here siblings
lend in proportion to what they leave unused, and borrowers share it in proportion to what they
borrow.
"""

from collections.abc import Mapping
from math import inf
from typing import NamedTuple

from ronda.formulations.tenants.sharers import Tree

NO_TENANT, NO_OWNER = "(no tenant)", "(nobody)"
"""The names of jobs without a tenant, and of what is guaranteed to nobody."""


class TenantStanding(NamedTuple):
    """A tenant's use of a resource: what it holds, is its own, and borrows, and from whom.

    ``held`` counts all below it. ``owned`` is its own with what is lent below it, ``unused`` is
    what it could lend besides, and ``lenders`` add up to ``borrowed``.
    """

    held: float
    owned: float
    unused: float
    borrowed: float
    lenders: dict[str, float]


def standings(
    tree: Tree, of: str, held: Mapping[str, float], there: float
) -> dict[str, TenantStanding]:
    """Return the standing of every tenant, and of jobs without one, in a resource.

    Parameters
    ----------
    held
        What each tenant without tenants below it holds; `NO_TENANT` for jobs without one.
    there
        What the cluster has of the resource; infinite if that is not known.
    """
    shares, use, every = tree.shares(of), dict[str, float](), dict[str, float]()
    for tenant in tree.order:  # each comes after all below it
        name, below = tenant.name, tree.below[tenant.name]
        left = sum(max(0.0, use[child] - shares[child].kept) for child in below)
        use[name] = left if below else held.get(name, 0.0)
        every[name] = sum(every[child] for child in below) if below else use[name]
    use[NO_TENANT] = every[NO_TENANT] = held.get(NO_TENANT, 0.0)
    owned = {name: share.owned for name, share in shares.items()} | {NO_TENANT: 0.0}
    kept = {name: share.kept for name, share in shares.items()} | {NO_TENANT: 0.0}
    unused = {n: max(0.0, owned[n] - kept[n]) - max(0.0, use[n] - kept[n]) for n in use}
    borrowed = {n: max(0.0, use[n] - owned[n]) for n in use}
    lenders: dict[str, dict[str, float]] = {}
    roots = [tenant.name for tenant in tree.order if len(tree.path(tenant.name)) == 1]
    free = there - sum(owned[root] for root in roots)
    levels = [(NO_OWNER, [*roots, NO_TENANT], free if free < inf else 0.0, {NO_OWNER: 1.0})]
    for name, children, own, beyond in levels:  # grows: from the roots down
        wanted = sum(borrowed[child] for child in children)
        spare = {child: unused[child] for child in children if unused[child] > 0}
        given = {name: min(wanted, max(0.0, own))}
        lent = min(wanted - given[name], sum(spare.values()))
        given |= {child: lent * more / sum(spare.values()) for child, more in spare.items()}
        rest = wanted - sum(given.values())
        for other, part in beyond.items():
            given[other] = given.get(other, 0.0) + rest * part
        for child in children:
            parts = {n: borrowed[child] * x / wanted for n, x in given.items()} if wanted else {}
            lenders[child] = {n: x for n, x in parts.items() if borrowed[child] and x > 1e-9}
            total = sum(lenders[child].values())
            if tree.below.get(child):
                shared = {n: x / total for n, x in lenders[child].items()}
                quota = tree.quota(child, of).guaranteed or 0.0
                levels.append((child, tree.below[child], quota, shared))
    return {
        n: TenantStanding(every[n], owned[n], max(0.0, unused[n]), borrowed[n], lenders[n])
        for n in use
    }
