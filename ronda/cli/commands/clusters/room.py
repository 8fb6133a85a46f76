"""``ronda room``: what to move or stop so that a waiting job starts now."""

from typing import Any, get_args

import click

from ronda.cli.clusters import cluster, cluster_options
from ronda.cli.command import taught
from ronda.cli.options import json_option, time_limit_option
from ronda.cli.output import show
from ronda.cli.progress import waiting
from ronda.cli.records import named, options_of, taken
from ronda.instances.clock import Deadline
from ronda.questions.makeroom.loose import Below, RoomTerms


@taught(
    "room",
    "ronda room --slurm squeue.json sinfo.json 4711",
    "ronda room --kueue cluster.yaml train-7 --only-below quota --most-jobs 4",
    "ronda room round.json j042 --moves-only --json",
)
@click.argument("files", metavar="FILES... JOB", nargs=-1, required=True)
@cluster_options
@options_of(RoomTerms, skip=("moves_only",), only_below=click.Choice(get_args(Below)))
@click.option("--moves-only", is_flag=True, help="Move jobs, and stop none.")
@time_limit_option(10.0, "For the search.")
@json_option
def command(
    files: tuple[str, ...],
    now_s: float | None,
    time_limit: float,
    as_json: bool,
    system: str | None = None,
    **given: Any,
) -> int:
    """Say what to move or stop so that a waiting JOB of a cluster starts now, with least harm.

    FILES are a round of ronda, or what the tools of a scheduler write (--slurm, --kueue, --kai;
    'ronda snapshot --help' says which commands). Only running jobs that may be stopped are
    disturbed. The steps come in an order in which they can be carried out. The exit code is 0 if
    room can be made and 1 if not. For empty nodes or racks, see 'ronda consolidate'.
    """
    *found_in, job = files
    fields, terms = [*given], taken(RoomTerms, given)
    seen = cluster(found_in, system, now_s)

    from ronda.questions.makeroom.answer import least_harm
    from ronda.questions.makeroom.report import room_report

    source = " ".join(found_in)
    with named(fields), waiting(f"{source}: room for {job}", time_limit):
        harm = least_harm(seen, job, terms, deadline=Deadline(time_limit))
    return show(room_report(source, seen, harm), as_json=as_json)
