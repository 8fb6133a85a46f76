"""A table as HTML."""

from collections.abc import Iterable, Sequence
from html import escape

from ronda.instances.errors import printable, short

LONGEST = 200
"""Characters of a text that are shown; of a longer one the middle is left out."""


def html_table(
    title: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    notes: Iterable[str] = (),
    best: type[str] | None = None,
) -> str:
    """Return a table with a title above and notes below; the first column holds words.

    Cells of the type `best` stand out.
    """
    parts = [f"<p><strong>{_text(title)}</strong></p>"] if title else []
    parts.append("<table><thead>" + _row(header, "th", None) + "</thead><tbody>")
    parts += [_row(row, "td", best) for row in rows]
    parts.append("</tbody></table>")
    parts += [f"<p>{_text(note)}</p>" for note in notes]
    return "<div>" + "\n".join(parts) + "</div>"


def _row(cells: Sequence[str], tag: str, best: type[str] | None) -> str:
    found = []
    for k, cell in enumerate(cells):
        side = "left" if k == 0 else "right"
        text = _text(cell)
        if best is not None and isinstance(cell, best):
            text = f"<strong>{text}</strong>"
        found.append(f'<{tag} style="text-align: {side}">{text}</{tag}>')
    return f"<tr>{''.join(found)}</tr>"


def _text(text: str) -> str:
    return escape(short(printable(text), LONGEST))
