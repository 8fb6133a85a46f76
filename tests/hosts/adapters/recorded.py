"""Recorded rounds of AdaptDL's simulator, as the objects that it hands over."""

import json
from pathlib import Path
from types import SimpleNamespace

FILE = Path(__file__).parents[2] / "data" / "adaptdl" / "rounds.json"


def rounds():
    """Return the recorded rounds: jobs by name, and base allocations."""
    return json.loads(FILE.read_text())["rounds"]


def speedup(seen):
    """Return a job's speed-up function, with the attributes of AdaptDL's own; None: none yet."""
    if "perf_params" not in seen:
        return None
    goodput = SimpleNamespace(
        _perf_params=seen["perf_params"],
        _grad_params=seen["grad_params"],
        _init_batch_size=seen["init_batch_size"],
    )
    return SimpleNamespace(
        _goodput_fn=goodput,
        _max_batch_size=seen["max_batch_size"],
        _atomic_bsz_range=seen["atomic_bsz_range"],
        _accumulation=True,
    )


def info(seen):
    """Return a job's JobInfo."""
    fields = ("age", "creation_timestamp", "max_replicas", "attained_service", "num_restarts")
    told = {name: seen[name] for name in fields}
    return SimpleNamespace(
        resources={"nvidia.com/gpu": 1},
        speedup_fn=Callable(speedup(seen)),
        min_replicas=0,
        preemptible=True,
        **told,
    )


class Callable:
    """A speed-up function that can be called, too: before anything is known, n of n replicas."""

    def __init__(self, of):
        if of is not None:
            vars(self).update(vars(of))

    def __call__(self, nodes, replicas):
        """Return as many speed-ups as replicas."""
        return replicas
