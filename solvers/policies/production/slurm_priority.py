"""Slurm's multifactor priority: age, size, class, and the fair share by Fair Tree.

The formulas are those of Slurm's priority_multifactor.c and of its page on Fair Tree, which merges
the children of accounts that tie.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import ClassVar

import msgspec

from ronda.instances.base import NonNegative, Record
from ronda.instances.plan import Plan, PlanMemory
from ronda.instances.round import Round
from ronda.instances.site import Tenant

MOST = 2**32 - 1
"""The highest priority."""


class Weights(Record, frozen=True, kw_only=True):
    """The weights of the factors of a priority, each of which is between 0 and 1."""

    age: NonNegative = 1000.0
    fair_share: NonNegative = 10_000.0
    size: NonNegative = 1000.0
    qos: NonNegative = 2000.0


def priority(weights: Weights, factors: Weights, nice: float = 0.0) -> int:
    """Return a job's priority from its factors, at least 1 and at most `MOST`."""
    total = (
        weights.age * factors.age
        + weights.fair_share * factors.fair_share
        + weights.size * factors.size
        + weights.qos * factors.qos
    )
    return int(min(MOST, max(1.0, total - nice)))


def size_factor(nodes: float, all_nodes: float, cpus: float, all_cpus: float) -> float:
    """Return the factor that favours large jobs: the mean of the shares of nodes and of CPUs."""
    return (nodes / all_nodes + cpus / all_cpus) / 2


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
            if state.allocation is not None:
                held[state.job.tenant or ""] += state.allocation.option.own_gpus
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
    children = defaultdict[str, list[Tenant]](list)
    for tenant in tenants:
        children[tenant.parent or ""].append(tenant)
    total = defaultdict[str, float](float)
    for tenant in reversed(tenants):  # each comes after its parent
        total[tenant.name] += used.get(tenant.name, 0.0)
        if tenant.parent is not None:
            total[tenant.parent] += total[tenant.name]

    def level(tenant: Tenant) -> float:
        siblings = children[tenant.parent or ""]
        if not tenant.weight:
            return 0.0
        if not total[tenant.name]:
            return math.inf
        weights, uses = sum(t.weight for t in siblings), sum(total[t.name] for t in siblings)
        return (tenant.weight / weights) / (total[tenant.name] / uses)

    def ranked(group: Sequence[Tenant]) -> list[list[str]]:
        by_level = defaultdict[float, list[Tenant]](list)
        for tenant in group:
            by_level[level(tenant)].append(tenant)
        found = []
        for _, tied in sorted(by_level.items(), reverse=True):
            leaves = [tenant.name for tenant in tied if not children[tenant.name]]
            found += [leaves] if leaves else []
            below = [child for tenant in tied for child in children[tenant.name]]
            found += ranked(below) if below else []
        return found

    ties = ranked(children[""])
    count, before, shares = sum(map(len, ties)), 0, dict[str, float]()
    for tied in ties:
        shares |= dict.fromkeys(tied, (count - before) / count)
        before += len(tied)
    return shares
