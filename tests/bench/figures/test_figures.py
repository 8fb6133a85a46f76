"""Figures: every picture is there, with its numbers, whatever the schedule holds."""

import csv
import math

import msgspec
import pytest
from msgspec.structs import replace

from ronda.bench.figures.chart import Chart, Marks, Panel, time_axis
from ronda.bench.figures.draw import drawn, save_chart
from ronda.bench.figures.overview import overview
from ronda.bench.figures.run import draw_run
from ronda.bench.runs.results import Result, Status
from ronda.bench.runs.specs import RecordedFile
from ronda.bench.runs.variant import UNCHANGED, Resample, Variant
from ronda.horizon.driver import run
from ronda.instances.budget import Budget, EnergyBudget, StepSeries
from ronda.instances.schedule import JobOutcome, Schedule

PNG = b"\x89PNG"


def rows(path):
    """Return the rows of a CSV file."""
    with path.open() as file:
        return list(csv.DictReader(file))


def test_figures_of_two_policies(two_nodes, tmp_path):
    """The numbers beside the pictures are those of the schedules."""
    schedules = {name: run(two_nodes, name) for name in ("fifo", "srtf")}
    pictures = draw_run(two_nodes, schedules, tmp_path)
    assert all(path.read_bytes().startswith(PNG) for path in pictures)
    gantt = rows(tmp_path / "gantt.csv")
    assert {row["policy"] for row in gantt} == {"fifo", "srtf"}
    held = sum(
        int(r["gpus_here"]) * (float(r["end_s"]) - float(r["start_s"]))
        for r in gantt
        if r["policy"] == "fifo"
    )
    assert held == pytest.approx(2 * 100 + 8 * 50 + 1 * 10)
    cdf = [r for r in rows(tmp_path / "jct_cdf.csv") if r["policy"] == "fifo"]
    assert [float(r["jct_s"]) for r in cdf] == [100, 100, 150, 150]
    assert float(cdf[-1]["share"]) == 1
    assert list(tmp_path.glob("*.tmp")) == []


def test_budgets_sleep_and_power_are_drawn(two_nodes, by_hand, tmp_path):
    """Power caps, energy budgets and sleeping nodes have their marks; nothing fails."""
    budget = Budget(
        power_cap_w=StepSeries(times_s=(0.0, 50.0), values=(900.0, 800.0)),
        energy=EnergyBudget(joules=1e5, horizon_s=200.0),
    )
    limited = msgspec.structs.replace(two_nodes, budget=budget)
    asleep = msgspec.structs.replace(by_hand, sleeps=((1, 0.0, 90.0),))
    assert all(p.stat().st_size > 10_000 for p in draw_run(limited, {"fifo": asleep}, tmp_path))


def test_empty_schedules_and_missing_power_are_drawn(two_nodes, tmp_path):
    """A schedule in which nothing ran, on a cluster without power data, gives figures too."""
    (gpu,), (group,) = two_nodes.cluster.gpu_types, two_nodes.cluster.node_groups
    dark = msgspec.structs.replace(
        two_nodes.cluster,
        gpu_types=(msgspec.structs.replace(gpu, idle_w=0.0),),
        node_groups=(msgspec.structs.replace(group, host_idle_w=0.0, sleep_w=0.0),),
    )
    instance = msgspec.structs.replace(two_nodes, cluster=dark)
    nothing = Schedule(
        instance="x",
        fingerprint="",
        policy="none",
        jobs=(JobOutcome(id="a", submit_s=0.0, end_s=None, segments=()),),
        end_s=0.0,
    )
    pictures = draw_run(instance, {"none": nothing}, tmp_path)
    assert all(path.read_bytes().startswith(PNG) for path in pictures)


def run_of(label, instance, seed, gap, solve_s, variant=UNCHANGED, **metrics):
    """Return a run so far above its bound."""
    known = {} if gap is None else {"gap_mean_jct": gap}
    about = {"instance": instance, "policy": label, "label": label, "variant": variant}
    told = metrics | known | {"median_solve_s": solve_s}
    return Result(key="k", status=Status.OK, seed=seed, metrics=told, **about)


def test_more_drawn_workloads_make_no_bar_smaller(tmp_path):
    """Logarithms 0 and 1 fifty times: s = sqrt(100 / 99) / 2, t(0.975, 99) = 1.984217."""
    variant = Variant(resample=Resample())
    runs = [run_of("a", "x", k, math.exp(k % 2) - 1, 0.1, variant) for k in range(100)]
    chart = overview([*runs, run_of("b", "x", 0, 0.1, 0.2, variant)])
    save_chart(chart, tmp_path / "overview")
    own = rows(tmp_path / "overview.csv")[0]
    width = math.log((1 + float(own["high"])) / (1 + float(own["gap"])))
    assert width == pytest.approx(1.984217 * (100 / 99) ** 0.5 / 2)


def test_overview_of_instances_and_policies(tmp_path):
    """Geometric means with their interval; large ones where all policies ended well.

    1.1 and 1.3: sqrt(1.43), and t(0.975, 1) = 12.7062 times half of ln(1.3 / 1.1).
    """
    results = [
        run_of("a", "x", 0, 0.1, 0.001),
        run_of("a", "x", 1, 0.3, 0.001),
        run_of("a", "y", 0, 0.875, 0.004),
        run_of("b", "x", 0, 1.0, 0.01),
        run_of("b", "y", 0, 1.0, 0.01),
        run_of("a", "alone", 0, 9.0, 1.0),
        run_of("b", "no bound", 0, None, 1.0),
        run_of("c", "broken", 0, 0.1, 1.0),
        run_of("c", "broken", 1, 0.1, 1.0, violations=1),
        run_of("c", "x", 0, 0.2, 1.0),
    ]
    told = RecordedFile(path="ran.json", checksum="0")  # of a log, which has no decisions
    record = replace(run_of("recorded", "x", 0, 0.1, 1.0), recorded=told)
    save_chart(overview([*results, record]), tmp_path / "overview")
    found = {(row["policy"], row["workload"]): row for row in rows(tmp_path / "overview.csv")}
    assert len(found) == 8
    assert [workload for policy, workload in found if policy == "c"] == ["x"]
    own = found["a", "x"]
    assert 1 + float(own["gap"]) == pytest.approx(1.43**0.5)
    times = (1.3 / 1.1) ** (12.7062 / 2)
    assert 1 + float(own["high"]) == pytest.approx(1.43**0.5 * times, rel=1e-4)
    assert 1 + float(own["low"]) == pytest.approx(1.43**0.5 / times, rel=1e-4)
    mean = found["a", "geometric mean"]
    assert float(mean["gap"]) == pytest.approx((1.43**0.5 * 1.875) ** 0.5 - 1)
    assert float(mean["decision_ms"]) == pytest.approx(2.0)
    assert float(found["b", "geometric mean"]["gap"]) == pytest.approx(1.0)
    assert (tmp_path / "overview.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("end_s", "step"), [(37.6, 5), (9, 1), (9.1, 2), (0.3, 0.05), (1000, 2), (4e5, 1)]
)
def test_steps_of_the_time_axis(end_s, step):
    """At most nine parts of 1, 2 or 5 times a power of ten of the unit that suits."""
    axis = time_axis(end_s)
    line = Marks(kind="line", x=[0, end_s], y=[0, 1])
    (axes,) = drawn(Chart(title="", panels=[Panel(marks=[line], x=axis)])).axes
    assert axes.get_xlim() == (0, end_s / axis.unit)
    assert axes.get_xticks()[:2] == pytest.approx([0, step])


def test_equal_numbers_give_equal_files(tmp_path):
    """Picture and numbers, byte by byte."""
    made = []
    for folder in (tmp_path / "first", tmp_path / "second"):
        half = [0.5, 0.5]
        points = Marks(kind="points", x=[1, 2], y=[3, 4], y_bars=(half, half), symbol=0)
        panels, rows = [Panel(marks=[points])], [(1, 3), (2, 4)]
        chart = Chart(title="points", panels=panels, header=("x", "y"), rows=rows)
        save_chart(chart, folder / "points", svg=True)
        made.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert made[0].keys() == {"points.png", "points.svg", "points.csv"}
    assert made[0] == made[1]
