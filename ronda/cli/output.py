"""What commands print: tables for people, one JSON object for programs."""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ronda.bench.figures.table import Best, Table
from ronda.instances.errors import InputError, installed, need, printable
from ronda.instances.files.storage import label

if TYPE_CHECKING:
    from rich import table as rich_table
    from rich.console import Console

WIDE = 160
"""Columns that tables may take when no terminal limits them."""


def emit(fields: dict[str, Any]) -> None:
    """Print one JSON object on one line; numbers that are not finite become null."""
    tell_json(msgspec.json.encode(fields))


def tell_json(text: bytes) -> None:
    """Print JSON with every character that cannot be seen escaped: it means the same."""
    click.echo("".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text.decode()))


def tell(message: str) -> None:
    """Print one line on stdout."""
    click.echo(printable(message))


def display(*parts: Any) -> None:
    """Print tables on stdout, as wide as the terminal; into a file, without blanks at line ends."""
    screen = console()
    shown = [piece for part in parts for piece in _pieces(part, screen.width)]
    if screen.is_terminal:
        for piece in shown:
            screen.print(piece)
        return
    with screen.capture() as captured:
        for piece in shown:
            screen.print(piece)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def _pieces(part: Any, width: int) -> list[Any]:
    """Return what to print of a part; a `Table` that is too wide gets a column for each row."""
    from rich.text import Text

    if isinstance(part, str):
        return list(map(printable, part.split("\n")))
    if not isinstance(part, Table):
        return [part]
    if part.width() > width and len(part.rows) < len(part.header):
        part = part.transposed()
    made = table(*part.header)
    for row in part.rows:
        made.add_row(*(Text(t, "bold green" if isinstance(t, Best) else "") for t in row))
    title = [Text(part.title, style="bold")] if part.title else []
    notes = [Text(f"  {note}", style="dim") for note in part.notes]
    return [*title, made, *notes, *([Text("")] if notes else [])]


def console() -> "Console":
    """Return where tables go."""
    from rich.console import Console

    wide = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDE
    return Console(width=wide, highlight=False, markup=False)


def table(*columns: str, left: int = 1) -> "rich_table.Table":
    """Return an empty table whose first `left` columns hold words and the others numbers.

    What is added as a text becomes one line that can be seen whole.
    """
    from rich import box
    from rich import table as rich_table

    class Shown(rich_table.Table):
        def add_row(self, *cells: Any, **how: Any) -> None:
            super().add_row(*(printable(c) if isinstance(c, str) else c for c in cells), **how)

    made = Shown(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(columns):
        made.add_column(column, justify="left" if index < left else "right")
    return made


def facts(rows: Iterable[tuple[str, Any]], *, right: bool = False) -> "rich_table.Table":
    """Return names with their texts, which stand on the left unless they are numbers."""
    made = table("", "", left=1 if right else 2)
    made.show_header = False
    for name, text in rows:
        made.add_row(name, text)
    return made


def note(message: str) -> None:
    """Print one line on stderr."""
    click.echo(printable(message), err=True)


def can_draw() -> bool:
    """Return whether there can be pictures; a line on stderr says what they need."""
    if not (found := installed("matplotlib")):
        note("no pictures: they need matplotlib (pip install 'ronda[plot]')")
    return found


def figure_files(figure: Path) -> list[Path]:
    """Return the files of ``--figure``; refuse one that is no PNG, or cannot be drawn."""
    if figure.suffix != ".png":
        raise InputError("--figure", repr(str(figure)), "a name that ends in .png")
    need("--figure", "matplotlib")
    return [figure, figure.with_suffix(".csv")]


def refuse_existing(path: Path, *, force: bool) -> None:
    """Refuse a file that exists (unless `force`) or cannot be written, before any work for it."""
    if path.is_dir():
        raise InputError(label(path), "a folder", "the name of a file")
    if path.exists() and not force:
        raise InputError(label(path), "a file that exists", "a new name, or --force to replace it")
    if not path.parent.is_dir():
        raise InputError(label(path), f"no folder {label(path.parent)}", "one that exists")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InputError(label(path), "no permission to write there", "a folder of your own")
