"""Whether commands that are stopped at random moments end rightly, and lose nothing.

Each trial stops a command by Ctrl-C or by kill -9 at random moments, until it was stopped a few
times or ended; then lets it end. An interrupted command must end with 130 and one line; what comes
of a stopped one must equal, but for times, what comes of one that was left alone, and no draft of a
file may be left over by Ctrl-C. Moments count from when Python has loaded `ronda.cli`: what comes
before belongs to Python. The exit code is 1 if a trial fails.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np
import pandas as pd
from msgspec.structs import replace

from ronda.bench.study.harness import Folder, markdown, option, study
from ronda.instances import generate
from ronda.instances.files.json import read, write
from ronda.instances.schedule import Schedule

COMMANDS = {
    "run": "run day.json --policy genetic(generations=2) --out out",
    "compare": "compare day.json --policies srtf,genetic(generations=2) --no-figures --out out",
    "frontier": "frontier day.json --policies srtf --budgets 0.9,1.0 --no-figures --out out",
}
"""What is stopped."""

SIGNALS = {"interrupt": signal.SIGINT, "kill": signal.SIGKILL}
CODES = {"interrupt": 130, "kill": -signal.SIGKILL}
STOPS, SHARE = 5, 0.4
"""Times that a command is stopped before it is let end, each within this share of its time."""

READY = "import os; from ronda.cli import main; os.write({}, b'!'); main()"
END_S = 600.0
"""Seconds after which a command is taken to hang."""


def start(command: str, folder: Path) -> subprocess.Popen[str]:
    """Start a command, which heeds Ctrl-C even in the background; return once ronda is entered."""
    ours, theirs = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", READY.format(theirs), *COMMANDS[command].split()],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        pass_fds=(theirs,),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(theirs)
    os.read(ours, 1)
    os.close(ours)
    return process


def stopped(command: str, folder: Path, how: str, moment_s: float) -> tuple[int, list[str]]:
    """Stop a command after a while; return its exit code and what it said on stderr."""
    process = start(command, folder)
    try:
        _, said = process.communicate(timeout=moment_s)
    except subprocess.TimeoutExpired:
        process.send_signal(SIGNALS[how])
        _, said = process.communicate(timeout=END_S)
    return process.returncode, said.splitlines()


def outcome(folder: Path) -> dict[str, Schedule]:
    """Return all schedules below a folder, without clock times."""
    found = {}
    for path in sorted(folder.rglob("schedule.json.zst")):
        schedule = read(path)
        assert isinstance(schedule, Schedule)
        rounds = tuple(replace(r, solve_s=0.0, overhead_s=0.0) for r in schedule.rounds)
        found[path.relative_to(folder).as_posix()] = replace(schedule, rounds=rounds)
    return found


@cache
def left_alone(command: str) -> tuple[dict[str, Schedule], float]:
    """Return what comes of a command, and how long it takes."""
    with _folder() as folder:
        begin = time.perf_counter()
        code, said = stopped(command, folder, "kill", END_S)
        if code:
            raise RuntimeError(f"{command}: exit code {code}: {said}")
        return outcome(folder), time.perf_counter() - begin


def measure(command: str, how: str, trial: int) -> dict[str, Any]:
    """Stop a command at most `STOPS` times, then let it end."""
    rng = np.random.default_rng([trial, *command.encode(), *how.encode()])
    expected, seconds = left_alone(command)
    wrong, hits = "", 0
    with _folder() as folder:
        for _ in range(STOPS):
            moment_s = float(rng.uniform(0.0, SHARE * seconds))
            code, said = stopped(command, folder, how, moment_s)
            if code == 0:
                break
            hits += 1
            if code != CODES[how] or (how == "interrupt" and not _in_a_line(said)):
                wrong = f"after {moment_s:.3f} s: exit code {code}, {said[-3:]}"
        drafts = len(list(folder.rglob("*.tmp"))) if how == "interrupt" else 0
        code, said = stopped(command, folder, how, END_S)
        if code != 0:
            wrong = wrong or f"it does not go on: exit code {code}, {said[-3:]}"
        equal = code == 0 and outcome(folder) == expected
    return {"hits": hits, "equal": equal, "drafts": drafts, "wrong": wrong}


def _in_a_line(said: list[str]) -> bool:
    """Tell whether the last line says that it was an interrupt, and no other of an error."""
    errors = [line for line in said if "rror" in line or line.startswith(("Traceback", "  "))]
    return errors == said[-1:] != [] and errors[0].startswith("error: interrupted")


@contextmanager
def _folder() -> Iterator[Path]:
    """Give a working directory with the instance, and remove it."""
    with TemporaryDirectory() as name:
        write(generate.horizon(6, 16, "tight", 3), Path(name) / "day.json")
        yield Path(name)


def table(lines: pd.DataFrame) -> str:
    """Return how many trials went well, in Markdown."""
    rows = [
        [
            f"{command}, {how}",
            f"{len(own)}",
            f"{own.hits.sum()}",
            f"{(own.wrong == '').sum()}",
            f"{own.equal.sum()}",
            f"{own.drafts.sum()}",
        ]
        for (command, how), own in lines.groupby(["command", "how"], sort=False)
    ]
    return markdown(["", "trials", "stops", "right codes", "equal results", "drafts left"], rows)


def trials(how: str, stops: int) -> Iterator[dict[str, Any]]:
    """Yield the trials of a way to stop, spread over the commands."""
    names, number = list(COMMANDS), -(-stops // STOPS)
    return ({"command": names[k % len(names)], "how": how, "trial": k} for k in range(number))


def experiment(folder: Folder, interrupts: int, kills: int) -> int:
    """Stop commands; return the exit code."""
    cases = [*trials("interrupt", interrupts), *trials("kill", kills)]
    lines = folder.measure(cases, measure)
    folder.write(table(lines))
    for wrong in lines.wrong[lines.wrong != ""]:
        click.echo(f"FAILED: {json.dumps(wrong)}")
    return int(not lines.equal.all() or (lines.wrong != "").any() or lines.drafts.any())


command = study(
    "interrupts",
    __doc__,
    experiment,
    [
        option(
            "--interrupts", type=click.IntRange(0), default=500, help="Stops by Ctrl-C, at most."
        ),
        option("--kills", type=click.IntRange(0), default=100, help="By kill -9."),
    ],
)
