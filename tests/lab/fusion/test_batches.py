"""Batches of repetitive jobs with the packaged curves."""

import pandas as pd
import pytest

from lab.__main__ import main
from lab.fusion.arrays import arrays_of
from lab.fusion.batches import RULES, draw, measure, named, only, table
from lab.fusion.exact import solve
from lab.harness import Folder


def chosen(name, objective):
    """Return the modes that the MILP chooses for 20 jobs of a case, by jobs."""
    answer = solve(named(name, jobs=20), objective, gap=1e-3)
    found = {}
    for (_, mode, models), number in answer.arrangement.modes().items():
        found[mode] = found.get(mode, 0) + models * number
    return found


def test_resnet18_is_packed_and_pointnet_fused():
    """20 jobs each, by the MILP: four times five processes against one array of 20."""
    assert chosen("resnet18", "gpu-time") == {"packed": 20}
    assert chosen("pointnet-v100", "gpu-time").keys() == {"fused"}


def test_rules_may_use_their_modes_only():
    """No array of serial has two models, and none of HFHT is packed."""
    case = named("resnet18", jobs=12)
    found = {rule: arrays_of(only(case, modes)) for rule, modes in RULES.items()}
    assert max(a.models for a in found["serial"]) == 1
    assert {a.mode for a in found["HFHT"]} == {"exclusive", "fused"}
    assert {a.mode for a in found["MILP"]} == {"exclusive", "packed", "fused"}


@pytest.mark.parametrize("objective", ["makespan", "gpu-time", "mean-jct"])
def test_no_rule_is_better_than_the_milp(objective):
    """Within its gap; and its bound is below."""
    found = measure("pointnet-mixed", objective, jobs=12, limit_s=20.0)
    assert found["bound"] <= found["MILP"] * (1 + 1e-9)
    for rule in RULES:
        assert found[rule] >= found["bound"] * (1 - 1e-9)
    assert found["MILP"] <= min(found[rule] for rule in RULES) * (1 + 1e-3)
    assert found["MILP"] < found["serial"]


def test_a_milp_without_an_answer_in_time(tmp_path):
    """Its cells are empty, and the rules are drawn all the same."""
    line = dict.fromkeys(RULES, 1.0) | {"MILP": None, "bound": None, "chosen": ""}
    line |= {"name": "resnet18", "objective": "makespan"}
    lines = pd.DataFrame([line, line | {"MILP": 0.5, "bound": 0.25, "chosen": "2 × packed 5"}])
    unsolved, solved = table(lines).splitlines()[2:]
    assert unsolved.endswith("| 1.000 | – | – |")
    assert solved.endswith("| 1.000 | 0.500 | 50.0 |")
    draw(lines, Folder(tmp_path))
    assert len((tmp_path / "fusion.csv").read_text().splitlines()) == 1 + 4 + 5


def test_command(tmp_path, capsys):
    """A row for each case and objective, a picture, and its numbers."""
    words = ["fusion", "--cases", "resnet18", "--objectives", "gpu-time", "--jobs", "10"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    row = capsys.readouterr().out.splitlines()[2]
    assert "2 × packed 5" in row
    assert (tmp_path / "fusion.png").exists()
    assert len((tmp_path / "fusion.csv").read_text().splitlines()) == 1 + len(RULES)
