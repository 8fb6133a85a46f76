"""Solvers on the same rounds: times to a gap, profiles, and the study from end to end."""

import numpy as np
import pandas as pd

from lab.__main__ import main
from lab.solvers import (
    COMPARED,
    answer,
    question,
    table,
    times,
)


def line(solver, incumbents, bound, jobs=8):
    """Return a line of the study."""
    case = {"seed": 0, "jobs": jobs, "severity": "tight", "solver": solver}
    return case | {"incumbents": incumbents, "bound": bound, "total_s": 4.0, "cpu_s": 2.0}


def test_times_are_those_of_the_first_choice_near_the_least_bound():
    """The least bound is 100: 99 is within 1 % and not within 0.1 %, 99.95 is within both.

    Each run had half a processor. What comes after the limit does not count.
    """
    lines = pd.DataFrame(
        [
            line("highs", [[2.0, 50.0], [4.0, 99.0], [6.0, 99.95]], 100.0),
            line("prices", [[0.2, 99.0]], 110.0),
        ]
    )
    assert times(lines, 1e-2, 20.0).iloc[0].to_dict() == {"highs": 2.0, "prices": 0.1}
    assert times(lines, 1e-3, 20.0).iloc[0].to_dict() == {"highs": 3.0, "prices": np.inf}
    assert np.isinf(times(lines, 1e-3, 2.5).to_numpy()).all()
    first, second = table(lines, 20.0).splitlines()[2:4]
    assert "| 2.00 | 0 of 1 | 20.0 |" in first
    assert "> 20 | 1 of 1" in table(lines, 20.0)
    assert second.startswith("| 8 | `scip` | – |")


def test_every_solver_finds_the_same():
    """On a tiny round all end within the gap of the least bound, and none is below another."""
    asked, problem = {"seed": 0, "jobs": 8, "severity": "tight"}, question(8, "tight", 0)
    lines = pd.DataFrame(
        [asked | {"solver": s} | answer(problem, s, limit_s=20.0) for s in COMPARED]
    )
    assert np.isfinite(times(lines, 1e-3, 20.0).to_numpy()).all()
    assert lines.bound.min() >= lines.objective.max() * (1 - 1e-9)


def test_the_study_tells_and_draws_what_it_measured(tmp_path):
    """A row and a curve for each solver, and its lines are kept."""
    out = tmp_path / "out"
    words = ["solvers", "--out", str(out), "--jobs", "6", "--severities", "loose", "--seeds", "0"]
    assert main([*words, "--solvers", "prices,highs"]) == 0
    assert len((out / "results.jsonl").read_text().splitlines()) == 2
    assert "| 6 | `highs` | 0." in (out / "table.md").read_text()
    assert (out / "solvers.png").exists()
    assert set(pd.read_csv(out / "solvers.csv").solver) == {"prices", "highs"}
