"""Options and nodes together against one after the other, on made rounds."""

import json

from lab.__main__ import main
from lab.placement import made
from ronda.instances.rules.validate import validate


def lines(folder):
    """Return what a study has measured."""
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def test_made_rounds_are_valid_and_have_pods():
    """Eight nodes of 8 GPUs make two racks in one pod; jobs run and jobs wait."""
    round_ = made(64, 0)
    validate(round_, "made")
    assert [rack.parent for rack in round_.cluster.racks] == [None, "pod0", "pod0"]
    assert round_.running
    assert round_.waiting


def test_exact_placement_loses_least(tmp_path):
    """On a round of 64 GPUs no plan breaks a rule, and the exact one is worth most."""
    assert main(["placement", "--gpus", "64", "--seeds", "1", "--out", str(tmp_path)]) == 0
    found = {line["spec"]: line for line in lines(tmp_path)}
    assert sum(line["violations"] for line in found.values()) == 0
    exact = found.pop("milp(gap=1e-3, placement=exact)")
    assert all(exact["lost"] <= line["lost"] + 1e-3 for line in found.values())
    assert exact["gap"] <= 1e-3
