"""The controller on a real Slurm: what it says in a dry run is what it then does."""

import json
import subprocess
import sys

import pytest


@pytest.fixture
def ronda(settled_toy, tmp_path):
    """A function that runs ``ronda slurm --once`` and returns its JSON."""

    def run(*words):
        found = subprocess.run(
            [sys.executable, "-m", "ronda", "slurm", "--once", "--json", *words],
            env=settled_toy.env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(found.stdout)

    return run


def lines(told):
    """Return the commands of a pass."""
    return [command["line"] for step in told["steps"] for command in step["commands"]]


def submit(toy, gpus, comment="", minutes=5, seconds=120):
    """Submit a job, and return its id."""
    words = [f"--gres=gpu:a100:{gpus}", f"--time={minutes}", "--output=/dev/null", "--parsable"]
    found = toy.run("sbatch", *words, f"--comment={comment}", "--wrap", f"sleep {seconds}")
    return found.stdout.strip()


def test_a_dry_run_is_what_is_then_done(toy, ronda):
    """Short jobs overtake long ones, by the same commands as in the dry run before."""
    for _ in range(4):
        submit(toy, 8, "ronda:requeue", minutes=60)
    toy.wait(lambda: toy.run("squeue", "-h", "-t", "R").stdout.count("\n") == 4)
    shorts = [submit(toy, 4, "ronda", minutes=1) for _ in range(2)]
    other = submit(toy, 4, minutes=1)
    words = ("--policy", "srtf", "--min-run-s", "0", "--restart-s", "1")
    dry = ronda(*words)
    assert all(other not in step["names"] or not step["commands"] for step in dry["steps"])
    done = ronda(*words, "--act", "--state", "drive")
    assert lines(done) == lines(dry)
    assert any("requeue" in line for line in lines(dry))
    outcomes = {c["outcome"] for step in done["steps"] for c in step["commands"]}
    assert outcomes == {"done"}
    toy.wait(
        lambda: set(shorts) <= set(toy.run("squeue", "-h", "-t", "R", "-o", "%i").stdout.split())
    )
