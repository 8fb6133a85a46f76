"""Waiting is priced so that nobody starves."""

import pytest
from msgspec.structs import replace

from ronda.formulations.objectives.outlook import outlook
from ronda.formulations.objectives.rank import aged_weight
from ronda.formulations.options.build import build
from ronda.instances.job import JobState
from ronda.instances.round import Round


def test_weights_double_with_age_by_hand(two_nodes):
    """Times alone of 100, 50 and 10 s: their mean is 53.3 s, so tau is 533 s at patience 10."""
    jobs = [replace(job, truth=None) for job in two_nodes.jobs]
    jobs[2] = replace(jobs[2], submit_s=10 + 1600.0)
    states = tuple(JobState(job=job, since_s=job.submit_s) for job in jobs)
    round_ = Round(
        now_s=1700.0, cluster=two_nodes.cluster, profiles=two_nodes.profiles, waiting=states
    )
    o = outlook(round_, build(round_), 600.0)
    # The older two are 1,610 s older than the newest: 2^(1610 / 533.3 - 1).
    assert aged_weight(o, 10.0).tolist() == pytest.approx([2 ** (1610 / (1600 / 3) - 1)] * 2 + [1])
    assert aged_weight(o, float("inf")).tolist() == [1, 1, 1]
    assert aged_weight(o, 100.0).tolist() == [1, 1, 1]
    assert aged_weight(o, 1e-3).tolist() == [2**20, 2**20, 1]


def test_jobs_without_options_do_not_age_others(two_nodes):
    """The third job is too wide: times alone of 100 and 50 s make tau 750 s at patience 10."""
    jobs = [replace(job, truth=None) for job in two_nodes.jobs]
    jobs[2] = replace(jobs[2], submit_s=1610.0, gpus=100, min_gpus=None, max_gpus=None)
    states = tuple(JobState(job=job, since_s=job.submit_s) for job in jobs)
    for order in (states, states[::-1]):
        round_ = Round(
            now_s=1700.0, cluster=two_nodes.cluster, profiles=two_nodes.profiles, waiting=order
        )
        o = outlook(round_, build(round_), 600.0)
        older = 2 ** (1610 / 750 - 1)
        expected = [older, older, 1.0] if order is states else [1.0, older, older]
        assert aged_weight(o, 10.0).tolist() == pytest.approx(expected)
        assert aged_weight(o, 22.0).tolist() == [1, 1, 1]  # tau: 1650 s
