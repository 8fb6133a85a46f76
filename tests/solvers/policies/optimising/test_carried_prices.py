"""Prices that are carried over from round to round, and what the record says about them."""

import re

import msgspec
import pytest

from ronda.horizon.driver import run
from ronda.horizon.solve import solve
from ronda.instances import generate
from ronda.solvers.decision.by_prices import LastGap
from ronda.solvers.policies.optimising.prices import Prices


def rounds():
    """Return a round whose energy comes evenly, and the same under the equal power cap."""
    energy = msgspec.structs.replace(generate.round(48, None, "tight", 1), banked_j=0.0)
    assert energy.energy_j is not None
    watts = energy.energy_j / energy.window_s
    cap = msgspec.structs.replace(energy, energy_j=None, power_cap_w=watts)
    return energy, cap


def evaluations(plan):
    """Return how often the dual asked all jobs."""
    return int(re.search(r"(\d+) evaluations", plan.record.message)[1])


def test_prices_survive_the_switch_from_energy_to_power_and_back():
    """A watt costs window_s times what a joule does, so the carried prices fit at once."""
    energy, cap = rounds()
    first = solve(energy, "prices")
    second = solve(cap, "prices", initial=first)
    joule, watt = first.prices["energy_window"], second.prices["power_cap"]
    assert watt == pytest.approx(joule * energy.window_s, rel=1e-6)
    assert second.record.message.startswith("prices carried over, power_cap from energy_window;")
    assert evaluations(second) < evaluations(first)
    third = solve(energy, "prices", initial=second)
    assert third.record.message.startswith("prices carried over, energy_window from power_cap;")
    assert evaluations(third) < evaluations(first)
    assert third.objective == pytest.approx(first.objective, rel=2e-4)


def test_new_limit_is_named():
    """A cap that appears has no earlier price; what GPUs cost is carried over."""
    _, cap = rounds()
    free = msgspec.structs.replace(cap, power_cap_w=None)
    first = solve(free, "prices")
    assert first.record.message.startswith("prices from scratch;")
    second = solve(cap, "prices", initial=first)
    assert second.record.message.startswith("prices carried over, new: power_cap;")
    assert second.prices["power_cap"] > 0
    assert second.gap <= 1e-4
    third = solve(free, "prices", initial=second)  # the cap is gone
    assert third.record.message.startswith("prices carried over;")
    assert third.objective == pytest.approx(first.objective, rel=2e-4)


def test_zero_prices_are_no_start():
    """Nothing was scarce before: the record does not claim to have used anything."""
    _, cap = rounds()
    few = msgspec.structs.replace(cap, waiting=cap.waiting[:1], running=(), power_cap_w=1e6)
    first = solve(few, "prices")
    assert not any(first.prices.values())
    second = solve(cap, "prices", initial=first)
    assert second.record.message.startswith("prices from scratch (nothing was scarce before);")


def test_same_round_again_is_cheap():
    """The dual starts where it ended."""
    energy, _ = rounds()
    first = solve(energy, "prices")
    again = solve(energy, "prices", initial=first)
    assert evaluations(again) < evaluations(first) / 2
    assert again.allocations.keys() == first.allocations.keys()


class Forgetful(Prices):
    """Begins every round with an empty memory, as a process does that goes on with a killed run."""

    def plan(self, round, **given):
        """Decide on a copy of the cluster, which nothing is kept with."""
        cluster = msgspec.structs.replace(round.cluster)
        return super().plan(msgspec.structs.replace(round, cluster=cluster), **given)


def test_what_is_kept_in_memory_changes_no_decision():
    """The same horizon with and without memory: every plan is the same."""
    instance = generate.horizon(6, 8, "tight", 0)
    kept, forgotten = (run(instance, p, time_limit_s=None) for p in (Prices(), Forgetful()))
    assert kept.jobs == forgotten.jobs
    assert [(r.objective, r.bound) for r in kept.rounds] == [
        (r.objective, r.bound) for r in forgotten.rounds
    ]


def test_labels_begin_at_the_last_shortfall():
    """The dual gap is carried over, named in the record, and spares labels."""
    energy, _ = rounds()
    first = solve(energy, "prices(gap=1e-5)")
    assert "shortfall" not in first.record.message
    again = solve(energy, "prices(gap=1e-5)", initial=first)
    assert again.objective == pytest.approx(first.objective, rel=2e-5)
    gap = LastGap.recall(first).dual_gap
    if "labels" in again.record.message:
        assert f"labels from a shortfall of {gap:.1e} on" in again.record.message
