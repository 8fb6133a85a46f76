"""The output of commands: tables for people, one JSON object for programs."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ronda.cli.command import forced
from ronda.instances.errors import InputError, installed, need, printable
from ronda.instances.files.storage import label
from ronda.instances.tables.table import Best, Report, Table

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 160
"""The width of tables in columns if no terminal limits it."""


def emit(fields: Mapping[str, Any]) -> None:
    """Print one JSON object on one line; numbers that are not finite become null."""
    tell_json(msgspec.json.encode(fields))


def tell_json(text: bytes) -> None:
    """Print JSON with every invisible character escaped, which does not change its meaning."""
    click.echo("".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text.decode()))


def tell(message: str) -> None:
    """Print one line on stdout."""
    click.echo(printable(message))


def show(report: Report, *, as_json: bool) -> int:
    """Print a report as JSON or as text and tables, and its notes on stderr; return its code."""
    if as_json:
        emit(report.fields)
    else:
        display(*report.parts)
    for each in report.notes:
        note(each)
    return report.code


def display(*parts: Any) -> None:
    """Print tables on stdout, as wide as the terminal; in a file, sentences are not wrapped."""
    screen = console()
    shown = [piece for part in parts for piece in _pieces(part, screen.width)]
    if screen.is_terminal:
        for piece in shown:
            screen.print(piece)
        return
    with screen.capture() as captured:
        for piece in shown:
            screen.print(piece, soft_wrap=isinstance(piece, str))
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def _pieces(part: Any, width: int) -> list[Any]:
    """Return the parts of `part` to print; a table of numbers that is too wide is transposed."""
    from rich import box
    from rich import table as rich_table
    from rich.text import Text

    if isinstance(part, str):
        return [printable(part)]
    if not isinstance(part, Table):
        return [part]
    if part.left == (0,) and part.width() > width and len(part.rows) < len(part.header):
        part = part.transposed()
    made = rich_table.Table(box=box.SIMPLE_HEAD, pad_edge=False, show_header=any(part.header))
    for k, name in enumerate(part.header):
        made.add_column(name, justify="left" if k in part.left else "right")
    for row in part.rows:
        made.add_row(*(Text(t, "bold green" if isinstance(t, Best) else "") for t in row))
    title = [Text(part.title, style="bold")] if part.title else []
    notes = [Text(f"  {note}", style="dim") for note in part.notes]
    return [*title, *[made] * bool(part.header), *notes, *([Text("")] if notes else [])]


def console() -> "Console":
    """Return the console that tables are printed on."""
    from rich.console import Console

    wide = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDE
    return Console(width=wide, highlight=False, markup=False)


def note(message: str) -> None:
    """Print one line on stderr."""
    click.echo(printable(message), err=True)


def can_draw() -> bool:
    """Return whether pictures can be drawn; if not, name the missing package on stderr."""
    if not (found := installed("matplotlib")):
        note("no pictures: they need matplotlib (pip install 'ronda[plot]')")
    return found


def figure_files(figure: Path) -> list[Path]:
    """Return the files of ``--figure``; refuse a name that is not a PNG or cannot be drawn."""
    if figure.suffix != ".png":
        raise InputError("--figure", repr(str(figure)), "a name that ends in .png")
    need("--figure", "matplotlib")
    return [figure, figure.with_suffix(".csv")]


def refuse_existing(path: Path) -> None:
    """Refuse, before any work, a file that exists (without ``--force``) or cannot be written."""
    if path.is_dir():
        raise InputError(label(path), "a folder", "the name of a file")
    if path.exists() and not forced():
        raise InputError(label(path), "a file that exists", "a new name, or --force to replace it")
    if not path.parent.is_dir():
        raise InputError(label(path), f"no folder {label(path.parent)}", "one that exists")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InputError(label(path), "no permission to write there", "a folder of your own")
