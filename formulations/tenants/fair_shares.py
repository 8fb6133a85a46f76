"""Fair shares of a resource by water filling, with weights, in order, and with regard to past use.

The rule is that of KAI's proportion plugin. What is guaranteed comes first. What is left goes to
siblings of the highest `surplus_order` first, by weights that past use lowers or raises. GPUs are
shared as whole numbers.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ronda.instances.site import Tenant


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
    children, quotas = defaultdict[str | None, list[Tenant]](list), dict[str, float]()
    below, past = defaultdict[str, float](float), defaultdict[str, float](float)
    for tenant in tenants:
        children[tenant.parent].append(tenant)
    for tenant in reversed(tenants):  # each comes after its parent
        quota = next((each for each in tenant.quotas if each.of == of), None)
        own = 0.0 if quota is None or quota.guaranteed is None else quota.guaranteed
        quotas[tenant.name] = own + sum(quotas[each.name] for each in children[tenant.name])
        if not children[tenant.name]:
            below[tenant.name] = asked.get(tenant.name, 0.0)
            past[tenant.name] = used.get(tenant.name, 0.0)
        if quota is not None and quota.limit is not None:
            below[tenant.name] = min(below[tenant.name], quota.limit)
        if tenant.parent is not None:
            below[tenant.parent] += below[tenant.name]
            past[tenant.parent] += past[tenant.name]
    shares = dict[str, float]()
    for parent in (None, *(tenant.name for tenant in tenants)):
        siblings = [
            Sibling(t.name, quotas[t.name], below[t.name], t.weight, t.surplus_order, past[t.name])
            for t in children[parent]
        ]
        shares |= filled(amount if parent is None else shares[parent], siblings, kappa, whole=whole)
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
    while True:
        asking = [sibling for sibling in group if sibling.asked > shares[sibling.name]]
        parts = _parts(left, asking, kappa)
        if not parts or not left > 0:
            return left
        filled_up = False
        for sibling in asking:
            more = sibling.asked - shares[sibling.name]
            part = math.floor(parts[sibling.name] + 1e-9) if whole else parts[sibling.name]
            filled_up |= part >= more
            shares[sibling.name] += min(more, part)
            left -= min(more, part)
        if not filled_up:
            break
    fraction = {name: part - math.floor(part + 1e-9) for name, part in parts.items()}
    for sibling in sorted(asking, key=lambda each: (-fraction[each.name], each.name)):
        if whole and left >= 1 and fraction[sibling.name] > 1e-9:
            shares[sibling.name] += min(1.0, sibling.asked - shares[sibling.name])
            left -= 1
    return left


def _parts(left: float, asking: Sequence[Sibling], kappa: float) -> dict[str, float]:
    """Return the parts of an amount by weight and past use, or nothing if nobody has a weight."""
    total = sum(sibling.weight for sibling in asking)
    shares = {sibling.name: sibling.weight / total for sibling in asking}
    by = {
        sibling.name: max(0.0, shares[sibling.name] + kappa * (shares[sibling.name] - sibling.used))
        for sibling in asking
    }
    whole = sum(by.values())
    return {name: left * weight / whole for name, weight in by.items()} if whole else {}
