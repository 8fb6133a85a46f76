"""What can be timed: the cases of ``python -m ronda.bench.speed``, and the line of each."""

import importlib
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple, TypeVar

from ronda.bench.runs.provenance import host
from ronda.bench.runs.runner import peak_rss_mib
from ronda.solvers.versions import versions

FIELDS = (
    "case",
    "jobs",
    "gpus",
    "options",
    "total_s",
    "build_s",
    "solve_s",
    "gap",
    "baseline_s",
    "ratio",
    "peak_rss_mib",
)
"""Fields of every line; null where a case has no such number."""


class SpeedCase(NamedTuple):
    """A case: ``measure_CASE(jobs, **options)`` of a module here returns fields of its line.

    `jobs` are the usual numbers, empty if it has none; `options` stand besides ``--jobs``.
    """

    module: str
    jobs: str
    options: tuple[str, ...]
    about: str


def _policy(name: str, jobs: str) -> SpeedCase:
    about = (
        f"The policy {name}: seconds of a decision on a generated round, options and placement "
        "included, median of 7 after one that is not counted. cpu_s is processor time."
    )
    return SpeedCase("decision", jobs, ("gpus", "severity", "seed"), about)


CASES = {
    "prices": SpeedCase(
        "prices",
        "64,256,1024,4096,16384,65536",
        ("baseline", "gap", "limit_s", "seed"),
        "The price engine on the reference round, from the first random number to the "
        "certificate. With --baseline: one Pyomo model in HiGHS to the same gap.",
    ),
    "decision": SpeedCase(
        "decision",
        "1000000",
        ("instance", "gap", "limit_s", "seed"),
        "A decision of prices, median over the rounds of a packaged horizon with this many jobs. "
        "The baseline is milp on the same rounds.",
    ),
    "stages": SpeedCase(
        "stages",
        "1024,4096,16384,65536",
        ("seed",),
        "A whole decision of prices about a generated round, in processor time: the first of the "
        "process (total_s), one more (again_s), and what options, values, arrays, engine, "
        "placement and check take of it.",
    ),
    "profiles": SpeedCase(
        "stages",
        "448",
        ("seed",),
        "A whole decision of prices where each job has a measured table of its own, in processor "
        "time: the first (total_s), and one more (again_s).",
    ),
    "embedding": SpeedCase(
        "hosts.embedding",
        "14,112,448",
        ("policy", "seed"),
        "Inside another scheduler: a round of 14 jobs with measured tables of 20 rows on 64 GPUs, "
        "laid side by side. Reading the tables (make_s) and the first decision (total_s), and one "
        "more after 5 % of them have changed (again_s); in processor time.",
    ),
    "pollux": SpeedCase(
        "hosts.pollux",
        "32,128",
        ("nodes", "gpus_per_node", "rounds", "seed"),
        "The adapter for AdaptDL, and AdaptDL's own policy as the baseline, on the same rounds: "
        "processor time of a decision, and AdaptDL's objective of either (value, baseline_value).",
    ),
    "serve": SpeedCase(
        "hosts.serve",
        "16",
        ("requests", "clients", "workers", "policy", "seed"),
        "ronda serve under load from another process: rounds per second, p50 and p99 of a request, "
        "memory after a tenth of the requests and after all; nonsense gets a 4xx meanwhile.",
    ),
    "partitions": SpeedCase(
        "partitions",
        "400",
        ("partitions", "seed"),
        "A decision of prices about a round of several partitions, median over a generated horizon "
        "with this many jobs, in processor time. The baseline is the sum of the partitions, each "
        "decided alone; same counts the rounds in which that gives every job the same option.",
    ),
    "powerflow": _policy("powerflow", "1000"),
    "powerflow-prices": _policy("powerflow-prices", "1000"),
    "milp-energy": _policy("milp-energy", "400"),
    "build": SpeedCase(
        "prices",
        "1024,4096",
        ("seed",),
        "Options, values and arrays of a generated round, without solving it. again_s: options "
        "of the next round, in which 1 job in 20 is new.",
    ),
    "placement": SpeedCase(
        "placement",
        "1000",
        ("seed",),
        "Given options of all jobs on nodes, none left free, on the least power of two of GPUs "
        "that is 2 a job; median. again_s: 1 job in 10 has made way for large ones.",
    ),
    "import": SpeedCase(
        "parts",
        "",
        (),
        "import ronda, median of 7 fresh processes. The baseline is import numpy.",
    ),
    "read": SpeedCase(
        "parts",
        "100000",
        ("trace",),
        "Reading a file of this many jobs, validation included. The baseline parses the same "
        "bytes with the standard library's json.",
    ),
    "engine": SpeedCase(
        "parts",
        "100000",
        ("trace",),
        "Driving FIFO over a rigid trace, all of it. solve_s is the policy's part.",
    ),
    "driver": SpeedCase(
        "parts",
        "200",
        (),
        "The driver's own time per round, mean, with this many jobs live. The baseline is the "
        "policy's time per round.",
    ),
}
"""All cases by name."""


def measure(name: str, jobs: int, options: dict[str, Any]) -> dict[str, Any]:
    """Carry out one measurement in this process and return its line."""
    module = importlib.import_module(f"ronda.bench.speed.{CASES[name].module}")
    found = getattr(module, f"measure_{name.replace('-', '_')}")(jobs, **options)
    line: dict[str, Any] = dict.fromkeys(FIELDS) | {"case": name, "jobs": jobs} | found
    if line["peak_rss_mib"] is None:
        line["peak_rss_mib"] = round(peak_rss_mib(), 1)
    if line["baseline_s"]:
        line["ratio"] = line["baseline_s"] / line["total_s"]
    return line | {"host": host(), "versions": versions()}


Found = TypeVar("Found")


def timed(work: Callable[[], Found], repeats: int = 1) -> tuple[Found, float, float]:
    """Return what a call finds, and its median seconds: by the clock, and of this process."""
    wall_s, cpu_s = [], []
    for _ in range(repeats):
        began, began_cpu = time.perf_counter(), time.process_time()
        found = work()
        wall_s.append(time.perf_counter() - began)
        cpu_s.append(time.process_time() - began_cpu)
    return found, median(wall_s), median(cpu_s)


def tell(text: str) -> None:
    """Say on stderr how far a measurement is."""
    print(text, file=sys.stderr, flush=True)
