"""Plans of settled rounds against the bound that knows of moves."""

import pandas as pd

from ronda.bench.study.__main__ import main
from ronda.bench.study.evolve_quality import measure, worst_gaps


def quality(policy, worth, bound):
    """Return a line of results."""
    asked = {"severity": "tight", "seed": 0, "policy": policy, "limit_s": 2.0}
    return asked | {"worth": worth, "bound": bound, "tight_bound": 99.0}


def test_gaps_by_hand():
    """The least bound is 100: gaps of 2 and 5 %; to 99, 1/99 and 4/99."""
    plans = pd.DataFrame([quality("a", 98.0, 100.0), quality("b", 95.0, 110.0)])
    assert worst_gaps(plans).splitlines()[2:] == [
        "| a | 2 | 2.00 (1.01) |",
        "| b | 2 | 5.00 (4.04) |",
    ]


def test_no_plan_is_worth_more_than_its_bounds():
    """On a small settled round."""
    found = measure(jobs=32, gpus=32, severity="tight", seed=0, policy="prices", limit_s=20.0)
    assert 0 < found["worth"] <= min(found["bound"], found["tight_bound"]) * (1 + 1e-9)


def test_command_prints_a_row_for_each_policy_and_limit(tmp_path, capsys):
    """One tiny round."""
    words = ["evolve-quality", "--jobs", "16", "--seeds", "0", "--severities", "tight"]
    words += ["--policies", "prices,genetic(generations=3)", "--limits", "5"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + 2
