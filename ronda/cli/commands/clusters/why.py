"""``ronda why``: why a job waits, when it can start, and what would help."""

from pathlib import Path

import click
from msgspec.structs import asdict

from ronda.cli.clusters import cluster_options, in_front
from ronda.cli.command import taught
from ronda.cli.options import output_options, picture_option
from ronda.cli.output import show

PRICED_S, ROOM_S = 0.4, 0.7
"""The seconds for the plan whose prices are told, and for the search for whom to stop or move."""


@taught(
    "why",
    "ronda why --slurm squeue.json sinfo.json 4711",
    "ronda why --kueue workloads.yaml queues.yaml nodes.json train-7 --figure why.png",
    "ronda why round.json j042 --not a100 --json",
)
@click.argument("files", metavar="FILES... JOB", nargs=-1, required=True)
@cluster_options
@click.option(
    "--not",
    "place",
    metavar="PLACE",
    help="Say also why not there: a GPU model, a partition or a node.",
)
@picture_option(
    "Draw the free room over time against the need of the job; the numbers go to FILE.csv.",
    "FILE.png",
    "--figure",
)
@output_options
def command(
    files: tuple[str, ...],
    now_s: float | None,
    place: str | None,
    figure: Path | None,
    as_json: bool,
    system: str | None = None,
) -> int:
    """Say why a JOB of a cluster waits, with the proof, and when it could start.

    FILES are a round of ronda, or what the tools of a scheduler write (--slurm, --kueue, --kai;
    'ronda snapshot --help' says which commands). The earliest start is a bound: no scheduler can
    start the job sooner without stopping others. The second start is that of the site's own rule,
    on time limits.
    """
    *found_in, job = files
    front = in_front(found_in, system, now_s)
    seen = front.snapshot

    from ronda.questions.makeroom.answer import harm_said, least_harm
    from ronda.questions.why.answer import why
    from ronda.questions.why.elsewhere import elsewhere
    from ronda.questions.why.price import price
    from ronda.questions.why.report import why_report

    found = why(seen, job)
    there = None if place is None else elsewhere(found.waiting, place)
    room = None
    if found.start_s > seen.now_s and found.waiting.fits_empty():
        harm = least_harm(seen, job, deadline=ROOM_S)
        if harm.possible:
            room = harm_said(harm), [asdict(action) for action in harm.actions]
    priced = None if front.round is None else price(front.round, found.reason.name, PRICED_S)
    if figure is not None:
        from ronda.bench.figures.answers.why import why as shown
        from ronda.bench.figures.draw import save_chart

        save_chart(shown(found), figure.with_suffix(""))
    return show(why_report(" ".join(found_in), seen, found, priced, there, room), as_json=as_json)
