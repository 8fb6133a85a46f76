"""How late decisions come, and what they keep running, where time is short.

Each round is decided by `ronda.solve`: validation, building, solving and the check of the plan. It
is late by what it takes beyond the limit, in processor time, which other processes do not use up;
with ``-s`` each is told. What validation alone takes longer than the limit is not judged.
"""

import time
from functools import cache
from types import SimpleNamespace

import pytest

import ronda
from ronda.instances import clock, generate
from ronda.instances.plan import StopReason
from ronda.instances.rules.validate import validate
from ronda.solvers.greedy.policy import GOOD

pytestmark = pytest.mark.soak

LATE, LATE_S = 0.05, 0.05
"""Share of the limit, and seconds, by which a decision may be late: whichever is more."""


@cache
def large(jobs):
    """Return a tight round, and the processor seconds that its validation takes."""
    made, began_s = generate.round(jobs, None, "tight", 7), time.process_time()
    validate(made)
    return made, time.process_time() - began_s


@pytest.mark.parametrize("limit_s", [0.05, 0.2, 1.0, 5.0])
@pytest.mark.parametrize("jobs", [64, 256, 1024, 4096, 16384])
@pytest.mark.parametrize("spec", ["milp", "prices", "milp-energy", "genetic", "evolve", "ones"])
def test_a_decision_is_in_time(spec, jobs, limit_s, monkeypatch):
    """And stops nobody for lack of time."""
    ronda.solve(generate.round(64, None, "tight", 7), spec)  # imports are not what is measured
    round_, reading_s = large(jobs)
    monkeypatch.setattr(clock, "time", SimpleNamespace(perf_counter=time.process_time))
    began_s = time.process_time()
    plan = ronda.solve(round_, spec, deadline=limit_s)
    late_s = time.process_time() - began_s - limit_s
    ran, runs = len(round_.held), len(plan.allocations)
    print(f"{spec}, {jobs} jobs, {limit_s} s: {late_s:+.3f} s, {ran} -> {runs}, {plan.stop}")
    assert late_s <= max(LATE * limit_s, LATE_S) or reading_s > limit_s
    good = plan.gap is not None and plan.gap <= GOOD
    assert runs >= ran or plan.stop is not StopReason.TIME_LIMIT or good
    assert ronda.check(round_, plan) == []
