"""The tables of a comparison: the usual ones, and those that a suite arranges."""

import csv
import math

import numpy as np
import pytest

from ronda.bench.figures.columns import COLUMNS, METRICS
from ronda.bench.figures.draw import save_chart
from ronda.bench.runs.results import Result, Status
from ronda.bench.runs.single import measure
from ronda.bench.runs.specs import RunCase
from ronda.bench.runs.variant import UNCHANGED, Resample, Variant
from ronda.bench.suites.cells import Cell, Expanded
from ronda.bench.suites.rows import Pair, TableColumn, TableRow
from ronda.bench.suites.suite import Ratio, Suite, TableSpec
from ronda.bench.suites.tables import arrange, points, usual
from ronda.bench.tables import write_tables
from ronda.horizon.driver import run
from ronda.instances import generate
from ronda.instances.errors import InputError
from ronda.instances.tables.numbers import (
    count,
    fine,
    fine_percent,
    joules,
    milliseconds,
    percent,
    seconds,
)
from ronda.instances.tables.table import Best, Table


class Runs:
    """Runs that ended: the cells of a suite, and their results by key."""

    def __init__(self, tmp_path):
        self.expanded, self.results = Expanded(tmp_path), {}

    def add(
        self,
        label="fifo",
        seed=0,
        status=Status.OK,
        instance="x",
        at=None,
        variant=UNCHANGED,
        fingerprint=None,
        **metrics,
    ):
        """Add a run with all metrics that the usual table shows."""
        fingerprint = fingerprint or f"{instance}{at}{seed if variant.draws else ''}"
        axes = {"instance": instance, "policy": label, "knowledge": "declared", "seed": f"{seed}"}
        case = RunCase(
            source=instance,
            instance=instance,
            level=(at or {}).get("knowledge", "declared"),
            fingerprint=fingerprint,
            policy=label,
            label=label,
            seed=seed,
        )
        self.expanded.cells.append(Cell(axes | (at or {}), case))
        shown = {column.key: 1.0 for column in COLUMNS}
        known = {"jobs": 10, "violations": 0, "bound_mean_jct_s": 50.0, "knowledge": "oracle"}
        self.results[case.key] = Result(
            key=case.key,
            instance=instance,
            fingerprint=fingerprint,
            policy=label,
            label=label,
            seed=seed,
            variant=variant,
            status=status,
            metrics=shown | known | metrics if status is Status.OK else {},
        )
        return self

    def usual(self):
        """Return the usual tables."""
        return [each.table(self.results) for each in usual(self.expanded, self.results)]

    def arranged(self, ratio=None, **table):
        """Return the table of an arrangement."""
        suite = Suite(about="a title", ratio=ratio, table=TableSpec(**table))
        return arrange(suite, self.expanded)[0].table(self.results)


@pytest.fixture
def runs(tmp_path):
    """Return none yet."""
    return Runs(tmp_path)


def cell(table, label, title):
    """Return one text of a table."""
    (row,) = [row for row in table.rows if row[0].partition(" ")[0] == label]
    return row[table.header.index(title)]


def test_means_over_seeds_and_their_spread(runs):
    """100 and 120 have the mean 110 and the sample standard deviation sqrt(200) = 14.14."""
    runs.add(seed=0, mean_jct_s=100.0).add(seed=1, mean_jct_s=120.0)
    (table,) = runs.usual()
    assert cell(table, "fifo", "mean JCT (s)") == "110 ± 14.14"
    assert table.rows[0][0] == "fifo (2 seeds)"
    assert table.records[0]["mean_jct_s/spread"] == pytest.approx(200**0.5)
    assert table.notes == ("±: standard deviation of the runs",)


def test_notes_of_an_instance_stand_once_under_its_table(runs):
    """Where sizes are from, and what was assumed."""
    runs.add("a", mean_jct_s=1.0, notes=["sizes: x", "GPUs: y"])
    (table,) = runs.add("b", mean_jct_s=1.0, notes=["sizes: x", "GPUs: y"]).usual()
    assert table.notes == ("sizes: x", "GPUs: y")


def test_policies_are_held_against_the_first_seed_by_seed(runs):
    """60 / 30 and 100 / 50 are 2 each: no width, however far the seeds are apart."""
    runs.add("a", 0, mean_jct_s=30.0).add("a", 1, mean_jct_s=50.0)
    (table,) = runs.add("b", 0, mean_jct_s=60.0).add("b", 1, mean_jct_s=100.0).usual()
    assert cell(table, "b", "mean JCT / a") == "2.000 [2.000, 2.000]"
    over = "[]: 95 % interval by Student's t over instances; of one instance over seeds"
    assert table.notes[2] == over


def test_resampled_workloads_are_replicates(runs):
    """Ratios 1 and e: the mean exp(1/2), and t(0.975, 1) = 12.7062 times s = sqrt(1/2)."""
    for seed, ratio in ((0, 1.0), (1, math.e)):
        for label, jct_s in (("a", 10.0), ("b", 10.0 * ratio)):
            runs.add(label, seed, variant=Variant(resample=Resample()), mean_jct_s=jct_s)
    (table,) = runs.usual()
    assert table.rows[1][0] == "b (2 workloads)"
    value, low, high = (
        table.records[1][f"mean_jct_s/interval{end}"] for end in ("", "/low", "/high")
    )
    assert value == pytest.approx(math.exp(0.5))
    assert (low, high) == pytest.approx(
        (math.exp(0.5 - 12.7062 * math.sqrt(0.5)), math.exp(0.5 + 12.7062 * math.sqrt(0.5))),
        rel=1e-4,
    )
    assert "resampled workloads" in table.notes[0]
    assert "resampled workloads" in table.notes[-1]


def test_best_is_the_smallest_and_only_where_something_differs(runs):
    """The shorter mean JCT stands out; equal numbers do not, nor does a plain count."""
    runs.add("a", mean_jct_s=9.0, rounds=1).add("b", mean_jct_s=8.0, rounds=2)
    (table,) = runs.usual()
    assert isinstance(cell(table, "b", "mean JCT (s)"), Best)
    assert not isinstance(cell(table, "a", "mean JCT (s)"), Best)
    assert not isinstance(cell(table, "a", "p95 JCT (s)"), Best)
    assert not isinstance(cell(table, "a", "decisions"), Best)


@pytest.mark.parametrize("metrics", [{"violations": 1}, None])
def test_a_policy_with_a_failure_cannot_be_best(runs, metrics):
    """Neither a schedule that breaks rules nor the mean of the easier seeds wins."""
    runs.add("bad", mean_jct_s=1.0, **(metrics or {}))
    if metrics is None:
        runs.add("bad", seed=1, status=Status.TIME)
    (table,) = runs.add("a", mean_jct_s=2.0).add("b", mean_jct_s=3.0).usual()
    assert not isinstance(cell(table, "bad", "mean JCT (s)"), Best)
    assert isinstance(cell(table, "a", "mean JCT (s)"), Best)
    assert table.rows[0][0] in {"bad (1 of 1 with violations)", "bad (2 seeds, 1 of 2 TIME)"}


def test_a_policy_that_never_ended_shows_dashes(runs):
    """Without any number the row still stands, and says why."""
    (table,) = runs.add("a").add("slow", status=Status.OOM).usual()
    assert cell(table, "slow", "mean JCT (s)") == "–"
    assert table.rows[1][:2] == ("slow (1 of 1 OOM)", "–")


def test_a_table_for_each_instance_and_change_in_the_order_given(runs):
    """Tables and rows keep the order of the runs, and say what they are of."""
    runs.add("b", instance="y").add("a", instance="y").add(at={"restart_s": "30"})
    first, second = runs.usual()
    assert first.title == "y · 10 jobs · clairvoyant bound on mean JCT 50 s"
    assert second.title.startswith("x, restart_s 30 · 10 jobs")
    assert [row[0] for row in first.rows] == ["b", "a"]


def test_the_same_rows_as_markdown_and_as_csv(runs, tmp_path):
    """The best number is bold in Markdown; the CSV holds bare numbers, units in their names."""
    runs.add("a", mean_jct_s=1234.5, energy_j=4.773e8).add("a", 1, mean_jct_s=1234.5)
    (table,) = runs.add("b", mean_jct_s=2000.0).usual()
    write_tables([table], tmp_path, ["a remark"])
    text = (tmp_path / "table.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4
    assert {line.count("|") for line in rows} == {len(COLUMNS) + 4}  # and the ratio
    assert "**1,234 ± 0**" in rows[2]
    assert text.endswith("* a remark\n")
    with (tmp_path / "table.csv").open(newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["policy"], first["runs"], first["sizes"]) == ("a", "2", "oracle")
    assert (first["mean_jct_s"], first["mean_jct_s/spread"]) == ("1234.5", "0.0")
    assert float(first["energy_j"]) == (4.773e8 + 1) / 2
    assert second["mean_jct_s/spread"] == ""


BASE = Ratio(to={"policy": "b"})


def pairs(runs, ours=(2.0, 300.0), base=(1.0, 3.0)):
    """Add two seeds of two policies: ratios of 2 and 100."""
    for seed, (a, b) in enumerate(zip(ours, base, strict=True)):
        runs.add("a", seed, mean_jct_s=a, longest_queue_s=a).add("b", seed, mean_jct_s=b)
    return runs


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ("mean_jct_s", "151"),
        ("mean_jct_s/base", "14.142"),  # sqrt(2 x 100)
        ("mean_jct_s/worst", "100.000"),
        ("mean_jct_s/lost", "2"),
        ("mean_jct_s/range", "14.142 (2.00-100.00)"),
        ("mean_jct_s/spread", "151 ± 211"),  # 298 / sqrt(2)
        ("sizes", "oracle"),
        ("longest_queue_s/base", "–"),  # what it is held against has none
    ],
)
def test_columns_by_hand(runs, column, told):
    """Means of 2 and 300, held against 1 and 3 of the same seeds."""
    table = pairs(runs).arranged(BASE, columns=(column,))
    assert table.rows[0] == ("a", told)
    assert table.title == "a title"


def test_the_ratio_of_means_and_a_floor(runs):
    """(2 + 300) / (1 + 3) = 75.5; with all below 50 counted as 50: sqrt(1 x 6) = 2.449."""
    of_means = Ratio(to={"policy": "b"}, mean="of means")
    assert pairs(runs).arranged(of_means, columns=("mean_jct_s/base",)).rows[0][1] == "75.500"
    columns = ("mean_jct_s/base", "mean_jct_s/lost")
    for lost_above, lost in ((5.9, "1"), (6.1, "0")):
        floor = Ratio(to={"policy": "b"}, floor=50.0, lost_above=lost_above)
        first, second = runs.arranged(floor, columns=columns).rows
        assert (first, second) == (("a", "2.449", lost), ("b", "1.000", "0"))


def test_an_interval_needs_two_seeds(runs):
    """Half of the other on every seed has no width; one seed has no interval."""
    table = pairs(runs, (1.0, 5.0), (2.0, 10.0)).arranged(BASE, columns=("mean_jct_s/interval",))
    assert table.rows[0][1] == "0.500 [0.500, 0.500]"
    ends = dict.fromkeys((f"mean_jct_s/interval{end}" for end in ("", "/low", "/high")), 0.5)
    assert {name: table.records[0][name] for name in ends} == pytest.approx(ends)
    alone = Runs(runs.expanded.out)
    alone.add("a", mean_jct_s=1.0).add("b", mean_jct_s=2.0)
    assert alone.arranged(BASE, columns=("mean_jct_s/interval",)).rows[0][1] == "0.500"


def test_runs_are_held_against_that_which_differs_in_the_base_alone(runs):
    """Another instance is another base; what runs once is the base of all seeds."""
    for instance, base in (("x", 10.0), ("y", 1000.0)):
        runs.add("b", 7, instance=instance, mean_jct_s=base)
        for seed in (0, 1):
            runs.add("a", seed, instance=instance, mean_jct_s=2 * base)
    rows = runs.arranged(BASE, rows=("instance", "policy"), columns=("mean_jct_s/base",)).rows
    assert [row[2] for row in rows if row[1] == "a"] == ["2.000", "2.000"]


def test_a_seed_that_the_base_lacks_is_held_against_nothing(runs):
    """Of seeds 0 to 2 the base has two: the ratio is that of these pairs."""
    pairs(runs).add("a", 2, mean_jct_s=1e9)
    (row, _) = runs.arranged(BASE, columns=("mean_jct_s/base",)).rows
    assert row == ("a (1 of 3 without a pair)", "14.142")


def test_instances_are_the_units_of_an_interval(runs):
    """Of x twice 1 and of y twice 4: logarithms 0 and ln 4, not four; 2 x 4^(+-12.7062 / 2)."""
    for instance, ratio in (("x", 1.0), ("y", 4.0)):
        for seed in (0, 1):
            runs.add("b", seed, instance=instance, mean_jct_s=1.0)
            runs.add("a", seed, instance=instance, mean_jct_s=ratio)
    runs.add("b", 2, instance="y", mean_jct_s=1.0).add("a", 2, instance="y", mean_jct_s=4.0)
    row = runs.arranged(BASE, columns=("mean_jct_s/interval",)).records[1]
    value, low, high = (row[f"mean_jct_s/interval{end}"] for end in ("", "/low", "/high"))
    assert (value, high) == pytest.approx((2.0, 2 * 2**12.7062), rel=1e-4)
    assert low * high == pytest.approx(4.0)


@pytest.mark.parametrize(("axis", "seeds"), [("instance", 1), ("instance", 25), ("jobs", 5)])
def test_an_interval_holds_the_truth_as_often_as_it_says(axis, seeds):
    """Six instances of true ratio 1, by name or by a maker's parameter: 95 % of 200 comparisons.

    Their own ratios vary by exp(0.3 z), those of a seed by exp(0.1 z). With every seed as a unit of
    its own the interval of 25 seeds would hold 1 in a quarter of them.
    """
    rng, held = np.random.default_rng(0), 0
    for _ in range(200):
        logs = 0.3 * rng.standard_normal((6, 1)) + 0.1 * rng.standard_normal((6, seeds))
        pairs = [
            Pair(
                of(math.exp(log), seed),
                of(1.0, seed),
                {"instance": "made", "seed": f"{seed}", axis: f"{k}"},
            )
            for k in range(6)
            for seed, log in enumerate(logs[k])
        ]
        row = TableRow(("a",), tuple(pairs), BASE)
        _, low, high = row.value(TableColumn(METRICS["mean_jct_s"], "interval"))
        held += low <= 1.0 <= high
    assert 0.91 <= held / 200 <= 0.99


def of(jct_s, seed):
    """Return a run that ended with a mean JCT."""
    about = {"key": "k", "instance": "x", "policy": "p", "status": Status.OK}
    return Result(**about, seed=seed, metrics={"mean_jct_s": jct_s})


@pytest.mark.parametrize("metrics", [{"violations": 1}, None])
def test_a_failure_makes_no_policy_better(runs, metrics):
    """Half the time on x, twice on y: 1. Once y fails there is no ratio, and the worst is infinite.

    Nor is there one to it: half on x alone would be better than 1.
    """
    status = Status.TIME if metrics is None else Status.OK
    runs.add("a", instance="x", mean_jct_s=1.0)
    runs.add("a", instance="y", mean_jct_s=4.0, status=status, **metrics or {})
    for instance in ("x", "y"):
        runs.add("b", instance=instance, mean_jct_s=2.0)
    kinds = ("base", "interval", "range", "worst", "lost", "spread")
    columns = ("mean_jct_s", *(f"mean_jct_s/{kind}" for kind in kinds))
    first, second = runs.arranged(BASE, columns=columns).rows
    assert first[0] == f"a (1 of 2 {'TIME' if metrics is None else 'with violations'})"
    assert first[1:] == ("–", "∞", "∞", "∞", "∞", "1", "–")
    assert second[2:4] == ("1.000", "1.000 [1.000, 1.000]")
    other = runs.arranged(Ratio(to={"policy": "a"}), columns=columns).rows[1]
    assert other[1:] == ("2", "–", "–", "–", "–", "–", "2 ± 0")
    suite = Suite(ratio=BASE, table=TableSpec(columns=("mean_jct_s/base",)))
    rows = arrange(suite, runs.expanded)[0].fields(runs.results)
    assert min(rows, key=lambda row: row["mean_jct_s"])["policy"] == "b"


def test_only_runs_of_one_workload_are_pairs(runs):
    """Of another instance under the same name nothing is said, however the axes are called."""
    runs.add("b", mean_jct_s=10.0).add("a", mean_jct_s=1.0, fingerprint="nodes that sleep")
    table = runs.arranged(BASE, columns=("mean_jct_s/base",))
    assert table.rows == (("b", "1.000"), ("a (1 of 1 without a pair)", "–"))
    assert "only ratios of rows over the same workloads say who is better" in table.notes


def test_a_stopped_comparison_has_pairs_of_the_same_workload(runs):
    """One workload of the base is there, ratio 0.9: the others, five times as hard, wait."""
    drawn = [Variant(resample=Resample(), seed=seed) for seed in (0, 1)]
    runs.add("b", 0, variant=drawn[0], mean_jct_s=10.0)
    for seed, jct_s in enumerate((9.0, 50.0)):
        runs.add("a", seed, variant=drawn[seed], mean_jct_s=jct_s)
    (table,) = runs.usual()
    assert cell(table, "a", "mean JCT / b") == "0.900"
    assert table.rows[1][0] == "a (2 workloads, 1 of 2 without a pair)"


def test_a_base_that_is_another_change_has_its_instance_and_seed(runs):
    """With faults against without: what is not drawn is the base of all seeds, else its own."""
    base = Ratio(to={"faults": "none"})
    for seed in (0, 1):
        runs.add("a", seed, at={"faults": "all"}, fingerprint=f"all{seed}", mean_jct_s=2.0 + seed)
    runs.add("a", 0, at={"faults": "none"}, fingerprint="none", mean_jct_s=1.0)
    column = {"rows": ("faults",), "columns": ("mean_jct_s/range",)}
    assert runs.arranged(base, **column).rows[0] == ("all", "2.449 (2.00-3.00)")
    other = Runs(runs.expanded.out)
    for seed in (0, 1):
        drawn = Variant(resample=Resample(), seed=seed)
        other.add("a", seed, at={"faults": "all"}, variant=drawn, fingerprint=f"all{seed}")
    other.add("a", 0, at={"faults": "none"}, variant=drawn, mean_jct_s=2.0)
    assert other.arranged(base, **column).rows[0] == (
        "all (1 of 2 without a pair)",
        "0.500 (0.50-0.50)",
    )


def test_the_bound_is_the_mean_of_each_workload_s_once(runs):
    """Bounds 10 and 30 s: 20; not the greatest, nor the mean of the runs that ended.

    Where one policy has not run the second yet, its mean can't be below 10 s, and no other's.
    """
    drawn = [Variant(resample=Resample(), seed=seed) for seed in (0, 1)]
    for seed, bound_s in enumerate((10.0, 30.0)):
        runs.add("b", seed, variant=drawn[seed], mean_jct_s=40.0, bound_mean_jct_s=bound_s)
    runs.add("c", 0, variant=drawn[0], mean_jct_s=40.0, bound_mean_jct_s=10.0)
    failed = Runs(runs.expanded.out)
    failed.expanded, failed.results = runs.expanded, dict(runs.results)
    assert "mean JCT 10 s" in runs.usual()[0].title
    failed.add("c", 1, variant=drawn[1], status=Status.TIME)
    assert "mean JCT 20 s" in failed.usual()[0].title


def test_who_gives_up_is_not_best_and_says_so(runs):
    """Nor has its mean a bound: that of all jobs does not hold for those that it kept."""
    runs.add("whole", mean_jct_s=90.0, mean_best_s=9.0, missed_sweeps=0, sweeps=10)
    gone = {"missed_sweeps": 9, "sweeps": 10, "discarded_jobs": 98, "jobs": 100}
    runs.add("gives", mean_jct_s=10.0, mean_best_s=1.0, bound_mean_jct_s=0.0, **gone)
    (table,) = runs.usual()
    assert (
        table.rows[1][0] == "gives (9 of 10 sweeps without their best, 98 of 100 trials given up)"
    )
    assert not any(isinstance(text, Best) for text in table.rows[1])
    assert isinstance(cell(table, "whole", "mean JCT (s)"), Best) is False  # of one nothing is best
    assert "no scheduler" not in table.title


def test_values_across_and_what_failed_there(runs):
    """Columns for the values of an axis: the first cell, others in brackets, and the failure."""
    for cost, jct_s in (("0", 5.0), ("60", 7.0)):
        runs.add("a", at={"restart_s": cost}, mean_jct_s=jct_s, restarts=2)
    runs.add("b", at={"restart_s": "0"}, mean_jct_s=6.0, restarts=1)
    runs.add("b", at={"restart_s": "60"}, status=Status.TIME)
    table = runs.arranged(across="restart_s", cells=("mean_jct_s", "restarts"), columns=("jobs",))
    assert table.header == ("policy", "restart_s 0", "restart_s 60", "jobs")
    assert table.rows[0] == ("a", "5 (2)", "7 (2)", "10")
    assert table.rows[1] == ("b (1 of 2 TIME)", "6 (1)", "– (–, 1 of 1 TIME)", "10")
    first, second = table.records
    assert (first["policy"], first["restart_s=60: mean_jct_s"], first["jobs"]) == ("a", 7, 10)
    assert (second["note"], second["restart_s=0: restarts"]) == ("1 of 2 TIME", 1)
    assert "by restart_s: mean JCT (s), restarts" in table.notes


def test_the_best_is_that_of_policies_side_by_side(runs):
    """Rows that differ in another axis are no rivals."""
    for instance, jct_s in (("x", 1.0), ("y", 100.0)):
        runs.add("a", instance=instance, mean_jct_s=jct_s)
        runs.add("b", instance=instance, mean_jct_s=jct_s + 1)
    rows = runs.arranged(rows=("instance", "policy"), columns=("mean_jct_s",)).rows
    assert [isinstance(row[2], Best) for row in rows] == [True, False, True, False]


@pytest.mark.parametrize(
    ("ratio", "table", "said"),
    [
        (
            None,
            {"rows": ("joy",)},
            'table.rows: found "joy"; expected one of "instance", "knowledge"',
        ),
        (None, {"across": "joy", "cells": ("jobs",)}, 'table.across: found "joy"'),
        (None, {"across": "policy"}, "table: found one of across and cells; expected both"),
        (None, {"columns": ("joy",)}, 'table.columns: found "joy"; expected METRIC or METRIC/KIND'),
        (None, {"columns": ("jobs/base",)}, r"expected a table \[ratio\]"),
        (
            BASE,
            {"columns": ("jobs/joy",)},
            'KIND one of "base", "interval", "lost", "range", "spread", "worst"',
        ),
        (Ratio(to={"policy": "c"}), {}, 'ratio.to.policy: found "c"; expected one of "a", "b"'),
        (Ratio(to={"joy": 1}), {}, 'ratio.to.joy: found "1"; expected an axis: one of "instance"'),
    ],
)
def test_what_there_is_not_is_refused_before_anything_runs(runs, ratio, table, said):
    """An axis, a value or a metric that no run has."""
    pairs(runs)
    with pytest.raises(InputError, match=said):
        runs.arranged(ratio, **table)


def test_a_point_for_each_row(runs, tmp_path):
    """The figure of two columns, its numbers beside it."""
    suite = Suite(ratio=BASE, table=TableSpec(), figure=("jobs", "mean_jct_s/base"))
    arranged, axes = arrange(suite, pairs(runs).expanded)
    save_chart(points(arranged, axes, runs.results), tmp_path / "points")
    assert (tmp_path / "points.png").stat().st_size > 5_000
    lines = (tmp_path / "points.csv").read_text().splitlines()
    assert lines[0] == "policy,jobs,mean JCT / b"
    assert lines[1].startswith("a,10.0,14.14")


def test_rows_for_programs(runs):
    """Axes, means, and what is shown of ratios."""
    suite = Suite(ratio=BASE, table=TableSpec(columns=("mean_jct_s/worst",)))
    first, _ = arrange(suite, pairs(runs).expanded)[0].fields(runs.results)
    assert (first["policy"], first["runs"], first["mean_jct_s"]) == ("a", 2, 151.0)
    assert first["mean_jct_s/worst"] == 100.0


def test_every_figure_of_a_run_can_be_shown():
    """A number that a run's line has is a column that a suite may ask for."""
    search = generate.sweep(4, 2, 0, generate.Trials(reports=4))
    breaks = generate.broken(
        generate.horizon(6, 16, "tight", 0), generate.Breakage(node_failures=5.0), 0
    )
    for instance, policy in ((search, "asha"), (breaks, "prices")):
        found = measure(instance, run(instance, policy), wall_s=1.0).metrics
        numbers = {k for k, v in found.items() if isinstance(v, int | float)}
        assert numbers - METRICS.keys() == {"seed"}


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


@pytest.mark.parametrize("write", [seconds, milliseconds, percent, fine, fine_percent, count])
def test_nothing_has_no_sign(write):
    """Neither the zero below zero, nor what is written as one."""
    assert write(-0.0) == write(0.0)
    assert percent(-1e-9) == "0.0"


def test_a_table_in_latex(tmp_path):
    """With booktabs; what LaTeX would take for a command is set as it is, as is a row's [."""
    rows = (("[x] 50 %", Best("1 ± 2")), ("a_b & {c}\\d^~#$", "–"))
    write_tables([Table("T & U", ("policy", "mean JCT (s)"), rows, ("±: <sd>",))], tmp_path)
    assert (tmp_path / "table.tex").read_text() == (
        r"""\begin{table}
\centering
\caption{T \& U}
\begin{tabular}{lr}
\toprule
policy & mean JCT (s) \\
\midrule
{[}x{]} 50 \% & \textbf{1 $\pm$ 2} \\
a\_b \& \{c\}\textbackslash{}d\textasciicircum{}\textasciitilde{}\#\$ & -- \\
\bottomrule
\end{tabular}
\par{\footnotesize $\pm$: $<$sd$>$}
\end{table}
"""
    )
