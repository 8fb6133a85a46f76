"""The report on the queues of a round, for ``ronda queues``."""

from collections.abc import Iterator

from ronda.instances.round import Round
from ronda.instances.site import GPUS
from ronda.instances.tables.numbers import hours
from ronda.instances.tables.table import Report, Table
from ronda.questions.explained import unit_of, unit_of_worth
from ronda.questions.queues.answer import Queues, TenantQueue

ROWS = 40
"""The number of queues that the table shows."""


def queues_report(source: str, round: Round, found: Queues) -> Report:
    """Return the report on the queues of the round `source`: a table, and who is starved.

    The exit code is 3 if no plan was found in time, so that nothing has a price.
    """
    plan, every = found.plan, found.queues
    gpus = round.cluster.gpus
    fields = {
        "round": round.name,
        "now_s": round.now_s,
        "policy": plan.policy,
        "objective": plan.details.objective,
        "status": plan.status,
        "gpus": gpus,
        "queues": every,
    }
    priced = bool(plan.prices)
    busy = sum(a.option.own_gpus for a in round.held.values())
    parents = {queue.parent for queue in every}
    bottom = [q for q in every if q.name not in parents and q.of == every[0].of]
    waiting, back = sum(q.waiting for q in bottom), sum(q.held_back for q in bottom)
    head = f"{source} at {round.now_s:,.0f} s: {busy:g} of {gpus} GPUs are held, "
    head += f"{waiting} job{'s wait' if waiting != 1 else ' waits'}"
    head += f", and {back} more may not start yet" if back else ""
    rows = [_row(queue, every, tenants=bool(round.site.tenants)) for queue in every[:ROWS]]
    left = tuple(k for k, name in enumerate(rows[0] if rows else {}) if name in LEFT)
    more = [f"… and {len(every) - ROWS} more (--json has them all)"] * (len(every) > ROWS)
    more += [f"prices and worths: {unit_of_worth(plan.details.objective)}"] * priced
    parts: list[str | Table] = [Table.of(head, rows, more, left=left)]
    parts += _sentences(round, found)
    notes = [] if priced else [f"warning: no prices: {plan.record.message or plan.stop.value}"]
    return Report(fields, parts, notes, 0 if priced or not waiting else 3)


LEFT = ("queue", "of", "from", "waits for (price)")


def _row(queue: TenantQueue, every: tuple[TenantQueue, ...], *, tenants: bool) -> dict[str, str]:
    parent, depth = {q.name: q.parent for q in every}, 0
    above = queue.parent
    while above is not None:
        depth, above = depth + 1, parent[above]
    row = {"queue": "  " * depth + queue.name}
    if tenants:
        row |= {"of": queue.of}
    row |= {"holds": f"{queue.held:g}", "plan": f"{queue.planned:g}"}
    row |= {"jobs wait": f"{queue.waiting}", "ask": f"{queue.asked:g}"}
    row |= {"longest h": hours(queue.longest_s) if queue.waiting else ""}
    if tenants:
        stated = queue.guaranteed is not None
        row |= {"guaranteed": f"{queue.guaranteed:g}" if stated else "–"}
        row |= {"has of owed": f"{queue.given:g} of {queue.owed:g}" if queue.owed else ""}
        row |= {"borrows": f"{queue.borrowed:g}" if queue.borrowed else ""}
        row |= {"from": ", ".join(f"{n} {x:.4g}" for n, x in queue.lenders.items())}
        row |= {"+1 quota": _worth(queue.guarantee_worth), "+1 limit": _worth(queue.limit_worth)}
    first = next(iter(queue.limits.items()), None)
    row |= {"waits for (price)": "" if first is None else f"{first[0]} ({first[1]:.4g})"}
    return row


def _worth(worth: float | None) -> str:
    return "–" if worth is None else f"{worth:.4g}"


def _sentences(round: Round, found: Queues) -> Iterator[str]:
    """Yield in words what is promised twice, who is starved, and the worth of quota."""
    firm = sum(q.owned for q in found.queues if q.parent is None and q.of == GPUS)
    if firm > round.cluster.gpus:
        yield f"{firm:g} GPUs are guaranteed in all, and there are {round.cluster.gpus}."
    for queue in found.queues:
        what, one = ("GPUs", "GPU") if queue.of == GPUS else (queue.of, f"unit of {queue.of}")
        if queue.starved:
            others = (q for q in found.queues if q.of == queue.of and q.borrowed > 0)
            yield (
                f"{queue.name} is starved: it has {queue.given:g} of the {queue.owed:g} {what} "
                f"that are owed to it, and jobs have waited for up to {hours(queue.longest_s)} h. "
                f"Others borrow: {', '.join(f'{q.name} {q.borrowed:g}' for q in others)}."
            )
        if queue.guarantee_worth:
            yield f"{queue.name}: a {one} more guaranteed is worth {queue.guarantee_worth:.4g}."
        if queue.limit_worth:
            yield f"{queue.name}: a {one} more under its limit is worth {queue.limit_worth:.4g}."
    for queue in () if round.site.tenants else found.queues[:ROWS]:
        if queue.waiting and queue.limits:
            row, price = next(iter(queue.limits.items()))
            yield f"The jobs of {queue.name} wait for {unit_of(row)}, which costs {price:.4g}."
