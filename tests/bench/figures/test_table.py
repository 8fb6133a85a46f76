"""The table of a comparison."""

import pytest

from ronda.bench.figures.table import (
    COLUMNS,
    blocks,
    joules,
    markdown,
    milliseconds,
    row_label,
    seconds,
)
from ronda.bench.runs.results import Result, Status


def result(label="fifo", seed=0, status=Status.OK, instance="x", **metrics):
    """Return a run with all metrics that the table shows."""
    usual = {column.key: 1.0 for column in COLUMNS}
    full = usual | {"jobs": 10, "violations": 0, "bound_mean_jct_s": 50.0} | metrics
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
    """Return one cell of a block."""
    (row,) = [row for row in block.rows if row.label == label]
    return row.cells[[column.key for column in COLUMNS].index(key)]


def test_means_over_seeds_and_their_spread():
    """100 and 120 have the mean 110 and the sample standard deviation sqrt(200) = 14.14."""
    (block,) = blocks([result(seed=0, mean_jct_s=100.0), result(seed=1, mean_jct_s=120.0)])
    assert block.rows[0].means["mean_jct_s"] == 110.0
    assert cell(block, "fifo", "mean_jct_s").text == "110 ± 14.14"
    assert row_label(block.rows[0]) == "fifo (2 seeds)"


def test_best_is_the_smallest_and_only_where_something_differs():
    """The shorter mean JCT stands out; equal numbers do not, nor does a plain count."""
    (block,) = blocks(
        [result("a", mean_jct_s=9.0, rounds=1), result("b", mean_jct_s=8.0, rounds=2)]
    )
    assert cell(block, "b", "mean_jct_s").best
    assert not cell(block, "a", "mean_jct_s").best
    assert not cell(block, "a", "p95_jct_s").best
    assert not cell(block, "a", "rounds").best


@pytest.mark.parametrize("metrics", [{"violations": 1}, None])
def test_a_policy_with_a_failure_cannot_be_best(metrics):
    """Neither a schedule that breaks rules nor the mean of the easier seeds wins."""
    bad = [result("bad", mean_jct_s=1.0, **(metrics or {}))]
    if metrics is None:
        bad.append(result("bad", seed=1, status=Status.TIME))
    (block,) = blocks([*bad, result("a", mean_jct_s=2.0), result("b", mean_jct_s=3.0)])
    assert not cell(block, "bad", "mean_jct_s").best
    assert cell(block, "a", "mean_jct_s").best
    assert block.rows[0].note in {"1 of 1 with violations", "1 of 2 TIME"}


def test_a_policy_that_never_ended_shows_dashes():
    """Without any number the row still stands, and says why."""
    (block,) = blocks([result("a"), result("slow", status=Status.OOM)])
    assert cell(block, "slow", "mean_jct_s").text == "–"
    assert row_label(block.rows[1]) == "slow (1 of 1 OOM)"


def test_one_block_an_instance_in_the_order_given():
    """Blocks and rows keep the order of the command line."""
    found = blocks([result("b", instance="y"), result("a", instance="y"), result(instance="x")])
    assert [block.instance for block in found] == ["y", "x"]
    assert [row.label for row in found[0].rows] == ["b", "a"]
    assert (found[0].jobs, found[0].bound_mean_jct_s) == (10, 50.0)


def test_markdown_has_a_line_for_each_policy():
    """The best number is bold; every row has as many cells as the header."""
    text = markdown(blocks([result("a", mean_jct_s=1234.5), result("b", mean_jct_s=2000.0)]))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4
    assert {line.count("|") for line in rows} == {len(COLUMNS) + 2}
    assert "**1,234**" in rows[2]


def test_numbers_are_written_in_suitable_units():
    """Large and small numbers stay readable."""
    assert seconds(18497.01) == "18,497"
    assert seconds(3.14159) == "3.142"
    assert milliseconds(0.00123) == "1.23"
    assert milliseconds(12.5) == "12,500"
    assert joules(9.38e8) == "938 MJ"
    assert joules(1.234e9) == "1.234 GJ"
    assert joules(0.0) == "–"
