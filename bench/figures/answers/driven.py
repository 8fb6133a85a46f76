"""The picture of a decision about a real Slurm: the GPUs of its nodes now, and by the plan."""

from collections import defaultdict
from collections.abc import Mapping

from ronda.bench.figures.chart import Axis, Marks, Panel, named
from ronda.hosts.slurm.controller import Pass
from ronda.instances.job import Allocation

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
    model, plan, held = made.model, made.plan, made.model.round.held
    after = plan.allocations
    kept = {job: given for job, given in held.items() if job in after and given.goes_on(after[job])}
    now, goes_on = _by_node(held), _by_node(kept)
    starts = _by_node({job: given for job, given in after.items() if job not in kept})
    slept = {*model.round.asleep}
    asleep = slept if plan.asleep is None else {*plan.asleep}
    seen = {node.name: node for node in model.found.nodes}

    def same(k: int) -> bool:
        return now[k] == goes_on[k] and not starts[k] and (k in slept) == (k in asleep)

    shown = sorted(sorted(range(len(model.nodes)), key=same)[:MOST])
    boxes = {name: list[tuple[float, float, float, float, str]]() for name in COLOURS}
    for at, k in enumerate(shown):
        node, left = seen[model.nodes[k]], 0
        for job, gpus in now[k]:
            boxes["held now"].append((left, at - 0.38, left + gpus, at - 0.04, _of(job, gpus)))
            left += gpus
        left = 0
        for name, jobs in (("goes on", goes_on[k]), ("starts", starts[k])):
            for job, gpus in jobs:
                boxes[name].append((left, at + 0.04, left + gpus, at + 0.38, _of(job, gpus)))
                left += gpus
        rest = "out of service" if node.out is not None else "asleep" if k in asleep else "free"
        if (gpus := round(node.has.get("gpus", 0.0)) - left) > 0:
            boxes[rest].append((left, at + 0.04, left + gpus, at + 0.38, f"{gpus} GPUs"))
    marks = list[Marks]()
    for name, own in boxes.items():
        if own:
            x, y, x_end, y_end, texts = zip(*own, strict=True)
            told = f"{name}: " + "%{text}"
            marks.append(
                Marks("boxes", x, y, name, COLOURS[name], x_end, y_end, told=told, texts=texts)
            )
    panel = Panel(marks, Axis("GPUs", ends=(0.0, None)), named(model.nodes[k] for k in shown))
    return panel, len(model.nodes) - len(shown)


def _of(job: str, gpus: int) -> str:
    return f"job {job}, {gpus} GPUs"


def _by_node(given: Mapping[str, Allocation]) -> defaultdict[int, list[tuple[str, int]]]:
    """Return the jobs of each node with their GPUs there."""
    found = defaultdict[int, list[tuple[str, int]]](list)
    for job, each in given.items():
        for node, gpus in each.placement:
            found[node].append((job, gpus))
    return found
