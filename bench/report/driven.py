"""The section of a decision about a real Slurm: the GPUs of its nodes now, and by the plan."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from ronda.bench.figures.chart import Axis, Marks, Panel, named
from ronda.bench.report.charts import caption, page_chart
from ronda.bench.report.section import PageSection
from ronda.hosts.slurm.controller import Pass
from ronda.instances.job import Allocation
from ronda.instances.tables.table import Report, Table


def driven_section(made: Pass, report: Report) -> PageSection:
    """Return the section of a decision: the nodes, the steps, and the commands in their order."""
    panel, left = nodes_panel(made)
    more = caption("slurm", "left", left=left) if left else ""
    chart = page_chart("slurm", "nodes", caption("slurm", left=more), panel)
    chart.layout |= {"barmode": "overlay"}
    rows = [
        {"command": each["line"], "of": step["what"], "outcome": each["outcome"]}
        for step in report.fields["steps"]
        for each in step["commands"]
    ]
    lines = {row["command"] for row in rows}
    parts = [part for part in report.parts if not isinstance(part, str) or part not in lines]
    if rows:
        parts.append(Table.of("Commands, in their order", rows, left=(0, 1, 2)))
    parts += [f"Assumed or not read: {line}." for line in report.notes]
    return PageSection([chart], parts, caption("slurm", "method"))


COLOURS = {
    "held now": "#7a8793",
    "goes on": "#2f7fc1",
    "starts": "#009e73",
    "free": "#d9dde1",
    "asleep": "#8a63c9",
    "out of service": "#c0392b",
}
"""Colours of GPUs; those held now stand above what becomes of all of a node by the plan."""

MOST = 24
"""The most nodes that are drawn: first those on which something changes."""


def nodes_panel(made: Pass) -> tuple[Panel, int]:
    """Return two bars a node, now and by the plan, and the number of nodes that are not drawn."""
    model, then, held = made.model, made.plan.allocations, made.model.round.held
    kept = {job: given for job, given in held.items() if job in then and given.goes_on(then[job])}
    starts = {job: given for job, given in then.items() if job not in kept}
    layers = {"held now": _of(held), "goes on": _of(kept), "starts": _of(starts)}
    slept = {*model.round.asleep}
    asleep = slept if made.plan.asleep is None else {*made.plan.asleep}
    changed = {k for k, jobs in layers["held now"].items() if jobs != layers["goes on"][k]}
    changed |= layers["starts"].keys() | (slept ^ asleep)
    shown = sorted(sorted(range(len(model.nodes)), key=lambda k: k not in changed)[:MOST])
    seen = {node.name: node for node in model.found.nodes}
    boxes = {name: list[tuple[float, float, float, float, str]]() for name in COLOURS}
    for at, k in enumerate(shown):
        node, ends = seen[model.nodes[k]], {-0.38: 0, 0.04: 0}
        jobs = [(name, *each) for name, found in layers.items() for each in found[k]]
        used = sum(gpus for name, _, gpus in jobs if name != "held now")
        rest = "out of service" if node.out is not None else "asleep" if k in asleep else "free"
        if (left := round(node.has.get("gpus", 0.0)) - used) > 0:
            jobs.append((rest, node.name, left))
        for name, what, gpus in jobs:
            row = -0.38 if name == "held now" else 0.04
            low, text = at + row, f"{what}, {gpus} GPUs"
            boxes[name].append((ends[row], low, ends[row] + gpus, low + 0.34, text))
            ends[row] += gpus
    marks = list[Marks]()
    for name, own in boxes.items():
        if own:
            x, y, x_end, y_end, texts = zip(*own, strict=True)
            told: dict[str, Any] = {"told": f"{name}: " + "%{text}", "texts": texts}
            marks.append(Marks("boxes", x, y, name, COLOURS[name], x_end, y_end, **told))
    panel = Panel(marks, Axis("GPUs", ends=(0.0, None)), named(model.nodes[k] for k in shown))
    return panel, len(model.nodes) - len(shown)


def _of(given: Mapping[str, Allocation]) -> defaultdict[int, list[tuple[str, int]]]:
    """Return the jobs of each node with their GPUs there."""
    found = defaultdict[int, list[tuple[str, int]]](list)
    for job, each in given.items():
        for node, gpus in each.placement:
            found[node].append((f"job {job}", gpus))
    return found
