"""``ronda judge``: what a cluster's own schedule cost, by cause, with a bound."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from ronda.cli.command import taught
from ronda.cli.logs import log_of, whole_log_options
from ronda.cli.options import FOLDER, PolicyName, output_options, picture_option
from ronda.cli.output import show
from ronda.cli.progress import Bars
from ronda.solvers.registry import split


@taught(
    "judge",
    "ronda judge sacct.txt --nodes sinfo.json",
    "ronda judge march.txt.gz --zone Europe/Berlin --queue gpu --picture judged.png",
    "ronda judge sacct.txt --queue gpu --queue debug --out judged && ronda report judged",
)
@whole_log_options
@click.option(
    "--queue",
    "queues",
    multiple=True,
    metavar="NAME",
    help="A partition, several that share nodes (a+b), or one and an account (a/physics); again "
    "for more. Without it, the partition that waited the most.",
)
@click.option(
    "--trust",
    type=click.FloatRange(0, 1),
    default=0.9,
    metavar="SHARE",
    help="Judge up to the moment from which the log proves less than this share of the nodes; 0 "
    "for all of it.",
)
@click.option(
    "--topology",
    is_flag=True,
    help="Say also how much of it is due to GPUs that are free on different nodes.",
)
@click.option(
    "--policies",
    type=PolicyName(),
    default="",
    show_default=False,
    help="Drive these over the whole log as well, with all its jobs; they may take minutes.",
)
@click.option(
    "--decisions",
    type=click.IntRange(0, 1000),
    default=20,
    metavar="N",
    help="Show this many of the decisions that cost the most.",
)
@picture_option("Draw the causes, and waiting over time; the numbers go to FILE.csv.", "FILE.png")
@click.option(
    "--out",
    "folder",
    type=FOLDER,
    metavar="FOLDER",
    help="Keep the answer for the page of ronda report FOLDER, which may be that of a compare.",
)
@output_options
def command(
    policies: str, picture: Path | None, folder: Path | None, as_json: bool, **given: Any
) -> int:
    """Say how much of the waiting in a log was due to whom or to what, and how certain that is.

    FILEs are what a scheduler logged of the jobs that ended, without any of them left out; --nodes
    has the machines. The same jobs are replayed, only where the log proves that there was room: in
    the recorded order, by what was known of them, and in hindsight. What lies between two replays
    has one cause, and the parts add up to what was waited. A bound says what no scheduler could
    have spared. A log that is a sample of its cluster's jobs is refused.
    """
    zone, about = str(given["zone"]), {"log": " ".join(path.name for path in given["files"])}
    if folder is not None:
        from ronda.bench.report.section import keep_section, section_mark

        section_mark(folder, "judgement", about)  # before any work
    read = log_of(given, instant=True)

    from ronda.questions.judge.judged import judged_log
    from ronda.questions.judge.report import judge_report

    with Bars() as bars:
        given["policies"] = split(policies, "--policies") if policies else ()
        progress = partial(bars.update, "judge", None)
        found = judged_log(read, zone=zone, progress=progress, **given)
    report = judge_report(found)
    if picture is not None:
        from ronda.bench.figures.answers.judge import judge
        from ronda.bench.figures.draw import save_chart

        save_chart(judge(found), picture.with_suffix(""))
        report = report.added(f"picture: {picture}")
    if folder is not None:
        from ronda.bench.report.judged import judged_section

        kept = keep_section(folder, "judgement", about, judged_section(found))
        report = report.added(f"kept: {kept} (ronda report {folder})")
    return show(report, as_json=as_json)
