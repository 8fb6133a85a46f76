"""Moves on rounds of Alibaba's shapes: the rounds, the rule without a model, the study."""

import json

from every_move import crowd
from lab.__main__ import main
from lab.consolidation import greedily, scattered
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


def test_greedy_empties_the_emptiest_first_and_keeps_its_limit():
    """The 1 goes beside the 2, then {1, 2} of 3 GPUs beside no one: {2, 2} and {3} are too full."""
    round_ = crowd((4,) * 4, [(0, 1), (1, 2), (2, 2), (2, 2), (3, 3)])
    assert greedily(round_, 10) == (1, 1)
    assert greedily(round_, 0) == (0, 0)


def test_the_model_is_never_worse(tmp_path):
    """A case a limit; no plan breaks a rule, and greedy never empties more."""
    words = ["--nodes", "12", "--used", "0.6", "--seeds", "1,2", "--out", str(tmp_path)]
    assert main(["consolidation", *words]) == 0
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert len(lines) == 4
    assert all(line["greedy"] <= line["saved"] == line["bound"] for line in lines)
    assert sum(line["violations"] for line in lines) == 0
