"""By how much a limit of one's own may be exceeded: by rounding, or at its price."""

import numpy as np
import pytest

import ronda
from valued_rounds import cluster, rigid, run, snapshot


@pytest.mark.parametrize(("share", "broken"), [(1e-9, False), (1e-4, True)])
def test_only_rounding_exceeds_a_limit(share, broken):
    """Two GPUs that count 1 + `share` each, of at most 2."""
    round_ = snapshot(run(rigid("a", 100.0, gpus=2), 2, 1.0), on=cluster(2))

    def two(round, table):
        return ronda.Limit(table.gpus * (1 + share), "<=", 2)

    plan = ronda.Plan(allocations=round_.held)
    assert bool(ronda.broken_rules([two], round_, plan)) is broken


@pytest.mark.parametrize("policy", ["milp", "prices"])
@pytest.mark.parametrize(("asked", "costs"), [(3, 2.0), (0.5, 0.5)])
def test_a_soft_equation_may_be_missed_from_both_sides(policy, asked, costs):
    """A job on one GPU, worth 1 by itself: two short of 3, or half above 0.5, at 0.1 a unit.

    Without it the plan would miss by 3 or 0.5, which costs more than it earns.
    """
    round_ = snapshot(rigid("a", 100.0), on=cluster(1))

    def exactly(round, table):
        return ronda.Limit(table.gpus, "==", asked, penalty=0.1)

    free = ronda.solve(round_, policy)
    plan = ronda.solve(round_, policy, extra=[exactly])
    assert plan.status == "optimal"
    assert plan.allocations.keys() == {"a"}
    assert plan.objective == pytest.approx(free.objective - 0.1 * costs)
    assert np.isclose(plan.bound, plan.objective)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"limit": 10**400}, "limit: found 1000"),
        ({"penalty": 10**400}, "penalty: found 1000"),
    ],
)
def test_numbers_beyond_all_floats_are_refused(fields, words):
    """Whole numbers of Python may be that large."""
    round_ = snapshot(rigid("a", 100.0), on=cluster(1))

    def odd(round, table):
        return ronda.Limit(**{"coefficients": table.gpus, "sense": "<=", "limit": 2} | fields)

    with pytest.raises(ronda.InputError, match=words):
        ronda.solve(round_, extra=[odd])


def test_a_rule_cannot_take_profiles_away():
    """It is given a copy of what the round can be changed by."""
    round_ = snapshot(rigid("a", 100.0), on=cluster(1))

    def clears(round, table):
        round.profiles.clear()
        return []

    assert ronda.solve(round_, extra=[clears]).allocations.keys() == {"a"}
    assert "rigid" in round_.profiles
