"""``ronda instances convert``: published traces become instance files."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import msgspec

from ronda.cli.command import Taught, TaughtGroup
from ronda.cli.load import written
from ronda.cli.options import NODES, SECONDS, SEED, file_option, force_option, json_option
from ronda.cli.output import refuse_existing
from ronda.instances.demand import Demand
from ronda.instances.files.storage import packer
from ronda.instances.instance import Instance
from ronda.instances.traces.demand import read_demand
from ronda.instances.traces.helios import read_helios
from ronda.instances.traces.itp import read_itp
from ronda.instances.traces.ones import read_ones
from ronda.instances.traces.philly import POLLUX_FILTERS, read_philly
from ronda.instances.traces.pollux import read_pollux
from ronda.instances.traces.table import ALL


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
    """Convert a published trace into an instance file.

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
    _convert(lambda f: read_helios(source, nodes=nodes, filters=f), out, rest)


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
    _convert(lambda f: read_philly(source, nodes=nodes, filters=f), out, rest, POLLUX_FILTERS)


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
    _convert(lambda f: read_itp(source, cluster=cluster, nodes=nodes, filters=f), out, rest)


@command.command(name="pollux", cls=Taught)
@click.argument("source", metavar="FOLDER", type=click.Path(path_type=Path))
@click.option("--seed", type=SEED, default=1, show_default=True, help="Which workload.")
@click.option("--workload", default="workloads", show_default=True, help="As workloads-2.0.")
@click.option("--nodes", type=click.IntRange(1), default=16, show_default=True, help="Of 4 T4.")
@write_option
def pollux(source: Path, seed: int, workload: str, nodes: int, out: Path, **rest: Any) -> None:
    """Read a workload of Pollux's simulator: elastic jobs with measured step times."""
    _convert(lambda _: read_pollux(source, seed=seed, workload=workload, nodes=nodes), out, rest)


@command.command(name="ones", cls=Taught)
@click.argument("source", metavar="CSV", type=click.Path(path_type=Path))
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of the epochs needed.")
@click.option("--nodes", type=click.IntRange(1), default=16, show_default=True, help="Of 4 GPUs.")
@write_option
def ones(source: Path, seed: int, nodes: int, out: Path, **rest: Any) -> None:
    """Read a trace of the ONES artifact: elastic jobs whose batch may change."""
    _convert(lambda _: read_ones(source, seed=seed, nodes=nodes), out, rest)


@command.command(name="demand", cls=Taught)
@click.argument("source", metavar="CSV", type=click.Path(path_type=Path))
@write_option
def demand(source: Path, out: Path, **rest: Any) -> None:
    """Read how many nodes were in use: columns time, needed and total, in equal steps.

    The headers of the Helios artifact (running, pred) are understood as well; forecast and active
    may be missing.
    """
    _convert(lambda _: read_demand(source), out, rest)


def _convert(
    read: Callable[[Any], Instance | Demand], out: Path, rest: dict[str, Any], usual: Any = None
) -> None:
    """Read a trace and write the instance.

    `rest` holds the options of `write_option` and, for some traces, of `filter_options`: these
    replace single ones of the `usual` filters.
    """
    refuse_existing(out, force=rest["force"])
    packer(out)  # a wrong suffix is told before any work
    chosen = {name: rest[name] for name in FILTERS if rest.get(name) is not None}
    instance = read(replace(usual or ALL, **chosen))
    if rest["name"]:
        instance = msgspec.structs.replace(instance, name=rest["name"])
    written(instance, out, as_json=rest["as_json"])
