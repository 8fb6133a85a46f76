"""``ronda instances convert sacct|swf``: what schedulers logged as an instance, or counted."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ronda.cli.command import taught
from ronda.cli.commands.instances.convert import keep_schedule, schedule_option
from ronda.cli.load import written
from ronda.cli.logs import machine_options, reading_of, slurm_options
from ronda.cli.options import DOCUMENT, out_file_options, stacked
from ronda.cli.output import display, note, show
from ronda.instances.errors import InputError
from ronda.instances.tables.table import Report

kept_options: Callable[[Any], Any] = stacked(
    click.option(
        "--sample",
        type=click.FloatRange(0, 1, min_open=True),
        default=1.0,
        show_default=False,
        metavar="SHARE",
        help="Keep this share of the jobs, drawn by their ids; the machines that the log shows are "
        "then those that these jobs had.",
    ),
    click.option(
        "--count",
        "only_count",
        is_flag=True,
        help="Count jobs, GPU-hours and users, and write nothing; for logs of any size.",
    ),
    schedule_option,
    click.option("--name", help="Name of the instance; otherwise that of the first file."),
    out_file_options(DOCUMENT, "A .json, .json.gz or .json.zst."),
)


@taught(
    "sacct",
    "ronda instances convert sacct march.txt --zone Europe/Berlin --out march.json.zst",
    "ronda instances convert sacct march.txt --cluster room.json --schedule ran.json.zst"
    " --out march.json.zst",
    "ronda instances convert sacct 2025-*.txt.gz --count",
    "ronda instances convert sacct 2025-*.txt.gz --partitions gpu --sample 0.1"
    " --out tenth.json.zst",
)
@machine_options
@kept_options
@slurm_options
def sacct(**given: Any) -> None:
    """Read the accounting of Slurm: FILEs of sacct --parsable2 or sacct --json, or - for a pipe.

    The instance has the log's partitions, GPU types, time limits, QOS, accounts, cores and memory.
    All runs of an id are one job, with the outcome of the last; arrays are jobs by task. Whatever
    does not become a job is counted, with a reason and an example. Without --cluster the nodes are
    those that the log names, each with what was in use on one of its kind at once.

    Useful columns: sacct --allusers --duplicates --parsable2 --format JobID,JobName,User,Account,
    Partition,QOS,Submit,Eligible,Start,End,Elapsed,Suspended,State,Timelimit,AllocTRES,ReqTRES,
    NodeList. Only JobID, State, Submit, Start, End and AllocTRES or ReqTRES are needed.
    """
    _tell("sacct", **given)


@taught(
    "swf",
    "ronda instances convert swf NASA-iPSC-1993-3.1-cln.swf.gz --out nasa.json.zst",
    "ronda instances convert swf log.swf --gpu a100 --schedule ran.json --out log.json.zst",
    "ronda instances convert swf log.swf --partitions gpu --count",
)
@machine_options
@kept_options
def swf(**given: Any) -> None:
    """Read a log in the Standard Workload Format, all 18 fields and the header; - for a pipe.

    Processors are read as GPUs, of the type of --gpu if there is one: those given, or those asked
    for where these are unknown. Requested times are limits, groups are tenants, queues are priority
    classes, and a job waits for its preceding job and the think time. The machine is that of the
    header (MaxNodes, MaxProcs); a log of several partitions has what was in use in each at once.
    ronda export writes this format.
    """
    _tell("swf", **given)


@taught(
    "batsim",
    "ronda instances convert batsim workload.json --out mine.json.zst",
    "ronda instances convert batsim workload.json --gpu a100 --out mine.json.zst",
)
@machine_options
@kept_options
def batsim(**given: Any) -> None:
    """Read a workload of the simulator Batsim, of version 4 or 5; - for a pipe.

    Resources are read as GPUs, of the type of --gpu if there is one, and wall times as limits. A
    job lasts as long as its profile: a delay, or a sequence of delays. How long other profiles last
    depends on a platform: such jobs are counted, by type. ronda export --format batsim writes the
    jobs.csv of a schedule.
    """
    _tell("batsim", **given)


def _tell(
    reader: str,
    *,
    files: Sequence[Path],
    only_count: bool,
    schedule: Path | None,
    name: str | None,
    out: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Write the instance of a log, and its schedule, or count it."""
    if only_count:
        told = {"--out": out, "--schedule": schedule, "--cluster": given["cluster"]}
        for option, value in (told | {"--slurm": given.get("shown")}).items():
            if value:
                raise InputError(option, "--count as well", "one of them")
    elif out is None:
        raise InputError("--out", "none", "--out FILE, or --count")
    from ronda.instances.rules.validate import validate
    from ronda.instances.traces.door import log_runs, read_log

    how = reading_of(given | {"reader": reader})
    if out is None:
        from ronda.instances.traces.logs.tally import count_log

        log = log_runs(files, how)
        counts = count_log(log.runs)
        whole = counts.whole
        fields = asdict(counts) | {
            "rows": log.account.rows,
            "dropped": log.account.dropped,
            "examples": log.account.dropped.examples,
            "folded": log.account.folded,
            "unread": log.account.unread,
        }
        words = (
            f"{log.account.rows:,} rows: {whole.jobs:,} jobs of {whole.users:,} users in "
            f"{whole.runs:,} runs, {whole.gpu_hours:,.1f} GPU-hours"
        )
        folded = [f"{n:,} rows are {what}" for what, n in log.account.folded.items()]
        show(
            Report(fields, [*counts.tables(), log.account.dropped.table(), words], notes=folded),
            as_json=as_json,
        )
        return
    done = read_log(files, how, name=name)
    validate(done.instance)  # before anything is written
    if not as_json:
        display(done.dropped.table())
        for line in done.words:
            note(line)
    more = keep_schedule(done.instance, done.recorded, schedule, as_json=as_json)
    written(done.instance, out, as_json=as_json, **done.fields, **more)
