"""A system is one room: where its folder is deleted, all that is not its own goes on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ronda.solvers.registry import POLICIES

ROOT = Path(__file__).parents[2]
SYSTEMS = sorted(path.parent.name for path in (ROOT / "systems").glob("*/__init__.py"))

ALONE = """
import sys  # an editable install finds what is missing here in the checkout
sys.meta_path[:] = [each for each in sys.meta_path if "editable" not in each.__module__]
"""
"""What a child does first."""

CHILD = """
import json
from click.testing import CliRunner
import ronda, ronda.systems
from ronda.cli.app import cli
from ronda.instances.errors import InputError
from ronda.instances.files.packaged import document, entries
from ronda.solvers.registry import POLICIES

assert sys.argv[1] in ronda.systems.__file__

def refused(name):
    try:
        ronda.policy(name)
    except InputError as error:
        return str(error)

def plans(name, round_):
    plan = ronda.solve(round_, name, deadline=20.0)
    return not ronda.check(round_, plan)

def help(*words):
    done = CliRunner().invoke(cli, [*words, "--help"], prog_name="ronda")
    return done.exit_code == 0 and done.output

core = "fifo srtf pollux-like elasticflow-like shockwave-like race-to-idle fifo+zeus prices".split()
core.append("genetic(generations=2)")
arrays, tight = ronda.load("round-arrays"), ronda.load("round-tight-64")
own = [name for name in POLICIES if ".systems." in POLICIES[name]]
short = {"evolve+fused": "evolve+fused(generations=2)"}
print(json.dumps({
    "policies": [*POLICIES],
    "refused": [refused(name) for name in sys.argv[2:]],
    "core": {name: plans(name, tight) for name in core},
    "systems": {name: plans(short.get(name, name), arrays) for name in own},
    "help": [help(*words) for words in ((), ("instances", "convert"), ("profile",))],
    "loaded": [type(document(each.name)).__name__ for each in entries()],
}))
"""


@pytest.fixture
def without(tmp_path):
    """Lay ronda in a folder, by links to its own, without a room or a system; return the folder."""

    def lay(name):
        package = tmp_path / "ronda"
        (package / "systems").mkdir(parents=True)
        for each in (ROOT / "ronda").iterdir():
            if each.name not in (name, "systems", "__pycache__"):
                (package / each.name).symlink_to(each.resolve())
        for each in (ROOT / "systems").iterdir():
            if each.name not in (name, "__pycache__"):
                (package / "systems" / each.name).symlink_to(each)
        return tmp_path

    return lay


@pytest.mark.parametrize("name", SYSTEMS)
def test_all_else_goes_on_where_a_system_is_deleted(name, without):
    """Its policies are refused as unknown names; core, other systems, help and data are there."""
    gone = [policy for policy in POLICIES if f"ronda.systems.{name}." in POLICIES[policy]]
    folder = str(without(name))
    command = [sys.executable, "-c", ALONE + CHILD, folder, *gone]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": folder},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["policies"] == [policy for policy in POLICIES if policy not in gone]
    for policy, line in zip(gone, found["refused"], strict=True):
        assert line.startswith(f"--policy: found {policy!r}; expected one of ")
    assert found["core"] == dict.fromkeys(found["core"], True)
    assert found["systems"] == dict.fromkeys(found["systems"], True)
    assert {p.partition("(")[0] for p in found["systems"]} | {*gone} == {
        policy for policy in POLICIES if ".systems." in POLICIES[policy]
    }
    assert all(found["help"])
    assert ("  sleep" in found["help"][0]) == (name != "helios")
    assert ("  ones" in found["help"][1]) == (name != "ones")
    assert ("fit-fusion" in found["help"][2]) == (name != "hfta")
    assert {*found["loaded"]} >= {"Instance", "Round", "Demand"}


@pytest.mark.parametrize("name", ["questions", "hosts"])
def test_the_core_goes_on_without_questions_and_hosts(name, without):
    """Their commands are no commands, and an answer of theirs is refused in one line."""
    folder = str(without(name))
    code = f"{ALONE}from ronda.cli import main; sys.argv[0] = 'ronda'; main()"

    def ronda(*words):
        return subprocess.run(
            [sys.executable, "-c", code, *words],
            capture_output=True,
            text=True,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": folder},
        )

    help = ronda("--help").stdout
    assert ("  whatif" in help, "  serve" in help) == (name == "hosts", name == "questions")
    words = ("solve", "round-tight-64", "--policy", "prices", "--json")
    if name == "hosts":
        assert ronda(*words).returncode == 0
    else:
        done = ronda(*words, "--explain", "x")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert done.stderr.startswith("error: --explain: found no ronda.questions")
