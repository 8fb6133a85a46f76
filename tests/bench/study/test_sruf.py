"""Searches for a schedule of least SRUF score, and their comparison."""

import numpy as np
import pytest

from ronda.bench.study import sruf
from ronda.bench.study.sruf_searches import SEARCHES, marginal, steepest, timed
from ronda.bench.study.sruf_snapshot import SrufSnapshot, generate, optimum, shortest_first

INF = np.inf


@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_returns_a_full_schedule_and_none_beats_the_optimum(search):
    """Every search returns a full schedule and none beats the optimum."""
    problem = generate(16, 10, seed=1)
    best = float(problem.score(optimum(problem)))
    score, _, _ = timed(SEARCHES[search], problem, 0, 10.0)
    assert score >= best * (1 - 1e-9)


def test_ones_ends_no_worse_than_filling_by_srpt():
    """Ones ends no worse than filling by srpt."""
    problem = generate(16, 10, seed=2)
    score, _, evaluations = timed(SEARCHES["ones"], problem, 0, 1.0)
    assert score <= float(problem.score(shortest_first(problem))) * (1 + 1e-9)
    assert evaluations == 3 * 16 * 60


def test_evolve_finds_the_optimum_of_a_small_snapshot():
    """Evolve finds the optimum of a small snapshot."""
    problem = generate(16, 10, seed=3)
    score, _, _ = timed(SEARCHES["evolve"], problem, 0, 20.0)
    assert score == pytest.approx(float(problem.score(optimum(problem))))


def test_steps_and_the_price_of_a_gpu_by_hand():
    """Steps and the price of a gpu by hand."""
    # Steps: 1, 2 of the first job; 4 of the second: more than the largest is 1 + 4.
    problem = SrufSnapshot(np.array([[1, 3], [4, INF]]), 2)
    assert steepest(problem) == 5
    # Two GPUs go to the first job from 2 a GPU on (its second GPU costs 2), less than 4.
    assert marginal(problem) == pytest.approx(2.0)


def test_a_search_that_leaves_gpus_idle_is_caught():
    """A search that leaves gpus idle is caught."""
    with pytest.raises(RuntimeError, match="not full"):
        timed(lambda problem, seed, s: (np.zeros(10, dtype=int), 0), generate(16, 10, 0), 0, 1.0)


def test_runs_are_kept_and_shown(tmp_path, capsys, monkeypatch):
    """Runs are kept and shown."""
    monkeypatch.setattr(sruf, "SIZES", ((8, 5),))
    words = ["--seeds", "0-1", "--searches", "srpt,dp", "--out", str(tmp_path)]
    assert sruf.main(words) == 0
    kept = (tmp_path / "sruf.jsonl").read_bytes()
    assert kept.count(b"\n") == 4
    table = capsys.readouterr().out
    assert "| 8, 5 | dp | 2 | 0.00 | 0.00 | 0.00 |" in table
    assert sruf.main(words) == 0
    assert (tmp_path / "sruf.jsonl").read_bytes() == kept
    assert (tmp_path / "sruf.md").read_text() == table


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--searches", "joy"], "--searches: found 'joy'"),
        (["--seeds", "x"], "--seeds"),
        (["--limit", "0"], "--limit: found 0"),
    ],
)
def test_bad_input_is_one_line_and_code_2(words, text, tmp_path, capsys):
    """Bad input is one line and code 2."""
    assert sruf.main([*words, "--out", str(tmp_path / "new")]) == 2
    assert text in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_foreign_lines_are_refused(tmp_path, capsys):
    """Foreign lines are refused."""
    (tmp_path / "sruf.jsonl").write_text('{"a": 1}\n')
    assert sruf.main(["--seeds", "0", "--searches", "dp", "--out", str(tmp_path)]) == 2
    assert "sruf.jsonl line 1" in capsys.readouterr().err
