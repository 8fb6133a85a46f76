"""The table and the pictures of controllers of sleep."""

import csv

import numpy as np
import pytest

from ronda.bench.figures.draw import save_chart
from ronda.bench.sleeping.lines import by_day, fan, line_of, nodes, sleep_report
from ronda.instances import generate
from ronda.instances.models.power import NodeDraw
from ronda.systems.helios.forecasts import seasonal

SERIES = generate.demand(6, 40, 1, step_s=1800.0)
DRAW = NodeDraw()


@pytest.fixture(scope="module")
def lines():
    """Return two controllers on six days."""
    return [line_of(SERIES, policy, DRAW) for policy in ("vanilla", "oracle(price=20)")]


def rows_of(path):
    """Return the rows of a CSV file as dictionaries."""
    with path.open() as file:
        return list(csv.DictReader(file))


def test_the_table_has_a_row_for_each_and_says_who_knows_the_future(lines):
    """And its numbers are those of the JSON fields."""
    told = sleep_report(SERIES, lines, DRAW)
    table, more = told.tables
    assert [row[:2] for row in table.rows] == [
        ("vanilla", "the present"),
        ("oracle(price=20)", "the future"),
    ]
    for fields, row, other in zip(told.fields["results"], table.rows, more.rows, strict=True):
        assert row[2] == f"{fields['mean_sleeping_nodes']:.2f}"
        assert row[3] == f"{fields['wakeups_per_day']:.2f}"
        assert other[1] == f"{fields['changes_per_day']:.2f}"


def test_the_numbers_beside_the_pictures(lines, tmp_path):
    """Nodes of every step; node-hours and wake-ups of every day."""
    save_chart(nodes(SERIES, lines), tmp_path / "nodes")
    steps = rows_of(tmp_path / "nodes.csv")
    assert [int(row["needed"]) for row in steps] == list(SERIES.needed)
    assert [int(row["vanilla"]) for row in steps] == list(SERIES.needed)
    save_chart(by_day(SERIES, lines), tmp_path / "days")
    days = [row for row in rows_of(tmp_path / "days.csv") if row["policy"] == "vanilla"]
    asleep = (SERIES.total_nodes - SERIES.needed_nodes).reshape(6, 48).sum(axis=1) / 2
    assert [float(row["node_hours_asleep"]) for row in days] == asleep.tolist()
    wakes = sum(int(row["wakeups"]) for row in days)
    assert wakes == round(lines[0].outcome.wakeups_per_day * SERIES.days)
    assert all((tmp_path / f"{name}.png").stat().st_size > 10_000 for name in ("nodes", "days"))


@pytest.mark.parametrize("target", ["level", "peak"])
def test_the_fan_shows_what_was_foretold_and_what_came(target, tmp_path):
    """At a few times, a day ahead."""
    forecast = seasonal(SERIES, target)
    save_chart(fan(SERIES, forecast), tmp_path / "fan")
    rows = rows_of(tmp_path / "fan.csv")
    first = [row for row in rows if row["made_day"] == rows[0]["made_day"]]
    origin = round(float(first[0]["made_day"]) * 48)
    came = SERIES.needed_nodes[origin + 1 : origin + 49]
    assert [int(row["needed"]) for row in first] == came.tolist()
    foretold = np.array([float(row["quantile_0.9"]) for row in first])
    assert np.allclose(foretold, SERIES.needed[origin] + forecast.quantile(0.9, 48)[origin])


def test_a_series_too_short_for_a_fan_has_none():
    """Two days, which is what it learns from."""
    short = generate.demand(2, 40, 1, step_s=1800.0)
    assert fan(short, seasonal(short, "peak")) is None
