"""Kueue's quotas by hand: lending, borrowing, and the dominant resource share."""

import pytest

from ronda.instances.site import Quota, Tenant
from ronda.solvers.policies.production.quota_tree import branches
from shared_cluster import tenant


def filled(leaf, most=99):
    """Return how many GPUs a leaf gets one by one."""
    got = 0
    while got < most and leaf.fits({"gpus": 1}):
        leaf.add({"gpus": 1})
        got += 1
    return got


@pytest.mark.parametrize(("used", "gets"), [(0, 12), (6, 10)])
def test_a_lender_keeps_what_it_does_not_lend(used, gets):
    """A has 8 and lends 4, B and C have 4: B gets 12 while A and C idle, 10 while A uses 6."""
    tenants = [
        Tenant(name="root"),
        tenant("A", 8, "root", lend=4),
        tenant("B", 4, "root"),
        tenant("C", 4, "root"),
    ]
    tree = branches(tenants, ())
    tree["A"].add({"gpus": used})
    assert filled(tree["B"]) == gets
    tree["B"].remove({"gpus": gets})
    assert filled(tree["B"]) == gets


@pytest.mark.parametrize(("used", "gets"), [(0, 6), (4, 4)])
def test_a_cohort_that_may_not_borrow_keeps_its_members_in(used, gets):
    """X may not borrow: A stops at its own limit of 4 + 2, or at 4 if B has its 4. Y stays idle."""
    tenants = [
        Tenant(name="root"),
        tenant("X", 0, "root", borrow=0),
        tenant("Y", 4, "root"),
        tenant("A", 4, "X", borrow=2),
        tenant("B", 4, "X"),
    ]
    tree = branches(tenants, ())
    tree["B"].add({"gpus": used})
    assert filled(tree["A"]) == gets


@pytest.mark.parametrize(("weight", "share"), [(1.0, 600.0), (2.0, 300.0), (0.0, float("inf"))])
def test_the_dominant_share_is_of_the_resource_borrowed_most(weight, share):
    """8 GPUs of 4 and 80 CPUs of 20, of 16 and 100 that can be lent: 600 thousandths of the CPUs.

    The GPUs are of two types, one of them borrowed and one spare: they are not netted.
    """

    def quotas(g, h, cpu):
        pairs = (("G", g), ("H", h), ("cpu", cpu))
        return tuple(Quota(of=of, guaranteed=most) for of, most in pairs)

    tenants = [
        Tenant(name="root"),
        Tenant(name="A", parent="root", weight=weight, quotas=quotas(4, 4, 20)),
        Tenant(name="B", parent="root", quotas=quotas(4, 4, 80)),
    ]
    leaf = branches(tenants, ("G", "H"))["A"]
    leaf.add({"G": 8, "cpu": 20})
    assert leaf.share() == (250.0 / weight if weight else float("inf"))
    leaf.add({"cpu": 60})
    assert leaf.share() == share


def test_within_quota_the_share_is_nothing():
    """Even at weight 0, which borrows at an infinite share."""
    tree = branches([Tenant(name="root"), tenant("A", 4, "root", weight=0.0)], ())
    tree["A"].add({"gpus": 4})
    assert tree["A"].share() == 0.0


def test_a_limit_counts_all_that_is_held_below():
    """P holds at most 5 in all; a and b have 4 each, and lend all of it."""
    tenants = [
        Tenant(name="P", quotas=(Quota(limit=5),)),
        tenant("a", 4, "P"),
        tenant("b", 4, "P"),
    ]
    tree = branches(tenants, ())
    tree["b"].add({"gpus": 2})
    assert filled(tree["a"]) == 3


def test_the_reach_is_the_least_branch_with_quota():
    """A with 4 of the 8 of its department: 4, then 8, then all reach farther up."""
    tenants = [
        Tenant(name="root"),
        tenant("D", 0, "root"),
        tenant("E", 8, "root"),
        tenant("A", 4, "D"),
        tenant("B", 4, "D"),
    ]
    leaf = branches(tenants, ())["A"]
    found = [leaf.reach({"gpus": gpus}) for gpus in (4, 5, 8, 9)]
    assert [branch.tenant.name for branch in found] == ["A", "D", "D", "root"]
    assert [branch.height for branch in found] == [0, 1, 1, 2]


def test_what_a_leaf_keeps_at_home_asks_nothing_of_those_above():
    """A lends nothing of its 4: of 5, 1 is asked of its department, which has B's 4."""
    tenants = [
        Tenant(name="root"),
        tenant("D", 0, "root"),
        tenant("A", 4, "D", lend=0),
        tenant("B", 4, "D"),
    ]
    leaf = branches(tenants, ())["A"]
    found = [leaf.reach({"gpus": gpus}).tenant.name for gpus in (4, 5, 8, 9)]
    assert found == ["A", "D", "D", "root"]
