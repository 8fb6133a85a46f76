"""Gavel-like and Shockwave-like by hand: shares of time, and leases that realise them."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from ronda.horizon.solve import solve
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.solvers.policies.fair import shockwave_like
from ronda.solvers.policies.fair.gavel_like import GavelFtfLike, fair_shares
from ronda.solvers.policies.fair.shockwave_like import won_rounds
from ronda.solvers.policies.fair.time_shares import MOST_ROWS, TimeShares, least


def sharing(rate, gpus=(1.0, 1.0), capacity=(1.0, 1.0), **known):
    """Return the shares of two jobs; `known` are (J,) properties given by hand."""
    rate, gpus = np.array(rate, dtype=float), np.array(gpus)
    each = {"gpus": gpus, "weight": np.ones(len(rate)), "done": rate[:, 0], "left": rate[:, 0]}
    made = TimeShares(None, (None,) * len(rate), rate, capacity=np.array(capacity), **each)
    made.__dict__.update({name: np.array(each, dtype=float) for name, each in known.items()})
    return made


def test_an_equal_share_is_a_part_of_every_type():
    """Two jobs of one GPU on one GPU of each type: half of the time on each, 4/2 + 1/2 = 2.5.

    With 4 GPUs of each type they would have both types all of the time: half of it on each.
    """
    assert sharing([[4, 1], [1, 1.5]]).equal.tolist() == [2.5, 1.25]
    assert sharing([[4, 1], [1, 0]], capacity=(4.0, 4.0)).equal.tolist() == [2.5, 1.0]


def test_every_job_gets_the_type_that_suits_it():
    """The first is best on type 0, the second on type 1: 4 / 2.5 = 1.6 and 1.5 / 1.25 = 1.2."""
    of = sharing([[4, 1], [1, 1.5]])
    least, shares = fair_shares(of, of.equal, Deadline())
    assert least == pytest.approx(1.2)
    assert shares == pytest.approx(np.eye(2), abs=1e-6)


def test_gangs_share_by_gpu_time():
    """Two gangs of 2 on 2 GPUs of one type: half of the time each, the rate of an equal share."""
    of = sharing([[3.0], [5.0]], gpus=(2.0, 2.0), capacity=(2.0,))
    least, shares = fair_shares(of, of.equal, Deadline())
    assert (least, shares.ravel().tolist()) == (pytest.approx(1.0), pytest.approx([0.5, 0.5]))


def test_the_job_that_is_late_gets_more_time():
    """Rate 1 on one GPU, works of 100 at an equal rate of 1/2: alone 200 s each.

    The first has waited for 100 s. With shares x and 1 - x done by 100 + 100/x and 100/(1 - x):
    equal for x = 0.618 (the golden section), rho = 261.8 / 200.
    """
    of = sharing([[1.0], [1.0]], capacity=(1.0,), done=[0, 0], left=[100, 100], age_s=[100, 0])
    shares = GavelFtfLike().shares(of, Deadline())
    assert shares[0, 0] == pytest.approx(0.618, abs=2e-3)


def test_a_market_of_equals_gives_equal_rounds():
    """Two jobs alike, rate 1 on one GPU, a window of 20 rounds of 120 s for work of 2,400 s."""
    known = {"done": [0, 0], "left": [2400, 2400], "age_s": [0, 0]}
    of = sharing([[1.0], [1.0]], capacity=(1.0,), **known)
    assert won_rounds(of, Deadline()).tolist() == [10, 10]


@pytest.mark.parametrize(("age_s", "rounds"), [(4800.0, 20), (0.0, 17)])
def test_a_job_that_is_late_for_a_fair_finish_wins_rounds(monkeypatch, age_s, rounds):
    """Rate 1 on one GPU: 20 rounds before the first, and 15 of 30 before the second.

    Late for its 4,800 s, the first gets all 20 rounds. In time it needs 10 to be fair; then
    logarithms decide: a round adds to the first's ln(4/2)/4 = 0.173 up to 8 rounds,
    ln(6/4)/4 = 0.101 up to 12, 0.072 up to 16, 0.056 up to 20; to the second's ln(6/5)/3 = 0.061 or
    less of the chord ln(6/4)/6 = 0.068 for 3 rounds, then 0.048. So 16, then 3, then one more.
    """
    monkeypatch.setattr(shockwave_like, "MAKESPAN", 0.0)
    known = {"done": [0, 1800], "left": [2400, 1800], "age_s": [age_s, 0]}
    of = sharing([[1.0], [1.0]], capacity=(1.0,), **known)
    assert won_rounds(of, Deadline()).tolist() == [rounds, 20 - rounds]


def test_a_new_job_gains_from_its_first_round_on():
    """Neither of 2,000 and 4,000 rounds comes to 1 % in 20: a round is twice as much of the first.

    It adds 61.0 / 2,000 to its logarithm, and 61.0 / 4,000 to the other's.
    """
    known = {"done": [0, 0], "left": [2.4e5, 4.8e5], "age_s": [0, 0]}
    of = sharing([[1.0], [1.0]], capacity=(1.0,), **known)
    assert won_rounds(of, Deadline()).tolist() == [20, 0]


@given(st.lists(st.floats(-150, 150), min_size=1, max_size=4), st.integers(1, 64))
def test_no_need_hides_another(logs, gpus):
    """Gangs of all GPUs at rate 1 that need x of the time each: all get 1 / sum(x) of that."""
    needs = 10.0 ** np.array(logs)
    of = sharing(
        np.ones((len(needs), 1)),
        gpus=np.full(len(needs), float(gpus)),
        capacity=(float(gpus),),
        equal=np.full(len(needs), 1.0 / len(needs)),
    )
    reached, shares = fair_shares(of, needs, Deadline())
    assert reached * needs.sum() == pytest.approx(1.0, rel=1e-5)
    assert shares.sum() == pytest.approx(1.0, abs=1e-5)


def test_a_job_that_is_all_but_done_is_as_fair_as_others():
    """One GPU, alone 200 s each: work of 1e-9 is done at once, and the other has nearly all of it.

    ``rho = 100 / 200`` for it.
    """
    known = {"done": [100, 0], "left": [1e-9, 100], "age_s": [0, 0]}
    of = sharing([[1.0], [1.0]], capacity=(1.0,), **known)
    assert GavelFtfLike().shares(of, Deadline())[1, 0] == pytest.approx(1.0, abs=2e-3)


def test_a_market_takes_memory_by_its_jobs():
    """A square block of 2,000 jobs alone would take 2,000² × 8 bytes = 32 MB."""
    jobs = 2000
    known = {"done": np.zeros(jobs), "left": np.full(jobs, 2400.0), "age_s": np.zeros(jobs)}
    of = sharing(np.ones((jobs, 1)), gpus=np.ones(jobs), capacity=(100.0,), **known)
    tracemalloc.start()
    try:
        won = won_rounds(of, Deadline())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert won.tolist() == [1] * jobs  # 100 GPUs for 20 rounds
    assert peak < 16e6


@pytest.mark.parametrize(("rows", "most"), [(MOST_ROWS, 1.0), (MOST_ROWS + 1, 1.5)])
def test_a_program_of_many_rows_is_relaxed(rows, most):
    """The most x <= 1.5: 1 of whole numbers, and 1.5 of all."""
    matrix, ends = csr_array(np.ones((rows, 1))), (np.zeros(1), np.full(1, 9.0))
    found = least(np.array([-1.0]), matrix, np.full(rows, 1.5), ends, np.ones(1) > 0, Deadline())
    assert found.tolist() == [most]


def test_a_short_job_goes_before_one_that_wins_more_rounds(elastic_round, live_job):
    """At rate 8 it needs one round of 120 s, and wins it; the long one wins nearly all others."""
    long = live_job("long", "linear", 1e5, gpus=8)
    short = live_job("short", "linear", 900.0, gpus=8, submit_s=5.0)
    plan = solve(elastic_round(long, short, now_s=5.0), "shockwave-like")
    assert list(plan.allocations) == ["short"]


@pytest.mark.parametrize("policy", ["gavel-like", "gavel-ftf-like", "shockwave-like"])
def test_leases_stand_until_they_end(elastic_round, live_job, policy):
    """Two jobs of 8 GPUs on 8: the first begins, and goes on until the lease is over.

    Then it is the other one's turn, which has had nothing.
    """
    jobs = [live_job(name, "linear", 1e6, gpus=8) for name in "ab"]
    first = solve(elastic_round(*jobs), policy)
    assert list(first.allocations) == ["a"]
    held = live_job("a", "linear", 1e6, held=(8, 8.0), gpus=8)
    for now_s, runs in ((60.0, "a"), (400.0, "b")):
        round_ = elastic_round(held, jobs[1], now_s=now_s)
        plan = solve(round_, policy, initial=first)
        assert check(round_, plan) == []
        if policy != "shockwave-like" or runs == "a":
            assert list(plan.allocations) == [runs]


def test_what_is_free_is_given_away_between_leases(elastic_round, live_job):
    """A job that comes while 4 of 8 GPUs are free starts at once, beside the lease."""
    first = solve(elastic_round(live_job("a", "linear", 1e6, gpus=4)), "gavel-like")
    held = live_job("a", "linear", 1e6, held=(4, 4.0), gpus=4)
    late = live_job("b", "linear", 1e6, gpus=4, submit_s=10.0)
    plan = solve(elastic_round(held, late, now_s=10.0), "gavel-like", initial=first)
    assert plan.allocations.keys() == {"a", "b"}
    assert plan.allocations["a"] is held.allocation
