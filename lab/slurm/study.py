"""Slurm's own backfill against ronda on the same jobs, on a real Slurm with made-up GPUs.

Four nodes of eight GPUs, and jobs made of a real trace, which take 20 to 240 seconds. All arms get
the same jobs at the same times with the same limits. Arms:

    slurm          first come, first served, with backfill by limits each second
    slurm-small    the same, but jobs of few cores go first (priority/multifactor)
    slurm-nice     the same, but users let jobs of less limit x GPUs go first (sbatch --nice)
    slurm-suspend  as slurm-nice; a node sleeps after 20 idle seconds (SuspendTime), and wakes in 10
    …-limits       as slurm, and ronda with that policy, which knows limits, too
    …-past         the same, but it believes sizes from the jobs of the trace's first half
    prices-gentle  as prices-past, but it stops no job (--min-run-s 600, the default)
    wake-or-wait, ces-queue   let nodes sleep, by qssf-past's beliefs

It needs root, and Debian's packages slurm-wlm and munge. A run takes about six minutes.
"""

from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from lab.harness import Folder, markdown, option, seeds, study, words
from lab.slurm.figures import figures
from lab.slurm.run import BOOT_S, FAULTS, HISTORY, Arm, run
from lab.slurm.workload import LOADS, workload
from ronda.instances.errors import InputError
from tools.toy_slurm import missing

SLEEP = ("--history", HISTORY, "--power", "--wake-s", f"{BOOT_S:g}", "--awake", "0")
FACTORS = {"PriorityType": "priority/multifactor"}
ARMS = {
    "slurm": Arm(),
    "slurm-small": Arm(FACTORS | {"PriorityWeightJobSize": 100000, "PriorityFavorSmall": "YES"}),
    "slurm-nice": Arm(FACTORS | {"PriorityWeightPartition": 100000}, by_limit=True),
    "slurm-suspend": Arm(
        FACTORS | {"PriorityWeightPartition": 100000, "SuspendTime": 20}, by_limit=True
    ),
    "prices-limits": Arm(policy="prices", words=("--sizes", "limits")),
    "qssf-limits": Arm(policy="qssf", words=("--sizes", "limits")),
    "prices-past": Arm(policy="prices", words=("--history", HISTORY)),
    "qssf-past": Arm(policy="qssf", words=("--history", HISTORY)),
    "prices-gentle": Arm(policy="prices", words=("--history", HISTORY, "--min-run-s", "600")),
    "wake-or-wait": Arm(policy="wake-or-wait(step_s=5,keep=4,price=4)", words=SLEEP),
    "ces-queue": Arm(policy="ces-queue(step_s=5)", words=SLEEP),
}
"""Who decides, by name."""

COLUMNS = {
    "mean JCT (s)": ("mean_jct_s", ".1f"),
    "p95 JCT": ("p95_jct_s", ".0f"),
    "mean wait": ("mean_wait_s", ".1f"),
    "p95 wait": ("p95_wait_s", ".0f"),
    "last end": ("span_s", ".0f"),
    "GPUs held": ("held", ".0%"),
    "node-hours awake": ("awake_node_h", ".3f"),
    "wakes": ("wakes", ".1f"),
    "starts a job": ("starts_a_job", ".2f"),
    "commands": ("commands", ".0f"),
    "work lost (s)": ("lost_work_s", ".1f"),
    "incomplete": ("incomplete", ".1f"),
    "without GPUs": ("without_gpus", ".1f"),
    "twice at once": ("twice_at_once", ".1f"),
    "machine load": ("machine_load", ".1f"),
}


def table_of(lines: pd.DataFrame) -> str:
    """Return means over seeds, by load, fault and arm; Markdown."""
    rows = []
    for names, own in lines.groupby(["load", "fault", "arm"], sort=False):
        cells = [format(own[name].mean(), form) for name, form in COLUMNS.values()]
        rows.append([*map(str, names), f"{len(own)}", *cells])
    return markdown(["load", "faults", "arm", "seeds", *COLUMNS], rows, words=3)


def compare(folder: Folder, runs: Path, **asked: tuple[Any, ...]) -> None:
    """Run all arms, and print the table."""
    if (reason := missing()) is not None:
        raise InputError("this machine", reason, "root, and a Slurm that can be started")

    def measure(*, seed: int, load: str, fault: str, arm: str) -> dict[str, Any]:
        where = runs.resolve() / f"{load}-{arm}-{fault}-{seed}"
        jobs, history = workload(load, seed)
        run(where, ARMS[arm], jobs, FAULTS[fault], history)
        return figures(where)

    names = ("seeds", "loads", "faults", "arms")
    cases = [
        dict(zip(("seed", "load", "fault", "arm"), case, strict=True))
        for case in product(*(asked[name] for name in names))
    ]
    folder.write(table_of(folder.measure(cases, measure)))


command = study(
    "slurm",
    __doc__,
    compare,
    [
        seeds("0-2"),
        words("--loads", tuple(LOADS), "Workloads."),
        words("--faults", tuple(FAULTS), "What fails in mid-run."),
        words("--arms", tuple(ARMS), "Who decides."),
        option("--runs", type=Path, default=Path("slurm-runs"), help="What each run leaves."),
    ],
)
