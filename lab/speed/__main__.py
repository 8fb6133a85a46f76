"""The command line of speed: ``python -m lab.speed CASE --jobs 1024,16384``."""

import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from lab.program import CONTEXT, Listed, apart, run_program
from lab.speed.cases import CASES, FIELDS, OPTIONS, SpeedCase, line_of
from ronda.bench.runs.specs import parse_seeds
from ronda.instances.errors import InputError

MODULES = (
    "engine pools nodes jobs_on_nodes decisions deadlines placement imports embedding living "
    "pollux serve"
)

for module in MODULES.split():
    importlib.import_module(f"lab.speed.{module}")


def _command(name: str, case: SpeedCase) -> click.Command:
    """Return the command of a case."""

    def run(here: bool, jobs: str = "0", **options: Any) -> int:
        sizes = parse_seeds(jobs, "--jobs")
        if case.jobs and (sizes[0] < 1 or sizes[-1] > 10_000_000):  # more: a slip of the pen
            raise InputError("--jobs", jobs, "numbers from 1 to 10,000,000")
        code = 0
        for size in sizes:
            if here:
                click.echo(json.dumps(line_of(name, size, options)))
            else:
                code = code or _measure_apart(name, case, size, options)
        return code

    params: list[click.Parameter] = [
        click.Option([_flag(key), key], show_default=True, default=default, **OPTIONS[key])
        for key, default in case.options.items()
    ]
    if case.jobs:
        sizes = "One number or several, as in 1024,16384."
        params.insert(0, click.Option(["--jobs"], default=case.jobs, show_default=True, help=sizes))
    params.append(click.Option(["--here"], is_flag=True, help="Measure in this very process."))
    return click.Command(name, CONTEXT, run, params=params, help=case.measure.__doc__)


def _measure_apart(name: str, case: SpeedCase, jobs: int, options: dict[str, Any]) -> int:
    """Carry out one measurement in a process of its own, which prints the line or its error.

    Returns the exit code; a process that is killed, as for want of memory, is an InputError.
    """
    words = ["-m", "lab.speed", name, "--here"]
    words += ["--jobs", f"{jobs}"] if case.jobs else []
    for key, value in options.items():
        if value not in (None, False):
            words += [_flag(key)] if value is True else [_flag(key), str(value)]
    done = apart(*words)
    click.echo(done.stdout, nl=False)
    if done.returncode < 0:
        killed = f"{jobs}: killed by signal {-done.returncode}"
        raise InputError("--jobs", killed, "fewer, or more memory")
    return done.returncode


def _flag(key: str) -> str:
    return f"--{key.removesuffix('_s').replace('_', '-')}"


@click.command("figure", context_settings=CONTEXT)
@click.argument("results", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The PNG file.")
@click.option("--stages", is_flag=True, help="From the lines of the case stages.")
def figure(results: Path, out: Path, stages: bool) -> None:
    """Draw time against jobs from the lines that the case prices, or stages, printed."""
    from lab.speed.figure import draw_growth, draw_stages

    out.parent.mkdir(parents=True, exist_ok=True)
    (draw_stages if stages else draw_growth)(results, out)


speed = Listed(
    "speed",
    "Time ronda itself. Every measurement has a process of its own, on one thread, and prints one "
    f"JSON line with the fields {', '.join(FIELDS)}; null where a case has no such number. ratio "
    "is baseline_s / total_s: how many times faster than the baseline.",
    {name: (case.measure.__doc__ or "").partition(".\n")[0] for name, case in CASES.items()}
    | {"figure": "Draw time against jobs from the lines of the case prices or stages"},
)
for command in (*(_command(name, case) for name, case in CASES.items()), figure):
    speed.add_command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    return run_program(speed, "python -m lab.speed", arguments)


if __name__ == "__main__":
    sys.exit(main())
