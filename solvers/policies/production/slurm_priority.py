"""Slurm's fair share by Fair Tree, and the usage that it counts.

The formulas are those of Slurm's priority_multifactor.c and of its page on Fair Tree, which merges
the children of accounts that tie.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import ClassVar

import msgspec

from ronda.instances.plan import Plan, PlanMemory
from ronda.instances.round import Round
from ronda.instances.site import Tenant


class RawUsage(PlanMemory, frozen=True):
    """What tenants have used: decayed GPU-seconds at a time, and the GPUs that they held then."""

    key: ClassVar[str] = "slurm_usage"

    at_s: float | None = None
    gpu_s: dict[str, float] = msgspec.field(default_factory=dict)
    held: dict[str, float] = msgspec.field(default_factory=dict)

    @classmethod
    def of(cls, round: Round, initial: Plan | None, half_life_s: float) -> "RawUsage":
        """Return the usage at a round's time: Slurm's decay, with all that is new decayed as well.

        The first decision of a run knows only what live jobs have held.
        """
        before, held = cls.recall(initial), defaultdict[str, float](float)
        for state in round.running:
            held[state.job.tenant or ""] += round.held[state.job.id].option.own_gpus
        used = defaultdict[str, float](float)
        if before.at_s is None:
            for state in round.jobs:
                used[state.job.tenant or ""] += state.gpu_s_at(round.now_s)
        else:
            new_s = round.now_s - before.at_s
            kept = (1.0 - 0.693 / half_life_s) ** new_s
            for tenant in before.gpu_s.keys() | before.held.keys():
                more = new_s * before.held.get(tenant, 0.0)
                used[tenant] = kept * (before.gpu_s.get(tenant, 0.0) + more)
        return cls(round.now_s, dict(sorted(used.items())), dict(held))


def fair_tree(tenants: Sequence[Tenant], used: Mapping[str, float]) -> dict[str, float]:
    """Return the fair share, between 0 and 1, of each tenant without tenants below.

    Siblings are ordered by their level share: the share that their weight gives them over the share
    that they have used, infinite if they have used nothing. The tree is descended in this order,
    and the n-th of N tenants gets (N + 1 - n) / N. Those that tie get the same. The children of
    parents that tie are ordered together.
    """
    children, total = defaultdict[str | None, list[Tenant]](list), defaultdict[str, float](float)
    for tenant in tenants:
        children[tenant.parent].append(tenant)
    for tenant in reversed(tenants):  # each comes after its parent
        total[tenant.name] += used.get(tenant.name, 0.0)
        total[tenant.parent or ""] += total[tenant.name]

    def level(tenant: Tenant) -> float:
        if not tenant.weight or not total[tenant.name]:
            return math.inf if tenant.weight else 0.0
        siblings = children[tenant.parent]
        weights, uses = sum(t.weight for t in siblings), sum(total[t.name] for t in siblings)
        return (tenant.weight / weights) / (total[tenant.name] / uses)

    def ranked(group: Sequence[Tenant]) -> list[list[str]]:
        """Return the leaves at and below some tenants in order, those that tie together."""
        found = list[list[str]]()
        for _, equal in groupby(sorted(group, key=level, reverse=True), level):
            tied = list(equal)
            found.append([tenant.name for tenant in tied if not children[tenant.name]])
            found += ranked([child for tenant in tied for child in children[tenant.name]])
        return found

    ties = ranked(children[None])
    left = count = sum(map(len, ties))
    shares = dict[str, float]()
    for tied in ties:
        shares |= dict.fromkeys(tied, left / count)
        left -= len(tied)
    return shares
