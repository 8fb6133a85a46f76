"""``ronda consolidate``: moves of running jobs that empty nodes."""

from pathlib import Path
from typing import Any

import click

from ronda.cli.command import taught
from ronda.cli.load import round_ as load_round
from ronda.cli.options import (
    force_option,
    json_option,
    plan_option,
    round_argument,
    seed_option,
    time_limit_option,
)
from ronda.cli.output import display, emit, facts, note, table
from ronda.cli.progress import waiting
from ronda.cli.records import named, options_of
from ronda.instances.clock import Deadline
from ronda.instances.files.json import write
from ronda.instances.plan import SolutionStatus
from ronda.instances.round import Round
from ronda.questions.consolidate.answer import Consolidation, consolidate

ROWS = 40
"""Moves that the table shows."""


@taught(
    "consolidate",
    "ronda consolidate round.json --moves 8",
    "ronda consolidate round.json --save watts --lost-gpu-s 3600 --out plan.json",
    "ronda consolidate round.json --json",
)
@round_argument
@options_of(consolidate, skip=("round", "deadline", "seed"))
@time_limit_option(60.0, "For all of it: start-up, reading, building, solving, answering.")
@seed_option
@plan_option
@force_option
@json_option
@click.pass_obj
def command(
    entered: float,
    /,
    source: str,
    time_limit: float,
    out: Path | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Say which running jobs of a ROUND to move so that most nodes become empty.

    Jobs keep their GPUs in number and kind, and how they run; those that may not be preempted stay.
    Of the plans that save most it takes one of few moves. The bound is what no such plan exceeds.
    """
    deadline = Deadline(time_limit, started=entered)
    round_ = load_round(source)
    with named(given), waiting(f"{source}: moves", time_limit):
        found = consolidate(round_, deadline=deadline, **given)
    plan = found.plan
    if out is not None:
        write(plan, out)
    if as_json:
        emit(_fields(round_, found, given["save"]))
    else:
        moves = [_moves(found)] if found.moves else []
        display(*moves, facts(_facts(found, given["save"])))
    if failed := plan.status is SolutionStatus.FALLBACK:
        note(f"warning: {plan.record.message}")
    return int(failed)


OF_PLAN = ("bound", "gap", "stop", "status")
OF_MOVES = ("moves", "emptied", "filled", "saved_w", "lost_gpu_s", "lost_j")


def _fields(round_: Round, found: Consolidation, save: str) -> dict[str, Any]:
    plan, record = found.plan, found.plan.record
    return {
        "round": round_.name,
        "jobs": len(round_.running),
        "save": save,
        "saved": plan.objective,
        **{name: getattr(plan, name) for name in OF_PLAN},
        **{name: getattr(found, name) for name in OF_MOVES},
        "times": {name: getattr(record, name) for name in ("build_s", "solve_s", "total_s")},
        "seed": record.seed,
        "message": record.message,
    }


def _moves(found: Consolidation) -> Any:
    made = table("job", "GPUs", "from node×GPUs", "to node×GPUs", "pause (s)", "")
    for move in found.moves[:ROWS]:
        source, target = (
            " ".join(f"{node}×{gpus}" for node, gpus in there)
            for there in (move.source, move.target)
        )
        jobs, when = "+".join(move.jobs), "stops first" if move.first else ""
        made.add_row(jobs, str(move.gpus), source, target, f"{move.pause_s:g}", when)
    if len(found.moves) > ROWS:
        made.caption = f"… and {len(found.moves) - ROWS:,} more moves (--json lists them all)"
        made.caption_justify = "left"
    return made


def _facts(found: Consolidation, save: str) -> list[tuple[str, str]]:
    plan, nodes = found.plan, ", ".join(map(str, found.emptied[:ROWS]))
    more = f" and {len(found.emptied) - ROWS:,} more" if len(found.emptied) > ROWS else ""
    rows = [
        ("saved", f"{plan.objective:,g} {save}"),
        ("bound", f"{plan.bound:,g} {save}"),
        ("jobs moved", f"{len(found.moves):,}"),
        ("emptied", f"{nodes}{more}" or "no node"),
        ("watts saved asleep", f"{found.saved_w:,g}"),
        ("GPU-seconds lost", f"{found.lost_gpu_s:,g}"),
    ]
    if found.saved_w > 0 and found.lost_j > 0:
        pays = f"{found.lost_j:,g} J, saved again in {found.lost_j / found.saved_w:,.1f} s"
        rows.append(("drawn in pauses", pays))
    rows.append(("result", f"{plan.status.value} (stopped: {plan.stop.value})"))
    rows.append(("seconds", f"{plan.record.total_s:.3f}"))
    return rows
