"""The Gittins index of what is believed to be left, as the middle of the rank objective."""

import math

import numpy as np
import pytest
from scipy.special import ndtri

from ronda.formulations.objectives.rank import index_over_mean
from ronda.instances.job import Estimate
from ronda.solvers.policies.rigid.preemptive import gittins_index
from valued_rounds import cluster, rigid, snapshot, value_of


def unsure(name, seconds, spread):
    """Return a rigid job of which a mean is believed; its logarithm has this standard deviation."""
    sd = seconds * math.sqrt(math.expm1(spread**2))
    return rigid(name, seconds, estimate=Estimate(work=seconds, sd=sd))


@pytest.mark.parametrize("spread", [0.3, 0.8, 1.0, 1.5, 2.0, 3.0])
def test_the_index_of_lognormal_work_is_that_of_its_quantiles(spread):
    """Of 100,000 of them, as the policy `gittins` computes it."""
    middles = (np.arange(100_000) + 0.5) / 100_000
    quantiles = np.exp(spread * ndtri(middles) - 0.5 * spread**2)
    assert index_over_mean(np.array([spread])) == pytest.approx(gittins_index(quantiles), rel=2e-3)


def test_the_index_of_sure_work_is_the_work():
    """As it is of work that is all but sure; the less sure, the less it is."""
    shares = index_over_mean(np.linspace(0.0, 5.3, 107))
    assert shares[:5] == pytest.approx(1.0)
    assert (np.diff(shares) <= 0).all()
    assert shares[-1] > 0


def test_of_sure_sizes_the_values_are_those_of_rank():
    """Ageing and widths included."""
    jobs = [rigid("wide", 10.0, gpus=4), rigid("old", 100.0), rigid("new", 5.0, submit_s=900.0)]
    round = snapshot(*jobs, on=cluster(4), now_s=1000.0)
    assert value_of(round, "gittins")[1].tolist() == value_of(round, "rank")[1].tolist()


def test_the_index_stands_where_rank_has_the_median():
    """100 s, give or take, have a median of 32 s and an index of 41 s: 37 s lie between them."""
    round = snapshot(unsure("unsure", 100.0, 1.5), rigid("sure", 37.0), on=cluster(1))
    _, (by_median, sure) = value_of(round, "rank")
    assert by_median > sure
    _, (by_index, sure) = value_of(round, "gittins")
    assert by_index < sure


def test_jobs_age_by_what_is_believed_and_not_by_the_index():
    """A job that is believed to need 100 s ages by 100 s, though its index is a tenth of them."""
    jobs = unsure("unsure", 100.0, 2.0), rigid("new", 100.0, submit_s=1000.0)
    round = snapshot(*jobs, on=cluster(1), now_s=1000.0)
    young = value_of(round, "gittins", patience=1e6)[1][0]
    old = value_of(round, "gittins", patience=5.0, alone_s=100.0)[1][0]
    half = value_of(round, "gittins", patience=5.0, alone_s=1.0)[1][0]
    assert old == pytest.approx(half)
    assert old > 1.5 * young
