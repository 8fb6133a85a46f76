"""A table: the same rows for a terminal, Markdown, LaTeX, notebooks and programs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain
from typing import Any, NamedTuple

from ronda.instances.errors import printable, short


class Numbered(str):
    """A text together with the `numbers` in it, by name."""

    numbers: Mapping[str, Any]

    def __new__(cls, text: object, numbers: Mapping[str, Any] | None = None) -> "Numbered":
        """Make a text that also keeps the numbers."""
        made = super().__new__(cls, text)
        made.numbers = numbers or {}
        return made


class Best(Numbered):
    """A highlighted text: the best number of its column."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of texts with row names in the first column, an optional title and optional notes.

    `records` holds the rows as numbers by name; by default they are taken from the cells. The
    columns in `left` hold words. All other columns hold numbers and are aligned to the right.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    records: tuple[Mapping[str, Any], ...] = ()
    left: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        """Put every text on one line with all characters visible, as names in it are data."""
        count = len(self.header)
        if not self.records and any(
            isinstance(c, Numbered) and c.numbers for c in chain(*self.rows)
        ):
            object.__setattr__(self, "records", tuple(map(self._record, self.rows)))
        seen: dict[str, Any] = {
            "title": printable(self.title),
            "header": tuple(map(printable, self.header)),
            "rows": tuple(tuple(map(_seen, row)) for row in self.rows),
            "notes": tuple(map(printable, self.notes)),
            "left": tuple(k % count for k in self.left if count),
        }
        for name, value in seen.items():
            object.__setattr__(self, name, value)

    def _record(self, row: Sequence[str]) -> dict[str, Any]:
        """Return the numbers in a row's cells, or the text of a cell without numbers."""
        record = dict[str, Any]()
        for name, cell in zip(self.header, row, strict=True):
            record |= cell.numbers if isinstance(cell, Numbered) else {name: cell}
        return record

    @classmethod
    def of(
        cls,
        title: str,
        rows: Iterable[Mapping[str, Any]],
        notes: Iterable[str] = (),
        records: Iterable[Mapping[str, Any]] = (),
        left: tuple[int, ...] = (0,),
    ) -> "Table":
        """Return a table of rows that map column headings to cells."""
        made = list(rows)
        cells = tuple(tuple(row.values()) for row in made)
        return cls(title, tuple(made[0]) if made else (), cells, tuple(notes), tuple(records), left)

    @classmethod
    def facts(cls, facts: Mapping[str, Any], *, numbers: bool = False) -> "Table":
        """Return a table of names with their texts or `numbers`, one per row, without a heading."""
        return cls("", ("", ""), tuple(facts.items()), left=(0,) if numbers else (0, 1))

    def transposed(self) -> "Table":
        """Return the transposed table, with a column for each row."""
        header, *rows = zip(self.header, *self.rows, strict=True)
        return Table(self.title, ("", *header[1:]), tuple(rows), self.notes)

    def width(self) -> int:
        """Return the number of characters that the table takes on a terminal line."""
        columns = zip(self.header, *self.rows, strict=True)
        return sum(max(map(len, column)) for column in columns) + 3 * (len(self.header) - 1)

    def markdown(self) -> str:
        """Return the table in Markdown, with the title as a heading."""
        lines = [f"### {self.title}", ""] if self.title else []
        lines.append("| " + " | ".join(map(_cell, self.header)) + " |")
        rules = ("---" if k in self.left else "--:" for k in range(len(self.header)))
        lines.append("|" + "|".join(rules) + "|")
        for row in self.rows:
            texts = (f"**{_cell(t)}**" if isinstance(t, Best) else _cell(t) for t in row)
            lines.append("| " + " | ".join(texts) + " |")
        lines += ["", *(f"* {note}" for note in self.notes)]
        return "\n".join([*lines, ""])

    def html(self) -> str:
        """Return the table in HTML for notebooks, leaving out the middle of long texts."""
        parts = [f"<p><strong>{_text(self.title)}</strong></p>"] if self.title else []
        parts.append(f"<table><thead>{self._html(self.header, 'th')}</thead><tbody>")
        parts += [self._html(row, "td") for row in self.rows]
        parts.append("</tbody></table>")
        parts += [f"<p>{_text(note)}</p>" for note in self.notes]
        return "<div>" + "\n".join(parts) + "</div>"

    def _html(self, cells: Sequence[str], tag: str) -> str:
        found = []
        for k, cell in enumerate(cells):
            side = "left" if k in self.left else "right"
            text = f"<strong>{_text(cell)}</strong>" if isinstance(cell, Best) else _text(cell)
            found.append(f'<{tag} style="text-align: {side}">{text}</{tag}>')
        return f"<tr>{''.join(found)}</tr>"

    def latex(self) -> str:
        """Return the table in LaTeX with booktabs rules and the title as the caption."""
        sides = "".join("l" if k in self.left else "r" for k in range(len(self.header)))
        rows = (
            " & ".join(f"\\textbf{{{_tex(t)}}}" if isinstance(t, Best) else _tex(t) for t in row)
            for row in self.rows
        )
        lines = [
            *("\\begin{table}", "\\centering"),
            *[f"\\caption{{{_tex(self.title)}}}"] * bool(self.title),
            f"\\begin{{tabular}}{{{sides}}}",
            *("\\toprule", " & ".join(map(_tex, self.header)) + " \\\\", "\\midrule"),
            *(f"{row} \\\\" for row in rows),
            *("\\bottomrule", "\\end{tabular}"),
            *(f"\\par{{\\footnotesize {_tex(note)}}}" for note in self.notes),
            "\\end{table}",
        ]
        return "\n".join([*lines, ""])


class Report(NamedTuple):
    """The result of a command: fields for programs, and sentences and tables for people.

    A sentence is one line. `notes` are warnings of one line each. `code` is the exit code.
    """

    fields: Mapping[str, Any]
    parts: Sequence[str | Table]
    notes: Sequence[str] = ()
    code: int = 0

    def added(self, *parts: str | Table, **fields: Any) -> "Report":
        """Return the report with more sentences, tables and fields."""
        return self._replace(fields={**self.fields, **fields}, parts=[*self.parts, *parts])

    @property
    def tables(self) -> list[Table]:
        """The tables of the report."""
        return [part for part in self.parts if isinstance(part, Table)]


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
    return text.translate(_TEX)


def _seen(cell: Any) -> str:
    text = printable(str(cell))
    return Best(text) if isinstance(cell, Best) else text


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _text(text: str) -> str:
    return escape(short(text, 200))
