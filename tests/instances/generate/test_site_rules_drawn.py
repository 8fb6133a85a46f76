"""Rules of a site that are drawn from a seed: they bind by severity, and every policy obeys."""

import pytest

import ronda
from ronda.formulations.node_rules.hosts import binding
from ronda.formulations.node_rules.licences import left
from ronda.instances.instance import Instance
from ronda.instances.rules.validate import problems
from site_drawn import with_hosts, with_licences

POLICIES = ("fifo", "fifo(backfill=easy)", "las", "tiresias", "optimus", "pollux-like", "prices")


@pytest.fixture(scope="module", name="crowded")
def _crowded():
    """Return a packaged round with hosts and licences that bind many jobs."""
    made = with_hosts(ronda.load("round-tight-64"), seed=1, severity=1.0)
    return with_licences(made, seed=1, severity=1.0)


def test_severity():
    """At 0 nothing binds; at 1 both resources, and licences for one job in eight."""
    plain = ronda.load("round-tight-64")
    assert not binding(with_hosts(plain, severity=0.0)).any()
    hard = with_licences(with_hosts(plain, severity=1.0), severity=1.0)
    assert binding(hard).all()
    assert set(left(hard).values()) == {8}
    assert with_hosts(plain, seed=3) == with_hosts(plain, seed=3) != with_hosts(plain, seed=4)
    whole = ronda.load("pollux-1")
    assert isinstance(whole, Instance)
    for severity in (0.0, 0.5, 1.0):
        assert not problems(with_licences(with_hosts(whole, severity=severity), severity=severity))
        assert not problems(with_licences(with_hosts(plain, severity=severity), severity=severity))


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_obeys(name, crowded):
    """No plan takes more of a host, or of a licence, than there is; none is replaced by another."""
    plan = ronda.solve(crowded, name, deadline=2.0)
    assert ronda.check(crowded, plan) == []
    assert plan.allocations
    assert plan.status != "fallback"
