"""Fused probes: searches whose trials may share GPUs as packaged models do, with and without it.

`taskset` are the draws of the study `sweeps`: losses as measured, GPUs shared as other models share
them. `generated` are 64 trials on 4 GPUs, one of them good. A trial alone is as fast as there, so
policies that fuse nothing need the same whatever the models. Figures are those of `sweeps`.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

from ronda.bench.study.harness import Folder, packaged, policies, seeds, study, words
from ronda.bench.sweeps.curves import drawn, found_by, table
from ronda.instances import generate

TRIALS, GPUS = 64, 4
SEARCHES = ("taskset", "generated")


def measure(search: str, curves: str, sweep: str, policy: str, seed: int) -> dict[str, Any]:
    """Return time and GPU time to the best."""
    if search == "taskset":
        given, everything = drawn("sweep-taskset", sweep, seed)
        given = generate.fusible(given, curves)
    else:
        like = generate.Trials(good=0.0, fusible=curves)
        given = generate.sweep(TRIALS, GPUS, seed, like)
        everything = TRIALS * like.reports * like.report_s
    found = found_by(policy, given, everything, sweep, seed)
    del found["regret"]
    return found


def compare(
    folder: Folder,
    seeds: Sequence[int],
    searches: Sequence[str],
    curves: Sequence[str],
    policies: Sequence[str],
) -> None:
    """Measure all policies on all searches."""
    sweeps = {"taskset": tuple(packaged("sweep-taskset").sweeps), "generated": ("sweep",)}
    cases = [
        {"search": search, "curves": shared, "sweep": sweep, "policy": policy, "seed": seed}
        for seed, search, shared in product(seeds, searches, curves)
        for sweep, policy in product(sweeps[search], policies)
    ]
    lines = folder.measure(cases, measure)
    lines["instance"] = lines.search + ", " + lines.curves
    folder.write(table(lines, policies))


command = study(
    "fused-probes",
    __doc__,
    compare,
    [
        seeds("0-9"),
        words("--searches", SEARCHES, "Which searches."),
        words("--curves", tuple(generate.SHARED), "Models by which trials share GPUs."),
        policies("sweep,sweep(fuse=false),hermes,asha,hypersched,hyperband"),
    ],
)
