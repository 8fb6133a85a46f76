"""The check of quotas: what tenants and groups hold, summed up by job, and then up the tree.

A plan has two moments, before and after it, and a schedule has as many as anything starts or ends
at. Amounts are arrays over these moments. Only growth breaks a limit: after a plan nobody may hold
more than a limit and more than before.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ronda.instances.base import Floats
from ronda.instances.cluster import Cluster, Pool
from ronda.instances.instance import Instance
from ronda.instances.job import Job, Option
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.schedule import Schedule
from ronda.instances.site import GPUS, LimitGroup, Quota, Site, Tenant
from ronda.instances.violation import RELATIVE, Violation

if TYPE_CHECKING:
    from ronda.instances.check.site.given import JobInPlan

Sums = dict[str, Floats]
"""What jobs hold at all moments, by the name that they share."""


class Limited(NamedTuple):
    """An amount that is limited: the code and place of a violation, the unit, and the limit."""

    code: str
    where: str
    unit: str
    use: Floats
    most: float


class Hold(NamedTuple):
    """A job's option, and the moments from `first` to below `end` at which it has it."""

    job: Job
    option: Option
    first: int
    end: int
    left_s: float | None = None  # until its time limit; None if that is not asked for


class HeldAt:
    """What jobs hold at some moments."""

    def __init__(self, cluster: Cluster, holds: Iterable[Hold], moments: int) -> None:
        self._pools, self._moments = cluster.topology.pools, moments
        self._holds = [h for h in holds if h.option.pool < len(self._pools)]

    def sums(
        self, name: Callable[[Job], str | None], of: str, *, firm: bool = False, timed: bool = False
    ) -> Sums:
        """Return the sums of a resource by the names of jobs; jobs without a name do not count.

        The resource "" is the number of jobs. With `firm` only jobs count that may not be stopped,
        and with `timed` amounts are multiplied by the seconds until jobs' time limits.
        """
        found: Sums = {}
        for hold in self._holds:
            who = name(hold.job)
            if who is None or (firm and hold.job.preemptible):
                continue
            amount = _amount(self._pools[hold.option.pool], hold, of)
            change = found.setdefault(who, np.zeros(self._moments + 1))
            change[hold.first] += amount * ((hold.left_s or 0.0) if timed else 1.0)
            change[hold.end] -= amount * ((hold.left_s or 0.0) if timed else 1.0)
        return {who: np.asarray(change.cumsum()[:-1]) for who, change in found.items()}

    @property
    def timed(self) -> bool:
        """Whether the time until jobs' limits is known."""
        return any(hold.left_s is not None for hold in self._holds)

    def none(self) -> Floats:
        """Return the sum over no job."""
        return np.zeros(self._moments)

    def total(self, sums: Sums, members: set[str]) -> Floats:
        """Return the sum over all members, shape (moments,)."""
        return sum((own for name, own in sums.items() if name in members), self.none())


def _amount(pool: Pool, hold: Hold, of: str) -> float:
    """Return the amount of a resource that a job holds, or its share in the number of jobs."""
    job, option, each = hold.job, hold.option, 1.0
    if of in (GPUS, pool.gpu_type.name):
        parts = pool.gpu_type.ways
        if job.share is not None:
            each = job.share
        elif job.part is not None and parts is not None:
            cut = [p.compute for p in parts.profiles if p.name == job.part]
            each = cut[0] / parts.compute if cut else 1.0
        each *= option.gpus
    elif of:
        need, gpus = job.needs.get(of), option.asked or option.gpus
        nodes = ceil(option.gpus / pool.gpus_per_node)
        each = 0.0 if need is None else gpus * need.per_gpu + nodes * need.per_node + need.flat
    return each / option.width


def limited(site: Site, held: HeldAt) -> Iterator[Limited]:
    """Yield every amount that tenants and groups are limited in."""
    below = {tenant.name: at_or_below(site, tenant.name) for tenant in site.tenants}
    resources = dict.fromkeys(quota.of for tenant in site.tenants for quota in tenant.quotas)
    by_tenant = {of: held.sums(lambda job: job.tenant, of) for of in resources}
    for of, sums in by_tenant.items():
        for tenant in site.tenants:
            for limit in (q.limit for q in tenant.quotas if q.of == of and q.limit is not None):
                total = held.total(sums, below[tenant.name])
                yield Limited("quota", f"tenant {tenant.name}", of, total, limit)
        yield from _of_tree(site, of, sums, held)
        if site.firm_within_guarantee:
            yield from _firm(site, of, held, below)
    yield from _running(
        held,
        lambda job: job.tenant,
        [(f"tenant {tenant.name}", tenant, below[tenant.name]) for tenant in site.tenants],
    )
    for group in site.groups:
        yield from _of_group(group, held, below)


def at_or_below(site: Site, name: str) -> set[str]:
    """Return a tenant and all below it."""
    found, before = {name}, 0
    while len(found) > before:
        before = len(found)
        found |= {tenant.name for tenant in site.tenants if tenant.parent in found}
    return found


def _of_tree(site: Site, of: str, sums: Sums, held: HeldAt) -> Iterator[Limited]:
    """Yield what tenants use of a resource that is guaranteed, lent and borrowed."""
    quotas = {t.name: q for t in site.tenants for q in t.quotas if q.of == of}
    below: dict[str | None, list[str]] = {}
    for tenant in site.tenants:
        below.setdefault(tenant.parent, []).append(tenant.name)
    found = list[Limited]()

    def inside(name: str) -> tuple[float, float, Floats, bool]:
        """Return what a tenant owns, keeps at home, and uses, and whether any is guaranteed."""
        own = quotas.get(name, Quota())
        owns, known = own.guaranteed or 0.0, own.guaranteed is not None
        use = sums.get(name, held.none())
        for child in below.get(name, ()):
            has, keeps, uses, stated = inside(child)
            owns, known = owns + has - keeps, known or stated
            use = use + np.maximum(0.0, uses - keeps)
        if own.borrow is not None:
            most = owns + own.borrow
            found.append(Limited("quota", f"tenant {name}", f"{of} with loans", use, most))
        return owns, max(0.0, owns - own.lend) if own.lend is not None else 0.0, use, known

    for root in below.get(None, ()):
        owns, _, use, known = inside(root)
        if known:
            found.append(Limited("quota", f"tenant {root}", f"{of} of its tree", use, owns))
    yield from found


def _firm(site: Site, of: str, held: HeldAt, below: dict[str, set[str]]) -> Iterator[Limited]:
    """Yield what jobs that may not be stopped hold, where something is guaranteed."""
    sums = held.sums(lambda job: job.tenant, of, firm=True)
    has = {t.name: q.guaranteed for t in site.tenants for q in t.quotas if q.of == of}
    for name, members in below.items():
        own = [amount for other, amount in has.items() if other in members and amount is not None]
        if own:
            use = held.total(sums, members)
            yield Limited("firm", f"tenant {name}", f"{of} without a stop", use, sum(own))


def _running(
    held: HeldAt,
    name: Callable[[Job], str | None],
    limits: Sequence[tuple[str, Tenant | LimitGroup, set[str]]],
) -> Iterator[Limited]:
    """Yield how many jobs run, and what they may still hold, for all who limit it."""
    if any(each.max_jobs is not None for _, each, _ in limits):
        sums = held.sums(name, "")
        for where, each, members in limits:
            if each.max_jobs is not None:
                yield Limited("running", where, "jobs", held.total(sums, members), each.max_jobs)
    if held.timed and any(each.max_gpu_s is not None for _, each, _ in limits):
        sums = held.sums(name, GPUS, timed=True)
        for where, each, members in limits:
            if each.max_gpu_s is not None:
                use = held.total(sums, members)
                yield Limited("running", where, "GPU-seconds ahead", use, each.max_gpu_s)


def in_group(group: LimitGroup, below: dict[str, set[str]]) -> Callable[[Job], bool]:
    """Return the test of whether a job is in a group; `below` has each tenant with all below it."""
    tenants = set().union(*(below[name] for name in group.tenants))

    def of(job: Job) -> bool:
        labels = (
            (group.users, job.user in group.users),
            (group.classes, job.priority in group.classes),
            (group.partitions, job.partition in group.partitions),
            (group.tenants, job.tenant in tenants),
        )
        return all(own for wanted, own in labels if wanted)

    return of


def _of_group(group: LimitGroup, held: HeldAt, below: dict[str, set[str]]) -> Iterator[Limited]:
    """Yield what the jobs of a group hold that share its limits."""
    member = in_group(group, below)

    def sharing(job: Job) -> str | None:
        if not member(job):
            return None
        user, tenant = job.user or "", job.tenant or ""
        return {"group": "", "user": user, "tenant": tenant, "job": job.id}[group.per]

    for of, most in group.most.items():
        for who, use in held.sums(sharing, of).items():
            yield Limited("quota", _name(group, who), of, use, most)
    everyone = [(_name(group, who), group, {who}) for who in held.sums(sharing, "")]
    yield from _running(held, sharing, everyone)


def _name(group: LimitGroup, who: str) -> str:
    return f"group {group.name}" + ("" if group.per == "group" else f", {group.per} {who}")


def tenant_violations(round: Round, plan: Plan, given: list["JobInPlan"]) -> list[Violation]:
    """Return the limits of tenants and groups beyond which a plan lets them grow."""
    if not (round.site.tenants or round.site.groups):
        return []
    holds = []
    for state, allocation, _ in given:
        ran_s = state.ran_s + (round.now_s - state.held_s if state.allocation is not None else 0.0)
        left_s = max((state.job.limit_s or 0.0) - ran_s, 0.0)
        if state.allocation is not None:
            holds.append(Hold(state.job, state.allocation.option, 0, 1, left_s))
        if allocation is not None:
            holds.append(Hold(state.job, allocation.option, 1, 2, left_s))
    return [
        Violation(each.code, each.where, f"{each.use[1]:g} {each.unit}, at most {each.most:g}")
        for each in limited(round.site, HeldAt(round.cluster, holds, 2))
        if each.use[1] > max(each.most, each.use[0]) + RELATIVE * max(1.0, each.most)
    ]


def tenant_schedule_violations(instance: Instance, schedule: Schedule) -> list[Violation]:
    """Return the first violation of each limit of tenants and groups by a schedule.

    Limits on the time that jobs have left are checked in plans alone.
    """
    if not (instance.site.tenants or instance.site.groups):
        return []
    pairs = [
        (job, segment)
        for job, outcome in zip(instance.jobs, schedule.jobs, strict=True)
        for segment in outcome.segments
    ]
    ends = [time_s for _, own in pairs for time_s in (own.start_s, own.end_s)]
    times = np.unique(np.array([0.0, *ends]))
    at = np.searchsorted(times, ends).reshape(-1, 2).tolist()
    holds = [Hold(job, own.option, *span) for (job, own), span in zip(pairs, at, strict=True)]
    found = []
    for each in limited(instance.site, HeldAt(instance.cluster, holds, len(times))):
        over = np.flatnonzero(each.use > each.most + RELATIVE * max(1.0, each.most))
        if len(over):
            when = f"at {times[over[0]]:.9g} s"
            message = f"{each.use[over[0]]:g} {each.unit}, at most {each.most:g}, {when}"
            found.append(Violation(each.code, each.where, message))
    return found
