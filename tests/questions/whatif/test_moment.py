"""Which round of an instance is asked about."""

import pytest

import ronda
from ronda.questions.whatif.moment import moment


def test_the_busiest_and_one_from_a_time_on():
    """Both jobs of `two-jobs` live from 0 s on; when one has ended one is left."""
    instance = ronda.load("two-jobs")
    ends = sorted(job.end_s for job in ronda.run(instance, "prices").jobs)
    policy = ronda.policy("prices")
    assert len(moment(instance, policy).round.jobs) == 2
    later = moment(instance, policy, at_s=ends[0])
    assert (later.round.now_s, len(later.round.jobs)) == (pytest.approx(ends[0]), 1)
    assert later.before is not None


def test_a_time_after_the_end_is_refused():
    """And the last decision is named."""
    with pytest.raises(ronda.InputError, match=r"--at: found 1e.*last decision"):
        moment(ronda.load("two-jobs"), ronda.policy("fifo"), at_s=1e6)
