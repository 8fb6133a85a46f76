"""``ronda instances convert sacct|swf``: what schedulers logged as an instance, or counted."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click
from msgspec.structs import replace

from ronda.cli.command import Taught
from ronda.cli.commands.instances.convert import GPU, OWN_GPU, keep_schedule, schedule_option
from ronda.cli.load import written
from ronda.cli.options import DOCUMENT, Parsed, force_option, json_option, stacked
from ronda.cli.output import display, note, show
from ronda.instances.errors import InputError
from ronda.instances.files.storage import label
from ronda.instances.site import GPUS, NO_SITE, Site
from ronda.instances.tables.table import Report
from ronda.instances.traces.logs.runs import LogFilter, LogRun, RowAccount
from ronda.instances.traces.logs.seen_cluster import SeenCluster
from ronda.instances.traces.rigid import MACHINES, Machine


def _zone(text: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _day(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _names(text: str) -> tuple[str, ...] | None:
    names = tuple(part.strip() for part in text.split(","))
    return names if all(names) else None


ZONE = Parsed("zone", "a time zone such as Europe/Berlin", _zone)
DAY = Parsed("date", "a date such as 2026-03-02 or 2026-03-02T09:00", _day)
NAMES = Parsed("names", "names, as in a,b", _names)

log_options: Callable[[Any], Any] = stacked(
    click.argument(
        "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path)
    ),
    click.option(
        "--cluster",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="The machines, as JSON with the fields of a Cluster; otherwise as the log shows them.",
    ),
    click.option(
        "--gpu",
        "described",
        type=GPU,
        multiple=True,
        metavar="TYPE",
        help=f"A GPU type other than {', '.join(MACHINES)}, as in {OWN_GPU}; any number of them.",
    ),
    click.option("--since", type=DAY, metavar="DATE", help="Keep jobs submitted from DATE on."),
    click.option("--until", type=DAY, metavar="DATE", help="Keep jobs submitted before DATE."),
    click.option(
        "--partitions", type=NAMES, default=(), metavar="A,B", help="Keep jobs of these partitions."
    ),
    click.option(
        "--sample",
        type=click.FloatRange(0, 1, min_open=True),
        default=1.0,
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
    click.option("--out", type=DOCUMENT, metavar="FILE", help="A .json, .json.gz or .json.zst."),
    force_option,
    json_option,
)


@click.command(
    name="sacct",
    cls=Taught,
    examples=(
        "ronda instances convert sacct march.txt --zone Europe/Berlin --out march.json.zst",
        "ronda instances convert sacct march.txt --cluster room.json --schedule ran.json.zst"
        " --out march.json.zst",
        "ronda instances convert sacct 2025-*.txt.gz --count",
        "ronda instances convert sacct 2025-*.txt.gz --partitions gpu --sample 0.1"
        " --out tenth.json.zst",
    ),
)
@log_options
@click.option(
    "--slurm",
    "shown",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="The machines, as sinfo --json or scontrol show node -o prints them; more FILEs of "
    "sacctmgr -P show assoc and show qos have the tree of accounts, and ranks and limits of QOS.",
)
@click.option(
    "--zone",
    type=ZONE,
    default="UTC",
    show_default=True,
    help="Time zone of the log's dates, and of --since and --until.",
)
@click.option(
    "--columns",
    type=NAMES,
    default=(),
    metavar="A,B",
    help="The columns of a log without a header, as they were in sacct's --format.",
)
@click.option(
    "--device",
    type=click.Choice(["gpu", "cpu"]),
    default="gpu",
    show_default=True,
    help="With cpu each core is a device, for logs of clusters without GPUs.",
)
def sacct(
    files: tuple[Path, ...],
    shown: tuple[Path, ...],
    zone: ZoneInfo,
    columns: tuple[str, ...],
    device: str,
    since: datetime | None,
    until: datetime | None,
    **given: Any,
) -> None:
    """Read the accounting of Slurm: FILEs of sacct --parsable2 or sacct --json, or - for a pipe.

    The instance has the log's partitions, GPU types, time limits, QOS, accounts, cores and memory.
    All runs of an id are one job, with the outcome of the last; arrays are jobs by task. Whatever
    does not become a job is counted, with a reason and an example. Without --cluster the nodes are
    those that the log names, each with what was in use on one of its kind at once.

    Useful columns: sacct --allusers --duplicates --parsable2 --format JobID,JobName,User,Account,
    Partition,QOS,Submit,Eligible,Start,End,Elapsed,Suspended,State,Timelimit,AllocTRES,ReqTRES,
    NodeList. Only JobID, State, Submit, Start, End and AllocTRES or ReqTRES are needed.
    """
    from ronda.instances.traces.logs.sacct import LogFormat, sacct_runs

    chosen = LogFilter(
        since_s=_moment(since, zone),
        until_s=_moment(until, zone),
        partitions=frozenset(given.pop("partitions")),
        sample=given.pop("sample"),
        device=device,
    )
    if shown and device == "cpu":
        raise InputError("--slurm", "--device cpu as well", "one of them")
    account = RowAccount()
    runs = sacct_runs(files, LogFormat(zone=zone, columns=columns), account, chosen)
    known = _shown(shown) if shown else {}
    _tell(runs, account, files, start_s=chosen.since_s, **known, **given)


def _shown(paths: Sequence[Path]) -> dict[str, Any]:
    """Return the machines and the site that Slurm's tools show."""
    from ronda.hosts.clusters.read import read_snapshot
    from ronda.instances.snapshots.gpu_nodes import GpuNodes
    from ronda.instances.snapshots.snapshot import Noted, SeenJob

    snapshot = read_snapshot("slurm", paths, 0.0)
    site = Site(tenants=snapshot.tenants, groups=snapshot.groups, classes=snapshot.classes)
    if not any(node.has.get(GPUS) for node in snapshot.nodes):
        raise InputError("--slurm", "no node with GPUs", "the nodes on which the log's jobs ran")
    parts = sorted({part for node in snapshot.nodes for part in node.partitions})
    noted = Noted()
    nodes = GpuNodes(snapshot, [SeenJob(id=part, partitions=(part,)) for part in parts], noted)
    names = {partition.name for partition in nodes.cluster.partitions}
    kept = tuple(group for group in site.groups if {*group.partitions} <= names)
    for group in site.groups:
        if group not in kept:
            noted.add("limits of partitions that share nodes, or have none, not kept", group.name)
    seen = SeenCluster(
        cluster=nodes.cluster,
        index=nodes.number,
        home={part: nodes.home((part,)) for part in parts},
        notes=("cluster: as Slurm shows it", *snapshot.noted.lines(), *noted.lines()),
    )
    return {"site": replace(site, groups=kept), "seen": lambda: seen}


@click.command(
    name="swf",
    cls=Taught,
    examples=(
        "ronda instances convert swf NASA-iPSC-1993-3.1-cln.swf.gz --out nasa.json.zst",
        "ronda instances convert swf log.swf --gpu a100 --schedule ran.json --out log.json.zst",
        "ronda instances convert swf log.swf --partitions gpu --count",
    ),
)
@log_options
def swf(
    files: tuple[Path, ...],
    described: tuple[Machine, ...],
    since: datetime | None,
    until: datetime | None,
    **given: Any,
) -> None:
    """Read a log in the Standard Workload Format, all 18 fields and the header; - for a pipe.

    Processors are read as GPUs, of the type of --gpu if there is one: those given, or those asked
    for where these are unknown. Requested times are limits, groups are tenants, queues are priority
    classes, and a job waits for its preceding job and the think time. The machine is that of the
    header (MaxNodes, MaxProcs); a log of several partitions has what was in use in each at once.
    ronda export writes this format.
    """
    from ronda.instances.traces.logs.swf import SwfLog

    if len(files) > 1:
        raise InputError("FILE", f"{len(files)} files", "one, as each numbers its own jobs")
    chosen = LogFilter(
        since_s=_moment(since, ZoneInfo("UTC")),
        until_s=_moment(until, ZoneInfo("UTC")),
        partitions=frozenset(given.pop("partitions")),
        sample=given.pop("sample"),
    )
    account = RowAccount()
    log = SwfLog(files[0], account, chosen)
    given |= {"described": described, "start_s": chosen.since_s}
    _tell(log.runs(), account, files, seen=lambda: log.cluster(described), **given)


def _moment(date: datetime | None, zone: ZoneInfo) -> float | None:
    if date is None:
        return None
    return (date if date.tzinfo is not None else date.replace(tzinfo=zone)).timestamp()


def _tell(
    runs: Iterator[LogRun],
    account: RowAccount,
    files: Sequence[Path],
    *,
    start_s: float | None,
    cluster: Path | None,
    described: Sequence[Machine],
    only_count: bool,
    schedule: Path | None,
    name: str | None,
    out: Path | None,
    as_json: bool,
    seen: Callable[[], SeenCluster | None] | None = None,
    site: Site | None = None,
) -> None:
    """Write the instance of a log, and its schedule, or count it."""
    if only_count:
        told = ("--out", out), ("--schedule", schedule), ("--cluster", cluster), ("--slurm", site)
        for option, value in told:
            if value is not None:
                raise InputError(option, "--count as well", "one of them")
        _count(runs, account, as_json=as_json)
        return
    if cluster is not None and site is not None:
        raise InputError("--slurm", "--cluster as well", "one of them")
    if out is None:
        raise InputError("--out", "none", "--out FILE, or --count")
    from ronda.instances.rules.validate import validate
    from ronda.instances.traces.logs.instance import log_instance
    from ronda.instances.traces.own import read_cluster

    first = files[0]
    done = log_instance(
        runs,
        account,
        place=" ".join(map(label, files[:3])),
        name=name or (first.name.split(".")[0] if str(first) != "-" else "log"),
        source=" ".join(path.name for path in files[:8]),
        cluster=None if cluster is None else read_cluster(cluster),
        described=described,
        start_s=start_s,
        seen_cluster=seen,
        site=site or NO_SITE,
    )
    validate(done.instance)  # before anything is written
    if not as_json:
        display(done.dropped.table())
        for line in done.words:
            note(line)
    more = keep_schedule(done.instance, done.recorded, schedule, as_json=as_json)
    written(done.instance, out, as_json=as_json, **done.fields, **more)


def _count(runs: Iterator[LogRun], account: RowAccount, *, as_json: bool) -> None:
    from ronda.instances.traces.logs.tally import count_log

    counts = count_log(runs)
    whole = counts.whole
    fields = asdict(counts) | {
        "rows": account.rows,
        "dropped": account.dropped,
        "examples": account.dropped.examples,
        "folded": account.folded,
        "unread": account.unread,
    }
    words = (
        f"{account.rows:,} rows: {whole.jobs:,} jobs of {whole.users:,} users in {whole.runs:,} "
        f"runs, {whole.gpu_hours:,.1f} GPU-hours"
    )
    folded = [f"{n:,} rows are {what}" for what, n in account.folded.items()]
    show(
        Report(fields, [*counts.tables(), account.dropped.table(), words], notes=folded),
        as_json=as_json,
    )
