"""SRUF snapshots: scores, the optimum by three ways, and searches for it."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.bench.ones import sruf
from ronda.bench.ones.sruf import (
    SEARCHES,
    SIZES,
    SrufSnapshot,
    generate,
    measure,
    optimum,
    shortest_first,
    snapshot,
)
from ronda.bench.study.__main__ import main
from ronda.formulations.clock import Deadline

INF = np.inf

# Two jobs, left = (6, 2) samples; X(1) = 1 and X(2) = 1.5 for both, the second has limit 1 only.
# w = c left / X(c): job 0: 6, 2·6/1.5 = 8; job 1: 2.
HAND = snapshot([6, 2], [[1, 1.5], [1, 0]], capacity=2)


def brute_force(problem):
    """Return the least score over all allocations that are full."""
    every = product(*(range(r + 1) for r in problem.limits))
    return min(problem.score(gpus) for gpus in every if problem.full(gpus))


@st.composite
def snapshots(draw):
    """Small problems with ties, jobs of limit 0 and more or less capacity than the limits."""
    limits = draw(st.lists(st.integers(0, 4), min_size=1, max_size=5))
    number = st.integers(0, 9).map(lambda n: n / 2)
    weights = np.full((len(limits), 4), INF)
    for j, most in enumerate(limits):
        weights[j, :most] = draw(st.lists(number, min_size=most, max_size=most))
    return SrufSnapshot(weights, draw(st.integers(0, 14)))


def test_weights_are_the_gpu_seconds_to_come():
    """By hand, above."""
    assert HAND.weights.tolist() == [[6, 8], [2, INF]]
    assert HAND.limits.tolist() == [2, 1]
    assert HAND.used == 2


def test_score_and_fullness_by_hand():
    """(1, 1): 6 + 2; (2, 0): 8; (0, 1): 2, a GPU is idle; (0, 2): job 1 has limit 1."""
    schedules = [[1, 1], [2, 0], [0, 1], [0, 2]]
    assert [HAND.score(gpus) for gpus in schedules] == [8, 8, 2, INF]
    assert [HAND.full(gpus) for gpus in schedules] == [True, True, False, False]


def test_shortest_first_is_not_the_optimum():
    """Limits are filled in the order of the time on one GPU."""
    # Job 1 (2 s on one GPU) before job 0 (6 s): 1 GPU, its limit, then what is left.
    assert shortest_first(HAND).tolist() == [1, 1]
    # w = (1, 9), (2, 2.5); 2 GPUs. SRPT gives job 0 both: 9. Best: job 1 on both, 2.5.
    twisted = SrufSnapshot(np.array([[1, 9], [2, 2.5]]), 2)
    assert shortest_first(twisted).tolist() == [2, 0]
    assert optimum(twisted).tolist() == [0, 2]


@pytest.mark.parametrize("search", ["dp", "prices"])
def test_more_gpus_than_limits_and_none_at_all(search):
    """Every job gets its limit; nobody gets anything."""

    def found(problem):
        return SEARCHES[search](problem, 0, Deadline()).tolist()

    assert found(SrufSnapshot(HAND.weights, 99)) == [2, 1]
    assert found(SrufSnapshot(HAND.weights, 0)) == [0, 0]
    assert found(SrufSnapshot(np.full((2, 1), INF), 3)) == [0, 0]


@settings(max_examples=30, deadline=None)
@given(snapshots())
def test_dynamic_programming_and_price_engine_find_what_brute_force_finds(problem):
    """The optimum by three ways."""
    best = brute_force(problem)
    for search in ("dp", "prices"):
        gpus = SEARCHES[search](problem, 0, Deadline())
        assert problem.full(gpus)
        assert problem.score(gpus) == pytest.approx(best)


@pytest.mark.parametrize(("gpus", "jobs"), SIZES)
def test_generated_snapshots_are_reproducible_and_srpt_is_not_optimal(gpus, jobs):
    """All of their GPUs are used."""
    problem = generate(gpus, jobs, seed=3)
    assert (problem.weights == generate(gpus, jobs, seed=3).weights).all()
    best, filled = optimum(problem), shortest_first(problem)
    assert problem.used == gpus
    assert problem.full(best)
    assert problem.full(filled)
    assert problem.score(best) < problem.score(filled)


@pytest.mark.parametrize("search", SEARCHES)
def test_no_search_beats_the_optimum(search):
    """Those that solve or nearly solve a small snapshot find it; ones is no worse than SRPT."""
    case = {"gpus": 16, "jobs": 10, "seed": 3, "limit_s": 20.0}
    found = measure(search=search, **case)
    assert found["gap"] >= -1e-9
    if search in ("evolve", "prices", "dp"):
        assert found["gap"] == pytest.approx(0.0, abs=1e-9)
    if search == "ones":
        assert found["score"] <= measure(search="srpt", **case)["score"] * (1 + 1e-9)


def test_a_search_that_leaves_gpus_idle_is_caught(monkeypatch):
    """A schedule that is not full has a low score, and is no answer."""
    idle = {"idle": lambda problem, seed, deadline: np.zeros(10, dtype=int)}
    monkeypatch.setattr(sruf, "SEARCHES", idle)
    with pytest.raises(RuntimeError, match="not full"):
        measure(gpus=16, jobs=10, seed=0, search="idle", limit_s=1.0)


def test_command_prints_and_keeps_the_table(tmp_path, capsys, monkeypatch):
    """A row for each size and search."""
    monkeypatch.setattr(sruf, "SIZES", ((8, 5),))
    words = ["sruf", "--seeds", "0-1", "--searches", "srpt,dp", "--out", str(tmp_path)]
    assert main(words) == 0
    table = capsys.readouterr().out
    assert "| 8, 5 | dp | 2 | 0.00 | 0.00 | 0.00 |" in table
    assert (tmp_path / "table.md").read_text() == table
