"""Figures: every picture is there, with its numbers, whatever the schedule holds."""

import csv

import msgspec
import pytest

from ronda.bench.figures.overview import overview
from ronda.bench.figures.run import draw_run, quality
from ronda.bench.figures.style import new_figure, save, time_axis
from ronda.bench.runs.results import Result, Status
from ronda.instances.budget import Budget, EnergyBudget, StepSeries
from ronda.instances.schedule import JobOutcome, Schedule
from ronda.solvers.horizon.driver import run

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


def test_quality_against_solve_time(tmp_path):
    """One row a run, the bound beside it; a missing bound draws no line."""
    results = [
        Result(
            key=str(seed),
            instance="x",
            policy="p",
            label="p",
            seed=seed,
            status=Status.OK,
            metrics={"mean_jct_s": 10.0 + seed, "median_solve_s": 0.01, "p99_solve_s": 0.1}
            | ({"bound_mean_jct_s": 5.0} if seed else {}),
        )
        for seed in (0, 1)
    ]
    quality("x", results, tmp_path / "quality")
    assert [row["mean_jct_s"] for row in rows(tmp_path / "quality.csv")] == ["10.0", "11.0"]
    assert (tmp_path / "quality.png").read_bytes().startswith(PNG)


def test_overview_of_instances_and_policies(tmp_path):
    """Means over seeds with their interval; geometric means where all policies ended."""

    def run_of(label, instance, seed, gap, solve_s):
        metrics = {"gap_mean_jct": gap, "median_solve_s": solve_s}
        return Result(
            key=f"{label}{instance}{seed}",
            instance=instance,
            policy=label,
            label=label,
            seed=seed,
            status=Status.OK,
            metrics=metrics if gap is not None else {"median_solve_s": solve_s},
        )

    results = [
        run_of("a", "x", 0, 0.1, 0.001),
        run_of("a", "x", 1, 0.3, 0.001),
        run_of("a", "y", 0, 0.875, 0.004),
        run_of("b", "x", 0, 1.0, 0.01),
        run_of("b", "y", 0, 1.0, 0.01),
        run_of("a", "alone", 0, 9.0, 1.0),
        run_of("b", "no bound", 0, None, 1.0),
    ]
    overview(results, tmp_path / "overview")
    found = {(row["policy"], row["instance"]): row for row in rows(tmp_path / "overview.csv")}
    assert len(found) == 7
    assert float(found["a", "x"]["gap"]) == pytest.approx(0.2)
    # Half the interval of two values: t(1, 97.5 %) = 12.7062 times 0.1.
    assert float(found["a", "x"]["half_interval"]) == pytest.approx(1.27062, rel=1e-4)
    mean = found["a", "geometric mean"]
    assert float(mean["gap"]) == pytest.approx((1.2 * 1.875) ** 0.5 - 1)
    assert float(mean["decision_ms"]) == pytest.approx(2.0)
    assert float(found["b", "geometric mean"]["gap"]) == pytest.approx(1.0)
    assert (tmp_path / "overview.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("end_s", "step_s"), [(37.6, 5), (8, 1), (8.1, 2), (0.3, 0.05), (1000, 300), (4e5, 86400)]
)
def test_steps_of_the_time_axis(end_s, step_s):
    """At most eight parts of 1, 2 or 5 times a power of ten of the unit that suits."""
    axes = new_figure(4, 3).subplots()
    time_axis(axes, end_s)
    assert axes.get_xlim() == (0, end_s)
    assert axes.get_xticks()[:2] == pytest.approx([0, step_s])


def test_equal_numbers_give_equal_files(tmp_path):
    """Picture and numbers, byte by byte."""
    made = []
    for folder in (tmp_path / "first", tmp_path / "second"):
        figure = new_figure(3, 2)
        axes = figure.subplots()
        axes.errorbar([1, 2], [3, 4], yerr=0.5, marker="o")
        save(figure, folder / "points", ("x", "y"), [(1, 3), (2, 4)], svg=True)
        made.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert made[0].keys() == {"points.png", "points.svg", "points.csv"}
    assert made[0] == made[1]
