"""Speed of ronda itself: ``python -m ronda.bench.speed CASE --jobs 1024,16384``.

Every measurement has a process of its own and prints one JSON line with the same fields for all
cases: `case, jobs, gpus, options, total_s, build_s, solve_s, gap, baseline_s, ratio,
peak_rss_mib`; null where a case has no such number. `ratio` is baseline_s / total_s: how many
times faster than the baseline. All is on one thread. The cases:

===========  =======================================================  =============================
case         total_s                                                  baseline_s
===========  =======================================================  =============================
`prices`     the price engine on the reference round of that many     with --baseline: one Pyomo
             jobs, from the first random number to the certificate    model in HiGHS, to the same
                                                                      gap, at most --limit s
`decision`   a decision of the policy `prices`, median over the       a decision of `milp` on the
             rounds of a packaged horizon with that many jobs         same rounds, median
`build`      options, values, arrays of a generated round, without    none; `again_s`: options of a
             solving it                                               next round, 1 job in 20 new
`placement`  given options of all jobs on nodes, none left free, on   none; `again_s`: 1 job in 10
             the least power of two of GPUs that is 2 a job; median   has made way for large ones
`import`     ``import ronda``, median of 7 fresh processes            of ``import numpy``
`read`       reading a file of that many jobs, validation included    parsing the same bytes with
                                                                      the standard library's json
`engine`     driving FIFO over a rigid trace, all of it               none; `solve_s` is the part
                                                                      that the policy itself took
`driver`     the driver's own time per round, mean, with `jobs` jobs  the policy's time per round
             live
===========  =======================================================  =============================
"""

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

from ronda.bench.runs.provenance import host
from ronda.bench.runs.runner import peak_rss_mib
from ronda.bench.runs.specs import parse_seeds
from ronda.bench.speed.ask import Ask
from ronda.bench.speed.decision import measure_decision
from ronda.bench.speed.parts import measure_driver, measure_engine, measure_import, measure_read
from ronda.bench.speed.placement import measure_placement
from ronda.bench.speed.prices import measure_build, measure_prices
from ronda.instances.errors import InputError
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

USUAL_JOBS = {
    "prices": "64,256,1024,4096,16384,65536",
    "decision": "1000000",
    "build": "1024,4096",
    "placement": "1000",
    "import": "0",
    "read": "100000",
    "engine": "100000",
    "driver": "200",
}

OPTIONS = {
    "prices": ("baseline", "gap", "limit_s", "seed"),
    "decision": ("instance", "gap", "limit_s", "seed"),
    "build": ("seed",),
    "placement": ("seed",),
    "read": ("trace",),
    "engine": ("trace",),
}
"""Fields of `Ask` that mean something for a case, besides the number of jobs."""

MOST_JOBS = 10_000_000
"""More jobs than this are taken for a slip of the pen."""

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM")}
"""Environment that keeps numpy's linear algebra on one thread."""

CASES: dict[str, Callable[[Ask], dict[str, Any]]] = {
    "prices": measure_prices,
    "decision": measure_decision,
    "build": measure_build,
    "placement": measure_placement,
    "import": measure_import,
    "read": measure_read,
    "engine": measure_engine,
    "driver": measure_driver,
}


def measure(case: str, ask: Ask) -> dict[str, Any]:
    """Carry out one measurement in this process and return its line."""
    found = CASES[case](ask)
    line: dict[str, Any] = dict.fromkeys(FIELDS) | {"case": case, "jobs": ask.jobs} | found
    if line["peak_rss_mib"] is None:
        line["peak_rss_mib"] = round(peak_rss_mib(), 1)
    if line["baseline_s"]:
        line["ratio"] = line["baseline_s"] / line["total_s"]
    return line | {"host": host(), "versions": versions()}


def measure_apart(case: str, ask: Ask) -> int:
    """Carry out one measurement in a process of its own, which prints the line.

    Returns
    -------
    int
        The exit code; anything but 0 the process has explained.

    Raises
    ------
    InputError
        If the process is killed, as it is for want of memory.
    """
    words = [
        sys.executable,
        "-m",
        "ronda.bench.speed",
        case,
        "--here",
        "--jobs",
        str(ask.jobs),
    ]
    for name in OPTIONS.get(case, ()):
        value = getattr(ask, name)
        if value is True:
            words.append(f"--{name}")
        elif value is not None and value is not False:
            words += [_flag(name), str(value)]
    code = subprocess.run(words, env=os.environ | ONE_THREAD, check=False).returncode
    if code < 0:
        raise InputError("--jobs", f"{ask.jobs}: killed by signal {-code}", "fewer, or more memory")
    return code


def asks(given: argparse.Namespace) -> list[Ask]:
    """Return the measurements that were asked for.

    Raises
    ------
    InputError
        If a number makes no sense, or an option does not belong to the case.
    """
    options = {
        field.name: value
        for field in fields(Ask)
        if field.name != "jobs" and (value := getattr(given, field.name)) is not None
    }
    for name in options:
        if name not in OPTIONS.get(given.case, ()):
            fit = ", ".join(case for case, own in OPTIONS.items() if name in own)
            raise InputError(_flag(name), f"case {given.case}", f"one of the cases {fit}")
    sizes = parse_seeds(given.jobs or USUAL_JOBS[given.case], "--jobs")
    if not (given.case == "import" or sizes[0] >= 1) or sizes[-1] > MOST_JOBS:
        raise InputError("--jobs", given.jobs, f"numbers from 1 to {MOST_JOBS:,}")
    found = [Ask(jobs, **options) for jobs in sizes]
    if not 0 < found[0].gap < 1:
        raise InputError("--gap", f"{found[0].gap:g}", "a share above 0 and below 1")
    if not 0 < found[0].limit_s < math.inf:
        raise InputError("--limit", f"{found[0].limit_s:g}", "seconds above 0")
    if found[0].seed < 0:
        raise InputError("--seed", f"{found[0].seed}", "0 or more")
    return found


def _flag(name: str) -> str:
    """Return what a field of `Ask` is called on the command line."""
    return f"--{name.removesuffix('_s')}"


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and end with exit code 2."""
        self.exit(2, f"error: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m ronda.bench.speed",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--jobs", help="one number or several: 1024,16384")
    parser.add_argument("--trace", type=Path, help="a log of Helios in place of random jobs")
    parser.add_argument(
        "--baseline", action="store_true", default=None, help="measure the monolithic model, too"
    )
    parser.add_argument("--instance", help="packaged horizon to decide (default: pollux-1)")
    parser.add_argument("--gap", type=float, help="relative gap to reach (default: 1e-4)")
    parser.add_argument(
        "--limit",
        dest="limit_s",
        type=float,
        help="seconds for the baseline (default: 600)",
    )
    parser.add_argument("--seed", type=int, help="of what is generated (default: 0)")
    parser.add_argument("--here", action="store_true", help="measure in this very process")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Print one line for each number of jobs; return the exit code."""
    given = _parser().parse_args(arguments)
    code = 0
    try:
        for ask in asks(given):
            if given.here:
                print(json.dumps(measure(given.case, ask)), flush=True)
            else:
                code = code or measure_apart(given.case, ask)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except MemoryError:
        print("error: --jobs: not enough memory for so many", file=sys.stderr)
        return 1
    return code
