"""A section of the page that a command made, kept in a folder of its own or of a comparison."""

from pathlib import Path
from typing import Any

import msgspec

from ronda.bench.report.charts import PageChart
from ronda.bench.report.folder import KEPT, KINDS
from ronda.bench.runs.folder import claim, is_used, load_record, read_mark, store_record
from ronda.instances.tables.table import Table


class PageSection(msgspec.Struct):
    """Charts, then sentences and tables, and how they were found."""

    charts: list[PageChart]
    parts: list[str | Table]
    method: str


def section_mark(folder: Path, kind: str, about: dict[str, Any]) -> dict[str, Any]:
    """Return the mark of a folder for a section, or of a comparison; refuse other content."""
    mark = read_mark(folder)
    if mark is None or mark["format"] != "ronda/comparison/1":
        mark = {"format": f"ronda/{kind}/1", "about": about}
    is_used(folder, mark)
    return mark


def keep_section(folder: Path, kind: str, about: dict[str, Any], section: PageSection) -> Path:
    """Write the section of an answer of some kind into a folder; return the path of its file."""
    mark = section_mark(folder, kind, about)
    with claim(folder, mark["format"].split("/")[1], mark["about"]):
        store_record(folder / f"{kind}.json", msgspec.to_builtins(section))
    return folder / f"{kind}.json"


def kept_sections(folder: Path) -> dict[str, PageSection]:
    """Return the sections in a folder by the command that made each; refuse a damaged file."""
    paths = {KINDS[kind]: folder / f"{kind}.json" for kind in KEPT}
    return {name: load_record(path, PageSection) for name, path in paths.items() if path.exists()}
