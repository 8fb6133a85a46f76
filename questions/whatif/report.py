"""A report of a what-if: changes, jobs that gain and lose, and sizes of new jobs."""

from collections.abc import Iterator

from ronda.instances.cluster import Pool
from ronda.instances.job import Allocation
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.tables.numbers import on_nodes
from ronda.instances.tables.table import Report, Table
from ronda.questions.whatif.answer import EFFECT, Changed, WhatIf
from ronda.questions.whatif.sizes import Size

JOBS = 3
"""Number of gaining jobs, and of losing jobs, that a table names."""


def whatif_report(source: str, round: Round, found: WhatIf) -> Report:
    """Return a report of the effects of changes, with warnings for impossible changes."""
    pools = round.cluster.topology.pools
    fields = {
        "round": round.name,
        "now_s": round.now_s,
        "policy": found.base.policy,
        "objective": found.objective,
        "slack": found.slack,
        "status": found.base.status,
        "prices": found.base.prices,
        "outcomes": [
            {
                **{name: getattr(outcome, name) for name in EFFECT},
                "status": outcome.plan.status,
                "why": outcome.why,
                "shifts": [
                    {
                        "job": shift.job,
                        "before": _on(pools, shift.before),
                        "after": _on(pools, shift.after),
                        "gain": shift.gain,
                    }
                    for shift in outcome.shifts
                ],
            }
            for outcome in found.outcomes
        ],
        "sizes": found.sizes,
    }
    notes = [f"warning: {each.change}: {each.why}" for each in found.outcomes if each.why]
    tables = [_changes(source, round, found), *_shifts(pools, found.outcomes)]
    tables += [_sizes(job, sizes) for job, sizes in found.sizes.items()]
    return Report(fields, tables, notes, int(bool(notes)))


def _on(pools: tuple[Pool, ...], allocation: Allocation | None) -> str:
    if allocation is None:
        return "waits"
    option = allocation.option
    clock = "" if option.clock == 1 else f" at {100 * option.clock:.0f} %"
    return f"{option.gpus} {pools[option.pool].gpu_type.name}{clock}"


def _changes(source: str, round: Round, found: WhatIf) -> Table:
    def signed(value: float) -> str:  # rounding errors count as 0
        return f"{value:+.4g}" if abs(value) > 1e-9 * abs(found.objective) else "0"

    rows = [{"": "as it is", "objective": f"{found.objective:.6g}", "found": "", "foretold": ""}]
    rows[0] |= _used(found.base)
    for each in found.outcomes:
        row = dict.fromkeys(rows[0], "") | {"": each.change, "objective": each.why}
        if not each.why:
            row |= {"objective": f"{each.objective:.6g}", "found": signed(each.found)}
            row |= {"foretold": signed(each.foretold)} | _used(each.plan)
        rows.append(row)
    gpus = sum(pool.gpus for pool in round.cluster.topology.pools)
    at = f"{source} at {round.now_s:,.0f} s: {len(round.jobs)} jobs on {gpus} GPUs"
    notes = (
        "all on the scale of the round as it is; foretold: by the prices of its plan",
        f"no plan can find more than is foretold and {max(0.0, found.slack):.2g}",
    )
    return Table.of(at, rows, notes)


def _used(plan: Plan) -> dict[str, str]:
    gpus = sum(a.option.own_gpus for a in plan.allocations.values())
    return {"jobs run": f"{len(plan.allocations)}", "GPUs used": f"{gpus:g}"}


def _shifts(pools: tuple[Pool, ...], outcomes: tuple[Changed, ...]) -> Iterator[Table]:
    """Yield tables of the jobs that gain and lose most by each change, and the number of others."""
    rows = []
    for outcome in outcomes:
        gain = [shift for shift in outcome.shifts if shift.gain > 0]
        lose = [shift for shift in reversed(outcome.shifts) if shift.gain < 0]
        for own in (gain, lose):
            told = [
                (shift.job, _on(pools, shift.before), _on(pools, shift.after), shift.gain)
                for shift in own[:JOBS]
            ]
            if rest := own[JOBS:]:
                told.append((f"{len(rest)} more", "", "", sum(shift.gain for shift in rest)))
            rows += [
                {"": outcome.change, "job": job, "as it is": a, "then": b, "gain": f"{by:+.4g}"}
                for job, a, b, by in told
            ]
    if rows:
        yield Table.of("who gains and who loses most", rows)


def _sizes(job: str, sizes: tuple[Size, ...]) -> Table:
    rows = []
    for size in sizes:
        lost = [f"{name} (-{loss:.3g})" for name, loss in size.losers.items()]
        more = f", … ({len(lost)})" if len(lost) > JOBS else ""
        rows.append(
            {
                "GPUs": f"{size.gpus} {size.pool}",
                "starts": "yes" if size.starts else "no",
                "worth": f"{size.worth:.4g}",
                "costs others": "" if size.cost is None else f"{size.cost:.4g}",
                "on node×GPUs": on_nodes(size.allocation.placement if size.allocation else ()),
                "of them": ", ".join(lost[:JOBS]) + more,
                "row": size.row,
                "why": size.why if size.cost is None else "",
            }
        )
    return Table.of(f"{job}: each size that it could have", rows)
