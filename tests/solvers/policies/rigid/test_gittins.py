"""The Gittins index of what is believed of sizes."""

import numpy as np
import pytest
from msgspec.structs import replace

from ronda.horizon.solve import solve
from ronda.instances.job import Estimate
from ronda.solvers.policies.rigid.preemptive import gittins_index


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        ([5.0], 5.0),
        # stop at 1: (1 + 1) / 1 a completion; to the end: (1 + 99) / 2
        ([1.0, 99.0], 2.0),
        # 10 + 10 for the first, 30 / 2 for both
        ([10.0, 20.0], 15.0),
    ],
)
def test_the_index_is_the_least_time_for_a_completion(left, expected):
    """Worked out by hand."""
    assert gittins_index(np.array(left)) == pytest.approx(expected)


def believed(state, *quantiles):
    """Return a live job with equally likely sizes."""
    estimate = Estimate(work=float(np.mean(quantiles)), quantiles=quantiles)
    return replace(state, job=replace(state.job, estimate=estimate))


def test_a_job_that_is_probably_short_goes_before_one_of_lower_mean(elastic_round, live_job):
    """A takes 1 or 99 (index 2, mean 50), b 20 for sure: only one of them fits."""
    a = believed(live_job("a", "linear", 1.0, gpus=8), 1.0, 99.0)
    b = believed(live_job("b", "linear", 1.0, gpus=8), 20.0)
    round_ = elastic_round(a, b)
    assert set(solve(round_, "gittins").allocations) == {"a"}
    assert set(solve(round_, "srtf").allocations) == {"b"}


def test_without_quantiles_the_least_gpu_time_goes_first(elastic_round, live_job):
    """Three jobs of 4 GPUs or 8, on 8: the wide one has most GPU time."""
    jobs = [live_job("wide", "linear", 1.0, gpus=8)]
    jobs += [live_job(name, "linear", 1.0, gpus=4) for name in "ab"]
    given = [
        replace(s, job=replace(s.job, estimate=Estimate(work=10.0 * s.job.gpus))) for s in jobs
    ]
    assert set(solve(elastic_round(*given), "gittins").allocations) == {"a", "b"}
