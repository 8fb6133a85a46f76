"""A section of the page that a command made, kept in a folder of its own or of a comparison."""

from pathlib import Path
from typing import Any

import msgspec

from ronda.bench.report.charts import PageChart
from ronda.bench.report.folder import JUDGEMENT
from ronda.bench.runs.folder import claim, is_used, load_record, read_mark, store_record
from ronda.instances.tables.table import Table


class PageSection(msgspec.Struct):
    """Charts, then sentences and tables, and how they were found."""

    charts: list[PageChart]
    parts: list[str | Table]
    method: str


def judgement_mark(folder: Path, about: dict[str, Any]) -> dict[str, Any]:
    """Return the mark of a folder for a judged log, or of a comparison; refuse other content."""
    mark = read_mark(folder)
    if mark is None or mark["format"] != "ronda/comparison/1":
        mark = {"format": "ronda/judgement/1", "about": about}
    is_used(folder, mark)
    return mark


def keep_judgement(folder: Path, about: dict[str, Any], section: PageSection) -> Path:
    """Write the section of a judged log into a folder; return the path of its file."""
    mark = judgement_mark(folder, about)
    with claim(folder, mark["format"].split("/")[1], mark["about"]):
        store_record(folder / JUDGEMENT, msgspec.to_builtins(section))
    return folder / JUDGEMENT


def kept_judgement(folder: Path) -> PageSection | None:
    """Return the section of a judged log in a folder, or None; refuse a damaged file."""
    path = folder / JUDGEMENT
    return load_record(path, PageSection) if path.exists() else None
