"""Tables in files (Markdown, LaTeX, CSV, and as printed) and in sections of pages.

A section begins with ``<!-- NAME: who makes it -->`` on its own line, or without the maker, and
ends with ``<!-- end of NAME -->``.
"""

import csv
import io
import re
from collections.abc import Iterable
from dataclasses import asdict
from math import isnan
from pathlib import Path
from typing import Any

import msgspec

from ronda.instances.errors import InputError, printable
from ronda.instances.files.storage import label, read_bytes, write_bytes
from ronda.instances.tables.table import Best, Table

TABLES = "tables.json"
"""The file of tables as printed, for reports."""


def write_tables(tables: Iterable[Table], folder: Path, remarks: Iterable[str] = ()) -> None:
    """Write ``table.md``, ``table.tex`` and ``table.csv`` into a folder, each whole or not at all.

    In the CSV, each row starts with the title of its table. Numbers have no units: the header names
    quantity and unit, and is repeated where it changes. Remarks follow the Markdown tables.
    """
    text, lines, latex = io.StringIO(), [], []
    writer, last = csv.writer(text), list[str]()
    for table in tables:
        lines.append(table.markdown())
        latex.append(table.latex())
        records = table.records or [dict(zip(table.header, row, strict=True)) for row in table.rows]
        names = [*dict.fromkeys(name for record in records for name in record)]
        if names != last:
            writer.writerow(("table", *names))
        last = names
        writer.writerows(
            (table.title, *(_bare(row.get(name)) for name in names)) for row in records
        )
    lines += [f"* {printable(remark)}\n" for remark in remarks]
    write_bytes(folder / "table.md", "\n".join(lines).encode())
    write_bytes(folder / "table.tex", "\n".join(latex).encode())
    write_bytes(folder / "table.csv", text.getvalue().encode())


def _plain(table: Table) -> dict[str, Any]:
    rows = [[{"best": str(t)} if isinstance(t, Best) else t for t in row] for row in table.rows]
    return asdict(table) | {"rows": rows}


def keep_tables(tables: Iterable[Table], folder: Path) -> None:
    """Write tables in the form that `read_tables` reads."""
    write_bytes(folder / TABLES, msgspec.json.encode([*map(_plain, tables)]))


def read_tables(folder: Path) -> list[Table]:
    """Return the tables that `keep_tables` wrote into a folder; none if there is no such file."""
    if not (folder / TABLES).exists():
        return []
    found = msgspec.json.decode(read_bytes(folder / TABLES), type=list[dict[str, Any]])
    for each in found:
        each["rows"] = tuple(
            tuple(Best(t["best"]) if isinstance(t, dict) else t for t in row)
            for row in each["rows"]
        )
    return [Table(**each) for each in found]


def _bare(value: Any) -> Any:
    """Return a value for a CSV; an unknown value is empty."""
    if isinstance(value, str):
        return printable(value)
    return "" if value is None or (isinstance(value, float) and isnan(value)) else value


def fill(page: str, name: str, text: str, place: str = "page") -> str:
    """Return a page with the text between the two marks of a name replaced.

    Raise InputError at `place` unless there is exactly one pair of marks.
    """
    begin, end = (
        rf"<!-- {re.escape(name)}(?:: [^\n]*)? -->\n",
        rf"<!-- end of {re.escape(name)} -->",
    )
    pattern = re.compile(f"({begin}).*?({end})", re.DOTALL)
    filled, count = pattern.subn(lambda found: found[1] + text + found[2], page)
    if count != 1:
        wanted = f"the marks <!-- {name} --> and <!-- end of {name} -->, each on one line"
        raise InputError(place, f"{count} places for {name}", f"one, between {wanted}")
    return filled


def fill_file(path: Path, name: str, text: str | None = None) -> None:
    """Write a text between the marks of a page on disk; without a text, only check the marks."""
    filled = fill(read_bytes(path).decode("utf-8"), name, text or "", label(path))
    if text is not None:
        write_bytes(path, filled.encode())
