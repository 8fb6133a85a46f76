"""Two virtual clusters of Helios's Venus in September 2020, with their golden results."""

import json
from pathlib import Path

from msgspec import structs

from ronda.instances.errors import InputError
from ronda.instances.instance import Instance
from ronda.instances.traces.columns import Filters
from ronda.instances.traces.published import read_helios

# Name in the file of golden results -> name of the policy.
_POLICIES = {
    "fifo": "fifo",
    "sjf": "sjf",
    "srtf": "srtf",
    "qssf_lgb": "qssf",
    "ssf_true_gpu_time": "smallest-gpu-time-first",
    "smallest_gpu_first": "smallest-gpus-first",
    "fifo_nonblocking": "fifo-nonblocking",
    "sjf_nonblocking": "sjf-nonblocking",
}
_METRICS = {
    "avg_jct": "mean_jct_s",
    "avg_queue": "mean_queue_s",
    "n_queued": "queued_jobs",
    "preemptions": "preemptions",
}


def venus(source: Path, vc: str, nodes: int) -> Instance:
    """Return a virtual cluster on nodes of 8 V100 as an instance."""
    folder = source / "helios"
    path = folder / "helios_venus_2vc_sept.csv"
    plain = read_helios(path, nodes={vc: nodes}, filters=Filters(start_s=0.0))
    return structs.replace(
        plain,
        name=f"venus-{vc.lower()}",
        description=(
            f"Helios Venus, virtual cluster {vc}, 1-26 September 2020: "
            f"{len(plain.jobs):,} rigid jobs on {nodes} nodes of 8 V100\n"
            "Time 0 is 2020-09-01 00:00. Jobs of the same second keep the trace's order. Sizes are "
            "known: the estimate is the true duration, as for the literature's SJF and SRTF. A "
            "preempted job loses 7 s (1 GPU), 30 s (2-8) or 60 s (more) when it resumes; starts "
            "are free. The reference values are those of the unmodified simulator of Helios's "
            "artifact (1-s ticks, blocking head of line, consolidate placer) on these jobs. "
            "Power is an assumption: 30 W for an idle and 300 W for a busy V100 (data sheet), "
            "300 W for a host; nothing of it was measured in Venus."
        ),
        source=(
            "SenseTime Helios, github.com/S-Lab-System-Group/HeliosData, cluster Venus; slice of "
            "two virtual clusters published by github.com/felivalencia3/mini-compute-simulator"
        ),
        reference=_reference(folder / "golden_slice_results.json", vc),
        made={"recipe": "venus", "vc": vc, "nodes": nodes, "start_s": 0.0},
    )


def _reference(path: Path, vc: str) -> dict[str, dict[str, float]]:
    """Return the golden results of a virtual cluster, by policy and metric."""
    try:
        golden = json.loads(path.read_text(encoding="utf-8"))
        found = next(value for key, value in golden.items() if key.startswith(f"{vc}_"))
    except (OSError, ValueError, StopIteration) as error:
        raise InputError(str(path), repr(error), f"golden results of {vc}") from error
    results = {**found, **found.get("extra_policies_event_driven_clone", {})}
    return {
        policy: {name: results[key][m] for m, name in _METRICS.items() if m in results[key]}
        for key, policy in _POLICIES.items()
        if key in results
    }
