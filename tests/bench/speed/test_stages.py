"""Whole decisions by stage, of measured profiles, and of partitions; and the figure of stages."""

import json

import pytest

from ronda.bench.speed.__main__ import main
from ronda.bench.speed.stages import measured
from ronda.instances import generate
from ronda.instances.profile import Tabular
from ronda.instances.rules.validate import validate


def line_of(words, capfd):
    """Return the line of a measurement in this process."""
    assert main([*words, "--here"]) == 0
    return json.loads(capfd.readouterr().out.splitlines()[-1])


def test_stages_are_measured_and_drawn(capfd, tmp_path):
    """Every stage takes some time; the figure needs at least one line of the case."""
    line = line_of(["stages", "--jobs", "24"], capfd)
    stages = ("options_s", "values_s", "arrays_s", "engine_s", "placement_s", "check_s")
    assert all(line[stage] > 0 for stage in (*stages, "total_s", "again_s"))
    assert 0 <= line["gap"] <= 1e-4
    results, picture = tmp_path / "stages.jsonl", tmp_path / "stages.png"
    results.write_text(json.dumps(line) + "\n")
    assert main(["figure", str(results), "--stages", "--out", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["figure", str(results), "--out", str(picture)]) == 2


def test_measured_profiles_are_valid_tables(capfd):
    """A table for each job, which differ; the case decides them all within the gap."""
    round_ = validate(measured(generate.round(12), 0))
    tables = [profile.throughput["A100"] for profile in round_.profiles.values()]
    assert all(isinstance(table, Tabular) for table in tables)
    assert len({table.step_s for table in tables}) == len(round_.jobs) == 12
    line = line_of(["profiles", "--jobs", "12"], capfd)
    assert line["options"] >= line["jobs"] == 12
    assert line["placed"] > 0


def test_partitions_are_decided_alike(capfd):
    """In every round of the horizon the parts alone give each job what the whole does."""
    line = line_of(["partitions", "--jobs", "12", "--partitions", "2"], capfd)
    assert line["same"] == line["rounds"] > 0
    assert line["ratio"] == pytest.approx(line["baseline_s"] / line["total_s"])
