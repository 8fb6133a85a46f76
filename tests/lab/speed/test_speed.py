"""The speed measurements: same fields everywhere, and small sizes work."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lab.speed import decisions
from lab.speed.__main__ import main
from lab.speed.cases import CASES, FIELDS
from lab.speed.placement import LARGEST, drawn_sizes


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("placement", ["50,51"]),  # a line for each size, from a process of its own
        ("embedding", ["14", "--here"]),
        ("deadlines", ["40", "--here"]),
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
        [sys.executable, "-m", "lab.speed", "import"],
        cwd=Path(__file__).parents[3],
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


@pytest.mark.parametrize("policy", ["powerflow", "milp-energy"])
def test_policies_are_timed_on_what_they_decide(policy, capsys, monkeypatch):
    """A small round; the parts are within the whole."""
    monkeypatch.setattr(decisions, "REPEATS", 1)
    assert main(["policy", "--policy", policy, "--jobs", "12", "--here"]) == 0
    line = json.loads(capsys.readouterr().out)
    assert set(FIELDS) <= line.keys()
    assert (line["case"], line["policy"], line["jobs"]) == ("policy", policy, 12)
    assert line["placed"] > 0
    assert line["build_s"] <= line["total_s"]
    if policy == "milp-energy":
        assert line["gap"] <= 1e-3


def test_stages_are_measured_and_drawn(capfd, tmp_path):
    """Every stage takes some time; the figure needs at least one line of the case."""
    assert main(["stages", "--jobs", "24", "--here"]) == 0
    line = json.loads(capfd.readouterr().out)
    stages = ("options_s", "values_s", "arrays_s", "engine_s", "placement_s", "check_s")
    assert all(line[stage] > 0 for stage in (*stages, "total_s", "again_s"))
    assert 0 <= line["gap"] <= 1e-4
    results, picture = tmp_path / "stages.jsonl", tmp_path / "stages.png"
    results.write_text(json.dumps(line) + "\n")
    assert main(["figure", str(results), "--stages", "--out", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["figure", str(results), "--out", str(picture)]) == 2


def test_memory_is_measured_at_the_first_and_at_the_end(capfd, monkeypatch):
    """45 decisions, of which three bring a new job; what runs is what the last one started."""
    monkeypatch.setattr(decisions, "FIRST", 20)
    assert main(["memory", "--policy", "optimus", "--decisions", "45", "--here"]) == 0
    line = json.loads(capfd.readouterr().out)
    assert line["growth"] == line["rss_end_mib"] / line["rss_mib"] > 0.5
    assert line["decisions"] == 45
