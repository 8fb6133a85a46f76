"""``ronda instances show``: the contents of an instance or a round."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ronda.cli.command import taught
from ronda.cli.options import TARGET, Source, out_file_options
from ronda.instances.errors import InputError, need, printable

if TYPE_CHECKING:
    import networkx as nx
    from rich.tree import Tree


@taught(
    "show",
    "ronda instances show pollux-1",
    "ronda instances show round.json --json",
    "ronda instances show tasks.npz",
    "ronda instances show philly-energy --topology --out cluster.svg",
    "ronda instances show lingjun_hosts.csv --topology",
)
@click.argument("source", metavar="NAME", type=Source())
@click.option(
    "--topology",
    is_flag=True,
    help="Show the tree of racks and nodes instead; also of a CSV file of hosts and their "
    "switches.",
)
@out_file_options(TARGET, "With --topology: draw the tree as a picture, .png or .svg.")
def command(source: str, topology: bool, out: Path | None, as_json: bool) -> int:
    """Show the contents of NAME: a packaged instance, round or demand series, or a file.

    Of a round of tasks (.npz or .parquet) the tasks that fit no node are named with the reason.
    """
    from ronda.cli.load import question, task_round
    from ronda.cli.output import show
    from ronda.instances.files.contents import document_report
    from ronda.instances.tasks.contents import tasks_report

    if out is not None and not topology:
        raise InputError("--out", str(out), "--topology with it")
    if out is not None and out.suffix.lower() not in {".png", ".svg"}:
        raise InputError("--out", str(out), "a name that ends in .png or .svg")
    if out is not None:
        need("--out", "matplotlib")
    if topology:
        return _topology(_tree(source), out, as_json=as_json)
    if (tasks := task_round(source)) is not None:
        return show(tasks_report(tasks), as_json=as_json)
    return show(document_report(question(source)), as_json=as_json)


def _tree(source: str) -> "nx.DiGraph[int]":
    from ronda.cli.load import subject
    from ronda.formulations.topology import outline

    if source.endswith(".xml"):
        expected = "an instance, a round, or a CSV file of hosts: the inside of a node is not read"
        raise InputError(source, "a topology file of NCCL", expected)
    if source.endswith(".csv"):
        from ronda.instances.traces.fabric import read_hosts

        return outline(read_hosts(source), Path(source).stem)
    found = subject(source)
    return outline(found.cluster, found.name)


def _topology(drawn: "nx.DiGraph[int]", out: Path | None, *, as_json: bool) -> int:
    from networkx.readwrite.json_graph import tree_data

    from ronda.cli.output import display, emit, tell

    if out is not None:
        from ronda.bench.figures.topology import draw_topology

        draw_topology(drawn, out)
    if as_json:
        name = drawn.nodes[0]["label"].split(": ")[0]
        emit({"name": name, "out": out and str(out), "topology": tree_data(drawn, 0)})
    elif out is not None:
        tell(f"picture: {out}")
    else:
        display(_text(drawn, 0))
    return 0


def _text(drawn: "nx.DiGraph[int]", vertex: int, above: "Tree | None" = None) -> "Tree":
    from rich.text import Text
    from rich.tree import Tree

    label = Text(printable(drawn.nodes[vertex]["label"]))
    made = Tree(label) if above is None else above.add(label)
    for below in drawn.successors(vertex):
        _text(drawn, below, made)
    return made
