"""``ronda frontier``: from the command line to table and figure."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from hostile import HOSTILE, assert_kept_inside, rename
from ronda.instances import generate
from ronda.instances.files import json as files

WORDS = ("frontier", "two-nodes.json", "--out", "out")


def lines(folder):
    """Return the results in the folder."""
    return [json.loads(x) for x in (folder / "out" / "results.jsonl").read_text().splitlines()]


def test_end_to_end_and_later_additions(folder, ronda, runs_here, few_steps):
    """A budget of 340 W bears 60 W beside idling: job a, 100 W, waits until joules are saved.

    680 W (all GPUs busy) bear everything. Policies, budgets and changes added later come to what
    is there, which does not run again.
    """
    done = ronda(*WORDS, "--policies", "fifo,prices", "--budgets", "0.5,1", "--json")
    assert done.exit_code == 0
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["runs"] == 4
    (found,) = summary["instances"]
    assert found["full_w"] == pytest.approx(680.0)
    by_policy = {curve["policy"]: curve for curve in found["curves"]}
    assert {name: curve["knowledge"] for name, curve in by_policy.items()} == {
        "fifo": "none",
        "prices": "oracle",
    }
    slow, fast = by_policy["fifo"]["points"]
    assert (slow["factor"], fast["factor"]) == (0.5, 1.0)
    assert slow["mean_jct_s"] > fast["mean_jct_s"]
    assert found["strongest"]["equal_energy"]
    # as without a budget, see test_run: JCTs 100, 150, 150
    assert fast["mean_jct_s"] == pytest.approx(400 / 3)
    # but node 1, which nobody uses from 50 to 160 s, sleeps: 5 W instead of 140 W
    assert fast["energy_j"] == pytest.approx(280 * 160 + 50 * 610 - 135 * 110)
    assert found["bound"]
    assert all(line["variant"]["sustained_w"] in (340.0, 680.0) for line in lines(folder))

    before = {line["key"] for line in lines(folder) if line["status"] == "OK"}
    more = ("--policies", "srtf", "--budgets", "1.2", "--vary", "idle=0.7", "--no-figures")
    more = ronda(*WORDS, *more)
    assert more.exit_code == 0, more.output
    keys = [line["key"] for line in lines(folder)]
    assert len(keys) == 4 + 2
    assert before <= set(keys)
    table = (folder / "out" / "table.md").read_text()
    for words in ("| fifo |", "| srtf |", "equal energy", "idle ×0.7, budget ×1.2"):
        assert words in table
    for name in ("frontier.png", "frontier.svg", "frontier.csv"):
        assert (folder / "out" / "figures" / "two-nodes" / name).stat().st_size


def test_targets_and_prices_are_shown(folder, ronda, runs_here, few_steps):
    """The tables for people name ratios and, for policies with prices, what more is worth.

    Nothing that the name of the instance says leaves the folder.
    """
    rename(folder / "two-nodes.json", HOSTILE)
    words = ("--policies", "fifo,prices", "--budgets", "1.3", "--vary", "nodes=1", "--no-figures")
    done = ronda(*WORDS, *words)
    assert done.exit_code == 0, done.output
    for words in ("at equal energy", "one more is worth", "nodes +1, budget ×1.3", "best"):
        assert words in done.stdout
    assert "results, table and figures: out" in done.stdout
    assert "x\\x1b[31m\\u202e" in done.stdout
    assert_kept_inside(folder, {"two-nodes.json", "round.json", "out"}, done.stdout)


@pytest.mark.soak  # what ended is kept as by `compare`, where each run of the tests asks it
def test_a_killed_sweep_goes_on(folder, ronda, runs_here, few_steps):
    """After SIGKILL the runs that ended are kept, and the same command does the others."""
    files.write(generate.horizon(600, 64, "tight", 3), folder / "long.json")
    words = [
        "frontier",
        "two-nodes.json",
        "long.json",
        "--policies",
        "fifo,prices",
        "--out",
        "out",
    ]
    words += ["--budgets", "1", "--jobs", "1", "--no-figures"]
    process = subprocess.Popen(
        [sys.executable, "-c", "from ronda.cli import main; main()", *words],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    results = folder / "out" / "results.jsonl"
    limit = time.monotonic() + 120
    while not (results.exists() and results.read_bytes().count(b"\n") >= 1):
        assert time.monotonic() < limit
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = lines(folder)
    assert 1 <= len(kept) < 4
    words = [*words[:1], "two-nodes.json", *words[3:]]
    done = ronda(*words)
    assert done.exit_code == 0, done.output
    assert lines(folder)[: len(kept)] == kept
    assert f"{min(len(kept), 2)} of 2 runs are in out already" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("frontier two-nodes.json --budgets 1:0:3", "--budgets"),
        ("frontier two-nodes.json --vary heat=2", "--vary"),
        ("frontier two-nodes.json --policies fifo,,srtf", "comma"),
        ("frontier two-nodes.json --comparators fifo,nosuch", "'nosuch'"),
        ("frontier round.json", "ronda solve"),
    ],
)
def test_bad_input(words, said, folder, ronda):
    """One line, exit code 2, nothing written."""
    done = ronda(*words.split())
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1
    assert said in done.stderr
    assert not (folder / "frontier-out").exists()
