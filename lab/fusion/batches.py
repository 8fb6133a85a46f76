"""Batches of repetitive jobs: fuse, pack or run alone, by rules and by the MILP.

All jobs are there at the start, on GPUs that are idle. `serial` runs one job a GPU, `MPS` processes
side by side, `HFHT` full fused arrays with the rest in a last one (first fit); `even` cuts classes
into even arrays, as many as pay, in the best mode; `MILP` chooses class by class how many arrays
there are, of which size and mode, and where they run. The curves are packaged fits; the six classes
of PointNet are HFHT's (batch size, feature transform) and share the curve of the one that was
measured. Times are relative to `serial` of the same objective, so that units do not matter.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any, get_args

import pandas as pd

from lab.fusion.arrays import Arrangement, Batch, FusionCase, Objective
from lab.fusion.curves import GIB, curves
from lab.fusion.exact import solve
from lab.fusion.greedy import even, full
from lab.fusion.tuning import CLASSES
from lab.harness import Folder, jobs, limit, markdown, study, words
from ronda.bench.figures.chart import Axis, Chart, Marks, Panel
from ronda.bench.figures.draw import save_chart
from ronda.instances.clock import Deadline
from ronda.instances.models.sharing import balanced
from ronda.instances.profile import Mode

POINTNET, RESNET = "hfta-pointnet_cls-amp", "hydro-resnet18-1"

CASES = {
    "resnet18": ((RESNET, 1),),
    "pointnet-v100": ((POINTNET, CLASSES),),
    "pointnet-a100": ((POINTNET, CLASSES),),
    "pointnet-mixed": ((POINTNET, CLASSES),),
}
"""Applications and the fusion classes of each."""

GPUS = {
    "resnet18": {"RTX3090-24GB": 4},
    "pointnet-v100": {"V100-16GB": 4},
    "pointnet-a100": {"A100-40GB": 4},
    "pointnet-mixed": {"A100-40GB": 1, "RTX6000-24GB": 2, "V100-16GB": 2},
}
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)

RULES: dict[str, tuple[Mode, ...]] = {
    "serial": ("exclusive",),
    "MPS": ("exclusive", "packed"),
    "HFHT": ("exclusive", "fused"),
    "even": ("exclusive", "packed", "slices", "fused"),
    "MILP": ("exclusive", "packed", "slices", "fused"),
}
"""Modes that each may use."""


def named(name: str, jobs: int) -> FusionCase:
    """Return a case of the study with `jobs` jobs, even over the classes."""
    gpus = GPUS[name]
    made = []
    for application, classes in CASES[name]:
        known = {gpu: curves(application, gpu) for gpu in gpus}
        for index, own in enumerate(balanced(range(jobs), classes)):
            made.append(
                Batch(
                    f"{application}-{index}",
                    len(own),
                    1.0,
                    {gpu: tuple(found.sharings.values()) for gpu, found in known.items()},
                    {gpu: found.memory for gpu, found in known.items()},
                )
            )
    return FusionCase(tuple(made), gpus, {gpu: GIB[gpu] for gpu in gpus})


def only(case: FusionCase, modes: Sequence[Mode]) -> FusionCase:
    """Return a case in which some modes are allowed."""
    return replace(
        case,
        batches=tuple(
            replace(
                batch,
                sharings={
                    gpu: tuple(s for s in own if s.mode in modes)
                    for gpu, own in batch.sharings.items()
                },
            )
            for batch in case.batches
        ),
    )


def measure(name: str, objective: Objective, jobs: int, limit_s: float) -> dict[str, Any]:
    """Return the value of each rule, and of the MILP with its bound and what it chose."""
    case = named(name, jobs)
    found: dict[str, Any] = {}
    for rule, modes in RULES.items():
        if rule == "MILP":
            continue
        by = even if rule == "even" else full
        found[rule] = by(only(case, modes), objective).value(objective)
    answer = solve(case, objective, deadline=Deadline(limit_s), gap=1e-3)
    found |= {"MILP": answer.value_s, "bound": answer.bound_s, "stop": str(answer.stop)}
    chosen = answer.arrangement and _chosen(answer.arrangement)
    return found | {"chosen": chosen or ""}


def _chosen(arrangement: Arrangement) -> str:
    """Write the modes and widths, as ``4 x packed 5``, over all classes."""
    counts: dict[tuple[str, int], int] = {}
    for (_, mode, models), number in arrangement.modes().items():
        counts[mode, models] = counts.get((mode, models), 0) + number
    ordered = sorted(counts.items(), key=lambda pair: (pair[0][0], -pair[0][1]))
    return ", ".join(f"{number} × {mode} {models}" for (mode, models), number in ordered)


def table(lines: pd.DataFrame) -> str:
    """Return the value of each rule relative to serial, and the gap of the MILP."""
    rows = []
    for line in lines.to_dict("records"):
        serial = line["serial"]
        known = {rule: pd.notna(line[rule]) for rule in RULES}
        cells = [f"{line[rule] / serial:.3f}" if known[rule] else "–" for rule in RULES]
        gap = "–"
        if known["MILP"] and pd.notna(line["bound"]):
            gap = f"{100 * max(0.0, 1 - line['bound'] / line['MILP']):.1f}"
        rows.append([line["name"], line["objective"], line["chosen"], *cells, gap])
    header = ["case", "objective", "the MILP's arrays", *RULES, "gap (%)"]
    return markdown(header, rows, words=3)


def draw(lines: pd.DataFrame, folder: Folder) -> None:
    """Draw each rule's value relative to serial, a panel for each objective."""
    objectives = list(dict.fromkeys(lines.objective))
    panels, rows = [], []
    for objective in objectives:
        own = lines[lines.objective == objective].to_dict("records")
        marks = []
        for index, rule in enumerate(RULES):
            shares = {k: x[rule] / x["serial"] for k, x in enumerate(own) if pd.notna(x[rule])}
            rows += [(objective, own[k]["name"], rule, share) for k, share in shares.items()]
            left = [k + (index - 2) * 0.16 - 0.075 for k in shares]
            right = [x + 0.15 for x in left]
            zeros = [0.0] * len(left)
            marks.append(Marks("boxes", left, zeros, rule, index, right, [*shares.values()]))
        names = {float(k): x["name"].replace("-", "\n") for k, x in enumerate(own)}
        y = Axis("time / serial", ends=(0.0, None))
        panels.append(Panel(marks, Axis(ticks=names), y, objective, grid=False))
    header = ("objective", "case", "rule", "share")
    chart = Chart("", panels, len(panels), (9.2, 3.3), header=header, rows=rows)
    save_chart(chart, folder.path / "fusion")


def compare(
    folder: Folder, cases: Sequence[str], objectives: Sequence[str], jobs: int, limit_s: float
) -> None:
    """Measure all cases."""
    asked = [
        {"name": name, "objective": objective, "jobs": jobs, "limit_s": limit_s}
        for name, objective in product(cases, objectives)
    ]
    lines = folder.measure(asked, measure)
    folder.write(table(lines))
    draw(lines, folder)


command = study(
    "fusion",
    __doc__,
    compare,
    [
        words("--cases", tuple(CASES), "Jobs and GPUs."),
        words("--objectives", OBJECTIVES, "What to make least."),
        jobs(81),
        limit(60.0, "Seconds for each MILP."),
    ],
)
