"""The picture of a what-if: what changes foretold and found, who gains and loses, a job's sizes."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes

from ronda.bench.figures.style import colour, legend_below, new_figure, save, tidy
from ronda.questions.whatif.answer import Changed, WhatIf
from ronda.questions.whatif.sizes import Size

JOBS = 16
"""Jobs that are drawn: those that gain or lose most."""


def draw_whatif(title: str, found: WhatIf, path: Path) -> None:
    """Draw each change, the jobs that the last one moves most, and the sizes of new jobs."""
    jobs = sorted(found.outcomes[-1].shifts, key=lambda shift: -abs(shift.gain))[:JOBS]
    sized = [(job, size) for job, sizes in found.sizes.items() for size in sizes]
    rows = max(len(found.outcomes) + 1, len(jobs), len(sized), 4)
    panels = 2 + bool(sized)
    figure = new_figure(4.6 * panels, 1.6 + 0.27 * rows)
    changes, shifts, *sizes = figure.subplots(1, panels)
    _draw_changes(changes, found.outcomes)
    gains = [shift.gain for shift in jobs]
    shades = [colour(2) if gain > 0 else colour(1) for gain in gains]
    shifts.barh([shift.job for shift in jobs], gains, color=shades)
    shifts.axvline(0, color="black", linewidth=0.8)
    shifts.invert_yaxis()
    shifts.set_title(f"jobs: {found.outcomes[-1].change}", fontsize=9)
    tidy(shifts, "gain or loss", grid=True)
    for axes in sizes:
        _draw_sizes(axes, sized)
    unit = found.base.details.objective
    figure.suptitle(f"{title}: worth {found.objective:.4g} ({unit}) as it is", fontsize=10)
    legend_below(figure, changes.get_legend_handles_labels()[0])
    header = ("change", "objective", "found", "foretold")
    numbers = [(o.change, o.objective, o.found, o.foretold) for o in found.outcomes]
    save(figure, path, header, [("as it is", found.objective, 0.0, 0.0), *numbers])


def _draw_changes(axes: Axes, outcomes: Sequence[Changed]) -> None:
    names = [outcome.change for outcome in outcomes]
    places = range(len(names))
    values = [outcome.found for outcome in outcomes]
    axes.barh(places, values, color=colour(0), height=0.6, label="found")
    foretold = [outcome.foretold for outcome in outcomes]
    axes.plot(foretold, places, "D", color=colour(4), markersize=6, label="foretold by the prices")
    axes.set_yticks(places, names)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.invert_yaxis()
    axes.set_title("changes", fontsize=9)
    tidy(axes, "change of the plan's worth", grid=True)


def _draw_sizes(axes: Axes, sized: Sequence[tuple[str, Size]]) -> None:
    """Draw what each size is worth, and what it costs others; where it cannot run, a cross."""
    several = len({job for job, _ in sized}) > 1
    for place, (_, size) in enumerate(sized):
        axes.barh(place - 0.2, size.worth, 0.38, color=colour(2 if size.starts else 7))
        if size.cost is None:
            axes.plot(0, place, "x", color=colour(1))
        else:
            axes.barh(place + 0.2, size.cost, 0.38, color=colour(1), alpha=0.6)
    names = [
        f"{job + ': ' if several else ''}{size.gpus} {size.pool.rpartition('/')[2]}"
        for job, size in sized
    ]
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_title(
        f"{'new jobs' if several else sized[0][0]}: worth (green: starts), cost to others (red)",
        fontsize=9,
    )
    tidy(axes, "worth and cost", grid=True)
