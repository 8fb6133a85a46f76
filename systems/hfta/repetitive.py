"""Repetitive jobs in a trace, which come from hyper-parameter tuning and repeated trials.

HFTA (MLSys 2021) finds that most GPU-hours of a cluster go to jobs that run the same program
concurrently in different configurations. In its log such jobs have the same user, virtual cluster
and number of GPUs, nearly the same names, and are submitted in bursts.
"""

import difflib
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd

from ronda.instances.tables.numbers import percent
from ronda.instances.tables.table import Report, Table
from ronda.instances.traces.columns import Filters
from ronda.instances.traces.published import trace_rows

VECTOR = {
    ("repetitive", "single"): 0.462,
    ("repetitive", "multi"): 0.240,
    ("isolated", "single"): 0.035,
}
"""Shares of GPU-hours at the Vector Institute (51,000 jobs, 472,000 GPU-hours) in HFTA's study.

Other jobs have the remaining 26.3 %. That the 24.0 % on several GPUs are repetitive is muTWO's
reading (MLSys 2023).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """The conditions under which jobs form a group.

    Attributes
    ----------
    gap_s
        Longest time between two successive submissions, in seconds.
    least
        Smallest number of jobs in a group.
    similar
        Least similarity of names without their numbers, from 0 to 1 (Ratcliff and Obershelp). It is
        ignored if names are unknown.
    """

    gap_s: float = 60.0
    least: int = 3
    similar: float = 0.8


DEFAULT = Burst()

LOOK_BACK = 64
"""Number of a user's latest earlier jobs with which a job is compared."""

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def repetitive(jobs: pd.DataFrame, rule: Burst = DEFAULT) -> pd.Series:
    """Return the group of every job, by index; -1 for jobs without a group.

    `jobs` has the columns ``user``, ``vc``, ``num_gpus``, ``submit_s`` and ``name`` (empty if
    unknown). Groups are the components of the graph that joins each job to the latest similar job
    before it. They are numbered by their first submissions.
    """
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(jobs.index)
    for _, own in jobs.groupby(["user", "vc", "num_gpus"], sort=False):
        recent: deque[tuple[int, float, str]] = deque(maxlen=LOOK_BACK)
        ordered = own.sort_values("submit_s", kind="stable")
        for row in zip(ordered.index, ordered.submit_s, ordered["name"], strict=True):
            index, submit_s, name = row
            while recent and recent[0][1] < submit_s - rule.gap_s:
                recent.popleft()
            for other, _, known in reversed(recent):
                if alike(name, known, rule.similar):
                    graph.add_edge(index, other)
                    break
            recent.append(row)
    parts = [sorted(part) for part in nx.connected_components(graph) if len(part) >= rule.least]
    group = pd.Series(-1, index=jobs.index)
    for number, part in enumerate(sorted(parts, key=lambda p: (jobs.submit_s[p].min(), p[0]))):
        group[part] = number
    return group


def alike(name: str, other: str, least: float) -> bool:
    """Return whether two names are nearly equal without their numbers; unknown names are equal."""
    if not name or not other:
        return True
    name, other = _NUMBER.sub("0", name), _NUMBER.sub("0", other)
    matcher = difflib.SequenceMatcher(None, name, other, autojunk=False)
    return (
        matcher.real_quick_ratio() >= least
        and matcher.quick_ratio() >= least
        and matcher.ratio() >= least
    )


def read_repetitive(path: str | Path, rule: Burst = DEFAULT) -> pd.DataFrame:
    """Read a trace in one of Helios's formats and return its GPU jobs with their groups.

    The result has the canonical columns and ``group``.
    """
    jobs = trace_rows("helios", path, filters=Filters(min_duration_s=1e-9))
    jobs["group"] = repetitive(jobs, rule)
    return jobs


def shares(jobs: pd.DataFrame) -> Mapping[tuple[str, str], float]:
    """Return the shares of GPU-hours of repetitive and isolated jobs on one GPU and on several."""
    hours = jobs.num_gpus * jobs.duration_s
    total = float(hours.sum())
    kinds = {"repetitive": jobs.group >= 0, "isolated": jobs.group < 0}
    sizes = {"single": jobs.num_gpus == 1, "multi": jobs.num_gpus > 1}
    return {
        (kind, size): float(np.asarray(hours[own & wide]).sum()) / total
        for kind, own in kinds.items()
        for size, wide in sizes.items()
    }


def sweeps_report(source: str, jobs: pd.DataFrame) -> Report:
    """Return a report that compares the GPU-hours of grouped jobs with those in HFTA's study."""
    found, grouped = shares(jobs), jobs[jobs.group >= 0]
    counts = {"jobs": len(jobs), "repetitive": len(grouped), "groups": grouped.group.nunique()}
    named = {f"{kind}_{size}": share for (kind, size), share in found.items()}
    rows = (
        {
            "GPU-hours of": f"{kind} jobs",
            "GPUs": size,
            "share": f"{percent(share)} %",
            "Vector Institute": f"{percent(VECTOR[at])} %"
            if (at := (kind, size)) in VECTOR
            else "",
        }
        for (kind, size), share in found.items()
    )
    notes = [
        f"warning: no {what} in {source}: groups may join what does not belong together"
        for column, what in (("user", "users"), ("name", "names"))
        if (jobs[column] == "").all()
    ]
    told = "{repetitive:,} of {jobs:,} jobs are repetitive, in {groups:,} groups".format(**counts)
    table = Table.of("", rows, left=(0, 1))
    return Report({**counts, "shares": named}, [table, f"{source}: {told}"], notes)
