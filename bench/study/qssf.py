"""Queues of Philly and Venus: shortest service first, backfilling, and prices.

Part `philly`: Helios' experiment (Hu et al., SC'21) on the public part of Philly's trace, October
and November 2017, each virtual cluster for itself. Sizes are known, but for qssf, whose are wrong
as in the artifact's synthetic predictor. The published figures stand beside. The public part keeps
those clusters busy for a twentieth to two fifths of the time, so `crowded` has the same jobs on as
few nodes as make `--crowd`, or hold the widest job.

Part `venus`: weeks of Venus from June on, on the nodes that make a load, with what a predictor
believes that was trained on April and May.
"""

import time
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ronda.bench.study.harness import Folder, markdown, numbers, option, policies, study, words
from ronda.formulations.prediction.errors import with_errors
from ronda.instances.instance import Instance
from ronda.instances.learnt.predictor import Predictor
from ronda.instances.outcome.metrics import job_figures
from ronda.instances.traces import philly
from ronda.instances.traces.helios import read_helios
from ronda.instances.traces.philly import DAY_S, read_philly
from ronda.instances.traces.table import Filters
from ronda.solvers.fitting.sizes import train
from ronda.solvers.horizon.driver import run

PARTS = ("philly", "crowded", "venus")
RIVALS = ("fifo", "sjf", "srtf", "qssf")
WINDOW = Filters(start_s=27 * DAY_S, end_s=88 * DAY_S, min_duration_s=1.0)
"""October and November 2017; jobs of less than a second never end in the artifact's simulator."""

PUBLIC_S = 58 * DAY_S
"""Of these months in the public part, which ends on 28 November."""

PUBLISHED = {
    "6214e9": (78659, 4494, 685, 7179),
    "7f04ca": (1412, 857, 565, 1527),
    "11cb48": (74040, 5944, 554, 12550),
    "b436b2": (544, 421, 100, 454),
    "ee9e8c": (127270, 14619, 6720, 16493),
    "e13805": (2331, 1015, 378, 953),
    "6c71a0": (220, 162, 150, 151),
    "2869ce": (21171, 7344, 4071, 9044),
    "ed69ec": (28, 28, 28, 28),
    "103959": (2391, 932, 380, 867),
    "0e4a51": (101473, 36682, 13953, 64820),
}
"""Mean queueing in seconds of `RIVALS` by virtual cluster, from the artifact's notebook."""

PUBLISHED_JCT_S = (86072, 34272, 30683, 37324)
PUBLISHED_QUEUE_S = (56531, 4731, 1138, 7783)

TRAINED_DAYS, FIRST_DAY = 61, 63
"""April and May; the weeks that are driven begin on a day of the week as the trace does."""

BELIEVED = "fifo,qssf,qssf(backfill=easy),qssf(backfill=conservative),prices"


@lru_cache(maxsize=4)
def cluster_of(path: str, vc: str, load: float = 0.0) -> Instance:
    """Return the jobs of a virtual cluster of Philly that fit it; on nodes that make a `load`."""
    nodes = philly.vc_nodes(Path(path).parent / "philly_vc.csv")[vc]
    most = Filters(
        start_s=WINDOW.start_s, end_s=WINDOW.end_s, min_duration_s=1.0, max_gpus=8.0 * nodes
    )
    found = read_philly(path, nodes={vc: nodes}, filters=most, name=f"philly-{vc}")
    if not load:
        return found
    busy = sum(job.gpus * job.truth.work for job in found.jobs if job.truth is not None)
    needed = ceil(max(max(job.gpus for job in found.jobs), busy / (PUBLIC_S * load)) / 8)
    return read_philly(path, nodes={vc: needed}, filters=most, name=f"philly-{vc}-{load:g}")


@lru_cache(maxsize=4)
def weeks(path: str, first: int, days: int, load: float, nodes: int = 0) -> Instance:
    """Return days of Venus from the `first` on, on `nodes` nodes; 0: those that make the load."""
    window = Filters(start_s=first * DAY_S, end_s=(first + days) * DAY_S, min_duration_s=1)
    if not nodes:
        jobs = read_helios(path, nodes=1000, filters=window).jobs
        busy = sum(job.gpus * job.truth.work for job in jobs if job.truth is not None)
        nodes = round(busy / (8 * days * DAY_S * load))
    fitting = Filters(
        start_s=window.start_s, end_s=window.end_s, min_duration_s=1, max_gpus=8.0 * nodes
    )
    return read_helios(path, nodes=nodes, filters=fitting, name=f"venus-{load:g}")


@lru_cache(maxsize=4)
def trained(path: str) -> Predictor:
    """Return a predictor trained on April and May."""
    window = Filters(start_s=0.0, end_s=TRAINED_DAYS * DAY_S, min_duration_s=1)
    return train(read_helios(path, nodes=1000, filters=window, name="venus-april-may"))


def measure(
    part: str,
    path: str,
    of: str,
    policy: str,
    knowledge: str,
    days: int,
    load: float,
    seed: int,
) -> dict[str, Any]:
    """Drive one policy over one virtual cluster or load."""
    predictor = None
    if part != "venus":
        given = cluster_of(path, of, load)
        if knowledge == "errors":
            given = with_errors(given, seed)
    else:
        given = weeks(path, FIRST_DAY, days, load)
        predictor = trained(path) if knowledge == "history" else None
    began = time.process_time()
    level: Any = "history" if predictor is not None else "declared"
    schedule = run(given, policy, knowledge=level, predictor=predictor, time_limit_s=None)
    figures = job_figures(schedule)
    queue_s = np.array(figures.queue_s)
    return {
        "jobs": len(given.jobs),
        "nodes": sum(group.count for group in given.cluster.node_groups),
        "mean_jct_s": float(np.mean(figures.jct_s)),
        "mean_queue_s": float(queue_s.mean()),
        "p99_queue_s": float(np.quantile(queue_s, 0.99)),
        "p999_queue_s": float(np.quantile(queue_s, 0.999)),
        "longest_queue_s": float(queue_s.max()),
        "violations": sum(len(record.violations) for record in schedule.rounds),
        "cpu_s": time.process_time() - began,
    }


def philly_table(runs: pd.DataFrame) -> str:
    """Return mean queueing by virtual cluster, and both means, measured beside published."""
    rows = []
    for vc, own in runs.groupby("of", sort=False):
        found = own.set_index("policy")
        cells = [f"{found.mean_queue_s[p]:,.0f}" for p in RIVALS]
        size = [str(own.nodes.iloc[0]), f"{own.jobs.iloc[0]:,}"]
        rows.append([str(vc), *size, *cells, *map(_number, PUBLISHED[str(vc)])])
    by = runs.assign(queue=runs.mean_queue_s * runs.jobs, jct=runs.mean_jct_s * runs.jobs)
    total = by.groupby("policy")[["queue", "jct", "jobs"]].sum().loc[list(RIVALS)]
    for name, column, published in (
        ("all, queue", "queue", PUBLISHED_QUEUE_S),
        ("all, JCT", "jct", PUBLISHED_JCT_S),
    ):
        mean = (total[column] / total.jobs).tolist()
        jobs = f"{int(total.jobs.iloc[0]):,}"
        rows.append([name, "", jobs, *map(_number, mean), *map(_number, published)])
        ratios = [f"{mean[0] / each:.2f}" for each in mean]
        known = [f"{published[0] / each:.2f}" for each in published]
        rows.append([f"{name}, fifo / it", "", "", *ratios, *known])
    header = ["virtual cluster", "nodes", "jobs", *RIVALS, *(f"{p}, published" for p in RIVALS)]
    return markdown(header, rows)


def venus_table(runs: pd.DataFrame) -> str:
    """Return JCT and queueing by load, policy and knowledge."""
    rows: list[list[str]] = [
        [
            str(row.of),
            str(row.policy),
            str(row.knowledge),
            str(row.nodes),
            f"{row.jobs:,}",
            *(
                _number(getattr(row, f"{name}_s"))
                for name in ("mean_jct", "mean_queue", "p99_queue", "p999_queue", "longest_queue")
            ),
            _number(row.cpu_s),
        ]
        for row in runs.itertuples()
    ]
    header = ["load", "policy", "knowledge", "nodes", "jobs", "mean JCT", "mean queue"]
    header += ["p99 queue", "p99.9 queue", "longest queue", "CPU s"]
    return markdown(header, rows, words=3)


def _number(value: Any) -> str:
    return f"{float(value):,.0f}"


def compare(
    folder: Folder,
    parts: Sequence[str],
    philly_trace: Path,
    venus_trace: Path | None,
    policies: Sequence[str],
    loads: Sequence[float],
    crowd: float,
    days: int,
    seed: int,
) -> int:
    """Measure all cases; return 1 if a decision broke a rule."""
    cases = []
    for part, load in (("philly", 0.0), ("crowded", crowd)):
        if part in parts:
            pairs = product(PUBLISHED, RIVALS)
            cases += [_case(part, philly_trace, vc, p, 0, load, seed) for vc, p in pairs]
    if "venus" in parts and venus_trace is not None:
        of = product(loads, policies)
        cases += [_case("venus", venus_trace, f"{x:g}", p, days, x, seed) for x, p in of]
    runs = folder.measure(cases, measure)
    tables = [
        table(runs[runs.part == part])
        for part, table in zip(PARTS, (philly_table, philly_table, venus_table), strict=True)
        if (runs.part == part).any()
    ]
    folder.write("\n".join(tables))
    return int((runs.violations > 0).any())


def _case(
    part: str, path: Path, of: str, policy: str, days: int, load: float, seed: int
) -> dict[str, Any]:
    """Return a case; qssf is told wrong sizes of Philly, all policies believed ones of Venus."""
    knowledge = "history" if part == "venus" else "errors" if policy == "qssf" else "declared"
    return {
        "part": part,
        "path": str(path),
        "of": of,
        "policy": policy,
        "knowledge": knowledge,
        "days": days,
        "load": load,
        "seed": seed,
    }


command = study(
    "qssf",
    __doc__,
    compare,
    [
        words("--parts", PARTS, "What is measured."),
        option(
            "--philly",
            "philly_trace",
            type=Path,
            default=Path("tests/data/philly/jobs_canonical.csv.gz"),
            help="Philly's jobs; philly_vc.csv stands beside.",
        ),
        option("--venus", "venus_trace", type=Path, help="Venus' jobs; without them no such part."),
        policies(BELIEVED),
        numbers("--loads", "0.8,0.9,0.95", "Of Venus."),
        option("--crowd", type=float, default=0.95, help="Load of crowded clusters."),
        option("--days", type=int, default=89, help="Of Venus that are driven."),
        option("--seed", type=int, default=6, help="Of the wrong sizes."),
    ],
)
