"""The face of Gavel's policies: shares of time that fit the workers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.solvers.adapters import Gavel

SPEC = {"v100": 2, "k80": 2}


def shares(throughputs, widths, spec=None, **rest):
    """Return the shares of jobs by worker type."""
    weights = rest.pop("weights", None)
    return Gavel(**rest).get_allocation(throughputs, widths, weights, spec or SPEC)


def test_alike_jobs_take_turns():
    """Three jobs on two workers of one type: two thirds of the time each, by leases."""
    alike = {k: {"v100": 1.0} for k in range(3)}
    found = shares(alike, dict.fromkeys(alike, 1), {"v100": 2}, leases=12)
    assert [found[k]["v100"] for k in alike] == pytest.approx([2 / 3] * 3, abs=1 / 6)
    assert sum(found[k]["v100"] for k in alike) == pytest.approx(2)


def test_jobs_have_the_workers_that_suit_them():
    """One is ten times as fast on a V100, the other but a little."""
    rates = {"a": {"v100": 10.0, "k80": 1.0}, "b": {"v100": 1.1, "k80": 1.0}}
    found = shares(rates, {"a": 2, "b": 2})
    assert found["a"]["v100"] == 1.0
    assert found["b"]["k80"] == 1.0


def test_what_cannot_run_has_no_share_and_nobody_is_none():
    """Too wide, or no throughput anywhere."""
    found = shares({"wide": {"v100": 1.0}, "no": {"k80": 0.0}}, {"wide": 4, "no": 1})
    assert found == {job: {"v100": 0.0, "k80": 0.0} for job in ("wide", "no")}
    assert shares({}, {}) is None


@settings(max_examples=8, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 2), st.floats(0.1, 9.0)), min_size=1, max_size=5))
def test_shares_fit(jobs):
    """No job has more than all of the time, no type more workers than there are."""
    rates = {k: {"v100": rate, "k80": 1.0} for k, (_, rate) in enumerate(jobs)}
    widths = {k: width for k, (width, _) in enumerate(jobs)}
    found = shares(rates, widths, leases=4)
    assert all(sum(own.values()) <= 1 + 1e-9 for own in found.values())
    for kind, workers in SPEC.items():
        assert sum(widths[k] * own[kind] for k, own in found.items()) <= workers + 1e-9
