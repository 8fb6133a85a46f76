"""What packages outside the core bring is found by name, and a broken one is one line."""

import json
import sys
from collections import Counter
from typing import get_args

import pytest

from ronda.solvers.plugins import Kind, declared, known
from ronda.solvers.registry import POLICIES


@pytest.mark.parametrize("kind", get_args(Kind))
def test_what_ronda_declares_is_there(kind):
    """Each is imported by its name."""
    assert declared(kind)
    for name, plugin in declared(kind).items():
        assert plugin.load(name) is not None


def test_a_policy_is_declared_once():
    """No package takes a name of the core's or of another package's."""
    assert len(POLICIES) == len(set(POLICIES.values()))
    targets = Counter(POLICIES.values())
    assert all(targets[plugin.target] == 1 for plugin in declared("policies").values())


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package of somebody else's, with commands and traces, some of them broken."""
    about = tmp_path / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[ronda.commands]\n"
        "greet = theirs:greet\ninstances count = theirs:count\n"
        "lost = theirs:lost\nodd = theirs:ODD\nsolve = theirs:greet\n"
        "[ronda.traces]\ntwo = theirs:read_two\ngone = gone_for_good:read\n"
    )
    (tmp_path / "theirs.py").write_text(
        '''
import click, msgspec, ronda
ODD = 3

@click.command()
def greet():
    """Greet."""
    click.echo("hello")

@click.command()
def count():
    """Count."""
    click.echo("one, two")

def read_two(path, *, times: int = 1):
    """Read two jobs.

    Parameters
    ----------
    times
        How long they last.
    """
    return msgspec.structs.replace(ronda.load("two-jobs"), description=path.name * times)
'''
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("theirs", None)


def test_commands_of_another_package(package, ronda):
    """They stand in the help, in the root or in a group, and run; the core's names are its own."""
    assert "From theirs." in ronda("--help").stdout
    assert "count" in ronda("instances", "--help").stdout
    assert ronda("greet").stdout == "hello\n"
    assert ronda("instances", "count").stdout == "one, two\n"
    assert "Decide one ROUND" in ronda("solve", "--help").stdout
    assert "ronda.systems" not in known("commands")["greet"].target


def test_a_trace_of_another_package(package, ronda, tmp_path):
    """Its parameters are options, with the words of its docstring."""
    assert "two" in ronda("instances", "convert", "--help").stdout
    help = ronda("instances", "convert", "two", "--help").stdout
    assert "--times INTEGER" in help
    assert "How long they last." in help
    out = tmp_path / "two.json"
    words = ("instances", "convert", "two", tmp_path / "log", "--times", 2, "--out", out)
    assert ronda(*words, "--json").exit_code == 0
    assert json.loads(out.read_text())["description"] == "loglog"


def test_a_trace_of_another_package_is_audited(package, ronda, tmp_path):
    """Its instance has no record of what ran; its machines are given."""
    done = ronda("instances", "audit", tmp_path / "log", "--reader", "two", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["jobs"], told["machines"], told["pools"][0]["most_held"]) == (2, "given", None)


@pytest.mark.parametrize(
    ("words", "place", "found"),
    [
        ("instances audit log --reader gone", "--reader gone", "gone_for_good"),
        ("lost", "ronda lost", "AttributeError"),
        ("odd", "ronda odd", "int"),
        (
            "instances convert gone log --out x.json",
            "ronda instances convert gone",
            "gone_for_good",
        ),
    ],
)
def test_a_broken_one_is_one_line_that_names_it(words, place, found, package, ronda):
    """Exit code 2; the help lists it all the same."""
    done = ronda(*words.split())
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {place}: found ")
    assert found in done.stderr
    assert done.stderr.count("\n") == 1
    assert "lost" in ronda("--help").stdout
