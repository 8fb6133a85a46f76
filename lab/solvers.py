"""Solvers of mixed-integer programs, CP-SAT, prices and evolution on the same rounds.

All get the options of a generated round and what they are worth; the clock starts there. Solvers of
models get the whole model at once and nothing to start from, so their time is that of building the
model, its arrays, and solving. `prices` builds its own arrays; `evolve` starts from the choice that
prices fill greedily. One thread each, one after the other in one process, to a gap of 1e-4 or the
limit. Seconds are of a processor: those of the clock times the share of one that the run had, so
that other work on the machine counts little; by the clock a run may take eight times the limit.
What counts is when a choice was found that is within 1e-2, 1e-3 and 1e-4 of the least bound
that any of them proved for the round; choices count as options, before they are placed on nodes.

The table has the median time over rounds, with how many were not that near in time, and the
geometric mean of the time over that of `prices` on the same round, a time that is missing counted
as the limit. The performance profile (E. Dolan and J. Moré, 2002) is the share of rounds that a
solver ends within a factor of the fastest time on each.
"""

import resource
import time
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from lab.harness import Folder, limit, markdown, numbers, seeds, study, words
from ronda.bench.figures.chart import Axis, Chart, Marks, Panel, thinner
from ronda.bench.figures.draw import save_chart
from ronda.bench.statistics import over_best, paired_ratio, performance_profile
from ronda.formulations.allocation.model_data import make_case
from ronda.formulations.allocation.rows import separable
from ronda.formulations.allocation.separable import normalise
from ronda.instances import generate
from ronda.instances.base import Floats
from ronda.instances.clock import Deadline
from ronda.solvers.decision.plan import Question
from ronda.solvers.exact.backends import SOLVERS
from ronda.solvers.exact.linear_form import Effort, form_of
from ronda.solvers.registry import policy

GAP, GAPS = 1e-4, (1e-2, 1e-3, 1e-4)
"""Asked of all, and those that times are told for."""

OWN = {name: f"{name}(gap={GAP:g})" for name in ("prices", "evolve")}
COMPARED = ("highs", "scip", "cbc", "cp-sat", *OWN)
SEVERITIES = ("loose", "balanced", "tight")
FIELDS = ("incumbents", "objective", "bound", "stop", "total_s", "cpu_s", "options")

PATIENCE = 8.0
"""Seconds by the clock for one of a processor."""


@lru_cache(maxsize=1)
def question(jobs: int, severity: str, seed: int) -> Question:
    """Return the question of a generated round: its options and what they are worth."""
    return Question.of(generate.round(jobs, None, severity, seed), "rank", seed=seed)


def measure(seed: int, jobs: int, severity: str, solver: str, limit_s: float) -> dict[str, Any]:
    """Return when one solver found which choices of a round, and what it proved."""
    _loaded(solver)
    return answer(question(jobs, severity, seed), solver, limit_s)


@lru_cache(maxsize=16)
def _loaded(solver: str) -> None:
    """Solve a small round, so that loading a solver counts in no measurement."""
    asked = Question.of(generate.round(8, None, "tight", 0), "rank")
    answer(asked, solver, 20.0)


def answer(asked: Question, solver: str, limit_s: float) -> dict[str, Any]:
    """Return when one solver found which choices for a question, and what it proved."""
    deadline, began_s = Deadline(PATIENCE * limit_s), _processor_s()
    if solver in OWN:
        made: Any = policy(OWN[solver])
        choice = made.choose(asked, deadline, None)
        incumbents, best, bound, stop = (
            choice.incumbents,
            choice.objective,
            choice.bound,
            choice.stop,
        )
    else:
        case = make_case(asked.round, asked.table, asked.values)
        problem, _ = normalise(separable(case, both_limits=True))
        effort = Effort(deadline=deadline, gap=GAP, seed=asked.seed)
        outcome = SOLVERS[solver].solve_form(form_of(problem), effort)
        incumbents = tuple((when, worth * case.scale) for when, worth in outcome.incumbents)
        best, bound = (x and x * case.scale for x in (outcome.objective, outcome.bound))
        stop = outcome.stop
    total_s, cpu_s = deadline.elapsed(), _processor_s() - began_s
    if best is not None and (not incumbents or best > max(worth for _, worth in incumbents)):
        incumbents = (*incumbents, (total_s, best))
    told = (incumbents, best, bound, str(stop), total_s, cpu_s, len(asked.table))
    found: dict[str, Any] = msgspec.to_builtins(dict(zip(FIELDS, told, strict=True)))
    return found


def _processor_s() -> float:
    """Return the seconds of a processor of this process, and of those that it has called."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def times(lines: pd.DataFrame, gap: float, limit_s: float) -> pd.DataFrame:
    """Return by round (rows) when each solver (columns) was within a gap, in processor seconds.

    Infinite if it was not within the limit; rounds are those that all solvers have a line for.
    """
    rounds = ["jobs", "severity", "seed"]
    rows: dict[Any, dict[str, float]] = {}
    for key, own in lines.groupby(rounds, sort=True):
        proved = own.bound.dropna()
        least = float(proved.min())
        rows[key] = {
            str(line.solver): _first(line, least - gap * abs(least), limit_s)
            for line in own.itertuples()
        }
    found = pd.DataFrame.from_dict(rows, orient="index")
    found.index = pd.MultiIndex.from_tuples(found.index, names=rounds)
    return found.dropna()


def _first(line: Any, enough: float, limit_s: float) -> float:
    """Return when a choice worth enough was found; infinite if none was in time."""
    share = min(1.0, line.cpu_s / line.total_s)
    found = (share * when for when, worth in line.incumbents if worth >= enough)
    return min((when for when in found if when <= limit_s), default=np.inf)


def table(lines: pd.DataFrame, limit_s: float) -> str:
    """Return the median seconds, the rounds missed, and the ratio to `prices`, by size and gap."""
    found = {gap: times(lines, gap, limit_s) for gap in GAPS}
    sizes = sorted(lines.jobs.unique())
    rows = []
    for jobs, solver in product(sizes, COMPARED):
        cells = []
        for gap in GAPS:
            own = found[gap].xs(jobs, level="jobs")
            if solver in own:
                cells += _cells(own[solver].to_numpy(), own.get("prices"), limit_s)
            else:
                cells += ["–", "–", "–"]
        rows.append([f"{jobs:,}", f"`{solver}`", *cells])
    titles = [text for gap in GAPS for text in (f"to {gap:g} (s)", "missed", "× prices")]
    return markdown(["jobs", "solver", *titles], rows, words=2)


def _cells(own: Floats, prices: pd.Series | None, limit_s: float) -> list[str]:
    """Return the median, the number missed, and the geometric mean of ratios, in words."""
    middle, missed = float(np.median(own)), int(np.isinf(own).sum())
    ratio = "–"
    if prices is not None and len(own):
        ours, other = (np.minimum(each, limit_s) for each in (own, prices.to_numpy(dtype=float)))
        ratio = f"{float(paired_ratio(ours, other)):.1f}"
    seconds = f"{middle:.2f}" if np.isfinite(middle) else f"> {limit_s:g}"
    return [seconds, f"{missed} of {len(own)}", ratio]


def draw(lines: pd.DataFrame, folder: Folder, limit_s: float) -> None:
    """Draw the performance profile of each gap."""
    factors = np.geomspace(1.0, 1e3, 400)
    panels, rows = [], []
    for gap in GAPS:
        found, lines_of = times(lines, gap, limit_s), []
        part = performance_profile(over_best(found.to_numpy(dtype=float)), factors)
        for index, solver in enumerate(name for name in COMPARED if name in found):
            curve = part[:, found.columns.get_loc(solver)]
            width = thinner(index, len(COMPARED))
            lines_of.append(Marks("step", factors, curve, solver, index, width=width))
            rows += [(gap, solver, f"{x:.4g}", y) for x, y in zip(factors, curve, strict=True)]
        title = f"within {gap:g} of the bound ({len(found)} rounds)"
        x, y = Axis("time over the fastest", "log"), Axis("share of rounds", ends=(0, 1.02))
        panels.append(Panel(lines_of, x, y, title))
    header = ("gap", "solver", "factor", "share")
    chart = Chart("solvers", panels, len(panels), (9.6, 3.6), header=header, rows=rows)
    save_chart(chart, folder.path / "solvers")


def compare(
    folder: Folder,
    jobs: Sequence[float],
    severities: Sequence[str],
    solvers: Sequence[str],
    seeds: Sequence[int],
    limit_s: float,
) -> None:
    """Measure all rounds, one seed after the other."""
    names = ("seed", "jobs", "severity", "solver")
    sizes = [int(each) for each in jobs]
    cases = [
        dict(zip(names, case, strict=True)) | {"limit_s": limit_s}
        for case in product(seeds, sizes, severities, solvers)
    ]
    lines = folder.measure(cases, measure, lambda line: "total_s" in line)
    folder.write(table(lines, limit_s))
    draw(lines, folder, limit_s)


command = study(
    "solvers",
    __doc__,
    compare,
    [
        numbers("--jobs", "64,128,256,512,1024", "Jobs of the rounds."),
        words("--severities", SEVERITIES, "How scarce GPUs, watts and joules are."),
        words("--solvers", COMPARED, "Which are compared."),
        seeds("0-3"),
        limit(20.0, "Seconds of a processor for each, building the model included."),
    ],
)
