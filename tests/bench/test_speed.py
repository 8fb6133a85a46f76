"""The speed measurements: same fields everywhere, and small sizes work."""

import json
import subprocess
import sys

import pytest

from ronda.bench.speed import FIELDS, main


@pytest.mark.parametrize(("case", "jobs"), [("read", 50), ("engine", 50), ("driver", 20)])
def test_every_case_prints_all_fields(case, jobs, capfd):
    """One line for each size, from a process of its own."""
    assert main([case, "--jobs", f"{jobs},{jobs + 1}"]) == 0
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [line["case"] for line in lines] == [case, case]
    for line in lines:
        assert set(FIELDS) <= line.keys()
        assert line["total_s"] > 0
        assert line["peak_rss_mib"] > 10


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


@pytest.mark.parametrize("words", [["engine", "--jobs", "many"], ["engine", "--trace", "no.csv"]])
def test_bad_input(words, capfd):
    """One line, exit code 2."""
    assert main(words) == 2
    errors = capfd.readouterr().err.splitlines()
    assert len(errors) == 1
    assert errors[0].startswith("error: ")
