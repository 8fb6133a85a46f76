"""Plans of rules that know nothing of the site's limits, cut to these limits."""

from msgspec.structs import replace

from ronda.formulations.site.accounts import accounts
from ronda.formulations.site.nodes import closed_to, concerns_nodes
from ronda.instances.job import Allocation
from ronda.instances.plan import Plan
from ronda.instances.round import Round


def within_site_limits(round: Round, plan: Plan) -> Plan:
    """Return a plan without the jobs that break the site's limits.

    Jobs that go on as they run come first, and then the others in the order of the plan.
    """
    books = accounts(round)
    if not books and not concerns_nodes(round):
        return plan
    states = {state.job.id: state for state in round.jobs}
    kept: dict[str, Allocation] = {}
    held = round.held
    later = dict[str, Allocation]()
    for job, given in plan.allocations.items():
        before = held.get(job)
        if before is not None and before.goes_on(given):
            kept[job] = given
            for book in books:
                book.take(states[job], given)
        else:
            later[job] = given
    for job, given in later.items():
        closed = closed_to(round, states[job], given.option)
        if closed is not None and any(closed[node] for node, _ in given.placement):
            continue
        if all(book.fits(states[job], given) for book in books):
            kept[job] = given
            for book in books:
                book.take(states[job], given)
    if len(kept) == len(plan.allocations):
        return plan
    return replace(plan, allocations={job: kept[job] for job in plan.allocations if job in kept})
