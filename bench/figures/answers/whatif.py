"""The picture of a what-if: predicted and actual effects, gains and losses, and job sizes."""

from collections.abc import Sequence

import numpy as np

from ronda.bench.figures.chart import Axis, Chart, Marks, Panel, named
from ronda.questions.whatif.answer import WhatIf
from ronda.questions.whatif.sizes import Size

ZERO = Marks("rule", [0], width=0.8)


def whatif(title: str, found: WhatIf) -> Chart:
    """Show each change, the 16 jobs that the last change affects most, and new jobs' sizes."""
    jobs = sorted(found.outcomes[-1].shifts, key=lambda shift: -abs(shift.gain))[:16]
    gains = [(shift.gain, place) for place, shift in enumerate(jobs)]
    sized = [(job, size) for job, sizes in found.sizes.items() for size in sizes]
    changes = [(o.found, k) for k, o in enumerate(found.outcomes)]
    prices = [outcome.foretold for outcome in found.outcomes]
    places = range(len(prices))
    foretold = Marks("points", prices, places, "foretold by the prices", 4, symbol=3)
    panels = [
        Panel(
            [_bars(changes, 0, "found"), ZERO, foretold],
            Axis("change of the plan's worth"),
            named(outcome.change for outcome in found.outcomes),
            "changes",
        ),
        Panel(
            [
                _bars([pair for pair in gains if pair[0] > 0], 2, "gain"),
                _bars([pair for pair in gains if pair[0] <= 0], 1, "loss, or cost to others"),
                ZERO,
            ],
            Axis("gain or loss"),
            named(shift.job for shift in jobs),
            f"jobs: {found.outcomes[-1].change}",
        ),
        *([_sizes(sized)] if sized else []),
    ]
    rows = max(len(changes) + 1, len(jobs), len(sized), 4)
    numbers = [(o.change, o.objective, o.found, o.foretold) for o in found.outcomes]
    unit = found.base.details.objective
    return Chart(
        f"{title}: worth {found.objective:.4g} ({unit}) as it is",
        panels,
        columns=len(panels),
        inches=(4.6 * len(panels), 1.6 + 0.27 * rows),
        header=("change", "objective", "found", "foretold"),
        rows=[("as it is", found.objective, 0.0, 0.0), *numbers],
    )


def _bars(
    ends: Sequence[tuple[float, float]], colour: int, name: str = "", high: float = 0.6
) -> Marks:
    """Return horizontal bars from 0 to `end` at height `place`, for each such pair in `ends`."""
    x_end, y = np.array(ends).reshape(-1, 2).T
    return Marks("boxes", 0 * y, y - high / 2, name, colour, x_end, y + high / 2)


def _sizes(sized: Sequence[tuple[str, Size]]) -> Panel:
    """Return a panel of each size's worth and cost to others; a cross marks an impossible size."""
    several = len({job for job, _ in sized}) > 1
    worth = [(size.worth, k - 0.2, size) for k, (_, size) in enumerate(sized)]
    costs = [(size.cost, k + 0.2) for k, (_, size) in enumerate(sized) if size.cost is not None]
    never = [k for k, (_, size) in enumerate(sized) if size.cost is None]
    marks = [
        _bars([(end, at) for end, at, size in worth if size.starts], 2, "worth, starts", 0.38),
        _bars([(end, at) for end, at, size in worth if not size.starts], 7, "worth, waits", 0.38),
        _bars(costs, 1, "loss, or cost to others", 0.38),
        Marks("points", [0.0] * len(never), never, colour=1, symbol="x"),
    ]
    names = (
        f"{job + ': ' if several else ''}{size.gpus} {size.pool.rpartition('/')[2]}"
        for job, size in sized
    )
    title = "new jobs" if several else sized[0][0]
    return Panel(marks, Axis("worth and cost"), named(names), title)
