"""The queues of a round: what each tenant, or user, holds and waits for, and its worth.

Who borrows from whom is the use of each tenant beyond what is its own. A tenant's own is what is
guaranteed to it and what tenants below it lend (S_t), and it borrows what leaves home below it
beyond that, U_t − S_t (`ronda.formulations.tenants.lending`). As
U_p − S_p = Σ_c max(0, U_c − S_c) − N_p − Σ_c unused_c for a parent with a quota N_p of its own,
what its children borrow comes from N_p, then from what their siblings leave unused, and the rest is
exactly what the parent borrows in turn. Schedulers keep no account of single GPUs: here siblings
lend in proportion to what they leave unused, and borrowers share it in proportion to what they
borrow.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from math import inf
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from ronda.formulations.allocation.separable import surpluses
from ronda.formulations.options.table import running_rows
from ronda.formulations.site.order import why_not
from ronda.formulations.tenants.amounts import amounts, held
from ronda.formulations.tenants.guarantees import OWED
from ronda.formulations.tenants.lending import borrowing
from ronda.formulations.tenants.numbered import there_is
from ronda.formulations.tenants.sharers import Tree, resources
from ronda.horizon.solve import solve_valid
from ronda.instances.base import Record
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation, JobState
from ronda.instances.plan import Plan, SolutionStatus
from ronda.instances.round import Round
from ronda.instances.site import GPUS, Quota, Site
from ronda.questions.whatif.frozen import priced
from ronda.solvers.as_one import AsOne
from ronda.solvers.contract import Capability, Policy
from ronda.solvers.decision.plan import Optimising, Question
from ronda.solvers.decision.stages import after_stages

LIMITS = 3
"""The most rows that are named as what the jobs of a queue wait for."""


class TenantQueue(Record, frozen=True, kw_only=True):
    """What a tenant, with all below it, or the jobs of a user hold of a resource and wait for.

    Attributes
    ----------
    name, parent
        Name of the tenant and of the one above it. Without tenants, the user, or the partition and
        the user where there are several.
    of
        The resource: ``gpus``, a GPU type, or a resource of hosts.
    held, asked
        What its jobs hold, and what those ask for that wait and may start.
    waiting, longest_s, held_back
        Number of jobs that wait and may start, the longest time for which one has waited, and the
        number of jobs that wait and may not start yet.
    guaranteed, owned
        What is guaranteed to it and to all below it, None if nothing is; and its own guarantee with
        what tenants below it lend, beyond which it borrows what leaves home.
    borrowed, lenders
        What it borrows, and from whom; `lenders` add up to `borrowed`.
    owed, given
        What is owed to it, as much as it asks for up to its guarantee, and what it has of that.
    starved
        Whether jobs wait and may start, it has less than it is owed, and others hold what they
        borrow.
    planned
        What its jobs hold under the plan.
    limits
        The rows on which its waiting jobs would spend most at the plan's prices, and the price of a
        unit, the dearest first.
    guarantee_worth, limit_worth
        Worth of one more unit of its guarantee, and of its limit, in units of the objective, by the
        plan's prices; None if nothing of the kind is stated.
    """

    name: str
    parent: str | None = None
    of: str = GPUS
    held: float
    asked: float
    waiting: int
    longest_s: float
    held_back: int
    guaranteed: float | None = None
    owned: float = 0.0
    borrowed: float = 0.0
    lenders: dict[str, float] = {}
    owed: float = 0.0
    given: float = 0.0
    starved: bool = False
    planned: float
    limits: dict[str, float] = {}
    guarantee_worth: float | None = None
    limit_worth: float | None = None


class Queues(Record, frozen=True, kw_only=True):
    """The queues of a round, roots first, and the plan whose prices say what they are worth."""

    plan: Plan
    queues: tuple[TenantQueue, ...]


def queues(round: Round, policy: Policy, *, seed: int = 0, deadline: Deadline) -> Queues:
    """Return what each tenant of a valid round holds, is owed, borrows and waits for.

    Without tenants the queues are those of users. If no plan is found in time there are no prices,
    and nothing has a worth. Raise InputError if the policy has no prices.
    """
    if not isinstance(policy, Optimising) or Capability.ARRAYS in policy.capabilities:
        raise InputError("--policy", f"{policy.name!r}, which has no prices", "prices or milp")
    plan = solve_valid(round, policy, seed=seed, deadline=deadline)
    seen = AsOne(round)
    question = after_stages(policy.question(seen.round, Deadline(), seed), seen.shown(plan))
    made = _Counted(round, plan, question)
    found = made.of_tenants() if round.site.tenants else made.of_users()
    return Queues(plan=plan, queues=tuple(found))


class _Counted:
    """The jobs of a round with what they hold and spend under a plan."""

    def __init__(self, round: Round, plan: Plan, question: Question) -> None:
        self._round, self._plan, self._question = round, plan, question
        self._known = plan.status not in (SolutionStatus.FALLBACK, SolutionStatus.NONE)
        self._spends = _spent(question, plan) if self._known else {}
        self._now, self._asked = round.held, cache(self._asked_of)

    def of_tenants(self) -> Iterator[TenantQueue]:
        """Yield the queue of each tenant in each resource, after those above it."""
        round, tree = self._round, Tree(self._round.site)
        rows = running_rows(self._question.table)
        claims = {c.name: (c.owed, c.given(rows[rows >= 0])) for c in self._question.claims}
        by_leaf = defaultdict[str, list[JobState]](list)
        for state in round.jobs:
            by_leaf[state.job.tenant or NO_TENANT].append(state)
        for of in resources(round.site) or [GPUS]:
            own = {name: self._held(s, of, self._now) for name, s in by_leaf.items()}
            stand, shares = standings(tree, of, own, there_is(round, of)), tree.shares(of)
            firm = any(share.guaranteed is not None for share in shares.values())
            for tenant in reversed(tree.order):
                name, share = tenant.name, shares[tenant.name]
                first, end = tree.span[name]
                inside = [leaf for leaf, number in tree.leaf.items() if first <= number < end]
                mine = self._queue(name, [s for leaf in inside for s in by_leaf[leaf]], of)
                owed, given = claims.get(f"{OWED}[{name},{of}]", (0.0, 0.0))
                apart = {*inside, *tree.path(name)}
                lent = any(s.borrowed > 0 for n, s in stand.items() if n not in apart)
                standing = stand[name] if firm else TenantStanding(mine.held, 0.0, 0.0, 0.0, {})
                yield replace(
                    mine,
                    parent=tenant.parent,
                    guaranteed=share.guaranteed,
                    owned=standing.owned,
                    borrowed=standing.borrowed,
                    lenders=standing.lenders,
                    owed=owed,
                    given=given,
                    starved=bool(mine.waiting and given < owed - 1e-9 and lent and firm),
                    guarantee_worth=self._worth(tree.quota(name, of), name, of, "guaranteed"),
                    limit_worth=self._worth(tree.quota(name, of), name, of, "limit"),
                )
            if others := by_leaf.get(NO_TENANT):
                mine = self._queue(NO_TENANT, others, of)
                borrowed, lenders = stand[NO_TENANT][3:] if firm else (0.0, {})
                yield replace(mine, borrowed=borrowed, lenders=lenders)

    def of_users(self) -> Iterator[TenantQueue]:
        """Yield the queue of each user, of each partition where there are several."""
        found, jobs = defaultdict[str, list[JobState]](list), self._round.jobs
        several = len({state.job.partition for state in jobs}) > 1
        for state in jobs:
            user = state.job.user or "(no user)"
            found[f"{state.job.partition}/{user}" if several else user].append(state)
        made = [self._queue(name, states, GPUS) for name, states in sorted(found.items())]
        yield from sorted(made, key=lambda queue: -queue.held)

    def _queue(self, name: str, states: Sequence[JobState], of: str) -> TenantQueue:
        """Return the queue of some jobs, without anything of a tenant."""
        round = self._round
        waits = [s for s in states if s.allocation is None]
        ready = [s for s in waits if why_not(round, s) is None]
        spent = defaultdict[str, float](float)
        for state in ready:
            for row, amount in self._spends.get(state.job.id, {}).items():
                spent[row] += amount
        dearest = sorted(spent, key=lambda row: -spent[row])[:LIMITS]
        return TenantQueue(
            name=name,
            of=of,
            held=self._held(states, of, self._now),
            asked=sum(self._asked(of)[s.job.id] for s in ready),
            waiting=len(ready),
            longest_s=max((round.now_s - state.since_s for state in ready), default=0.0),
            held_back=len(waits) - len(ready),
            planned=self._held(states, of, self._plan.allocations),
            limits={row: self._plan.prices[row] for row in dearest},
        )

    def _held(self, states: Sequence[JobState], of: str, by: Mapping[str, Allocation]) -> float:
        pools = self._round.cluster.topology.pools
        given = ((state.job, by.get(state.job.id)) for state in states)
        return sum(held(pools[a.option.pool], job, a.option, of) for job, a in given if a)

    def _asked_of(self, of: str) -> dict[str, float]:
        """Return what each job asks for of a resource, by what its options have of it."""
        table, most = self._question.table, np.zeros(len(self._question.table.jobs))
        asked = np.array([state.job.gpus for state in table.jobs], dtype=float)[table.job]
        np.maximum.at(most, table.job, amounts(table, of) * np.minimum(1.0, asked / table.gpus))
        found = {s.job.id: float(n) for s, n in zip(table.jobs, most.tolist(), strict=True)}
        if of == GPUS:  # a job without any option asks nevertheless
            found |= {s.job.id: float(s.job.gpus) for s in table.jobs if not found[s.job.id]}
        return found

    def _worth(self, quota: Quota, name: str, of: str, field: str) -> float | None:
        """Return the worth of one more unit of a tenant's guarantee or limit, by the prices."""
        now = getattr(quota, field)
        if now is None or not self._known:
            return None
        site, more = self._round.site, replace(quota, **{field: now + 1.0})
        tenants = tuple(
            replace(t, quotas=tuple(more if q == quota else q for q in t.quotas))
            if t.name == name
            else t
            for t in site.tenants
        )
        before, after = _capacities(site, of), _capacities(replace(site, tenants=tenants), of)
        return sum(
            self._price(row, name, of) * (most - before[row])
            for row, most in after.items()
            if most != before[row]
        )

    def _price(self, row: str, name: str, of: str) -> float:
        """Return the price of a row; of a lender that keeps nothing, that of what leaves home.

        Such a lender has no row, as all that it uses counts in the rows of those above it.
        """
        prices, lender = self._plan.prices, f"lent[{name},{of}]"
        if row != lender or row in prices:
            return prices.get(row, 0.0)
        tree, found = Tree(self._round.site), 0.0
        kept = {each: share.kept for each, share in tree.shares(of).items()}
        for each, above in pairwise(tree.path(name)):
            if kept[each]:
                return found + prices.get(f"lent[{each},{of}]", 0.0)
            found += sum(prices.get(f"{kind}[{above},{of}]", 0.0) for kind in ("borrow", "tree"))
        return found


def _capacities(site: Site, of: str) -> dict[str, float]:
    """Return the capacities of the rows that the quotas of a resource state, by name."""
    tree = Tree(site)
    shares = tree.shares(of)
    found = dict(borrowing(tree, of, shares).values())
    for name, share in shares.items():
        limit = tree.quota(name, of).limit
        found |= {f"lent[{name},{of}]": share.kept}
        found |= {} if limit is None else {f"limit[{name},{of}]": limit}
        if share.guaranteed is not None:
            found |= {f"{family}[{name},{of}]": share.guaranteed for family in (OWED, "firm")}
    return found


def _spent(question: Question, plan: Plan) -> dict[str, dict[str, float]]:
    """Return what each job's best option would spend on each row, at a plan's prices."""
    asked, table = priced(question, plan.prices), question.table
    surplus = surpluses(asked.problem, asked.prices)
    job = table.job[asked.rows]
    order = np.lexsort((-surplus, job))
    first = order[np.flatnonzero(np.diff(job[order], prepend=-1))]
    cost = asked.prices[:, None] * asked.problem.use.dense(first)
    names, found = asked.problem.names, dict[str, dict[str, float]]()
    for i, j in enumerate(job[first].tolist()):
        spends = {names[r]: float(cost[r, i]) for r in np.flatnonzero(cost[:, i] > 1e-12).tolist()}
        found[table.jobs[j].job.id] = spends
    return found


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
