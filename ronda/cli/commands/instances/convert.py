"""``ronda instances convert``: instance files from published traces and tables of jobs."""

from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any, get_type_hints

import click
import msgspec

from ronda.cli.command import OpenGroup, Taught
from ronda.cli.load import written
from ronda.cli.logs import GPU, OWN_GPU
from ronda.cli.options import (
    DOCUMENT,
    NODES,
    SECONDS,
    TARGET,
    array_options,
    stacked,
    was_given,
    write_options,
)
from ronda.cli.output import display, note
from ronda.cli.records import named, options_of
from ronda.instances.arguments import described, summary
from ronda.instances.errors import InputError, need
from ronda.instances.files.json import write
from ronda.instances.files.storage import write_bytes
from ronda.instances.instance import Instance
from ronda.instances.tasks.files import read_tasks
from ronda.instances.traces.columns import NAMED, Columns, Dropped, Filters, columns_of
from ronda.instances.traces.recorded import Recorded
from ronda.instances.traces.rigid import MACHINES
from ronda.solvers.plugins import Plugin

OWN = {
    trace: Plugin(f"ronda.instances.traces.{module}:read_{trace}", about)
    for trace, module, about in (
        ("helios", "published", "Read a log of SenseTime Helios: rigid jobs on nodes of 8 V100."),
        ("itp", "published", "Read a cluster of Microsoft's ITP trace: rigid jobs with deadlines."),
        ("philly", "published", "Read Microsoft's Philly trace: rigid jobs on nodes of 8 GPUs."),
        ("pollux", "pollux", "Read a workload of Pollux's simulator: elastic jobs."),
    )
}
"""The core's readers of published traces."""

LOGS = {
    name: Plugin(f"ronda.cli.commands.instances.logs:{name}", about)
    for name, about in (
        ("sacct", "Read the accounting of Slurm, or count it."),
        ("swf", "Read a log in the Standard Workload Format, or count it."),
        ("batsim", "Read a workload of the simulator Batsim, or count it."),
    )
}
"""The commands that read what schedulers logged."""


@click.group(
    name="convert",
    cls=OpenGroup,
    kind="traces",
    make=lambda name, found: _reading(name, found),
    own=LOGS | OWN,
    examples=(
        "ronda instances convert helios cluster_log.csv --nodes vcvGl=20 --out vcvgl.json.zst",
        "ronda instances convert philly jobs.csv.gz --nodes 321 --max-gpus 64 --out philly.json.gz",
        "ronda instances convert pollux pollux-data/ --seed 3 --out pollux-3.json.zst",
    ),
)
def command() -> None:
    """Convert a published trace, or any table of jobs, into an instance file.

    Each reader's own help says what it keeps, and how the literature cuts the trace.
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
schedule_option = click.option(
    "--schedule",
    type=DOCUMENT,
    metavar="FILE",
    help="Write the starts, ends and nodes of the log, too, as a schedule of the instance.",
)
_name_option = click.option("--name", help="Name of the instance; otherwise that of the trace.")


def _rows(given: dict[str, Any], usual: Filters) -> Filters:
    """Return the default filters with the given ones, which are removed from `given`."""
    asked = {name: value for name in _ROWS if (value := given.pop(name)) is not None}
    return replace(usual, **asked)


def keep_schedule(
    instance: Instance, recorded: Recorded, path: Path | None, *, as_json: bool
) -> dict[str, Any]:
    """Write the schedule that a log tells of to `path`, if any; return fields for programs."""
    if path is None:
        return {}
    from ronda.instances.traces.happened import recorded_schedule

    if not recorded.runs:
        raise InputError(
            "--schedule", "no job with a start", "start=COLUMN and end=COLUMN in --map"
        )
    made = recorded_schedule(instance, recorded)
    write(made, path)
    if not as_json:
        for line in made.config["notes"]:
            note(line)
        note(f"{path}: the schedule of the log")
    return {"schedule": str(path), "recorded": made.config["notes"]}


def _reading(trace: str, found: Plugin) -> click.Command:
    """Return the command that reads a trace; the parameters of its reader are options."""
    read = found.load(f"ronda instances convert {trace}")
    if isinstance(read, click.Command):
        return read
    source, *_ = signature(read).parameters
    filters = signature(read).parameters.get("filters")
    types: dict[str, Any] = {}
    if get_type_hints(read).get("nodes", int) is not int:
        types["nodes"] = NODES
    options = options_of(read, skip={source, "name", "filters", "dropped"}, **types)
    rows = [_row_options] if filters is not None else []

    def carry_out(source: Path, out: Path, name: str | None, as_json: bool, **given: Any) -> None:
        dropped = Dropped()
        if filters is not None:
            given |= {"filters": _rows(given, filters.default), "dropped": dropped}
        with named(given):
            made = read(source, **given)
        if name:
            made = msgspec.structs.replace(made, name=name)
        if not as_json:
            display(dropped.table())
        told = {"dropped": dropped, "examples": dropped.examples} if dropped else {}
        written(made, out, as_json=as_json, **told)

    metavar = "FOLDER" if source == "folder" else "FILE"
    path = click.argument("source", metavar=metavar, type=click.Path(path_type=Path))
    added = stacked(path, options, *rows, _name_option, write_options)
    about = summary(read).replace("`", "")
    return click.command(name=trace, cls=Taught, help=about)(added(carry_out))


_MACHINES = {
    "nodes": "--nodes",
    "share": "--load",
    "gpus_per_node": "--gpus-per-node",
    "gpu": "--gpu",
}
"""The options that ``--cluster`` replaces."""


@command.command(
    name="table",
    cls=Taught,
    examples=(
        "ronda instances convert table jobs.csv --map submit=arrival,gpus=num_gpus,duration=run_s"
        " --load 0.9 --out mine.json.zst",
        "ronda instances convert table pods.csv --map openb --nodes 16 --picture load.png"
        " --out pods.json.zst",
        "ronda instances convert table queue.csv --map submit=at,gpus=n,duration=run_s,weight=prio"
        " --cluster room.json --round --out round.json",
    ),
    terms=("Fields of COLUMNS", described(Columns)),
)
@click.argument("source", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--map",
    "mapping",
    required=True,
    metavar="COLUMNS",
    help=f"{', '.join(NAMED)}, also with changes as in philly,zone=Europe/Berlin; a .json file; or "
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
@click.option("--gpus-per-node", type=click.IntRange(1), default=8, help="Of a node.")
@click.option(
    "--gpu",
    type=GPU,
    default="v100",
    help=f"{', '.join(MACHINES)}; or {OWN_GPU}.",
)
@_row_options
@click.option("--picture", type=TARGET, metavar="FILE", help="Draw the load: .png or .svg.")
@schedule_option
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
    schedule: Path | None,
    out: Path,
    as_json: bool,
    **given: Any,
) -> None:
    """Read any table with a job per row, as CSV or Parquet.

    Jobs are rigid and run for as long as they did originally. Rows that cannot be jobs are dropped;
    the summary says how many, and why. A job that ran several times under one id counts as several
    jobs.

    With --cluster, the machines are your own, and jobs may have weights, deadlines, GPU types and
    measured rates; such a table can also become a round.
    """
    if picture is not None:
        need("--picture", "matplotlib")
    if one_round and schedule is not None:
        raise InputError("--schedule", "--round as well", "an instance, whose jobs have run")
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
        write_bytes(keep_map, msgspec.json.format(msgspec.json.encode(columns)) + b"\n")
    if picture is not None:
        from ronda.bench.figures.draw import save_chart
        from ronda.bench.figures.usage import demand

        save_chart(demand(done.instance), picture.with_suffix(""), svg=picture.suffix == ".svg")
    if not as_json:
        display(done.dropped.table())
        for line in done.words:
            note(line)
    more = keep_schedule(done.instance, done.recorded, schedule, as_json=as_json)
    made = as_round(done.instance) if one_round else done.instance
    written(made, out, as_json=as_json, **done.fields, **more)


@command.command(
    name="tasks",
    cls=Taught,
    examples=("ronda instances convert tasks round.npz --out round.parquet",),
)
@click.argument("source", metavar="FILE", type=click.Path())
@array_options
def tasks(source: str, out: Path, as_json: bool) -> None:
    """Write a round of tasks (.npz or .parquet) in the other form; both are read alike."""
    written(read_tasks(source), out, as_json=as_json)
