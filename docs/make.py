"""Write the parts of the docs that follow from the code: ``python docs/make.py``.

* ``architecture.md``: the picture of the rooms and their imports, from the imports themselves;
* ``cli.md``: the help of every command.

A test holds the pages to what this writes.
"""

from pathlib import Path
from typing import Any

import click
import grimp
import networkx as nx

from ronda.bench.tables import fill
from ronda.cli.app import cli

DOCS = Path(__file__).parent
LAYERS = (
    *("cli", "bench", "hosts", "questions", "systems"),
    *("horizon", "solvers", "formulations", "instances"),
)
"""From top to bottom."""


def room(module: str) -> str:
    """Return the room of a module: its folder below the layer; the layer, if it has none."""
    _, layer, *rest = module.split(".")
    folder = DOCS.parent / (f"ronda/{layer}" if layer == "cli" else layer)
    return f"{layer}/{rest[0]}" if rest and (folder / rest[0] / "__init__.py").exists() else layer


def imports() -> "nx.DiGraph[str]":
    """Return the rooms, and an edge from each room to every other that it imports."""
    found = grimp.build_graph("ronda")
    graph: nx.DiGraph[str] = nx.DiGraph()
    for module in sorted(found.modules):
        if module.count(".") and module != "ronda.cli":
            graph.add_node(room(module))
            for other in found.find_modules_directly_imported_by(module):
                if other.count(".") and room(other) != room(module):
                    graph.add_edge(room(module), room(other))
    return graph


def picture() -> str:
    """Return the rooms as a Mermaid flowchart.

    An arrow leads from a room to one that it imports; those that follow from others are left out,
    and so are arrows to the modules at a layer's top, which every room may use.
    """
    graph = imports()
    rooms = graph.subgraph(n for n in graph if "/" in n)
    arrows = nx.transitive_reduction(rooms)
    lines = ["flowchart TB"]
    for layer in LAYERS:
        lines.append(f"  subgraph {layer}")
        lines += [f"    {_key(n)}[{n.partition('/')[2]}]" for n in sorted(rooms) if _in(n, layer)]
        lines.append("  end")
    lines += [f"  {_key(a)} --> {_key(b)}" for a, b in sorted(arrows.edges)]
    return "```mermaid\n" + "\n".join(lines) + "\n```\n"


def _in(name: str, layer: str) -> bool:
    return name.startswith(f"{layer}/")


def _key(name: str) -> str:
    return name.replace("/", "_")


def commands() -> str:
    """Return the help of every command, as a page."""
    shape: dict[str, Any] = cli.context_settings | {"max_content_width": 100, "terminal_width": 100}
    context = click.Context(cli, info_name="ronda", **shape)
    return "\n".join(_helps(cli, context))


def _helps(command: click.Command, context: click.Context) -> list[str]:
    """Return the help of a command and of those below it."""
    level = "#" * (2 + context.command_path.count(" "))
    found = [
        f"{level} {context.command_path}\n",
        f"```text\n{command.get_help(context).strip()}\n```\n",
    ]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            inner = click.Context(
                below, info_name=name, parent=context, max_content_width=100, terminal_width=100
            )
            found += _helps(below, inner)
    return found


PARTS = {"architecture.md": ("rooms", picture), "cli.md": ("commands", commands)}
"""Of each page: which part of it is made, and how."""


def made(page: str) -> str:
    """Return a page as it should be."""
    name, make = PARTS[page]
    return fill((DOCS / page).read_text(encoding="utf-8"), name, make())


if __name__ == "__main__":
    for page in PARTS:
        text = made(page)
        (DOCS / page).write_text(text, encoding="utf-8")
