"""The study of rounds that many GPU types couple."""

import json

import pandas as pd
import pytest

from lab.__main__ import main
from lab.pools import SOLVERS, table
from lab.speed.__main__ import main as speed
from lab.speed.pools import many_pools, relaxed
from ronda.instances.clock import Deadline
from ronda.solvers.prices.dual import Search
from ronda.solvers.prices.engine import solve_separable


def line_of(capfd, *words):
    """Return the line that a measurement of 30 jobs and three types prints."""
    assert speed(["pools", "--here", "--jobs", "30", "--types", "3", *words]) == 0
    return json.loads(capfd.readouterr().out)


def test_all_solvers_see_the_same_round(capfd):
    """HiGHS and prices agree within the gap; the parts are worth less, the relaxation is more."""
    prices, highs, parts = (
        line_of(capfd, "--solver", solver) for solver in ("prices", "highs", "pop-2")
    )
    assert prices["objective"] == pytest.approx(highs["objective"], rel=2e-4)
    assert highs["bound"] >= prices["objective"] * (1 - 1e-8)
    assert parts["objective"] < 0.999 * highs["objective"]
    bounds = [line_of(capfd, "--solver", name)["bound"] for name in ("simplex", "ipm", "pdlp")]
    assert bounds == pytest.approx([bounds[0]] * 3, rel=1e-3)
    assert bounds[0] >= highs["objective"]


def test_the_relaxation_is_the_prices_bound_without_rounded_capacities():
    """Three types are no many: the dual's bound is what the linear relaxation is worth."""
    problem = many_pools(40, 3, 1)
    dual = solve_separable(problem, Search(gap=1e-3)).dual
    value = relaxed(problem, "simplex", Search(deadline=Deadline(60.0)))
    assert value == pytest.approx(dual.bound, rel=1e-6)


def test_what_falls_short_is_told_of_the_least_bound():
    """The least bound is 100, by any of them: 99 falls short by a hundredth."""
    lines = pd.DataFrame(
        [
            {"solver": "prices", "gap": 1e-2, "objective": 99.0, "bound": 100.5},
            {"solver": "highs", "gap": 1e-4, "objective": 100.0, "bound": 100.0},
            {"solver": "simplex", "gap": 1e-4, "objective": None, "bound": 100.2},
        ]
    ).assign(jobs=10, types=2, seed=1, cpu_s=2.0, peak_rss_mib=64.0)
    told = [line.split("|")[3:8:4] for line in table(lines).splitlines()[2:]]
    assert [[word.strip() for word in words] for words in told] == [
        ["prices", "1.0e-02"],
        ["highs", "0.0e+00"],
        ["simplex", "–"],
    ]


def test_study_goes_on_from_its_lines(tmp_path, capsys):
    """A later call measures nothing again, and prints the same table."""
    words = ["pools", "--jobs", "12", "--types", "2", "--solvers", "highs", "--out", str(tmp_path)]
    assert "pop-4" in SOLVERS
    assert main(words) == 0
    first = capsys.readouterr().out
    kept = (tmp_path / "results.jsonl").read_bytes()
    assert main(words) == 0
    assert capsys.readouterr().out == first
    assert (tmp_path / "results.jsonl").read_bytes() == kept
