"""``ronda instances convert``: published traces become instance files."""

from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import click
import msgspec

from ronda.cli.command import OpenGroup, Taught
from ronda.cli.load import written
from ronda.cli.options import (
    NODES,
    SECONDS,
    SEED,
    TARGET,
    Command,
    Parsed,
    stacked,
    was_given,
    write_options,
)
from ronda.cli.output import display, note
from ronda.cli.records import named, options_of
from ronda.instances.arguments import described, summary
from ronda.instances.errors import InputError, need
from ronda.instances.files.storage import store
from ronda.instances.traces.columns import NAMED, Columns, Dropped, Filters, columns_of
from ronda.instances.traces.rigid import MACHINES, read_machine
from ronda.solvers.plugins import Plugin


@click.group(
    name="convert",
    cls=OpenGroup,
    kind="traces",
    make=lambda name, found: _other(name, found),
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


_ROWS = tuple(signature(Filters).parameters)
_row_options = options_of(
    Filters,
    bare=True,
    metavar="NUMBER",
    unset=True,
    min_duration_s=SECONDS,
    max_duration_s=SECONDS,
    max_gpu_hours=SECONDS,
    max_gpus=click.IntRange(1),
)
_name_option = click.option("--name", help="Name of the instance; otherwise that of the trace.")


def _rows(given: dict[str, Any], usual: Filters) -> Filters:
    """Return the usual filters with those that were given, which are taken out."""
    asked = {name: value for name in _ROWS if (value := given.pop(name)) is not None}
    return replace(usual, **asked)


def _add(trace: str, metavar: str, about: str, *options: Callable[[Command], Command]) -> None:
    """Add the command that reads a trace, by ``read_TRACE`` of its module."""
    module = trace if trace == "pollux" else "published"
    found = Plugin(f"ronda.instances.traces.{module}:read_{trace}")
    command.add_command(_reading(trace, metavar, about, found, *options))


def _other(trace: str, found: Plugin) -> click.Command:
    """Return the command of another package's reader: its parameters are options."""
    read = found.load(f"ronda instances convert {trace}")
    source, *parameters = signature(read).parameters
    options = options_of(read, skip={source, "name", "filters", "dropped"})
    rows = [_row_options] if "filters" in parameters else []
    return _reading(trace, "FILE", summary(read).replace("`", ""), found, options, *rows)


def _reading(
    trace: str, metavar: str, about: str, found: Plugin, *options: Callable[[Command], Command]
) -> click.Command:
    """Return the command that reads a trace by a reader."""

    def carry_out(source: Path, out: Path, name: str | None, as_json: bool, **given: Any) -> None:
        read, dropped = found.load(trace), Dropped()
        if (filters := signature(read).parameters.get("filters")) is not None:
            given |= {"filters": _rows(given, filters.default), "dropped": dropped}
        with named(given):
            made = read(source, **given)
        if name:
            made = msgspec.structs.replace(made, name=name)
        if not as_json:
            display(dropped.table())
        told = {"dropped": dropped, "examples": dropped.examples} if dropped else {}
        written(made, out, as_json=as_json, **told)

    source = click.argument("source", metavar=metavar, type=click.Path(path_type=Path))
    added = stacked(source, *options, _name_option, write_options)
    return click.command(name=trace, cls=Taught, help=about)(added(carry_out))


def _seed(default: int, help: str) -> Callable[[Command], Command]:
    return click.option("--seed", type=SEED, default=default, show_default=True, help=help)


def _sixteen(help: str) -> Callable[[Command], Command]:
    kind = click.IntRange(1)
    return click.option("--nodes", type=kind, default=16, show_default=True, help=help)


def _some(example: str) -> Callable[[Command], Command]:
    return click.option("--nodes", type=NODES, required=True, help=f"As in {example}.")


_add(
    "helios",
    "CSV",
    """Read a log of SenseTime Helios: rigid jobs on nodes of 8 V100.

    With --nodes by virtual cluster only their jobs are read, each in a partition of its own.
    The literature takes September 2020, each virtual cluster for itself.
    """,
    _some("133, or vcvGl=20,vcvLy=2"),
    _row_options,
)
_add(
    "philly",
    "CSV",
    """Read Microsoft's Philly trace: rigid jobs on nodes of 8 GPUs.

    Times count from 2017-09-04 00:00; days 21 to 97 are the dense part. Without filters, Pollux's
    and Sia's are used: 60 s or more, less than 1000 GPU-hours.
    """,
    _some("321, or ee9e8c=60,6214e9=40"),
    _row_options,
)
_add(
    "itp",
    "CSV",
    """Read a cluster of Microsoft's ITP trace: rigid jobs, with deadlines where it has them.

    ElasticFlow takes 195job on 16 nodes, and cluster01 to cluster10 on 4 to 16.
    """,
    click.option("--cluster", required=True, help="Which one, as in 195job or cluster01."),
    _sixteen("Of 8 A100."),
    _row_options,
)
_add(
    "pollux",
    "FOLDER",
    "Read a workload of Pollux's simulator: elastic jobs with measured step times.",
    _seed(1, "Which workload."),
    click.option("--workload", default="workloads", show_default=True, help="As workloads-2.0."),
    _sixteen("Of 4 T4."),
)


_MACHINES = {
    "nodes": "--nodes",
    "share": "--load",
    "gpus_per_node": "--gpus-per-node",
    "gpu": "--gpu",
}
"""Options that say what ``--cluster`` says."""

OWN_GPU = "name=H100,memory_gib=80,idle_w=60,busy_w=700,host_idle_w=500"
GPU = Parsed("gpu", f"{', '.join(MACHINES)}, or as in {OWN_GPU}", read_machine)


@command.command(
    name="table",
    cls=Taught,
    examples=(
        "ronda instances convert table jobs.csv --map submit=arrival,gpus=num_gpus,duration=run_s"
        " --load 0.9 --out mine.json.zst",
        "ronda instances convert table sacct.txt --map sacct --nodes 16 --picture load.png"
        " --out slurm.json.zst",
        "ronda instances convert table queue.csv --map submit=at,gpus=n,duration=run_s,weight=prio"
        " --cluster room.json --round --out round.json",
        "ronda instances convert table log.swf --map swf --load 0.8 --out swf.json.zst",
    ),
    terms=("Fields of COLUMNS", described(Columns)),
)
@click.argument("source", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--map",
    "mapping",
    required=True,
    metavar="COLUMNS",
    help=f"{', '.join(NAMED)}, also with changes as in sacct,zone=Europe/Berlin; a .json file; or "
    "submit=COLUMN,gpus=COLUMN,duration=COLUMN and more fields, which stand below.",
)
@click.option("--keep-map", type=TARGET, metavar="FILE", help="Write the mapping, for --map later.")
@click.option(
    "--cluster",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The machines, as JSON with the fields of a Cluster: any GPU types, racks, partitions "
    "(vc=). Then a row that cannot be a job is refused, unless the table is a log (state=).",
)
@click.option(
    "--rates",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --cluster: measured speeds, a table with columns profile, gpu_type, gpus, nodes and "
    "rate (work per second).",
)
@click.option(
    "--round", "one_round", is_flag=True, help="With --cluster: a round in which all jobs wait."
)
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
@_row_options
@click.option("--picture", type=TARGET, metavar="FILE", help="Draw the load: .png or .svg.")
@_name_option
@write_options
def table(
    source: Path,
    mapping: str,
    keep_map: Path | None,
    cluster: Path | None,
    rates: Path | None,
    one_round: bool,
    picture: Path | None,
    out: Path,
    as_json: bool,
    **given: Any,
) -> None:
    """Read any table with a job a row: CSV, Parquet, Slurm's sacct, Standard Workload Format.

    Jobs are rigid and run for as long as they did. Rows that cannot be jobs are dropped; the
    summary says how many, and why. A job that ran several times under one id is one each time.

    With --cluster the machines are your own, and jobs may have weights, deadlines, GPU types and
    measured rates; such a table also becomes a round.
    """
    if picture is not None:
        need("--picture", "matplotlib")
    columns, filters = columns_of(mapping), _rows(given, Filters())
    name = given.pop("name") or source.name.split(".")[0]
    if cluster is None:
        for option, value in (("--rates", rates), ("--round", one_round)):
            if value:
                raise InputError(option, "no --cluster", "--cluster FILE too")
        from ronda.instances.traces.mapped import read_mapped

        machine = replace(given.pop("gpu"), gpus=given.pop("gpus_per_node"))
        done = read_mapped(source, columns, machine=machine, filters=filters, name=name, **given)
    else:
        for option, words in _MACHINES.items():
            if was_given(option):
                raise InputError(words, "--cluster as well", "one of them")
        from ronda.instances.traces.own import as_round, read_cluster, read_own, read_rates

        machines = read_cluster(cluster)
        speeds = None if rates is None else read_rates(rates, machines)
        how: dict[str, Any] = {"rates": speeds, "filters": filters, "name": name}
        done = read_own(source, columns, machines, sized=not one_round, **how)
    if keep_map is not None:
        store(keep_map, msgspec.json.format(msgspec.json.encode(columns)) + b"\n")
    if picture is not None:
        from ronda.bench.figures.draw import save_chart
        from ronda.bench.figures.usage import demand

        save_chart(demand(done.instance), picture.with_suffix(""), svg=picture.suffix == ".svg")
    if not as_json:
        display(done.dropped.table())
        for line in done.words:
            note(line)
    made = as_round(done.instance) if one_round else done.instance
    written(made, out, as_json=as_json, **done.fields)
