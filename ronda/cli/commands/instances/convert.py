"""``ronda instances convert``: published traces become instance files."""

from collections.abc import Callable
from dataclasses import replace
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ronda.cli.command import Taught, TaughtGroup
from ronda.cli.load import written
from ronda.cli.options import (
    NODES,
    SECONDS,
    SEED,
    TARGET,
    Parsed,
    file_option,
    force_option,
    json_option,
)
from ronda.cli.output import display, note, refuse_existing
from ronda.cli.output import table as shown
from ronda.instances.base import Name, NonNegative, Positive
from ronda.instances.cluster import GpuType
from ronda.instances.demand import Demand
from ronda.instances.errors import printable
from ronda.instances.extras import need
from ronda.instances.files.storage import packer, store
from ronda.instances.instance import Instance
from ronda.instances.traces.columns import NAMED, UNITS, columns_of
from ronda.instances.traces.ones import read_ones
from ronda.instances.traces.rigid import A100_NODE, P100_NODE, T4_NODE, V100_NODE, Machine

if TYPE_CHECKING:
    from ronda.instances.traces.mapped import Converted
    from ronda.instances.traces.table import Dropped


@click.group(
    name="convert",
    cls=TaughtGroup,
    examples=(
        "ronda instances convert helios cluster_log.csv --nodes vcvGl=20 --out vcvgl.json.zst",
        "ronda instances convert philly jobs.csv.gz --nodes 321 --max-gpus 64 --out philly.json.gz",
        "ronda instances convert pollux pollux-data/ --seed 3 --out pollux-3.json.zst",
    ),
)
def command() -> None:
    """Convert a published trace, or any table of jobs, into an instance file.

    What each reader keeps, and how the literature cuts the trace, is told by its own help.
    """


def write_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every converter: where to write, under which name."""
    for option in (
        json_option,
        force_option,
        click.option("--name", help="Name of the instance; otherwise that of the trace."),
        file_option,
    ):
        function = option(function)
    return function


FILTERS = {
    "start_s": (click.FLOAT, "Keep jobs submitted from this second of the trace's clock on."),
    "end_s": (click.FLOAT, "Keep jobs submitted before this second of the trace's clock."),
    "min_duration_s": (SECONDS, "Keep jobs that ran for at least this many seconds."),
    "max_duration_s": (SECONDS, "Keep jobs that ran for at most this many seconds."),
    "max_gpu_hours": (SECONDS, "Keep jobs that used less than this many GPU-hours."),
    "max_gpus": (click.IntRange(1), "Keep jobs that ask for at most this many GPUs."),
}


def filter_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose rows of a trace."""
    for name, (kind, text) in reversed(FILTERS.items()):
        flag = "--" + name.removesuffix("_s").replace("_", "-")
        function = click.option(flag, name, type=kind, metavar="NUMBER", help=text)(function)
    return function


@command.command(name="helios", cls=Taught)
@click.argument("source", metavar="CSV", type=click.Path(path_type=Path))
@click.option("--nodes", type=NODES, required=True, help="As in 133, or vcvGl=20,vcvLy=2.")
@filter_options
@write_option
def helios(source: Path, nodes: Any, out: Path, **rest: Any) -> None:
    """Read a log of SenseTime Helios: rigid jobs on nodes of 8 V100.

    With --nodes by virtual cluster only their jobs are read, each in a partition of its own.
    The literature takes September 2020, each virtual cluster for itself.
    """
    from ronda.instances.traces.helios import read_helios

    _convert(lambda f, d: read_helios(source, nodes=nodes, filters=f, dropped=d), out, rest)


@command.command(name="philly", cls=Taught)
@click.argument("source", metavar="CSV", type=click.Path(path_type=Path))
@click.option("--nodes", type=NODES, required=True, help="As in 321, or ee9e8c=60,6214e9=40.")
@filter_options
@write_option
def philly(source: Path, nodes: Any, out: Path, **rest: Any) -> None:
    """Read Microsoft's Philly trace: rigid jobs on nodes of 8 GPUs.

    Times count from 2017-09-04 00:00; days 21 to 97 are the dense part. Without filters, Pollux's
    and Sia's are used: 60 s or more, less than 1000 GPU-hours.
    """
    from ronda.instances.traces.philly import POLLUX_FILTERS, read_philly

    _convert(
        lambda f, d: read_philly(source, nodes=nodes, filters=f, dropped=d),
        *(out, rest, POLLUX_FILTERS),
    )


@command.command(name="itp", cls=Taught)
@click.argument("source", metavar="CSV", type=click.Path(path_type=Path))
@click.option("--cluster", required=True, help="Which one, as in 195job or cluster01.")
@click.option("--nodes", type=click.IntRange(1), default=16, show_default=True, help="Of 8 A100.")
@filter_options
@write_option
def itp(source: Path, cluster: str, nodes: int, out: Path, **rest: Any) -> None:
    """Read a cluster of Microsoft's ITP trace: rigid jobs, with deadlines where it has them.

    ElasticFlow takes 195job on 16 nodes, and cluster01 to cluster10 on 4 to 16.
    """
    from ronda.instances.traces.itp import read_itp

    _convert(
        lambda f, d: read_itp(source, cluster=cluster, nodes=nodes, filters=f, dropped=d),
        *(out, rest),
    )


@command.command(name="pollux", cls=Taught)
@click.argument("source", metavar="FOLDER", type=click.Path(path_type=Path))
@click.option("--seed", type=SEED, default=1, show_default=True, help="Which workload.")
@click.option("--workload", default="workloads", show_default=True, help="As workloads-2.0.")
@click.option("--nodes", type=click.IntRange(1), default=16, show_default=True, help="Of 4 T4.")
@write_option
def pollux(source: Path, seed: int, workload: str, nodes: int, out: Path, **rest: Any) -> None:
    """Read a workload of Pollux's simulator: elastic jobs with measured step times."""
    from ronda.instances.traces.pollux import read_pollux

    _convert(lambda *_: read_pollux(source, seed=seed, workload=workload, nodes=nodes), out, rest)


@command.command(name="ones", cls=Taught)
@click.argument("source", metavar="CSV", type=click.Path(path_type=Path))
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of the epochs needed.")
@click.option("--nodes", type=click.IntRange(1), default=16, show_default=True, help="Of 4 GPUs.")
@write_option
def ones(source: Path, seed: int, nodes: int, out: Path, **rest: Any) -> None:
    """Read a trace of the ONES artifact: elastic jobs whose batch may change."""
    _convert(lambda *_: read_ones(source, seed=seed, nodes=nodes), out, rest)


MACHINES = {"v100": V100_NODE, "p100": P100_NODE, "a100": A100_NODE, "t4": T4_NODE}


class _Card(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What ``--gpu`` says of a GPU, and of its host without GPUs, that has no name here."""

    name: Name
    memory_gib: Positive
    idle_w: NonNegative
    busy_w: NonNegative
    host_idle_w: NonNegative


def _machine(text: str) -> Machine | None:
    """Return the node of a GPU type; None if the text is none."""
    if text in MACHINES:
        return MACHINES[text]
    try:
        card = msgspec.convert(_pairs(text), type=_Card, strict=False)
    except msgspec.ValidationError:
        return None
    if not (isfinite(card.memory_gib + card.host_idle_w) and card.idle_w <= card.busy_w < inf):
        return None
    gpu = GpuType(name=card.name, memory_gib=card.memory_gib, idle_w=card.idle_w)
    return Machine(gpu=gpu, gpus=8, busy_w=card.busy_w, host_idle_w=card.host_idle_w)


def _pairs(text: str) -> dict[str, str]:
    return dict(part.strip().partition("=")[::2] for part in text.split(","))


OWN_GPU = "name=H100,memory_gib=80,idle_w=60,busy_w=700,host_idle_w=500"
GPU = Parsed("gpu", f"{', '.join(MACHINES)}, or as in {OWN_GPU}", _machine)


@command.command(
    name="table",
    cls=Taught,
    examples=(
        "ronda instances convert table jobs.csv --map submit=arrival,gpus=num_gpus,duration=run_s"
        " --load 0.9 --out mine.json.zst",
        "ronda instances convert table sacct.txt --map sacct --nodes 16 --picture load.png"
        " --out slurm.json.zst",
        "ronda instances convert table log.swf --map swf --load 0.8 --out swf.json.zst",
    ),
)
@click.argument("source", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--map",
    "mapping",
    required=True,
    metavar="COLUMNS",
    help=f"{', '.join(NAMED)}, also with changes as in sacct,zone=Europe/Berlin; a .json file; or "
    "submit=COLUMN,gpus=COLUMN,duration=COLUMN (or start= and end=). Further: id=, user=, name=; "
    "vc= (with --nodes by name); state= with states=A/B (those kept); requested= (GPUs where gpus= "
    "says nothing); share= of a GPU, of which whole= is all; unknown=A/B (cells that say nothing); "
    f"unit={'|'.join(UNITS)} (of times that are numbers; of one column submit_unit=, "
    "duration_unit=, start_unit=, end_unit=); zone= (of dates); separator=.",
)
@click.option("--keep-map", type=TARGET, metavar="FILE", help="Write the mapping, for --map later.")
@click.option("--nodes", type=NODES, help="Of the cluster, or by vc=, as in gpu=16,debug=2.")
@click.option(
    "--load",
    "share",
    type=click.FloatRange(0, min_open=True),
    help="Without --nodes: as many as make the load this, from first to last submission.",
)
@click.option(
    "--gpus-per-node", type=click.IntRange(1), default=8, show_default=True, help="Of a node."
)
@click.option(
    "--gpu",
    type=GPU,
    default="v100",
    show_default=True,
    metavar="TYPE",
    help=f"{', '.join(MACHINES)}; or {OWN_GPU}.",
)
@filter_options
@click.option("--picture", type=TARGET, metavar="FILE", help="Draw the load: .png or .svg.")
@write_option
def table(
    source: Path,
    mapping: str,
    keep_map: Path | None,
    nodes: int | dict[str, int] | None,
    share: float | None,
    gpus_per_node: int,
    gpu: Machine,
    picture: Path | None,
    name: str | None,
    out: Path,
    force: bool,
    as_json: bool,
    **limits: Any,
) -> None:
    """Read any table with a job a row: CSV, Parquet, Slurm's sacct, Standard Workload Format.

    Jobs are rigid and run for as long as they did. Rows that cannot be jobs are dropped; the
    summary says how many, and why. A job that ran several times under one id is one each time.
    """
    from ronda.instances.traces.mapped import read_mapped
    from ronda.instances.traces.table import ALL

    for path in filter(None, (out, keep_map, picture)):
        refuse_existing(path, force=force)
    packer(out)  # a wrong suffix is told before any work
    if picture is not None:
        need("--picture", "matplotlib")
    columns = columns_of(mapping)
    done = read_mapped(
        source,
        columns,
        machine=replace(gpu, gpus=gpus_per_node),
        nodes=nodes,
        share=share,
        filters=replace(ALL, **{key: value for key, value in limits.items() if value is not None}),
        name=name or source.name.split(".")[0],
    )
    if keep_map is not None:
        store(keep_map, msgspec.json.format(msgspec.json.encode(columns)) + b"\n")
    if picture is not None:
        from ronda.bench.figures.usage import draw_wanted

        draw_wanted(done.instance, picture)
    counts = {"rows": done.rows, "runs": done.runs, "load": round(done.load, 4)}
    if not as_json:
        _show(done.dropped)
        _tell(done)
    told = counts | {"dropped": done.dropped, "unread": done.unread}
    written(done.instance, out, as_json=as_json, **told)


def _show(dropped: "Dropped") -> None:
    """Print how many rows are no jobs, and why."""
    made = shown("rows dropped", "because of")
    for why, count in dropped.items():
        made.add_row(f"{count:,}", why)
    if dropped:
        display(made)


def _tell(done: "Converted") -> None:
    """Say on stderr what a summary of rows does not."""
    note(f"rows: {done.rows:,}, of which {len(done.instance.jobs):,} are jobs")
    if done.runs:
        note(f"further runs of a job under its id: {done.runs:,}; the second is ID#2")
    if done.unread:
        note(f"columns not read: {', '.join(map(printable, done.unread))}")
    note(f"load: {done.load:.2f} of the cluster, from the first submission to the last")


@command.command(name="demand", cls=Taught)
@click.argument("source", metavar="CSV", type=click.Path(path_type=Path))
@write_option
def demand(source: Path, out: Path, **rest: Any) -> None:
    """Read how many nodes were in use: columns time, needed and total, in equal steps.

    The headers of the Helios artifact (running, pred) are understood as well; forecast and active
    may be missing.
    """
    from ronda.instances.traces.demand import read_demand

    _convert(lambda *_: read_demand(source), out, rest)


def _convert(
    read: Callable[[Any, "Dropped"], Instance | Demand],
    out: Path,
    rest: dict[str, Any],
    usual: Any = None,
) -> None:
    """Read a trace, write the instance, and say which rows are not in it.

    `rest` holds the options of `write_option` and, for some traces, of `filter_options`: these
    replace single ones of the `usual` filters.
    """
    from ronda.instances.traces.table import ALL, Dropped

    refuse_existing(out, force=rest["force"])
    packer(out)  # a wrong suffix is told before any work
    chosen = {name: rest[name] for name in FILTERS if rest.get(name) is not None}
    dropped = Dropped()
    instance = read(replace(usual or ALL, **chosen), dropped)
    if rest["name"]:
        instance = msgspec.structs.replace(instance, name=rest["name"])
    if not rest["as_json"]:
        _show(dropped)
    told = {"dropped": dropped} if dropped else {}
    written(instance, out, as_json=rest["as_json"], **told)
