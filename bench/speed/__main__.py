"""The command line of speed: ``python -m ronda.bench.speed CASE --jobs 1024,16384``."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ronda.bench.program import CONTEXT, Above0, Listed, run_program
from ronda.bench.runs.specs import parse_seeds
from ronda.bench.speed.cases import CASES, FIELDS, SpeedCase, measure
from ronda.instances.errors import InputError
from ronda.instances.generate import SEVERITIES

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM")}
"""Environment that keeps numpy's linear algebra on one thread."""

OPTIONS: dict[str, dict[str, Any]] = {
    "baseline": {"is_flag": True, "help": "Measure the monolithic model, too."},
    "gap": {"type": Above0(below=1), "default": 1e-4, "help": "Relative gap to reach."},
    "limit_s": {"type": Above0(), "default": 600.0, "help": "Seconds for the baseline."},
    "seed": {"type": click.IntRange(0), "default": 0, "help": "Of what is generated."},
    "instance": {"default": "pollux-1", "help": "Packaged horizon to decide."},
    "trace": {
        "type": click.Path(path_type=Path, exists=True, dir_okay=False),
        "help": "A log of Helios in place of random jobs.",
    },
    "gpus": {"type": click.IntRange(1), "help": "As the severity says by default."},
    "severity": {"type": click.Choice(sorted(SEVERITIES)), "default": "balanced"},
    "policy": {"default": "prices", "help": "A policy, with its parameters."},
    "nodes": {"type": click.IntRange(1), "default": 16, "help": "Of the cluster."},
    "gpus_per_node": {"type": click.IntRange(1), "default": 4, "help": "Of each node."},
    "rounds": {"type": click.IntRange(1), "default": 3, "help": "Decisions, one after another."},
    "requests": {"type": click.IntRange(10), "default": 10_000, "help": "Rounds to post."},
    "clients": {"type": click.IntRange(1), "default": 4, "help": "That post at the same time."},
    "workers": {"type": click.IntRange(1), "default": 2, "help": "Processes that decide."},
    "partitions": {"type": click.IntRange(2), "default": 8, "help": "Of 64 GPUs each."},
}
"""Options of the cases."""


def _command(name: str, case: SpeedCase) -> click.Command:
    """Return the command of a case."""

    def run(here: bool, jobs: str = "0", **options: Any) -> int:
        sizes = parse_seeds(jobs, "--jobs")
        if case.jobs and (sizes[0] < 1 or sizes[-1] > 10_000_000):  # more: a slip of the pen
            raise InputError("--jobs", jobs, "numbers from 1 to 10,000,000")
        code = 0
        for size in sizes:
            if here:
                click.echo(json.dumps(measure(name, size, options)))
            else:
                code = code or _measure_apart(name, case, size, options)
        return code

    params: list[click.Parameter] = [
        click.Option([_flag(key), key], show_default=True, **OPTIONS[key]) for key in case.options
    ]
    if case.jobs:
        sizes = "One number or several, as in 1024,16384."
        params.insert(0, click.Option(["--jobs"], default=case.jobs, show_default=True, help=sizes))
    params.append(click.Option(["--here"], is_flag=True, help="Measure in this very process."))
    return click.Command(name, CONTEXT, run, params=params, help=case.about)


def _measure_apart(name: str, case: SpeedCase, jobs: int, options: dict[str, Any]) -> int:
    """Carry out one measurement in a process of its own, which prints the line or its error.

    Returns the exit code; a process that is killed, as for want of memory, is an InputError.
    """
    words = [sys.executable, "-m", "ronda.bench.speed", name, "--here"]
    words += ["--jobs", f"{jobs}"] if case.jobs else []
    for key, value in options.items():
        if value is True:
            words.append(_flag(key))
        elif value is not None and value is not False:
            words += [_flag(key), str(value)]
    code = subprocess.run(words, env=os.environ | ONE_THREAD, check=False).returncode
    if code < 0:
        raise InputError("--jobs", f"{jobs}: killed by signal {-code}", "fewer, or more memory")
    return code


def _flag(key: str) -> str:
    return f"--{key.removesuffix('_s').replace('_', '-')}"


@click.command("figure", context_settings=CONTEXT)
@click.argument("results", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The PNG file.")
@click.option("--stages", is_flag=True, help="From the lines of the case stages.")
def figure(results: Path, out: Path, stages: bool) -> None:
    """Draw time against jobs from the lines that the case prices, or stages, printed."""
    from ronda.bench.speed.growth import draw, read_points
    from ronda.bench.speed.stages_figure import draw_stages, read_stages

    if stages:
        draw_stages(read_stages(results), out)
    else:
        draw(read_points(results), out)


speed = Listed(
    "speed",
    "Time ronda itself. Every measurement has a process of its own, on one thread, and prints one "
    f"JSON line with the fields {', '.join(FIELDS)}; null where a case has no such number. ratio "
    "is baseline_s / total_s: how many times faster than the baseline.",
    {name: case.about.partition(". ")[0].rstrip(".") for name, case in CASES.items()}
    | {"figure": "Draw time against jobs from the lines of the case prices or stages"},
)
for command in (*(_command(name, case) for name, case in CASES.items()), figure):
    speed.add_command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    return run_program(speed, "python -m ronda.bench.speed", arguments)


if __name__ == "__main__":
    sys.exit(main())
