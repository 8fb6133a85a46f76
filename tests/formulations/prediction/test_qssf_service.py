"""Sizes as the QSSF service predicts them: rolling estimate, features, mixture, errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.prediction.features import COLUMNS, Features
from ronda.formulations.prediction.helios_errors import LEAST_S, errors, with_errors
from ronda.formulations.prediction.qssf_service import Errors, Rolling, thinned
from ronda.instances.files.packaged import load
from ronda.instances.job import Job


def job(name=None, user=None, gpus=1, partition="p"):
    """Return a job as it is submitted."""
    return Job(
        id="j", submit_s=0, profile="a", gpus=gpus, partition=partition, user=user, name=name
    )


@pytest.fixture
def rolling():
    """Three jobs of two users."""
    found = Rolling()
    found.end(job("bert-large-1", "ann", 1), 10.0)
    found.end(job("bert-large-1", "ann", 4), 20.0)
    found.end(job("resnet-50", "bob", 4), 1000.0)
    return found


@pytest.mark.parametrize(
    ("asked", "sizes"),
    [
        (job("bert-large-1", "ann", 4), [20.0]),  # name, user, GPUs
        (job("bert-large-1", "ann", 8), [10.0, 20.0]),  # name and user
        (job("bert-large-1", "bob", 4), [20.0]),  # another user's jobs of that name
        (job("bert-large-2", "ann", 1), [10.0]),  # the nearest name
        (job("zzz", "ann"), [10.0, 20.0]),  # the user
        (job("zzz", "eve"), [10.0, 20.0, 1000.0]),  # a new user
        (job(None, None, 4), [10.0, 20.0, 1000.0]),  # nobody without a name or user was seen
    ],
)
def test_the_rolling_estimate_takes_the_jobs_most_like_a_job(rolling, asked, sizes):
    """Name, user and GPUs, as far as there are any."""
    assert rolling.like(asked) == sizes


def test_without_users_jobs_on_as_many_gpus_are_alike():
    """Traces without users tell sizes by GPUs."""
    found = Rolling()
    found.end(job(gpus=1), 5.0)
    found.end(job(gpus=8), 500.0)
    assert found.like(job(gpus=8)) == [500.0]
    assert found.like(job(gpus=2)) == [5.0, 500.0]


def test_features_tell_what_went_before():
    """The second of two jobs of a user, an hour and a minute later, knows the first one's size."""
    known = Features(("ann",), ("p",), ("bert",))
    first = dict(zip(COLUMNS, known.submit(job("bert", "ann", 2), 0.0), strict=True))
    assert (first["user"], first["name"], first["gpus"]) == (0, 0, 2)
    assert np.isnan(first["last size"])
    known.end(job("bert", "ann", 2), np.e**3)
    row = dict(zip(COLUMNS, known.submit(job("bert-2", "ann", 2), 3660.0), strict=True))
    assert row["last size"] == pytest.approx(3.0)
    assert (row["came within an hour"], row["seconds since the last"]) == (0, 3660)
    assert row["name"] == 0  # the frequent name nearest to it
    other = dict(zip(COLUMNS, known.submit(job("zzz", "eve", 2), 3660.0), strict=True))
    assert np.isnan([other["user"], other["name"], other["last size"]]).all()
    assert other["last of all"] == pytest.approx(3.0)


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=80))
def test_thinned_points_keep_the_mean(points):
    """Means of neighbours, with the shares that they had."""
    work, mass = thinned(np.array(points))
    assert work @ mass == pytest.approx(np.mean(points))
    assert mass.sum() == pytest.approx(1.0)
    assert (np.diff(work) >= -1e-9 * work[1:]).all()
    assert len(work) <= 20


def test_errors_are_those_of_the_nearest_decade():
    """A prediction of 50 asks the tens; one of 5,000 the nearest decade that has any."""
    known = Errors({"1": (2.0, 3.0), "2": (0.5,)})
    known.add(20.0, 80.0)
    assert known.near(50.0).tolist() == [2.0, 3.0, 4.0]
    assert known.near(5000.0).tolist() == [0.5]
    assert Errors({}).near(7.0).tolist() == [1.0]


def test_published_errors_have_the_published_shares():
    """10, 50, 70, 90 and 100 % of jobs within 0.1, 0.5, 1, 10 and 100, either way."""
    found = errors(20_000, np.random.default_rng(1))
    for share, most in ((0.1, 0.1), (0.5, 0.5), (0.7, 1.0), (0.9, 10.0), (1.0, 100.0)):
        assert np.mean(np.abs(found) <= most) == pytest.approx(share, abs=0.01)
    assert np.mean(found > 0) == pytest.approx(0.5, abs=0.01)


def test_negative_sizes_come_first_in_their_order():
    """What is below 0 ranks below all else by GPU time, the lowest first."""
    trace = load("venus-vcvly")
    found = with_errors(trace, 3)
    drawn = errors(len(trace.jobs), np.random.default_rng(3))
    true = np.array([j.gpus * j.truth.work for j in trace.jobs]) * (1 + drawn)
    told = np.array([j.gpus * j.estimate.work for j in found.jobs])
    low = true < 0
    assert low.any()
    assert (told[low] < LEAST_S).all()
    assert np.array_equal(np.argsort(told[low]), np.argsort(true[low]))
    assert told[~low] == pytest.approx(true[~low])
