"""A report of the moves that empty nodes."""

from ronda.instances.plan import SolutionStatus
from ronda.instances.round import Round
from ronda.instances.tables.numbers import on_nodes
from ronda.instances.tables.table import Report, Table
from ronda.questions.consolidate.answer import Consolidation
from ronda.questions.consolidate.holdings import Saving, rack_worth

ROWS = 40
"""The largest number of moves in the table and of nodes named."""


def consolidation_report(round: Round, found: Consolidation, save: Saving) -> Report:
    """Return a report of moves with their savings in nodes or watts (`save`) and their costs."""
    plan, record = found.plan, found.plan.record
    fields = {
        "round": round.name,
        "jobs": len(round.running),
        "save": save,
        "saved": plan.objective,
        **{name: getattr(plan, name) for name in ("bound", "gap", "stop", "status")},
        **{name: getattr(found, name) for name in found.__struct_fields__ if name != "plan"},
        "times": {name: getattr(record, name) for name in ("build_s", "solve_s", "total_s")},
        "seed": record.seed,
        "message": record.message,
    }
    failed = plan.status is SolutionStatus.FALLBACK
    notes = [f"warning: {record.message}"] if failed else []
    return Report(fields, [_moves(found), _facts(round, found, save)], notes, int(failed))


def _moves(found: Consolidation) -> Table:
    rows = [
        {
            "job": "+".join(move.jobs),
            "GPUs": move.gpus,
            "from node×GPUs": on_nodes(move.source),
            "to node×GPUs": on_nodes(move.target),
            "pause (s)": f"{move.pause_s:g}",
            "": "stops first" if move.first else "",
        }
        for move in found.moves[:ROWS]
    ]
    left = len(found.moves) - len(rows)
    return Table.of("", rows, [f"… and {left:,} more moves (--json lists them all)"] * bool(left))


def _racks(found: Consolidation) -> dict[str, str]:
    """Return the racks that are emptied or filled, if any, with their number."""
    sides = {"racks emptied": found.emptied_racks, "racks filled": found.filled_racks}
    return {
        name: f"{len(racks)}: {', '.join(rack or '(unnamed)' for rack in racks[:ROWS])}"
        for name, racks in sides.items()
        if racks
    }


def _facts(round: Round, found: Consolidation, save: Saving) -> Table:
    plan, nodes = found.plan, ", ".join(map(str, found.emptied[:ROWS]))
    each = rack_worth(round, save)
    of = f"nodes (a rack counts {each:.3g})" if save == "racks" else save
    more = f" and {len(found.emptied) - ROWS:,} more" if len(found.emptied) > ROWS else ""
    facts = {
        "saved": f"{plan.objective:,g} {of}",
        "bound": f"{plan.bound:,g} {of}",
        "jobs moved": f"{len(found.moves):,}",
        "emptied": f"{nodes}{more}" or "no node",
        **_racks(found),
        "watts saved asleep": f"{found.saved_w:,g}",
        "GPU-seconds lost": f"{found.lost_gpu_s:,g}",
    }
    if found.saved_w > 0 and found.lost_j > 0:
        pays_s = found.lost_j / found.saved_w
        facts["drawn in pauses"] = f"{found.lost_j:,g} J, saved again in {pays_s:,.1f} s"
    facts["result"] = f"{plan.status.value} (stopped: {plan.stop.value})"
    return Table.facts(facts | {"seconds": f"{plan.record.total_s:.3f}"})
