"""Fair shares of a resource by water filling, with weights, in order, and with regard to past use.

The rule is that of KAI's proportion plugin. What is guaranteed comes first. What is left goes to
siblings of the highest `surplus_order` first, by weights that past use lowers or raises. GPUs are
shared as whole numbers.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ronda.formulations.tenants.sharers import Tree
from ronda.instances.site import Site, Tenant


class Sibling(NamedTuple):
    """One of several tenants below the same one, and what it asks of a resource.

    ``used`` is the share of the whole that it has used in the past.
    """

    name: str
    guaranteed: float
    asked: float
    weight: float = 1.0
    surplus_order: int = 0
    used: float = 0.0


def fair_shares(
    tenants: Sequence[Tenant],
    of: str,
    amount: float,
    asked: Mapping[str, float],
    used: Mapping[str, float],
    *,
    kappa: float = 1.0,
    whole: bool = True,
) -> dict[str, float]:
    """Return the fair share of a resource of every tenant, level by level of the tree.

    Parameters
    ----------
    amount
        What there is of the resource `of`.
    asked
        What the jobs of each tenant without tenants below hold and wait for.
    used
        What each such tenant has held in the past, as a share of `amount`.
    kappa
        How much past use counts.
    whole
        Whether only whole numbers are shared.
    """
    tree, siblings = (
        Tree(Site(tenants=tuple(tenants))),
        defaultdict[str | None, list[Sibling]](list),
    )
    owned = tree.shares(of)
    for tenant in tree.order:  # each comes after all below it
        name, own, limit = tenant.name, siblings[tenant.name], tree.quota(tenant.name, of).limit
        wants = sum(each.asked for each in own) if own else asked.get(name, 0.0)
        past = sum(each.used for each in own) if own else used.get(name, 0.0)
        wants, firm = wants if limit is None else min(wants, limit), owned[name].guaranteed or 0.0
        each = Sibling(name, firm, wants, tenant.weight, tenant.surplus_order, past)
        siblings[tenant.parent].append(each)
    shares = filled(amount, siblings[None], kappa, whole=whole)
    for tenant in reversed(tree.order):
        shares |= filled(shares[tenant.name], siblings[tenant.name], kappa, whole=whole)
    return shares


def filled(
    amount: float, siblings: Sequence[Sibling], kappa: float = 1.0, *, whole: bool = True
) -> dict[str, float]:
    """Return what each of several siblings gets of an amount.

    First all get what they ask for, up to what is guaranteed, even if that is more than the amount.
    The rest goes to those of the highest order, then to the next. In proportion to max(0, w + kappa
    (w - used)), with w a weight over the weights of all that still ask, each gets a share (if
    `whole`, rounded down) until nobody asks for more. What rounding leaves goes one by one to the
    largest fractions (ties: by name).
    """
    shares = {sibling.name: min(sibling.guaranteed, sibling.asked) for sibling in siblings}
    left = max(0.0, amount - sum(shares.values()))
    for order in sorted({sibling.surplus_order for sibling in siblings}, reverse=True):
        group = [
            sibling for sibling in siblings if sibling.surplus_order == order and sibling.weight > 0
        ]
        left = _poured(left, group, shares, kappa, whole=whole)
    return shares


def _poured(
    left: float, group: Sequence[Sibling], shares: dict[str, float], kappa: float, *, whole: bool
) -> float:
    """Add what siblings of one order get to their shares, and return what is left."""
    filled_up = True
    while filled_up:
        asking = [sibling for sibling in group if sibling.asked > shares[sibling.name]]
        total, filled_up = sum(sibling.weight for sibling in asking), False
        weights = [(sibling.weight / total, sibling.used) for sibling in asking]
        by = [max(0.0, weight + kappa * (weight - used)) for weight, used in weights]
        if not sum(by) or not left > 0:
            return left
        parts = [left * weight / sum(by) for weight in by]
        for sibling, part in zip(asking, parts, strict=True):
            gets, more = (
                math.floor(part + 1e-9) if whole else part,
                sibling.asked - shares[sibling.name],
            )
            filled_up |= gets >= more
            shares[sibling.name] += min(more, gets)
            left -= min(more, gets)
    fractions = [math.floor(part + 1e-9) - part for part in parts]
    names = [sibling.name for sibling in asking]
    for fraction, _, sibling in sorted(zip(fractions, names, asking, strict=True)):
        if whole and left >= 1 and fraction < -1e-9:
            shares[sibling.name] += min(1.0, sibling.asked - shares[sibling.name])
            left -= 1
    return left
