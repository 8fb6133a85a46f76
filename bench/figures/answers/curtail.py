"""The picture of a supply curve of flexible power: what is lost, the price, and who bears it."""

import numpy as np

from ronda.bench.figures.chart import Axis, Chart, Marks, Panel
from ronda.questions.curtail.curve import Curtailment

MOST = 6
"""The most names that have an area of their own."""


def curtail(title: str, found: Curtailment, price: float | None = None) -> Chart:
    """Show the loss of worth between plans and bound, the price of a kWh, and who bears it."""
    each, unit = (1.0, "GPU-hours") if price is None else (price, "money")
    kw = [0.0, *(shed.less_w / 1e3 for shed in found.sheds)]
    whole = found.worth or 1.0
    lost = [0.0, *(100 * (found.worth - shed.worth) / whole for shed in found.sheds)]
    least = [0.0, *(100 * max(0.0, found.worth - s.most_worth) / whole for s in found.sheds)]
    anew = [s for s in found.sheds if s.solved is not None]
    solved = [100 * (found.worth - (s.solved or 0.0)) / whole for s in anew]
    x = Axis("kW less", ends=(0.0, kw[-1]))
    worth = [
        Marks("band", kw, least, "between bound and plans", "grey", y_end=lost, alpha=0.3),
        Marks("line", kw, least, "bound by the prices", 1, dash="--"),
        Marks("line", kw, lost, "plans of the pass", 0, symbol=0, size=4),
        Marks("points", [s.less_w / 1e3 for s in anew], solved, "solved anew", 2, symbol=6, size=7),
    ]
    last = [each * found.last_kwh(shed) for shed in found.sheds]
    mean = [each * found.each_kwh(shed) for shed in found.sheds]
    prices = [
        Marks("line", kw[1:], last, "the last kWh", 1, symbol=1, size=4),
        Marks("line", kw[1:], mean, "each kWh on average", 0, dash=":"),
    ]
    tall = sorted(mean + last)[-2 if len(last) > 2 else -1]  # the end of the curve is a cliff
    panels = [
        Panel(worth, x, Axis("worth lost (%)", ends=(0.0, None)), "what it costs"),
        Panel(prices, x, Axis(f"{unit} a kWh", ends=(0.0, 1.1 * tall)), "where it pays"),
        Panel(_areas(found, kw), x, Axis("GPU-hours behind"), f"who bears it, by {found.borne_by}"),
    ]
    header = ("less_w", "worth", "most_worth", "solved", "last_kwh", "each_kwh", "gpu_s", "delay_s")
    rows = [
        (s.less_w, s.worth, s.most_worth, s.solved, a, b, s.gpu_s, s.delay_s)
        for s, a, b in zip(found.sheds, last, mean, strict=True)
    ]
    within = "" if found.within_s is None else f" within {found.within_s:g} s"
    return Chart(
        f"{title}: {found.drawn_w / 1e3:,.4g} kW, less for {found.for_s / 3600:.3g} h{within}",
        panels,
        columns=3,
        inches=(13.0, 4.6),
        header=header,
        rows=rows,
    )


def _areas(found: Curtailment, kw: list[float]) -> list[Marks]:
    """Return the GPU-hours of those who bear most, one line on top of the other."""
    hours = {bearer.name: np.zeros(len(kw)) for shed in found.sheds for bearer in shed.bearers}
    for k, shed in enumerate(found.sheds, 1):
        for bearer in shed.bearers:
            hours[bearer.name][k] += max(0.0, bearer.gpu_s) / 3600
    layers = sorted(hours.items(), key=lambda pair: -float(pair[1].sum()))
    if len(layers) > MOST:
        rest = sum((own for _, own in layers[MOST - 1 :]), np.zeros(len(kw)))
        layers = [*layers[: MOST - 1], ("others", rest)]
    below, marks = np.zeros(len(kw)), list[Marks]()
    for k, (name, own) in enumerate(layers):
        marks.append(Marks("band", kw, below, name, k, y_end=below + own, alpha=0.8))
        below = below + own
    return marks
