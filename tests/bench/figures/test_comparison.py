"""The table of a comparison."""

import csv

import pytest

from ronda.bench.figures.comparison import COLUMNS, blocks
from ronda.bench.figures.table import (
    Best,
    Table,
    joules,
    milliseconds,
    seconds,
    write_tables,
)
from ronda.bench.runs.results import Result, Status


def result(label="fifo", seed=0, status=Status.OK, instance="x", **metrics):
    """Return a run with all metrics that the table shows."""
    usual = {column.key: 1.0 for column in COLUMNS}
    known = {"jobs": 10, "violations": 0, "bound_mean_jct_s": 50.0, "knowledge": "oracle"}
    full = usual | known | metrics
    return Result(
        key=f"{instance}{label}{seed}",
        instance=instance,
        policy=label,
        label=label,
        seed=seed,
        status=status,
        metrics=full if status is Status.OK else {},
    )


def cell(block, label, key):
    """Return one text of a block's table."""
    (row,) = [row for row in block.table().rows if row[0].partition(" ")[0] == label]
    return row[2 + [column.key for column in COLUMNS].index(key)]


def stands_out(block, label, key):
    """Tell whether it is marked as the best."""
    return isinstance(cell(block, label, key), Best)


def test_means_over_seeds_and_their_spread():
    """100 and 120 have the mean 110 and the sample standard deviation sqrt(200) = 14.14."""
    (block,) = blocks([result(seed=0, mean_jct_s=100.0), result(seed=1, mean_jct_s=120.0)])
    assert block.rows[0].means["mean_jct_s"] == 110.0
    assert cell(block, "fifo", "mean_jct_s") == "110 ± 14.14"
    assert block.rows[0].title == "fifo (2 seeds)"


def test_best_is_the_smallest_and_only_where_something_differs():
    """The shorter mean JCT stands out; equal numbers do not, nor does a plain count."""
    (block,) = blocks(
        [result("a", mean_jct_s=9.0, rounds=1), result("b", mean_jct_s=8.0, rounds=2)]
    )
    assert stands_out(block, "b", "mean_jct_s")
    assert not stands_out(block, "a", "mean_jct_s")
    assert not stands_out(block, "a", "p95_jct_s")
    assert not stands_out(block, "a", "rounds")


@pytest.mark.parametrize("metrics", [{"violations": 1}, None])
def test_a_policy_with_a_failure_cannot_be_best(metrics):
    """Neither a schedule that breaks rules nor the mean of the easier seeds wins."""
    bad = [result("bad", mean_jct_s=1.0, **(metrics or {}))]
    if metrics is None:
        bad.append(result("bad", seed=1, status=Status.TIME))
    (block,) = blocks([*bad, result("a", mean_jct_s=2.0), result("b", mean_jct_s=3.0)])
    assert not stands_out(block, "bad", "mean_jct_s")
    assert stands_out(block, "a", "mean_jct_s")
    assert block.rows[0].note in {"1 of 1 with violations", "1 of 2 TIME"}


def test_a_policy_that_never_ended_shows_dashes():
    """Without any number the row still stands, and says why."""
    (block,) = blocks([result("a"), result("slow", status=Status.OOM)])
    assert cell(block, "slow", "mean_jct_s") == "–"
    assert block.rows[1].title == "slow (1 of 1 OOM)"


def test_one_block_an_instance_in_the_order_given():
    """Blocks and rows keep the order of the command line."""
    found = blocks([result("b", instance="y"), result("a", instance="y"), result(instance="x")])
    assert [block.instance for block in found] == ["y", "x"]
    assert [row.label for row in found[0].rows] == ["b", "a"]
    assert (found[0].jobs, found[0].bound_mean_jct_s) == (10, 50.0)


def test_the_same_rows_as_markdown_and_as_csv(tmp_path):
    """The best number is bold in Markdown; the CSV holds the same texts."""
    (block,) = blocks([result("a", mean_jct_s=1234.5), result("b", mean_jct_s=2000.0)])
    write_tables([block.table()], tmp_path, ["a remark"])
    text = (tmp_path / "table.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4
    assert {line.count("|") for line in rows} == {len(COLUMNS) + 3}
    assert "**1,234**" in rows[2]
    assert text.endswith("* a remark\n")
    with (tmp_path / "table.csv").open(newline="") as file:
        header, first, _ = csv.reader(file)
    assert header[1:4] == ["policy", "sizes", COLUMNS[0].title]
    assert first[1:4] == ["a", "oracle", "1,234"]


def test_a_narrow_terminal_gets_a_column_for_each_row():
    """Rows become columns, and what stands out stays so."""
    table = Table("t", ("policy", "x", "y"), (("a", Best("1"), "2"), ("b", "3", "4")))
    turned = table.transposed()
    assert turned.header == ("", "a", "b")
    assert turned.rows == (("x", "1", "3"), ("y", "2", "4"))
    assert isinstance(turned.rows[0][1], Best)
    assert table.width() == len("policy") + 1 + 1 + 2 * 3


def test_numbers_are_written_in_suitable_units():
    """Large and small numbers stay readable."""
    assert seconds(18497.01) == "18,497"
    assert seconds(3.14159) == "3.142"
    assert milliseconds(0.00123) == "1.23"
    assert milliseconds(12.5) == "12,500"
    assert joules(9.38e8) == "938 MJ"
    assert joules(1.234e9) == "1.234 GJ"
    assert joules(0.0) == "–"
