"""Mutants: killed, survived, stale; on a project of one line, and the list against the code."""

import json

import pytest

from ronda.bench.mutants.__main__ import ROOT, main
from ronda.bench.mutants.mutation import LISTED, read

KILLED = """
[[mutation]]
name = "minus"
file = "adding.py"
old = "a + b"
new = "a - b"
tests = ["test_adding.py"]
"""
HARMLESS = KILLED.replace("minus", "swapped").replace("a - b", "b + a")
STALE = KILLED.replace("minus", "stale").replace('"a + b"', '"a * b"')


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A tree with one function and one test; returns a call of the command on a list.

    Plugins that the tree's tests do not need would take most of the time.
    """
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p xdist")
    root, listed = tmp_path / "root", tmp_path / "list.toml"
    root.mkdir()
    (root / "adding.py").write_text("def add(a, b):\n    return a + b\n")
    test = "from adding import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
    (root / "test_adding.py").write_text(test)

    def call(text, *words):
        listed.write_text(text)
        return main(["--list", str(listed), "--root", str(root), *words])

    return call


def test_killed_and_survived(project, capsys, tmp_path):
    """One line each with the first test that failed; a survivor makes the exit code 1.

    What is killed already is not run again.
    """
    out = tmp_path / "out.jsonl"
    assert project(HARMLESS + KILLED, "--json", "--out", str(out)) == 1
    printed = capsys.readouterr().out
    lines = [json.loads(line) for line in printed.splitlines()]
    assert [(line["name"], line["killed"], line["by"]) for line in lines] == [
        ("swapped", False, ""),
        ("minus", True, "test_adding.py::test_add"),
    ]
    assert all(line["seconds"] > 0 for line in lines)
    assert out.read_text() == printed
    assert project(KILLED, "--out", str(out)) == 0
    assert capsys.readouterr().out == "1 of 1 noticed\n"


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        (KILLED + STALE, (), "mutation stale: found its old text 0 times in adding.py"),
        (KILLED.replace("adding.py", "gone.py"), (), "mutation minus: found gone.py"),
        (KILLED + KILLED, (), "found minus twice"),
        (KILLED, ("--only", "plus"), "--only: found plus"),
        ("[[mutation]]\nname = 3", (), "expected a list of mutations"),
    ],
)
def test_lists_that_do_not_fit_are_refused(project, capsys, text, words, message):
    """Before anything runs, in one line, with exit code 2."""
    assert project(text, *words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err


def test_tests_that_fail_anyway_prove_nothing(project, capsys, tmp_path):
    """They are run first without a mutation."""
    (tmp_path / "root" / "adding.py").write_text("def add(a, b):\n    return a + b + 1\n")
    assert project(KILLED) != 0
    assert "test_adding.py::test_add fails without any mutation" in capsys.readouterr().err


@pytest.mark.parametrize("mutation", read(LISTED), ids=lambda mutation: mutation.name)
def test_the_list_fits_the_code(mutation):
    """Every old text stands there exactly once, and every named test is there."""
    mutation.applied(ROOT)
    for test in mutation.tests:
        path, _, name = test.partition("::")
        assert f"def {name}" in (ROOT / path).read_text()
