"""heSRPT: the gradient of the least flow time, and ranks of jobs whose sizes are guessed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.objectives.by_name import values
from ronda.formulations.objectives.outlook import UNKNOWN, outlook
from ronda.formulations.objectives.rank import elasticity, expected_rank, prices
from ronda.formulations.options.build import build
from ronda.formulations.options.table import CLUSTER, OptionTable
from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.solvers.decision.by_prices import allocate_by_prices
from ronda.solvers.prices.dual import Search
from valued_rounds import job, rigid, snapshot


def flow_time(sizes, p, shares):
    """Return the total flow time of jobs with speed-up n^p when `shares` splits one unit."""
    left, total = np.sort(sizes)[::-1].astype(float), 0.0
    while len(left):
        speed = shares(left) ** p
        step = (left / speed).min()
        total += step * len(left)
        left = left - speed * step
        left = np.sort(left[left > 1e-12 * sizes.max()])[::-1]
    return total


def rank_shares(p):
    """Return the maximiser of sum v_i share_i^p, which is share_i ~ v_i^(1/(1-p))."""

    def shares(left):
        m = len(left)
        v = prices(np.arange(1.0, m + 1), np.ones(m), np.full(m, p)) ** (1 / (1 - p))
        return v / v.sum()

    return shares


SIZES = np.random.default_rng(5).lognormal(0.0, 1.5, 50)


@pytest.mark.parametrize("p", [0.3, 0.5, 0.7, 0.9])
def test_prices_are_the_gradient_of_the_least_flow_time(p):
    """Serving by these prices costs sum_i v_i x_i, the closed form of heSRPT's total flow time."""
    ranked = np.sort(SIZES)[::-1]
    v = prices(np.arange(1.0, 51), np.ones(50), np.full(50, p))
    assert flow_time(SIZES, p, rank_shares(p)) == pytest.approx(float(v @ ranked), rel=1e-9)


@pytest.mark.parametrize("p", [0.3, 0.5, 0.7, 0.9])
def test_rank_beats_the_other_forms_when_all_jobs_are_present(p):
    """Flow time: heSRPT beats equal shares, density and snapshot; snapshot is worst from p = 0.5.

    Density maximises sum share^p / x: share ~ x^(-1/(1-p)). Snapshot minimises sum x share^-p:
    share ~ x^(1/(1+p)).
    """

    def by(exponent):
        return lambda left: left**exponent / (left**exponent).sum()

    best = flow_time(SIZES, p, rank_shares(p))
    equal = flow_time(SIZES, p, by(0.0)) / best
    density = flow_time(SIZES, p, by(-1 / (1 - p))) / best
    snapshot = flow_time(SIZES, p, by(1 / (1 + p))) / best
    assert min(equal, density, snapshot) > 1
    if p >= 0.5:
        assert snapshot > max(equal, density)


def test_no_other_shares_do_better():
    """Random perturbations of the optimal shares never lower the flow time (p = 0.5)."""
    rng, best = np.random.default_rng(1), flow_time(SIZES, 0.5, rank_shares(0.5))
    for _ in range(20):
        noise = rng.lognormal(0, 0.3, 50)

        def shares(left, noise=noise):
            theta = rank_shares(0.5)(left) * noise[: len(left)]
            return theta / theta.sum()

        assert flow_time(SIZES, 0.5, shares) >= best


def simulate(objective, p, gpus=64, jobs=12):
    """Return the flow time when `values` and `fill` decide a cluster of n^p jobs at every end."""
    counts = np.unique(np.round(np.geomspace(1, gpus, 30))).astype(np.int64)
    on = uniform_cluster(GpuType(name="V100", memory_gib=16), gpus, 1)
    left, total, now = np.sort(SIZES)[::-1][:jobs] * 1000, 0.0, 0.0
    while len(left):
        states = tuple(job(f"{i}", float(x)) for i, x in enumerate(left))
        round = snapshot(*states, on=on)
        table = law_table(round, states, counts, p)
        rows = allocate_by_prices(round, table, values(round, table, objective), Search()).chosen
        rate = np.where(rows >= 0, table.rate[rows], 0.0)
        step = (left / np.maximum(rate, 1e-12)).min()
        now += step
        total += step * len(left)
        left = left - rate * step
        left = left[left > 1e-6]
    return total


def law_table(round, states, counts, p):
    """Return the options of jobs that may take any of the counts, at rate count^p."""
    jobs, k = len(states), len(states) * len(counts)
    return OptionTable(
        jobs=states,
        pools=round.cluster.topology.pools,
        start=np.arange(jobs + 1) * len(counts),
        job=np.repeat(np.arange(jobs), len(counts)),
        pool=np.zeros(k, dtype=np.int64),
        gpus=np.tile(counts, jobs),
        span=np.full(k, CLUSTER),
        width=np.ones(k, dtype=np.int64),
        clock=np.ones(k),
        batch=np.ones(k),
        rate=np.tile(counts.astype(float) ** p, jobs),
        power_w=np.zeros(k),
        current=np.zeros(k, dtype=bool),
        must_run=np.zeros(jobs, dtype=bool),
    )


@pytest.mark.parametrize("p", [0.5, 0.9])
def test_values_come_close_to_the_optimum(p):
    """With whole GPUs, `rank` stays within 1 % of heSRPT; `density` and `snapshot` are worse."""
    ranked = np.sort(SIZES)[::-1][:12] * 1000
    v = prices(np.arange(1.0, 13), np.ones(12), np.full(12, p))
    optimum = float(v @ ranked) / 64**p
    rank = simulate("rank", p) / optimum
    assert 1 - 1e-9 <= rank < 1.01
    assert simulate("density", p) / optimum > rank
    assert simulate("snapshot", p) / optimum > 1.2


def test_prices_of_rigid_jobs_are_their_ranks():
    """Elasticity 1 gives z itself, even where w is nothing beside z."""
    upto, weight = np.array([1.0, 3.0, 1e300]), np.array([1.0, 0.5, 1e-300])
    assert prices(upto, weight, np.ones(3)).tolist() == upto.tolist()


def test_expected_rank_of_equal_guesses_is_the_middle():
    """Five jobs of which nothing is known: each expects rank 3."""
    ones = np.ones(5)
    rank = expected_rank(ones, ones, np.arange(5.0), UNKNOWN * ones)
    np.testing.assert_allclose(rank, 3.0, rtol=1e-6)


def test_expected_rank_against_sampling():
    """Drawn from lognormal sizes of those means, ranks agree but for the logistic curve."""
    rng = np.random.default_rng(3)
    size, weight = np.array([1.0, 5.0, 20.0, 3.0]), np.array([1.0, 2.0, 1.0, 0.5])
    spread = np.array([1.5, 0.5, 0.0, 1.0])
    drawn = size * np.exp(spread * rng.standard_normal((200_000, 4)) - spread**2 / 2)
    larger = drawn[:, None, :] >= drawn[:, :, None]  # [sample, j, k]: k is not smaller than j
    sampled = (larger @ weight).mean(axis=0)
    found = expected_rank(size, weight, np.zeros(4), spread)
    np.testing.assert_allclose(found, sampled, atol=0.0095 * weight.sum())


@given(
    sizes=st.lists(st.floats(0.1, 1e6), min_size=1, max_size=8),
    unknown=st.lists(st.booleans(), min_size=8, max_size=8),
)
def test_expected_ranks_sum_up(sizes, unknown):
    """Whatever is known: ranks lie in [1, m] and sum to m (m + 1) / 2, up to ties of guesses."""
    m, size = len(sizes), np.array(sizes)
    spread = UNKNOWN * np.array(unknown[:m])
    rank = expected_rank(size, np.ones(m), np.zeros(m), spread)
    assert (rank >= 1 - 1e-3).all()
    assert (rank <= m + 1e-3).all()
    assert rank.sum() == pytest.approx(m * (m + 1) / 2, rel=1e-3)


def test_rigid_jobs_among_elastic_ones_and_without_options_raise_nothing():
    """Their elasticity is 1 and no number is divided by 0; beside them p = 0.5 stays what it is."""
    states = (job("a"), rigid("r", 5.0), rigid("too wide", 5.0, gpus=1000))
    round = snapshot(*states)
    table = build(round)
    with np.errstate(all="raise", under="ignore"):
        v = values(round, table)
    assert np.isfinite(v).all()
    p = elasticity(outlook(round, table, 600.0))
    assert p[:2].tolist() == pytest.approx([0.5, 1.0])
