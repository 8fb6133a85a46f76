"""The log in front of a command: its files, and how they are read."""

import dataclasses
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click
from msgspec.structs import replace

from ronda.cli.options import Parsed, stacked
from ronda.instances.cluster import Cluster
from ronda.instances.errors import InputError
from ronda.instances.site import GPUS, Site
from ronda.instances.traces.columns import NAMED
from ronda.instances.traces.logs.instance import ReadLog
from ronda.instances.traces.logs.runs import LogFilter
from ronda.instances.traces.logs.sacct import LogFormat
from ronda.instances.traces.logs.seen_cluster import SeenCluster
from ronda.instances.traces.rigid import MACHINES, read_machine
from ronda.solvers.plugins import find


def _names(text: str) -> tuple[str, ...] | None:
    names = tuple(part.strip() for part in text.split(","))
    return names if all(names) else None


ZONE = Parsed("zone", "a time zone such as Europe/Berlin", ZoneInfo)
DAY = Parsed("date", "a date such as 2026-03-02 or 2026-03-02T09:00", datetime.fromisoformat)
NAMES = Parsed("names", "names, as in a,b", _names)
OWN_GPU = "name=H100,memory_gib=80,idle_w=60,busy_w=700,host_idle_w=500"
GPU = Parsed("type", f"{', '.join(MACHINES)}, or as in {OWN_GPU}", read_machine)

file_options: Callable[[Any], Any] = stacked(
    click.argument(
        "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path)
    ),
    click.option(
        "--cluster",
        metavar="FILE",
        help="The machines, as JSON with the fields of a Cluster, or NODESxGPUS as in 321x8 or "
        "24x1,518x2; otherwise as the log shows them.",
    ),
    click.option(
        "--gpu",
        "described",
        type=GPU,
        multiple=True,
        help=f"A GPU type other than {', '.join(MACHINES)}, as in {OWN_GPU}; any number of them.",
    ),
)
"""The files of a log, and its machines."""

machine_options: Callable[[Any], Any] = stacked(
    file_options,
    click.option("--since", type=DAY, help="Keep jobs submitted from DATE on."),
    click.option("--until", type=DAY, help="Keep jobs submitted before DATE."),
    click.option(
        "--partitions", type=NAMES, default=(), metavar="A,B", help="Keep jobs of these partitions."
    ),
)
"""The files of a log, its machines, and which of its jobs are read."""

slurm_options: Callable[[Any], Any] = stacked(
    click.option(
        "--slurm",
        "--nodes",
        "shown",
        type=click.Path(path_type=Path),
        multiple=True,
        metavar="FILE",
        help="The machines, as sinfo --json or scontrol show node -o prints them; more FILEs of "
        "sacctmgr -P show assoc and show qos have the tree of accounts, and ranks and limits of "
        "QOS.",
    ),
    click.option(
        "--zone",
        type=ZONE,
        default="UTC",
        help="Time zone of dates, in the log, in options and in answers.",
    ),
    click.option(
        "--columns",
        type=NAMES,
        default=(),
        metavar="A,B",
        help="The columns of a log without a header, as they were in sacct's --format.",
    ),
    click.option(
        "--device",
        type=click.Choice(["gpu", "cpu"]),
        default="gpu",
        help="With cpu each core is a device, for logs of clusters without GPUs.",
    ),
)
"""How a log of Slurm is read."""

reader_option = click.option(
    "--reader",
    default="",
    show_default=False,
    metavar="READER",
    help=f"sacct, swf, batsim (these are recognised); a public trace: {', '.join(NAMED)}; "
    "columns of a table, as --map of ronda instances convert table; or an installed reader.",
)

log_options: Callable[[Any], Any] = stacked(machine_options, reader_option, slurm_options)
"""The files of a log of any kind, and how they are read, for `log_of`."""

whole_log_options: Callable[[Any], Any] = stacked(file_options, reader_option, slurm_options)
"""The same of a log of which all jobs are read."""


def log_of(given: dict[str, Any], *, instant: bool = False) -> ReadLog:
    """Return the log in front of a command; its options are removed from `given`.

    With `instant`, jobs that ended in the second in which they started are kept.
    """
    from ronda.instances.traces.door import read_log

    files = given.pop("files")
    try:
        return read_log(files, dataclasses.replace(reading_of(given), instant=instant))
    except InputError as error:
        place = error.place.replace("--map", "--reader")
        raise InputError(place, error.found, error.expected) from None


def reading_of(given: dict[str, Any]) -> Any:
    """Return how a log is read, a `LogReading`; the options of it are removed from `given`.

    Raises
    ------
    InputError
        If machines are given twice, or an option has no effect.
    """
    from ronda.instances.traces.door import READERS, LogReading

    reader, described = given.pop("reader", ""), tuple(given.pop("described", ()))
    zone, shown = given.pop("zone", ZoneInfo("UTC")), given.pop("shown", ())
    choice = LogFilter(
        since_s=_moment(given.pop("since", None), zone),
        until_s=_moment(given.pop("until", None), zone),
        partitions=frozenset(given.pop("partitions", ())),
        sample=given.pop("sample", 1.0),
        device=given.pop("device", "gpu"),
    )
    cluster = given.pop("cluster")
    for option in ("--device cpu",) * (choice.device == "cpu") + ("--cluster",) * bool(cluster):
        if shown:
            raise InputError("--slurm", f"{option} as well", "one of them")
    plugin = None if reader in READERS else find("traces", reader)
    how = {"reader": plugin.load(f"--reader {reader}") if plugin else reader}
    if cluster is not None:
        how["cluster"] = _cluster(cluster)
    return LogReading(
        form=LogFormat(zone=zone, columns=given.pop("columns", ())),
        choice=choice,
        described=described,
        **how,
        **(_shown(shown) if shown else {}),
    )


def _cluster(text: str) -> Cluster:
    from ronda.instances.traces.own import read_cluster
    from ronda.instances.traces.rigid import plain_cluster

    if not re.fullmatch(r"[1-9]\d*x[1-9]\d*(,[1-9]\d*x[1-9]\d*)*", text, re.ASCII):
        return read_cluster(text)
    return plain_cluster(
        [(int(n), int(each)) for n, each in (p.split("x") for p in text.split(","))]
    )


def _moment(date: datetime | None, zone: ZoneInfo) -> float | None:
    if date is None:
        return None
    return (date if date.tzinfo is not None else date.replace(tzinfo=zone)).timestamp()


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
    return {"site": replace(site, groups=kept), "seen": seen}
