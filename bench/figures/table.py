"""Tables: the same rows for a terminal, Markdown, LaTeX and CSV; and how numbers are written."""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from math import isnan
from pathlib import Path
from typing import Any

import msgspec

from ronda.instances.errors import printable
from ronda.instances.files.storage import load, store
from ronda.instances.notebook.html import html_table

TABLES = "tables.json"
"""The file of tables as they were printed, for reports."""


class Best(str):
    """A text that stands out: the best number of its column."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts, the name of each first; a title above and notes below, if there are any.

    `records` are the rows as numbers by name, where texts hold more than plain words.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    records: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        """Make every text one line that can be seen whole: names in it are data."""
        seen: dict[str, Any] = {
            "title": printable(self.title),
            "header": tuple(map(printable, self.header)),
            "rows": tuple(tuple(map(_seen, row)) for row in self.rows),
            "notes": tuple(map(printable, self.notes)),
        }
        for name, value in seen.items():
            object.__setattr__(self, name, value)

    def transposed(self) -> "Table":
        """Return the table with a column for each row."""
        header, *rows = zip(self.header, *self.rows, strict=True)
        return Table(self.title, ("", *header[1:]), tuple(rows), self.notes)

    def width(self) -> int:
        """Return how many characters it takes on a terminal."""
        columns = zip(self.header, *self.rows, strict=True)
        return sum(max(map(len, column)) for column in columns) + 3 * (len(self.header) - 1)

    def markdown(self) -> str:
        """Return it as Markdown, with the title as a heading."""
        lines = [f"### {self.title}", ""] if self.title else []
        lines.append("| " + " | ".join(map(_cell, self.header)) + " |")
        lines.append("|---" + "|--:" * (len(self.header) - 1) + "|")
        for row in self.rows:
            texts = (f"**{_cell(t)}**" if isinstance(t, Best) else _cell(t) for t in row)
            lines.append("| " + " | ".join(texts) + " |")
        lines += ["", *(f"* {note}" for note in self.notes)]
        return "\n".join([*lines, ""])

    def html(self) -> str:
        """Return it as HTML, for notebooks."""
        return html_table(self.title, self.header, self.rows, self.notes, best=Best)

    def latex(self) -> str:
        """Return it in LaTeX with the rules of booktabs: the title is the caption."""
        rows = (
            " & ".join(f"\\textbf{{{_tex(t)}}}" if isinstance(t, Best) else _tex(t) for t in row)
            for row in self.rows
        )
        lines = [
            *("\\begin{table}", "\\centering"),
            *[f"\\caption{{{_tex(self.title)}}}"] * bool(self.title),
            f"\\begin{{tabular}}{{l{'r' * (len(self.header) - 1)}}}",
            *("\\toprule", " & ".join(map(_tex, self.header)) + " \\\\", "\\midrule"),
            *(f"{row} \\\\" for row in rows),
            *("\\bottomrule", "\\end{tabular}"),
            *(f"\\par{{\\footnotesize {_tex(note)}}}" for note in self.notes),
            "\\end{table}",
        ]
        return "\n".join([*lines, ""])


_TEX = str.maketrans(
    {
        "\\": "\\textbackslash{}",
        "~": "\\textasciitilde{}",
        "^": "\\textasciicircum{}",
        **{letter: f"\\{letter}" for letter in "&%$#_{}"},
        **{letter: f"{{{letter}}}" for letter in "[]*"},  # after a line's end they are its options
        **{letter: f"${letter}$" for letter in "<>|"},
        "±": "$\\pm$",
        "×": "$\\times$",
        "≤": "$\\le$",
        "∞": "$\\infty$",
        "·": "$\\cdot$",
        "−": "$-$",
        "–": "--",
    }
)


def _tex(text: str) -> str:
    """Return a text as LaTeX sets it."""
    return text.translate(_TEX)


def _seen(text: str) -> str:
    return Best(printable(text)) if isinstance(text, Best) else printable(text)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def write_tables(tables: Iterable[Table], folder: Path, remarks: Iterable[str] = ()) -> None:
    """Write ``table.md``, ``table.tex`` and ``table.csv`` into a folder, each whole or not at all.

    In the CSV each row starts with the title of its table, and numbers are bare: of what and in
    which unit the header says, which stands again where it changes. Remarks end the Markdown.
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
    store(folder / "table.md", "\n".join(lines).encode())
    store(folder / "table.tex", "\n".join(latex).encode())
    store(folder / "table.csv", text.getvalue().encode())


def _plain(table: Table) -> dict[str, Any]:
    rows = [[{"best": str(t)} if isinstance(t, Best) else t for t in row] for row in table.rows]
    return asdict(table) | {"rows": rows}


def keep_tables(tables: Iterable[Table], folder: Path) -> None:
    """Write tables as `read_tables` reads them."""
    store(folder / TABLES, msgspec.json.encode([*map(_plain, tables)]))


def read_tables(folder: Path) -> list[Table]:
    """Return the tables that `keep_tables` wrote into a folder; none if it did not."""
    if not (folder / TABLES).exists():
        return []
    found = msgspec.json.decode(load(folder / TABLES), type=list[dict[str, Any]])
    for each in found:
        each["rows"] = tuple(
            tuple(Best(t["best"]) if isinstance(t, dict) else t for t in row)
            for row in each["rows"]
        )
    return [Table(**each) for each in found]


def _bare(value: Any) -> Any:
    """Return a value for a CSV; nothing where it is not known."""
    if isinstance(value, str):
        return printable(value)
    return "" if value is None or (isinstance(value, float) and isnan(value)) else value


def seconds(value: float) -> str:
    """Write seconds: whole from a hundred on, four significant digits below; NaN as a dash."""
    if isnan(value):
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:z.4g}"


def hours(value: float) -> str:
    """Write seconds as hours."""
    return seconds(value / 3600)


def milliseconds(value: float) -> str:
    """Write seconds as milliseconds with three significant digits."""
    return f"{value * 1e3:,.0f}" if value >= 0.1 else f"{value * 1e3:z.3g}"


def joules(value: float) -> str:
    """Write joules in the unit that leaves one to three digits before the point."""
    if value == 0 or isnan(value):
        return "–"  # an instance without power data
    for size, unit in ((1e12, "TJ"), (1e9, "GJ"), (1e6, "MJ"), (1e3, "kJ")):
        if abs(value) >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value:.4g} J"


def percent(value: float, digits: str = ",.1f") -> str:
    """Write a share as percent, without the sign."""
    return f"{value * 100:z{digits}}"


def fine_percent(value: float) -> str:
    """Write a small share as percent with two significant digits."""
    return percent(value, ".2g")


def fine(value: float) -> str:
    """Write a number with three significant digits."""
    return f"{value:z.3g}"


def count(value: float) -> str:
    """Write a number of things, or the mean of some."""
    return f"{value:z,.0f}" if value == round(value) else f"{value:z,.2f}"
