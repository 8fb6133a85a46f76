"""Results of runs as one plain table for other programs: CSV, and optionally Parquet."""

import csv
import io
from collections.abc import Iterable, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from ronda.bench.runs.results import Result
from ronda.instances.files.storage import write_bytes

ABOUT = (
    *("key", "instance", "policy", "label", "level", "seed", "status", "message"),
    *("wall_s", "peak_rss_mib", "commit"),
)
"""Columns that describe a run, in addition to its figures and the change to its instance."""


def records(results: Iterable[Result]) -> list[dict[str, Any]]:
    """Return a row for each run, all with the same columns; a missing value is None.

    `policy` is the policy as the user wrote it, like `label`, so two variants of a policy differ.
    Numbers have no units: the suffix of a column's name is its unit (``_s``, ``_j``, ``_mib``).
    Lists, such as the incumbents of a search, are left out.
    """
    found = []
    for run in results:
        about = {name: getattr(run, name) for name in ABOUT} | {"change": run.variant.title}
        figures = {n: v for n, v in run.metrics.items() if isinstance(v, str | int | float)}
        named = {"policy": run.label, "version": run.versions.get("ronda", "")}
        found.append(about | figures | named)
    names = dict.fromkeys(name for row in found for name in row)
    for row in found:
        row |= {n: None for n, v in row.items() if isinstance(v, float) and not isfinite(v)}
    return [{name: row.get(name) for name in names} for row in found]


def write_runs(results: Sequence[Result], folder: Path, *, parquet: bool) -> None:
    """Write ``results.csv`` into a folder, and with `parquet` also ``results.parquet``."""
    rows = records(results)
    text = io.StringIO()
    writer = csv.DictWriter(text, [*rows[0]] if rows else ABOUT)
    writer.writeheader()
    writer.writerows(rows)
    write_bytes(folder / "results.csv", text.getvalue().encode())
    if parquet:
        import pyarrow
        from pyarrow.parquet import write_table

        data = io.BytesIO()
        write_table(pyarrow.Table.from_pylist(rows), data)
        write_bytes(folder / "results.parquet", data.getvalue())
