"""Moves on rounds of Alibaba's shapes: the rounds, and the study."""

import json

from lab.__main__ import main
from lab.consolidation import scattered
from ronda.instances.rules.validate import validate


def test_rounds_have_the_shapes_of_the_trace():
    """Of 100 nodes 45 are G2 of 8 GPUs; a share of the GPUs is in use."""
    round_ = scattered(100, 0.7, 1)
    validate(round_, "made")
    groups = {group.name: group.count for group in round_.cluster.node_groups}
    assert sum(groups.values()) == 100
    assert groups["G2x8"] == 45
    used = sum(held.option.gpus for held in round_.held.values())
    assert 0.69 <= used / round_.cluster.gpus <= 0.7


def test_the_model_is_never_worse(tmp_path):
    """A case a limit; no plan breaks a rule, and greedy never empties more."""
    words = ["--nodes", "12", "--used", "0.6", "--seeds", "1,2", "--out", str(tmp_path)]
    assert main(["consolidation", *words]) == 0
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert len(lines) == 4
    assert all(line["greedy"] <= line["saved"] == line["bound"] for line in lines)
    assert sum(line["violations"] for line in lines) == 0
