"""All instances of a comparison in one table."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.bench.figures.draw import save_chart
from ronda.bench.figures.overview import ranks
from ronda.bench.runs.results import Result, Status
from ronda.bench.runs.specs import RunCase
from ronda.bench.suites.cells import Cell, Expanded
from ronda.bench.suites.summary import Summary, comparison_report


@pytest.fixture
def together(tmp_path):
    """Put mean JCTs, by policy of instances, together; None is a run that did not end."""

    def of(*instances, names=()):
        expanded, results = Expanded(tmp_path), {}
        for k, figures in enumerate(instances):
            name = names[k] if names else f"i{k}"
            for label, runs in figures.items():
                for seed, jct_s in enumerate(runs):
                    about = {"instance": name, "policy": label, "label": label, "seed": seed}
                    case = RunCase(source="x", fingerprint=f"{k}", **about)
                    axes = {
                        "instance": name,
                        "change": f"{k}",
                        "policy": label,
                        "knowledge": "",
                        "seed": f"{seed}",
                    }
                    expanded.cells.append(Cell(axes, case))
                    status = Status.TIME if jct_s is None else Status.OK
                    metrics = {} if jct_s is None else {"mean_jct_s": jct_s}
                    results[case.key] = Result(
                        key=case.key, status=status, metrics=metrics, **about
                    )
        told, found = comparison_report(None, expanded, results)
        if found is not None:
            assert told.tables[-1] == found.table()
            assert told.fields["together"] == [dict(row) for row in found.table().records]
        assert len(told.tables) == len(told.fields["instances"]) + (found is not None)
        return found

    return of


def test_means_and_ratios_over_instances_by_hand(together):
    """Means over seeds 10 and 30, 20 and 30; sqrt(20 x 40) - 10 = 18.28, sqrt(30 x 40) - 10.

    Ratios 2 and 1: sqrt(2), and log(2) / 2 -+ 12.7062 x log(2) / 2.
    """
    table = together({"a": [5, 15], "b": [20]}, {"a": [30], "b": [30]}).table()
    assert table.title == "2 instances together"
    assert [row[:3] for row in table.rows] == [("a", "0", "18.28"), ("b", "0", "24.64")]
    low, high = (math.exp(math.log(2) / 2 * (1 + sign * 12.7062)) for sign in (-1, 1))
    assert table.records[1]["mean_jct_s/base"] == pytest.approx(math.sqrt(2))
    assert table.records[1]["mean_jct_s/base/low"] == pytest.approx(low, rel=1e-4)
    assert table.records[1]["mean_jct_s/base/high"] == pytest.approx(high, rel=1e-4)
    assert "rank" not in table.records[0]


def test_a_failure_on_one_seed_is_a_failure_on_the_instance(together):
    """However good the other seed was: no mean, no ratio, and the last rank."""
    found = together({"a": [5], "b": [1, None], "c": [6]}, {"a": [5], "b": [1], "c": [6]})
    table = found.table()
    assert table.rows[1] == ("b", "1", "∞", "∞", "2.00")
    assert [row[4] for row in table.rows] == ["1.50", "2.00", "2.50"]
    assert "2 instances cannot tell policies apart" in table.notes[-1]
    assert not found.tested


def test_without_the_base_there_is_no_ratio(together):
    """It failed: what is twice of nothing?"""
    table = together({"a": [None], "b": [1]}, {"a": [5], "b": [1]}).table()
    assert [row[3] for row in table.rows] == ["–", "–"]


def test_one_instance_or_one_policy_is_no_summary(together):
    """Nor policies that met nowhere."""
    assert together({"a": [5], "b": [1]}) is None
    assert together({"a": [5]}, {"a": [5]}) is None
    assert together({"a": [5]}, {"b": [5]}) is None


def test_enough_instances_are_tested(together, tmp_path):
    """Six in the same order: they are not alike; ranks 1 and 3 differ by more than 1.353."""
    found = together(*({"a": [1], "b": [2], "c": [3]} for _ in range(6)))
    assert found.tested
    assert "p = 0.00013 (Friedman); closer than 1.35" in found.table().notes[-1]  # (1 / 3!)^5
    save_chart(ranks(found.labels, found.ranks, 6), tmp_path / "ranks")
    lines = (tmp_path / "ranks.csv").read_text().splitlines()
    assert lines[1].startswith("a,1.0,1.353")
    assert (tmp_path / "ranks.png").stat().st_size > 5000


@pytest.mark.parametrize(("policies", "instances"), [("abc", 3), ("abcdefghij", 3)])
def test_ranks_are_tested_where_the_test_can_tell(together, policies, instances):
    """Of three in one order it does: 1.91 < 2; of two it can't, however many policies there are."""
    order = {name: [k + 1] for k, name in enumerate(policies)}
    assert together(*[order] * instances).tested
    assert not together(*[order] * (instances - 1)).tested


def test_an_instance_counts_once_with_all_its_changes(together):
    """Two changes of i0, ratios 1 and 4: 2; on i1 8: sqrt(2 x 8) = 4 over two instances."""
    found = together(
        {"a": [1], "b": [1]}, {"a": [1], "b": [8]}, {"a": [1], "b": [4]}, names=("i0", "i1", "i0")
    ).table()
    assert found.title == "2 instances together"
    assert found.records[1]["mean_jct_s/base"] == pytest.approx(4.0)


@given(st.permutations(range(4)), st.floats(0.5, 2.0))
def test_order_and_unit_of_instances_do_not_matter(order, factor):
    """Ratios and ranks are the same for instances in any order, with all times in another unit."""
    values = np.array([[1.0, 2, 3], [5, 4, 6], [9, 8, 7], [2, 2, 1]])
    before = Summary(("a", "b", "c"), values, (0, 0, 0)).table().records
    after = Summary(("a", "b", "c"), values[list(order)] * factor, (0, 0, 0)).table().records
    for one, other in zip(before, after, strict=True):
        for name in ("mean_jct_s/base", "mean_jct_s/base/low", "rank"):
            assert other[name] == pytest.approx(one[name])
