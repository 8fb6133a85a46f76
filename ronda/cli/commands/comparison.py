"""The table of a comparison on a terminal: policies down, or across where it is narrow."""

from typing import TYPE_CHECKING

from ronda.bench.figures.table import COLUMNS, Block, Cell, row_label
from ronda.cli.output import table

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


def block_table(block: Block, width: int) -> "Table":
    """Return a block as a table that fits into `width` columns, if any can."""
    wide = _policies_down(block)
    return wide if _width(block) <= width else _policies_across(block)


def _policies_down(block: Block) -> "Table":
    """Return the table with a row for each policy."""
    made = table("policy", *(column.title for column in COLUMNS))
    for row in block.rows:
        made.add_row(row_label(row), *map(_mark, row.cells))
    return made


def _policies_across(block: Block) -> "Table":
    """Return the table with a column for each policy."""
    made = table("", *(row_label(row) for row in block.rows))
    for index, column in enumerate(COLUMNS):
        made.add_row(column.title, *(_mark(row.cells[index]) for row in block.rows))
    return made


def _mark(cell: Cell) -> "Text":
    """Make the best number bold."""
    from rich.text import Text

    return Text(cell.text, style="bold green" if cell.best else "")


def _width(block: Block) -> int:
    """Return how many characters the table with a row for each policy takes."""
    labels = max((len(row_label(row)) for row in block.rows), default=0)
    numbers = [
        max([len(column.title), *(len(row.cells[k].text) for row in block.rows)])
        for k, column in enumerate(COLUMNS)
    ]
    return labels + sum(numbers) + 3 * len(COLUMNS)
