"""What a run came to, by the files of its jobs, Slurm's log of completions and power calls."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from lab.slurm.run import BOOT_S
from lab.slurm.workload import NODE_GPUS, NODES
from tools.toy_slurm import ToySlurm


@dataclass(slots=True)
class JobRun:
    """A run of a job: its GPUs, its first and last line, and its work by then, in seconds."""

    gpus: int
    start_s: float
    before_s: float
    last_s: float
    work_s: float
    word: str


def runs_of(path: Path) -> list[JobRun]:
    """Return the runs of a job in order of their starts."""
    runs = dict[str, JobRun]()
    for line in path.read_text().splitlines() if path.exists() else []:
        word, at, run, gpus, _, work = line.split()
        at_s, work_s = int(at) / 1e6, int(work) / 1e6
        own = runs.setdefault(run, JobRun(int(gpus), at_s, work_s, at_s, work_s, word))
        own.last_s, own.work_s, own.word = at_s, work_s, word
    return list(runs.values())


def figures(folder: Path) -> dict[str, Any]:
    """Return the figures of a run: seconds, node-hours, counts.

    Work is lost if a run had written it down, and the next one did not go on from it.
    """
    toy = ToySlurm(folder / "slurm")
    said = json.loads((folder / "submitted.json").read_text())
    submit_s = {job["name"]: job["submit_s"] for job in said["jobs"]}
    runs = {name: runs_of(folder / "jobs" / name) for name in submit_s}
    ends = {name: [r.last_s for r in own if r.word == "end"] for name, own in runs.items()}
    jct_s = [max(ends[name]) - submit_s[name] for name in ends if ends[name]]
    wait_s = [own[0].start_s - submit_s[name] for name, own in runs.items() if own]
    each = [run for own in runs.values() for run in own]
    pairs = [pair for own in runs.values() for pair in pairwise(own)]
    first_s, last_s = min(submit_s.values()), max(run.last_s for run in each)
    held = sum(run.gpus * (run.last_s - run.start_s) for run in each)
    calls, states = toy.power_log(), Counter(end["JobState"] for end in toy.completions())
    audit = folder / "ronda" / "audit.jsonl"
    return {
        "jobs": len(runs),
        "incomplete": len(runs) - len(jct_s),
        "twice_at_once": sum(one.last_s > two.start_s for one, two in pairs),
        "without_gpus": sum(run.word == "bare" for run in each),
        "ended_twice": sum(len(own) > 1 for own in ends.values()),
        "lost_work_s": sum(max(0.0, one.work_s - two.before_s) for one, two in pairs),
        "mean_jct_s": float(np.mean(jct_s)),
        "p95_jct_s": float(np.percentile(jct_s, 95)),
        "mean_wait_s": float(np.mean(wait_s)),
        "p95_wait_s": float(np.percentile(wait_s, 95)),
        "span_s": last_s - first_s,
        "held": held / (NODES * NODE_GPUS * (last_s - first_s)),
        "awake_node_h": _awake_s(calls, first_s, last_s) / 3600,
        "wakes": sum(verb == "up" for _, verb, _ in calls),
        "starts_a_job": len(each) / len(runs),
        "requeued": states["PENDING"],
        "node_failures": states["NODE_FAIL"],
        "commands": audit.read_text().count('"status"') if audit.exists() else 0,
        "machine_load": said["machine_load"],
    }


def _awake_s(calls: Sequence[tuple[float, str, str]], first_s: float, last_s: float) -> float:
    """Return node-seconds awake: a node wakes from `BOOT_S` before its daemon is started."""
    asleep_s, since_s = 0.0, dict[str, float]()
    for at_s, verb, node in [*calls, *((last_s + BOOT_S, "up", f"n{k + 1}") for k in range(NODES))]:
        if verb == "down":
            since_s.setdefault(node, max(at_s, first_s))
        elif node in since_s:
            asleep_s += max(0.0, min(at_s - BOOT_S, last_s) - since_s.pop(node))
    return NODES * (last_s - first_s) - asleep_s
