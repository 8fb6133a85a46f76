"""Results as one plain table: CSV and Parquet hold the same."""

import csv

import pytest
from msgspec.structs import replace

from ronda.bench.runs.results import Result, Status, records, write_runs
from ronda.bench.runs.variant import Resample, Variant


@pytest.fixture
def results():
    """Two runs that ended, with other figures, and one that did not."""
    about = {"instance": 'a "b", c', "policy": "fifo", "label": "fifo", "versions": {"ronda": "1"}}
    return [
        Result(key="k0", status=Status.OK, metrics={"mean_jct_s": 2, "jobs": 3}, **about),
        Result(
            key="k1",
            status=Status.OK,
            variant=Variant(resample=Resample(), seed=1),
            metrics={"mean_jct_s": 2.5, "incumbents": [[1.0, 2.0]], "energy_j": float("nan")},
            **about,
        ),
        Result(key="k2", status=Status.TIME, message="late", wall_s=1.5, **about),
    ]


def test_a_row_a_run_with_all_columns(results):
    """What a run does not have, or is no number, is left open; failures have their row."""
    rows = records(results)
    assert [row["mean_jct_s"] for row in rows] == [2, 2.5, None]
    assert [row["jobs"] for row in rows] == [3, None, None]
    assert [row["status"] for row in rows] == ["OK", "OK", "TIME"]
    assert [row["change"] for row in rows] == ["", "resampled", ""]
    assert rows[1]["energy_j"] is None
    assert "incumbents" not in rows[1]
    assert len({tuple(row) for row in rows}) == 1


def test_two_variants_of_a_policy_are_two(results):
    """Whatever groups by `policy` tells them apart, though the metrics have the bare name."""
    (first, *_) = results
    names = ("prices(patience=3)", "prices(patience=1)")
    runs = [replace(first, policy="prices", label=n, metrics={"policy": "prices"}) for n in names]
    assert [row["policy"] for row in records(runs)] == [*names]
    assert [row["label"] for row in records(runs)] == [*names]


def test_csv_and_parquet_hold_the_same(results, tmp_path):
    """Numbers come back as numbers from Parquet, and as their digits from the CSV."""
    parquet = pytest.importorskip("pyarrow.parquet")
    write_runs(results, tmp_path, parquet=True)
    table = parquet.read_table(tmp_path / "results.parquet")
    assert str(table.schema.field("mean_jct_s").type) == "double"
    whole = table.to_pylist()
    assert whole == records(results)
    with (tmp_path / "results.csv").open(newline="") as file:
        written = [*csv.DictReader(file)]
    assert [row["mean_jct_s"] for row in written] == ["2", "2.5", ""]
    texts = [{name: "" if v is None else str(v) for name, v in row.items()} for row in whole]
    assert [row | {"mean_jct_s": ""} for row in written] == [
        row | {"mean_jct_s": ""} for row in texts
    ]


def test_no_parquet_unless_it_is_asked_for(tmp_path):
    """And of no runs a header alone."""
    write_runs([], tmp_path, parquet=False)
    assert (tmp_path / "results.csv").read_text().startswith("key,instance,policy")
    assert [path.name for path in tmp_path.iterdir()] == ["results.csv"]
