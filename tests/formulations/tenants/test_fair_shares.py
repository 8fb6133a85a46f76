"""Water filling by hand: weights, past use, order, whole numbers, and the tree."""

import random

import pytest

from ronda.formulations.tenants.fair_shares import Sibling, fair_shares, filled
from ronda.instances.site import Quota, Tenant


@pytest.mark.parametrize(
    ("used", "kappa", "asked", "expected"),
    [
        ((0.6, 0.2), 1.0, (12, 12), (4, 8)),
        ((0.9, 0.0), 2.0, (12, 12), (0, 12)),
        ((0.9, 0.0), 2.0, (12, 5), (7, 5)),
        ((0.6, 0.2), 0.0, (12, 12), (6, 6)),
    ],
)
def test_past_use_moves_the_surplus(used, kappa, asked, expected):
    """12 GPUs at equal weights: who has used little gets more, until it is satisfied."""
    siblings = [Sibling(n, 0, a, used=u) for n, a, u in zip("ab", asked, used, strict=True)]
    assert tuple(filled(12, siblings, kappa).values()) == expected


def test_what_floors_leave_goes_to_the_largest_fractions():
    """10 by three equal weights: 3 each, and the last to a, by name. As real numbers 10/3 each."""
    siblings = [Sibling(name, 0, 10) for name in "cba"]
    assert filled(10, siblings) == {"c": 3, "b": 3, "a": 4}
    assert filled(10, siblings, whole=False) == pytest.approx(dict.fromkeys("cba", 10 / 3))
    siblings = [Sibling("a", 0, 10, weight=1), Sibling("b", 0, 10, weight=2)]
    assert filled(8, siblings) == {"a": 3, "b": 5}  # 2.67 and 5.33


def test_guarantees_come_first_and_then_the_order():
    """Of 10, 2 and 3 are guaranteed; b is of higher order and takes what it asks of the rest."""
    siblings = [Sibling("a", 2, 9), Sibling("b", 3, 6, surplus_order=1), Sibling("c", 3, 0)]
    assert filled(10, siblings) == {"a": 4, "b": 6, "c": 0}
    assert filled(10, [Sibling("a", 2, 9, weight=0), Sibling("b", 0, 3)]) == {"a": 2, "b": 3}
    assert filled(4, [Sibling("a", 5, 5), Sibling("b", 5, 5), Sibling("c", 0, 5)]) == {
        "a": 5,
        "b": 5,
        "c": 0,
    }


def test_shares_go_down_the_tree():
    """D and E have equal weights; D's 8 of 16 go to its a, which may hold 3, and its b."""
    tenants = [
        Tenant(name="D"),
        Tenant(name="E"),
        Tenant(name="a", parent="D", quotas=(Quota(guaranteed=1, limit=3),)),
        Tenant(name="b", parent="D"),
        Tenant(name="e", parent="E"),
    ]
    asked = {"a": 9.0, "b": 9.0, "e": 9.0}
    found = fair_shares(tenants, "gpus", 16, asked, {})
    assert found == {"D": 9, "E": 7, "a": 3, "b": 6, "e": 7}


@pytest.mark.parametrize("seed", range(200))
def test_nobody_gets_more_than_it_asks_and_nothing_is_kept_while_somebody_asks(seed):
    """Random siblings: whole numbers, within what is asked, and all is given while anybody asks."""
    rng = random.Random(seed)
    siblings = [
        Sibling(
            name,
            rng.randint(0, 4),
            rng.randint(0, 12),
            rng.choice([0.5, 1.0, 3.0]),
            rng.randint(0, 1),
            rng.random() * 0.5,
        )
        for name in "abcde"[: rng.randint(1, 5)]
    ]
    amount = rng.randint(0, 40)
    shares = filled(amount, siblings, rng.choice([0.0, 1.0]))
    firm = sum(min(sibling.guaranteed, sibling.asked) for sibling in siblings)
    assert all(
        shares[c.name] <= c.asked and shares[c.name] == int(shares[c.name]) for c in siblings
    )
    assert all(shares[c.name] >= min(c.guaranteed, c.asked) for c in siblings)
    most = min(max(amount, firm), sum(sibling.asked for sibling in siblings))
    assert sum(shares.values()) == most
