"""``ronda consolidate``: moves of running jobs that empty nodes."""

from pathlib import Path
from typing import Any

import click

from ronda.cli.command import taught
from ronda.cli.load import round_ as load_round
from ronda.cli.options import plan_options, round_argument, seed_option, time_limit_option
from ronda.cli.output import show
from ronda.cli.progress import waiting
from ronda.cli.records import named, options_of
from ronda.instances.clock import Deadline
from ronda.instances.files.json import write
from ronda.questions.consolidate.answer import consolidate
from ronda.questions.consolidate.report import consolidation_report


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
@plan_options
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
    """Say which running jobs of a ROUND to move to empty as many nodes as possible.

    Jobs keep the number and type of their GPUs, and how they run. Jobs that may not be preempted
    stay. Among the plans that save most, the command chooses one with few moves. No such plan
    exceeds the bound.
    """
    deadline = Deadline(time_limit, started=entered)
    round_ = load_round(source)
    with named(given), waiting(f"{source}: moves", time_limit):
        found = consolidate(round_, deadline=deadline, **given)
    if out is not None:
        write(found.plan, out)
    return show(consolidation_report(round_, found, given["save"]), as_json=as_json)
