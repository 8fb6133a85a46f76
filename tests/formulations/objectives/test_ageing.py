"""Waiting is priced so that nobody starves."""

import pytest
from msgspec.structs import replace

from ronda.formulations.objectives.outlook import outlook
from ronda.formulations.objectives.rank import aged_weight, seen
from ronda.formulations.options.build import build
from ronda.instances.job import JobState
from ronda.instances.plan import Plan
from ronda.instances.round import Round


def test_weights_double_with_age_by_hand(two_nodes):
    """Times alone of 100, 50 and 10 s, mean 53.3: tau is 1,000, 533 and 533 s at patience 10."""
    jobs = [replace(job, truth=None) for job in two_nodes.jobs]
    jobs[2] = replace(jobs[2], submit_s=10 + 1600.0)
    states = tuple(JobState(job=job, since_s=job.submit_s) for job in jobs)
    round_ = Round(
        now_s=1700.0, cluster=two_nodes.cluster, profiles=two_nodes.profiles, waiting=states
    )
    o = outlook(round_, build(round_), 600.0)
    # The older two are 1,610 s older than the newest.
    expected = [2 ** (1610 / 1000 - 1), 2 ** (1610 / (1600 / 3) - 1), 1.0]
    assert aged_weight(o, 10.0).tolist() == pytest.approx(expected)
    assert aged_weight(o, 10.0, 200.0).tolist() == [1, 1, 1]  # tau: 2,000 s
    assert aged_weight(o, float("inf")).tolist() == [1, 1, 1]
    assert aged_weight(o, 100.0).tolist() == [1, 1, 1]
    assert aged_weight(o, 1e-3).tolist() == [2**20, 2**20, 1]


def test_jobs_without_options_do_not_age_others(two_nodes):
    """The third job is too wide: tau is 1,000 s of 100 s alone, and 750 of 50, at patience 10."""
    jobs = [replace(job, truth=None) for job in two_nodes.jobs]
    jobs[2] = replace(jobs[2], submit_s=1610.0, gpus=100, min_gpus=None, max_gpus=None)
    states = tuple(JobState(job=job, since_s=job.submit_s) for job in jobs)
    for order in (states, states[::-1]):
        round_ = Round(
            now_s=1700.0, cluster=two_nodes.cluster, profiles=two_nodes.profiles, waiting=order
        )
        o = outlook(round_, build(round_), 600.0)
        older = [2 ** (1610 / 1000 - 1), 2 ** (1610 / 750 - 1), 1.0]
        expected = older if order is states else older[::-1]
        assert aged_weight(o, 10.0).tolist() == pytest.approx(expected)
        assert aged_weight(o, 22.0).tolist() == [1, 1, 1]  # tau: 1650 s


def test_the_mean_is_over_all_jobs_seen(two_nodes):
    """Of 100, 50 and 10 s alone: the first two, then the third; who has left still counts."""
    states = [
        JobState(job=replace(job, truth=None, submit_s=10.0 * k), since_s=10.0 * k)
        for k, job in enumerate(two_nodes.jobs)
    ]
    before = None
    for now_s, live, jobs, mean_s in (
        (10.0, states[:2], 2, 75.0),
        (15.0, states[:2], 2, 75.0),
        (20.0, states[1:], 3, 160 / 3),
        (30.0, [], 3, 160 / 3),
    ):
        round_ = Round(
            now_s=now_s,
            cluster=two_nodes.cluster,
            profiles=two_nodes.profiles,
            waiting=tuple(live),
        )
        known = seen(outlook(round_, build(round_), 600.0), before)
        assert (known.jobs, known.alone_s) == (jobs, pytest.approx(mean_s))
        before = Plan(memory=known.noted())


def test_jobs_of_unknown_size_do_not_count(two_nodes):
    """What they take alone is a guess that grows with their age."""
    known, unknown = two_nodes.jobs[0], replace(two_nodes.jobs[1], estimate=None)
    states = tuple(JobState(job=replace(j, truth=None), since_s=0.0) for j in (known, unknown))
    round_ = Round(
        now_s=0.0, cluster=two_nodes.cluster, profiles=two_nodes.profiles, waiting=states
    )
    assert seen(outlook(round_, build(round_), 600.0), None).jobs == 1
