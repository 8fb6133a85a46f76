"""The figures of a sweep: mean JCT against energy, and prices over time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from typing import Any

from ronda.bench.figures.chart import Axis, Chart, Marks, Panel, Scale, time_axis
from ronda.bench.frontier.bound import Steps
from ronda.bench.frontier.curves import NUMBERS, Curve, energy_unit, strongest
from ronda.bench.frontier.shadow import Worth


def frontier(
    name: str,
    curves: Sequence[Curve],
    bound: Steps,
    labels: Sequence[str] = (),
    *,
    every: bool = False,
) -> Chart:
    """Show ronda's own curves, the strongest comparators and the clairvoyant frontier.

    Comparators that others beat at every energy appear only in the tables and the CSV file. A mark
    in the legend identifies curves that use more energy at a smaller budget.

    Filled markers are on a policy's envelope. Hollow markers are points that the policy beats
    elsewhere with less energy; a dotted line connects the budgets in order. The envelope continues
    level to the right, because a policy can leave energy unspent. `labels` fix the colours; `every`
    shows all curves.
    """
    rivals = strongest(curves)
    order = labels or [curve.label for curve in curves]
    drawn = [
        curve for curve in curves if curve.points and (every or curve.own or curve.label in rivals)
    ]
    points = [point for curve in drawn for point in curve.points]
    most_j = max(point.energy_j + point.energy_half_j for point in points)
    least_j = min([*(p.energy_j for p in points), *(energy for energy, _ in bound[:1])])
    margin = 0.04 * (most_j - least_j) or 0.05 * most_j
    ends = least_j - margin, most_j + margin
    seconds = [point.mean_jct_s for point in points] + [jct for _, jct in bound]
    low, high = min(seconds), max(seconds)
    scale: Scale = "log" if high > 8 * low else "linear"
    limits = (low / 1.3, high * 1.3) if scale == "log" else (0.0, high * 1.08)
    unit_j, unit = energy_unit(curves)
    said = "\n† uses more energy at some smaller budget" * any(curve.rises for curve in drawn)
    rows = [
        (curve.label, *(getattr(point, name) for name in NUMBERS), len(point.runs))
        for curve in curves
        for point in curve.points
    ]
    rows += [("clairvoyant bound", "", "", energy, "", jct, "", "") for energy, jct in bound]
    marks = [_impossible(bound, ends[1], limits)] if bound else []
    for curve in drawn:
        marks += _curve(curve, order.index(curve.label), ends[1], unit)
    energy = f"energy of the whole run, hosts and idle GPUs included ({unit})"
    x, y = Axis(energy, ends=ends, unit=unit_j), Axis("mean JCT (s)", scale, limits)
    return Chart(
        f"{name}: completion time that energy buys\n"
        f"hollow: more energy for a longer time (dotted: from budget to budget){said}",
        [Panel(marks, x, y)],
        inches=(8, 5),
        header=("policy", "budget_factor", *NUMBERS[1:], "seeds"),
        rows=rows,
    )


def _curve(curve: Curve, index: int, right_j: float, unit: str) -> Iterator[Marks]:
    """Yield the lines of a curve, its points off the envelope, and its points on it."""
    envelope = curve.envelope()
    name = f"{curve.label} †" if curve.rises else curve.label
    shared: dict[str, Any] = {"name": name, "colour": index}
    budgets = [(point.energy_j, point.mean_jct_s) for point in curve.points]
    for pairs, look in (
        (budgets, {"dash": ":", "width": 0.9, "alpha": 0.7}),
        ((*envelope, (right_j, envelope[-1][1])), {"width": 1.6, "alpha": 0.9}),
    ):
        x, y = zip(*pairs, strict=True)
        yield Marks("line", x, y, **shared, **look)
    for hollow in (True, False):
        some = [p for p in curve.points if ((p.energy_j, p.mean_jct_s) in envelope) is not hollow]
        x_half, y_half = (
            [getattr(p, n) for p in some] for n in ("energy_half_j", "mean_jct_half_s")
        )
        yield Marks(
            "points",
            [point.energy_j for point in some],
            [point.mean_jct_s for point in some],
            x_bars=(x_half, x_half),
            y_bars=(y_half, y_half),
            symbol=index,
            hollow=hollow,
            told=f"%{{text}}: %{{y:,.0f}} s with %{{x:,.4g}} {unit}",
            texts=[f"budget ×{point.factor:g}" for point in some],
            **shared,
        )


def _impossible(bound: Steps, right_j: float, limits: tuple[float, float]) -> Marks:
    """Return the area below and to the left of the bound, where no schedule can be."""
    energies, seconds = zip(*bound, strict=True)
    return Marks(
        "area",
        (0.0, *energies, max(right_j, energies[-1])),
        (limits[1], *seconds[1:], seconds[-1], seconds[-1]),
        "no schedule can be here",
        "grey",
        y_end=[limits[0]] * (len(bound) + 2),
        alpha=0.28,
    )


def prices(name: str, labels: Sequence[str], worths: Mapping[tuple[str, float], Worth]) -> Chart:
    """Show the worth of GPUs and energy over time, from the prices at each policy's least budget.

    The CSV file has the numbers of all budgets.
    """
    from_loosest = sorted(worths.items(), key=lambda pair: -pair[0][1])
    tightest = {label: (factor, said) for (label, factor), said in from_loosest}
    end_s = max(float(said.time_s[-1] + said.lasts_s[-1]) for _, said in tightest.values())
    panels = [
        Panel(
            [
                Marks(
                    "step",
                    said.time_s,
                    getattr(said, field),
                    f"{label}, budget ×{factor:g}",
                    labels.index(label),
                    width=0.9,
                )
                for label, (factor, said) in tightest.items()
            ],
            time_axis(end_s),
            Axis(f"s of mean JCT per {what}", ends=(0.0, None)),
        )
        for field, what in (("gpu_hour_s", "GPU-hour"), ("kwh_s", "kWh"))
    ]
    return Chart(
        f"{name}: what one more is worth, by the prices",
        panels,
        inches=(9, 5),
        one_x=True,
        header=("policy", "budget_factor", "time_s", "lasts_s", "s_per_gpu_hour", "s_per_kwh"),
        rows=(
            (label, factor, *values)
            for (label, factor), said in worths.items()
            for values in zip(*(column.tolist() for column in astuple(said)), strict=True)
        ),
    )
