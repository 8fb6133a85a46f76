"""Commands that are stopped at random moments end rightly, and lose nothing.

By Ctrl-C or kill -9, some times, then left alone. An interrupted command ends with 130 and one
line; what comes of a stopped one equals, but for times, what comes of one that was left alone; no
draft is left by Ctrl-C. Moments count from when Python has loaded `ronda.cli`.
"""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from msgspec.structs import replace

import ronda
from ronda.instances import generate

pytestmark = pytest.mark.soak

COMMANDS = {
    "run": "run day.json --policy genetic(generations=2) --out out",
    "compare": "compare day.json --policies srtf,genetic(generations=2) --no-figures --out out",
    "frontier": "frontier day.json --policies srtf --budgets 0.9,1.0 --no-figures --out out",
}
STOPS, SHARE = 5, 0.4
"""Times that a command is stopped before it is let end, each within this share of its time."""

READY = "import os; from ronda.cli import main; os.write({}, b'!'); main()"
END_S = 600.0


def stopped(command, folder, how, moment_s):
    """Stop a command after a while; return its exit code and what it said on stderr."""
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
    try:
        _, said = process.communicate(timeout=moment_s)
    except subprocess.TimeoutExpired:
        process.send_signal(how)
        _, said = process.communicate(timeout=END_S)
    return process.returncode, said.splitlines()


def outcome(folder):
    """Return all schedules below a folder, without clock times."""
    found = {}
    for path in sorted(folder.rglob("schedule.json.zst")):
        schedule = ronda.read(path)
        rounds = tuple(replace(r, solve_s=0.0, overhead_s=0.0) for r in schedule.rounds)
        found[path.relative_to(folder).as_posix()] = replace(schedule, rounds=rounds)
    return found


@pytest.fixture(scope="module", params=COMMANDS)
def left_alone(request, tmp_path_factory):
    """Return a command, what comes of it, and how long it takes."""
    folder = tmp_path_factory.mktemp("alone")
    ronda.write(generate.horizon(6, 16, "tight", 3), folder / "day.json")
    began_s = time.perf_counter()
    code, said = stopped(request.param, folder, signal.SIGKILL, END_S)
    assert code == 0, said
    return request.param, outcome(folder), time.perf_counter() - began_s


@pytest.mark.timeout(3600)
@pytest.mark.seeds(2)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["interrupt", "kill"])
def test_a_stopped_command_goes_on(left_alone, how, seed, tmp_path):
    """To the same end."""
    command, expected, seconds = left_alone
    rng = np.random.default_rng([seed, how, *command.encode()])
    ronda.write(generate.horizon(6, 16, "tight", 3), tmp_path / "day.json")
    for _ in range(STOPS):
        code, said = stopped(command, tmp_path, how, float(rng.uniform(0.0, SHARE * seconds)))
        if code == 0:
            break
        assert code == (130 if how is signal.SIGINT else -signal.SIGKILL), said
        if how is signal.SIGINT:
            told = [line for line in said if "rror" in line or line.startswith(("Trace", "  "))]
            assert told == said[-1:] != []
            assert told[0].startswith("error: interrupted")
            assert list(tmp_path.rglob("*.tmp")) == []
    code, said = stopped(command, tmp_path, how, END_S)
    assert code == 0, said
    assert outcome(tmp_path) == expected
