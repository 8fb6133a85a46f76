"""Who borrows from whom, against examples of public issues and an independent count."""

import numpy as np
import pytest

from ronda.formulations.tenants.sharers import Tree
from ronda.instances.site import Site, Tenant
from ronda.questions.queues.answer import NO_OWNER, NO_TENANT, standings
from tests.helpers.tenant_rounds import quota, tree


def stand(tenants, held, there):
    """Return the standings in GPUs."""
    return standings(Tree(Site(tenants=tenants)), "gpus", held, there)


def lenders(tenants, held, there):
    """Return who lends to whom, for those that borrow."""
    return {n: s.lenders for n, s in stand(tenants, held, there).items() if s.borrowed}


CASES = {
    # KAI issue about a sibling without quota: batch holds 4, all of them reclaimer's, 1 stays free.
    "sibling": (
        tree(reclaimer=("org", quota(4)), batch=("org", quota(0)), protected=quota(4))[1:],
        {"batch": 4, "protected": 3},
        8,
        {"batch": {"reclaimer": 4}},
    ),
    # KAI issue 2065: A holds 12 of 8, B 0 of 8, on 12 GPUs.
    "over": (
        (Tenant(name="A", quotas=quota(8)), Tenant(name="B", quotas=quota(8))),
        {"A": 12},
        12,
        {"A": {"B": 4}},
    ),
    # Kueue issue 5289: a cohort's own 4 add to 2 + 2 of its queues; a holds 4, half the cohort's.
    "cohort": (
        (Tenant(name="ab", quotas=quota(4)), *tree(a=("ab", quota(2)), b=("ab", quota(2)))[1:]),
        {"a": 4},
        4,
        {"a": {"ab": 2}},
    ),
    # Kueue issue 533: A holds 10 of 10, B 9 of 10: nobody borrows.
    "full": (tree(A=quota(10), B=quota(10)), {"A": 10, "B": 9}, 20, {}),
    # A has 8 and lends at most 4, of which it uses 2: B borrows 6 of the 2 + 4 that are unused.
    "lending": (
        tree(A=quota(8, lend=4), B=quota(4), C=quota(4)),
        {"A": 6, "B": 10},
        16,
        {"B": {"A": 2, "C": 4}},
    ),
    # A holds 10 of 4: 4 are B's, and 2 of the 4 that are guaranteed to nobody go through the root.
    "unowned": (
        tree(A=quota(4), B=quota(4)),
        {"A": 10},
        12,
        {"A": {"B": 4, NO_OWNER: 2}, "root": {NO_OWNER: 2}},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_examples(case):
    """What is borrowed, and from whom, as the threads and the arithmetic above say."""
    tenants, held, there, expected = CASES[case]
    known = {tenant.name for tenant in tenants}
    missing = {t.parent for t in tenants if t.parent and t.parent not in known}
    tenants = (*(Tenant(name=name) for name in sorted(missing)), *tenants)
    assert lenders(tenants, held, there) == {n: pytest.approx(x) for n, x in expected.items()}


def counted(tenants, held):
    """Return what each tenant borrows, with GPUs added one by one up the tree."""
    by_name = {t.name: t for t in tenants}
    children = {n: [t.name for t in tenants if t.parent == n] for n in by_name}

    def own(name):
        quota = by_name[name].quotas[0]
        return quota.guaranteed + sum(own(c) - kept(c) for c in children[name])

    def kept(name):
        lend = by_name[name].quotas[0].lend
        return 0 if lend is None else max(0, own(name) - lend)

    used, borrowed = dict.fromkeys(by_name, 0), dict.fromkeys(by_name, 0)
    for leaf, gpus in held.items():
        for _ in range(gpus):
            name = leaf
            while name is not None:
                used[name] += 1
                borrowed[name] += used[name] > own(name)
                if used[name] <= kept(name):
                    break
                name = by_name[name].parent
    unused = {n: max(0, own(n) - max(kept(n), used[n])) for n in by_name}
    return borrowed, unused


def grown(seed):
    """Return a random tree of two or three levels, and what its leaves hold."""
    rng = np.random.default_rng(seed)
    parents = {"r": None, "d": "r", "e": "r", "a": "d", "b": "d", "c": "e", "f": "e", "g": "r"}
    tenants = []
    for name, parent in parents.items():
        firm = int(rng.integers(0, 6))
        lend = int(rng.integers(0, firm + 1)) if parent and rng.random() < 0.4 else None
        tenants.append(Tenant(name=name, parent=parent, quotas=quota(firm, lend=lend)))
    return tuple(tenants), {name: int(rng.integers(0, 10)) for name in "abcfg"}


@pytest.mark.parametrize("seed", range(60))
def test_as_one_by_one(seed):
    """GPUs counted one by one give the same loans, lenders lend what they leave, nearest first."""
    tenants, held = grown(seed)
    there = sum(held.values()) + seed % 3
    found = stand(tenants, held, there)
    borrowed, unused = counted(tenants, held)
    assert {n: found[n].borrowed for n in borrowed} == borrowed
    assert {n: found[n].unused for n in unused} == unused
    for name, each in found.items():
        assert sum(each.lenders.values()) == pytest.approx(each.borrowed)
        assert name not in each.lenders
    for parent in {t.parent for t in tenants} - {None}:
        below = [t.name for t in tenants if t.parent == parent]
        firm = next(t for t in tenants if t.name == parent).quotas[0].guaranteed
        lent = {n: sum(found[c].lenders.get(n, 0.0) for c in below) for n in [parent, *below]}
        room = {n: unused[n] for n in below} | {parent: firm}
        assert all(lent[n] <= room[n] + 1e-9 for n in lent)
        outside = sum(x for c in below for n, x in found[c].lenders.items() if n not in room)
        assert outside == pytest.approx(borrowed[parent])
        if outside > 1e-9:
            assert all(lent[n] == pytest.approx(room[n]) for n in lent)


def test_jobs_without_a_tenant_borrow_all_that_they_hold():
    """They hold 7 of 8 GPUs, of which 4 are guaranteed to nobody, and so 3 of A's."""
    found = stand((Tenant(name="A", quotas=quota(4)),), {NO_TENANT: 7}, 8)
    assert found[NO_TENANT].lenders == pytest.approx({NO_OWNER: 4, "A": 3})
