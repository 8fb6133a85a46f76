"""Day after day in one process: plans are checked, fallbacks explained, memory is flat.

Every tenth decision of a policy breaks its contract (`mischief`).
"""

import gc

import numpy as np
import psutil
import pytest
from mischief import KINDS, Mischief, turns
from world import day

import ronda
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.solvers.registry import POLICIES

LIMIT_S, EVERY = 5.0, 10
"""Seconds that a decision may take, and decisions to a misbehaviour."""

MOST_GROWTH = 1.05
"""Most memory over what is held after a fifth of the days, when caches are full."""

SHORT = {"genetic": "genetic(generations=3)", "evolve": "evolve(generations=3)"}
SPECS = tuple(SHORT.get(name, name) for name in POLICIES)


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_of_mischief_is_a_plan_that_stands(kind):
    """It raises, or what it gives is no plan, or one that nobody could carry out or write."""
    instance = day(1)
    policy = Mischief("fifo", turns(1, (kind,)))
    schedule = ronda.run(instance, policy, time_limit_s=LIMIT_S)
    assert {record.status for record in schedule.rounds} == {SolutionStatus.FALLBACK}


@pytest.mark.soak
@pytest.mark.seeds(40)
def test_a_day_is_lived(seed):
    """Nothing raises or breaks a rule; a misbehaviour, and nothing else, needs a reason."""
    live(seed)


@pytest.mark.soak
@pytest.mark.seeds(1)
def test_memory_is_flat(seed):
    """After a fifth of ten days a policy."""
    held = []
    for k in range(10 * len(SPECS)):
        live(seed + k)
        gc.collect()
        held.append(psutil.Process().memory_info().rss)
    some = len(held) // 8
    early = held[max(len(held) // 5, len(SPECS)) :][:some]
    assert np.median(held[-some:]) <= MOST_GROWTH * np.median(early)


def live(seed):
    """Live one day under the policy whose turn it is."""
    instance, policy = day(seed), Mischief(SPECS[seed % len(SPECS)], turns(EVERY, tuple(KINDS)))
    schedule = ronda.run(instance, policy, seed=seed, time_limit_s=LIMIT_S)
    assert ronda.check(instance, schedule) == []
    fell = {r.now_s: r for r in schedule.rounds if r.status is SolutionStatus.FALLBACK}
    assert {now_s for now_s, _ in policy.done} <= fell.keys()
    for record in fell.values():
        assert record.violations or record.stop is not StopReason.COMPLETE
