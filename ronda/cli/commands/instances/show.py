"""``ronda instances show``: what an instance or a round holds."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ronda.cli.command import taught
from ronda.cli.options import TARGET, Source, force_option, json_option
from ronda.instances.errors import InputError, need, printable

if TYPE_CHECKING:
    import networkx as nx
    from rich.tree import Tree

    from ronda.instances.cluster import Cluster
    from ronda.instances.demand import Demand
    from ronda.instances.instance import Instance
    from ronda.instances.round import Round

ORIGIN = ("description", "source", "licence", "citation", "reference", "made")
PICTURES = (".png", ".svg")


@taught(
    "show",
    "ronda instances show pollux-1",
    "ronda instances show round.json --json",
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
@click.option(
    "--out",
    type=TARGET,
    metavar="FILE",
    help="With --topology: draw the tree as a picture, .png or .svg.",
)
@force_option
@json_option
def command(source: str, topology: bool, out: Path | None, as_json: bool) -> None:
    """Show what NAME holds: a packaged instance, round or demand series, or a file."""
    from rich.text import Text

    from ronda.cli.load import question
    from ronda.cli.output import display, emit, facts
    from ronda.instances.demand import Demand
    from ronda.instances.files.json import fingerprint
    from ronda.instances.instance import Instance

    if out is not None and not topology:
        raise InputError("--out", str(out), "--topology with it")
    if out is not None and out.suffix.lower() not in PICTURES:
        raise InputError("--out", str(out), "a name that ends in .png or .svg")
    if out is not None:
        need("--out", "matplotlib")
    if topology:
        _topology(_tree(source), out, as_json=as_json)
        return
    found = question(source)
    fields: dict[str, Any] = {"name": found.name, "fingerprint": fingerprint(found)}
    if isinstance(found, Demand):
        fields |= _demand(found)
    else:
        fields |= _cluster(found.cluster)
        fields |= _instance(found) if isinstance(found, Instance) else _round(found)
    if as_json:
        emit(fields)
        return
    known = {name: value for name, value in fields.items() if value not in ("", None, {})}
    display(facts((name.replace("_", " "), Text(_words(value))) for name, value in known.items()))


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


def _topology(drawn: "nx.DiGraph[int]", out: Path | None, *, as_json: bool) -> None:
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


def _text(drawn: "nx.DiGraph[int]", vertex: int, above: "Tree | None" = None) -> "Tree":
    from rich.text import Text
    from rich.tree import Tree

    label = Text(printable(drawn.nodes[vertex]["label"]))
    made = Tree(label) if above is None else above.add(label)
    for below in drawn.successors(vertex):
        _text(drawn, below, made)
    return made


def _cluster(cluster: "Cluster") -> dict[str, Any]:
    return {
        "nodes": sum(group.count for group in cluster.node_groups),
        "gpus": cluster.gpus,
        "pools": {
            pool.name: f"{pool.nodes} nodes, {pool.gpus} GPUs" for pool in cluster.topology.pools
        },
    }


def _instance(found: "Instance") -> dict[str, Any]:
    budget = found.budget
    sizes = Counter(job.gpus for job in found.jobs)
    return {
        "kind": "instance",
        "jobs": len(found.jobs),
        "submitted_s": [found.jobs[0].submit_s, found.jobs[-1].submit_s],
        "jobs_by_gpus": {str(size): number for size, number in sorted(sizes.items())},
        "profiles": {
            profile.name: ", ".join(
                f"{kind}: {type(speed).__name__.lower()}"
                for kind, speed in profile.throughput.items()
            )
            for profile in found.profiles.values()
        },
        "period_s": found.cadence.period_s,
        "decides_on_events": found.cadence.on_event,
        "power_cap_w": None if budget.power_cap_w is None else max(budget.power_cap_w.values),
        "energy_budget_j": None if budget.energy is None else budget.energy.joules,
    } | {name: getattr(found, name) for name in ORIGIN}


def _round(found: "Round") -> dict[str, Any]:
    return {
        "kind": "round",
        "now_s": found.now_s,
        "length_s": found.length_s,
        "running": len(found.running),
        "waiting": len(found.waiting),
        "power_cap_w": found.power_cap_w,
        "energy_j": found.energy_j,
        "window_s": None if found.energy_j is None else found.window_s,
        "asleep": len(found.asleep),
        "source": found.source,
    }


def _demand(found: "Demand") -> dict[str, Any]:
    columns = {"needed": found.needed, "total": found.total, "active": found.active}
    return {
        "kind": "demand",
        "start": found.start,
        "days": found.days,
        "steps": len(found.needed),
        "step_s": found.step_s,
        "nodes": {
            name: f"{min(nodes)} to {max(nodes)}, mean {sum(nodes) / len(nodes):.1f}"
            for name, nodes in columns.items()
            if nodes
        },
        "published_forecast": bool(found.forecast),
    } | {name: getattr(found, name) for name in ORIGIN}


def _words(value: Any) -> str:
    """Write a value for people: a mapping line by line, one inside it on one line."""
    if isinstance(value, dict):
        short = not any(isinstance(inner, str | dict) for inner in value.values())
        pairs = (printable(f"{name}: {_inner(inner)}") for name, inner in value.items())
        return (", " if short else "\n").join(pairs)
    return printable(_inner(value))


def _inner(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_inner(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        words = any(isinstance(inner, str) for inner in value)
        return ("; " if words else " to ").join(map(_inner, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.10g}" if isinstance(value, float | int) else str(value)
