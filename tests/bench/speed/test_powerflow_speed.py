"""The speed of the energy policies is measured on what they really decide."""

import json

import pytest

from ronda.bench.speed.powerflow import main


def test_prints_one_object_per_policy(capsys):
    """Small rounds; the parts are within the whole."""
    assert main(["--jobs", "12", "--repeats", "1"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["case"] for line in lines] == ["powerflow", "powerflow-prices", "milp-energy"]
    for line in lines:
        assert line["jobs"] == 12
        assert line["placed"] > 0
        assert line["build_s"] <= line["total_s"]
    assert lines[-1]["gap"] <= 1e-3


@pytest.mark.parametrize("words", [["--cases", "fifo"], ["--repeats", "0"], ["--jobs", "-1"]])
def test_what_cannot_be_measured_is_refused(words, capsys):
    """One line, exit code 2."""
    assert main(words) == 2
    assert "expected" in capsys.readouterr().err
