"""The speed measurements: same fields everywhere, and small sizes work."""

import json
import subprocess
import sys

import numpy as np
import pytest

from ronda.bench.speed import decision
from ronda.bench.speed.__main__ import main
from ronda.bench.speed.cases import CASES, FIELDS
from ronda.bench.speed.placement import LARGEST, drawn_sizes


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("read", ["50,51"]),  # a line for each size, from a process of its own
        ("engine", ["50", "--here"]),
        ("driver", ["20", "--here"]),
        ("placement", ["50", "--here"]),
    ],
)
def test_every_case_prints_all_fields(case, words, capfd):
    """One line for each size."""
    assert main([case, "--jobs", *words]) == 0
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [line["case"] for line in lines] == [case] * len(words[0].split(","))
    for line in lines:
        assert set(FIELDS) <= line.keys()
        assert line["total_s"] > 0
        assert line["peak_rss_mib"] > 10


def test_placement_places_everything_on_a_full_cluster(capfd):
    """50 jobs get 128 GPUs, 2 x 50 rounded up; 5 of them end, and all others find nodes again."""
    assert main(["placement", "--jobs", "50", "--here"]) == 0
    line = json.loads(capfd.readouterr().out)
    assert (line["gpus"], line["unplaced"], line["again_unplaced"]) == (128, 0, 0)
    assert line["again_ended"] == 5


@pytest.mark.parametrize(("jobs", "gpus"), [(1, 8), (3, 8), (50, 128), (1000, 2048)])
def test_drawn_sizes_are_powers_of_two_and_fill_the_cluster(jobs, gpus):
    """Whatever the draw, no GPU is left over."""
    sizes = drawn_sizes(jobs, gpus, np.random.default_rng(0))
    assert sizes.sum() == gpus
    assert len(sizes) == jobs
    assert set(sizes.tolist()) <= {2**k for k in range(LARGEST.bit_length())}


def test_import_is_measured_in_fresh_processes():
    """The import of ronda is a small part of that of numpy."""
    done = subprocess.run(
        [sys.executable, "-m", "ronda.bench.speed", "import"],
        capture_output=True,
        text=True,
        check=True,
    )
    line = json.loads(done.stdout)
    assert 0 < line["total_s"] < line["baseline_s"]


@pytest.mark.parametrize("case", CASES)
def test_every_case_teaches_itself(case, capsys):
    """With its own options only, and a name for what measures it."""
    assert main([case, "--help"]) == 0
    assert "--here" in capsys.readouterr().out


@pytest.mark.parametrize("case", ["powerflow", "powerflow-prices", "milp-energy"])
def test_policies_are_timed_on_what_they_decide(case, capsys, monkeypatch):
    """A small round; the parts are within the whole."""
    monkeypatch.setattr(decision, "REPEATS", 1)
    assert main([case, "--jobs", "12", "--here"]) == 0
    line = json.loads(capsys.readouterr().out)
    assert set(FIELDS) <= line.keys()
    assert (line["case"], line["jobs"]) == (case, 12)
    assert line["placed"] > 0
    assert line["build_s"] <= line["total_s"]
    if case == "milp-energy":
        assert line["gap"] <= 1e-3


@pytest.mark.parametrize("words", [["engine", "--jobs", "many"], ["engine", "--trace", "no.csv"]])
def test_bad_input(words, capfd):
    """One line, exit code 2."""
    assert main(words) == 2
    errors = capfd.readouterr().err.splitlines()
    assert len(errors) == 1
    assert errors[0].startswith("error: ")
