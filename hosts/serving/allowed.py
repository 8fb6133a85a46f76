"""The policies, parameters and values that clients may request.

All of them are listed here. Anything else, including policies added elsewhere, is refused before it
is evaluated.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta

from ronda.instances.arguments import refuse_unfit
from ronda.instances.errors import InputError
from ronda.instances.rules.problem import one_of
from ronda.solvers.registry import parse

MOST_LETTERS = 1000
"""The largest number of characters in a policy's name and parameters."""

_WORTH = "objective gap patience alone_s horizon_s power waiting delay_s best_effort eta"
_MODEL = f"{_WORTH} thrift hosts elastic placement"
_SEARCH = f"{_WORTH} thrift hosts population generations stagnation"

_TAKES = {
    "gittins powerflow las optimus pollux-like elasticflow-like round-robin slaq hfht": "",
    "asha hyperband hypersched": "",
    "ones": "refit",
    "shockwave-like": "",
    "fifo sjf": "backfill",
    "fifo+zeus sjf+zeus": "backfill eta",
    "qssf": "backfill by",
    "srtf": "teardown_s",
    "srtf+zeus": "teardown_s eta",
    "tiresias": "threshold_gpu_s most_free",
    "tiresias+zeus": "threshold_gpu_s most_free eta",
    "optimus+zeus pollux-like+zeus elasticflow-like+zeus": "eta",
    "milp": f"{_MODEL} solver parts",
    "milp+fused": f"{_MODEL} solver parts gather",
    "prices": f"{_MODEL} joint",
    "prices+fused": f"{_MODEL} joint gather",
    "cp-sat sia-like milp-energy": f"{_WORTH} thrift hosts",
    "powerflow-prices": "objective horizon_s",
    "genetic": f"{_SEARCH} seeded",
    "evolve": f"{_SEARCH} exchanges",
    "evolve+fused": f"{_SEARCH} exchanges gather",
    "gavel-like gavel-ftf-like": "lease_s",
    "kueue-like": "strategy fair reclaim within borrow_within tas",
    "kai-like": "kappa min_run_s",
    "slurm-like": """backfill preempt age fair_share size qos half_life_s limit_factor
    most_tested""",
    "drf": "by_type skip",
    "hermes": "hysteresis",
    "sweep": "hopeless beside grow fuse",
    "race-to-idle": "queue",
    "ces-queue": "cluster step_s",
    "wake-or-wait": "price delay keep step_s",
    "prices+ces": f"{_MODEL} joint cluster step_s",
    "prices+lot-sizing": f"{_MODEL} joint price keep step_s",
    "milp+ces": f"{_MODEL} solver parts cluster step_s",
    "milp+lot-sizing": f"{_MODEL} solver parts price keep step_s",
}

TAKES = {name: takes.split() for names, takes in _TAKES.items() for name in names.split()}
"""The parameters of each policy; each objective checks its own parameters."""

_NUMBERS = """gap patience alone_s horizon_s power waiting delay_s best_effort eta thrift hosts
refit gather lease_s step_s hysteresis hopeless teardown_s
threshold_gpu_s price delay kappa min_run_s age fair_share size qos half_life_s limit_factor"""
_COUNTS = "population generations stagnation exchanges parts beside keep most_tested"
_FLAGS = "elastic joint seeded most_free grow fuse fair tas by_type skip"

_WORDS = {
    "backfill": "none free easy conservative",
    "by": "gpu-time time gpus",
    "strategy": "best-effort strict",
    "reclaim": "never lower any",
    "within": "never lower lower-or-newer",
    "borrow_within": "never lower",
    "preempt": "none qos",
    "queue": "fifo sjf qssf",
    "cluster": "venus earth saturn uranus philly",
    "placement": "nodes exact aggregate",
    "solver": "highs",
    "objective": """rank gittins density snapshot weighted-goodput sia-goodput makespan
    finish-time-fairness deadlines energy thrifty-rank""",
}

VALUES: dict[str, Any] = {
    **dict.fromkeys(_NUMBERS.split(), Annotated[float, Meta(ge=-1e9, le=1e9)]),
    **dict.fromkeys(_COUNTS.split(), Annotated[int, Meta(ge=0, le=1000)]),
    **dict.fromkeys(_FLAGS.split(), bool),
    **{name: Literal[*words.split()] for name, words in _WORDS.items()},
}
"""The values that a parameter may have: flags, listed words, and numbers of limited size."""


def served(policy: str) -> str:
    """Return a policy if clients may request it; raise InputError otherwise."""
    if len(policy) > MOST_LETTERS:
        raise InputError("policy", f"{len(policy)} letters", f"at most {MOST_LETTERS}")
    name, given = parse(policy)
    if name not in TAKES:
        raise InputError("policy", repr(name), "one of ronda's own: see docs/policies.md")
    for key, value in given.items():
        if key not in TAKES[name]:
            expected = one_of(TAKES[name], key) if TAKES[name] else "none"
            raise InputError(f"policy {name}", f"parameter {key!r}", f"{expected}, over HTTP")
        refuse_unfit(f"policy {name}, {key}", value, VALUES[key])
    return policy
