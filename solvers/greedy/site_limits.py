"""Plans of rules that know nothing of the site's limits, cut to these limits.

Running jobs make way one by one, for jobs that need their GPUs, as long as the disruption budget
lasts. The others go on as they run, and jobs that need their GPUs wait.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable

from msgspec.structs import replace

from ronda.formulations.placement.rack_power import keeps_limits
from ronda.formulations.site.accounts import accounts
from ronda.formulations.site.disruption import Purse, goes_on, scales
from ronda.formulations.site.nodes import closed_to, concerns_nodes
from ronda.formulations.sleeping import woken
from ronda.instances.job import Allocation, used_nodes
from ronda.instances.plan import Plan
from ronda.instances.round import Round


def within_site_limits(round: Round, plan: Plan) -> Plan:
    """Return a plan without the jobs that break the site's limits.

    Jobs that go on as they run come first, and then the others in the order of the plan.
    """
    plan = within_budget(round, plan)
    books = accounts(round)
    if not books and not concerns_nodes(round):
        return plan
    states = {state.job.id: state for state in round.jobs}
    held, kept = round.held, dict[str, Allocation]()
    going = {i for i, a in plan.allocations.items() if i in held and held[i].goes_on(a)}
    for job in sorted(plan.allocations, key=lambda job: job not in going):
        state, given = states[job], plan.allocations[job]
        if job not in going:
            closed = closed_to(round, state, given.option)
            if closed is not None and any(closed[node] for node, _ in given.placement):
                continue
            if not all(book.fits(state, given) for book in books):
                continue
        kept[job] = given
        for book in books:
            book.take(state, given)
    if len(kept) == len(plan.allocations):
        return plan
    return replace(plan, allocations={job: kept[job] for job in plan.allocations if job in kept})


def within_budget(round: Round, plan: Plan) -> Plan:
    """Return a plan that stops, moves and restarts no more than the disruption budget allows.

    Only jobs whose GPUs another job needs make way, in the order of the plan. Plans with arrays are
    returned as they are.
    """
    purse, then = Purse(round), plan.allocations
    if not purse or any(given.array for given in (*then.values(), *round.held.values())):
        return plan
    there = {s.job.id: s for s in round.running if s.job.id not in plan.discarded}
    if purse.allows(s for i, s in there.items() if not goes_on(round, s, then.get(i))):
        return plan
    kept = {i: then[i] for i in there if i in then and round.held[i].goes_on(then[i])}
    ways = {i: s for i, s in there.items() if i not in kept}  # in place until they make way
    books = _Nodes(round, [*kept, *ways], ways)
    for job, given in then.items():
        going = None if job in kept else books.making_way(job, given)
        if going is None:
            continue
        if purse.spend(ways[i] for i in going if i != job or not scales(round, ways[i])):
            for other in going:
                books.leave(other)
                del ways[other]
            books.take(given)
            kept[job] = given
    kept |= {i: round.held[i] for i in ways}
    kept = {i: kept[i] for i in (*then, *ways) if i in kept}
    if not keeps_limits(round, kept):
        kept = round.held
    used = used_nodes(kept.values())
    asleep = None if plan.asleep is None else tuple(n for n in plan.asleep if n not in used)
    return woken(round, replace(plan, allocations=kept, asleep=asleep))


class _Nodes:
    """The free GPUs of nodes, and the GPUs of running jobs that may make way."""

    def __init__(self, round: Round, running: Iterable[str], ways: Collection[str]) -> None:
        self._held = round.held
        self._free: list[int] = round.cluster.topology.node_gpus.tolist()
        self._on = defaultdict[int, dict[str, int]](dict)
        for job in running:
            self.take(self._held[job])
            for node, gpus in self._held[job].placement if job in ways else ():
                self._on[node][job] = gpus

    def take(self, given: Allocation) -> None:
        """Take the GPUs of an allocation."""
        for node, gpus in given.placement:
            self._free[node] -= gpus

    def leave(self, job: str) -> None:
        """Free the GPUs of a running job."""
        for node, gpus in self._held[job].placement:
            self._free[node] += gpus
            del self._on[node][job]

    def making_way(self, job: str, given: Allocation) -> list[str] | None:
        """Return the running jobs that make way for an allocation, or None if it finds no room.

        A running job makes way for its own new allocation. On each node small jobs are the first.
        """
        going = [job] if any(job in jobs for jobs in self._on.values()) else []
        for node, gpus in given.placement:
            on = self._on[node]
            short = gpus - self._free[node] - sum(on.get(other, 0) for other in going)
            for other in sorted(on.keys() - {*going}, key=lambda i: (on[i], i)):
                if short > 0:
                    going.append(other)
                    short -= on[other]
            if short > 0:
                return None
        return going
