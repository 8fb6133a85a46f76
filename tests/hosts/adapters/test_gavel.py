"""The face of Gavel's policies: shares of time that fit the workers."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.hosts.adapters import Gavel
from ronda.instances.errors import InputError

CALLS = Path(__file__).parents[2] / "data" / "gavel" / "calls.json"

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


def test_steps_that_are_left_decide():
    """One worker: the job of fewest seconds left has it, all of them until it is complete.

    By hand, leases of 360 s at 1 step/s: the short one is complete after one lease of two.
    """
    rates, ones = {"long": {"v100": 1.0}, "short": {"v100": 1.0}}, {"long": 1, "short": 1}
    told = ({}, {"long": 0.0, "short": 0.0}, {"long": 9_000, "short": 300}, {"v100": 1})
    assert Gavel().get_allocation(rates, ones, *told)["short"]["v100"] == 1.0
    found = Gavel(leases=2).get_allocation(rates, ones, *told)
    assert (found["short"]["v100"], found["long"]["v100"]) == (0.5, 0.5)


def test_calls_of_the_host_are_answered():
    """Recorded in Gavel's simulator: its scheduler goes by the beginning of a policy's name."""
    assert Gavel.name.startswith("FinishTimeFairness")
    assert "Perf" in Gavel.name
    for rates, widths, *rest in json.loads(CALLS.read_text())["calls"]:
        found, spec = Gavel().get_allocation(rates, widths, *rest), rest[-1]
        assert set(found) == set(rates)
        for kind, workers in spec.items():
            used = sum(widths[job] * own[kind] for job, own in found.items())
            assert used <= workers
            assert used == workers or kind != "v100"
        seconds = {
            job: left / max(rates[job].values()) for job, left in rest[2].items() if left > 0
        }
        assert sum(found[min(seconds, key=seconds.get)].values()) == 1.0


def test_calls_of_other_policies_are_answered():
    """Of those without sizes, without importance; any other is refused in one line."""
    rates, ones = {"a": {"v100": 1.0}}, {"a": 1}
    for rest in (({"v100": 1},), ({"a": 1.0}, {"v100": 1})):
        assert Gavel().get_allocation(rates, ones, *rest) == {"a": {"v100": 1.0}}
    with pytest.raises(InputError, match="5 arguments"):
        Gavel().get_allocation(rates, ones, {}, {}, {"v100": 1})


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
