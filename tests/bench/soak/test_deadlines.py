"""Decisions in time: measured for each round, limit and policy, and judged."""

import pytest

from ronda.bench.soak import deadlines
from ronda.bench.study.__main__ import main
from ronda.formulations import clock

GOOD = {
    "reading_s": 0.01,
    "wall_s": 3.0,
    "cpu_s": 1.04,
    "before": 12,
    "after": 12,
    "stop": "time_limit",
    "status": "fallback",
    "violations": 0,
}


def words(folder, *more):
    """Return a command of one case."""
    few = ["--policies", "prices", "--jobs", "64", "--limits", "1", "--clock", "processor"]
    return ["deadlines", *few, *more, "--out", str(folder)]


def test_command_decides_by_the_clock_that_is_asked_for(tmp_path, capsys):
    """A row for the round and limit, a cell for the policy; the clocks are given back."""
    before = clock.time
    assert main(words(tmp_path)) == 0
    row = capsys.readouterr().out.splitlines()[2].split(" | ")
    assert row[0] == "| 64"
    assert "12→" in row[3]
    assert clock.time is before


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({}, 0),
        ({"cpu_s": 1.06}, 1),
        ({"cpu_s": 1.06, "reading_s": 1.01}, 0),
        ({"after": 11}, 1),
        ({"after": 11, "stop": "gap"}, 0),
        ({"violations": 1}, 1),
    ],
)
def test_late_fewer_or_invalid_is_an_exit_code(tmp_path, monkeypatch, changed, code):
    """1.04 s of 1 s are in time, 1.06 s are not, unless validation alone took longer."""
    monkeypatch.setattr(deadlines, "measure", lambda **case: GOOD | changed)
    assert main(words(tmp_path)) == code
