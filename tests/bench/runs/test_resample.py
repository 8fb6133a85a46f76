"""Workloads that are drawn from that of an instance, in blocks of submissions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ronda.bench.runs.variant import Resample, Variant, submissions
from ronda.instances.errors import InputError
from ronda.instances.files.packaged import load
from ronda.instances.rules.validate import validate

SEEDS = st.integers(0, 2**32)


def origin(name):
    """Return the name of a job or sweep before it was drawn."""
    return name.partition("-")[2]


@given(SEEDS, st.integers(1, 80))
@settings(max_examples=25, deadline=None)
def test_a_block_keeps_order_gaps_and_jobs(seed, block):
    """Inside a block every job follows its predecessor after its gap; all else stays, too.

    After the last job comes the first, after the mean gap: (10873 - 60) / 79 s.
    """
    plain = load("two-tenants")
    drawn = validate(Resample(block=block).draw(plain, seed))
    count, places = len(plain.jobs), {job.id: k for k, job in enumerate(plain.jobs)}
    assert len(drawn.jobs) == count
    own = [places[origin(job.id)] for job in drawn.jobs]
    submit_s = np.array([job.submit_s for job in plain.jobs])
    gaps_s = np.append(np.diff(submit_s), np.diff(submit_s).mean())
    for k in range(1, count):
        if k % block:
            assert own[k] == (own[k - 1] + 1) % count
        gap_s = drawn.jobs[k].submit_s - drawn.jobs[k - 1].submit_s
        assert gap_s == pytest.approx(gaps_s[own[k] - 1], abs=1e-5)
    assert drawn.jobs[0].submit_s == plain.jobs[0].submit_s
    for job, k in zip(drawn.jobs, own, strict=True):
        slack_s = plain.jobs[k].deadline_s - plain.jobs[k].submit_s
        assert job.deadline_s - job.submit_s == pytest.approx(slack_s, abs=1e-5)
        fields = {"id": "x", "submit_s": 0.0, "deadline_s": None}
        assert replace(job, **fields) == replace(plain.jobs[k], **fields)


@given(SEEDS)
@settings(max_examples=15, deadline=None)
def test_sweeps_are_drawn_whole(seed):
    """As sweeps of their own: a sweep that is drawn twice has its trials twice."""
    plain = load("sweep-titan")
    drawn = validate(Resample().draw(plain, seed))
    assert len(drawn.sweeps) == len(plain.sweeps) == len(submissions(drawn)) == 6
    for name in drawn.sweeps:
        trials = [origin(job.id) for job in drawn.jobs if job.sweep == name]
        assert trials == [job.id for job in plain.jobs if job.sweep == origin(name)]


def test_every_submission_is_as_likely():
    """Also the first and the last, over which fewer blocks would pass without a circle.

    2,000 draws of 3 jobs in blocks of 2: 2,000 of each expected, with a deviation below 60.
    """
    plain, counts = load("one-gpu"), dict.fromkeys("abc", 0)
    names = dict(zip((job.id for job in plain.jobs), "abc", strict=True))
    for seed in range(2000):
        for job in Resample(block=2).draw(plain, seed).jobs:
            counts[names[origin(job.id)]] += 1
    assert all(abs(count - 2000) < 180 for count in counts.values()), counts


def test_a_block_is_the_root_of_the_submissions_by_default():
    """Of 160 jobs blocks of 12."""
    plain = load("pollux-1")
    assert Resample().draw(plain, 5) == Resample(block=12).draw(plain, 5)
    assert Resample().draw(plain, 5) != Resample().draw(plain, 6)


def test_a_variant_follows_the_seed():
    """It says in words that it was drawn, and drops what was known to be reached."""
    plain, variant = load("pollux-1"), Variant(resample=Resample(), seed=4)
    assert variant.draws
    assert variant.title == "resampled"
    assert variant.apply(plain) == replace(Resample().draw(plain, 4), reference={})


def test_what_cannot_be_drawn_is_refused(two_nodes):
    """One line with the place."""
    with pytest.raises(InputError, match=r"resample.block: found 4; expected at most its 3"):
        Resample(block=4).draw(two_nodes, 0)
    alone = replace(two_nodes, jobs=two_nodes.jobs[:1])
    with pytest.raises(InputError, match="found 1 submissions; expected several"):
        Resample().draw(alone, 0)
