"""Ours against the strongest comparator, by hand."""

import pytest

from ronda.bench.frontier.curves import (
    Curve,
    FrontierPoint,
    at_equal_energy,
    at_equal_jct,
    spans,
    strongest,
)


def curve(label, own, *pairs):
    """Return a curve through points (joules, seconds), in order of the budget."""
    points = [
        FrontierPoint(k, 1e3 * k, e, 0.0, s, 0.0, 0.0, ()) for k, (e, s) in enumerate(pairs, 1)
    ]
    return Curve(label, label, tuple(points), own=own)


@pytest.fixture(scope="module")
def curves():
    """Return ours, the strong comparator, and one that it beats wherever both have a point."""
    return (
        curve("milp", True, (1.0, 100.0), (3.0, 60.0)),
        curve("pollux-like+zeus", False, (2.0, 100.0), (4.0, 50.0)),
        curve("fifo+zeus", False, (5.0, 900.0), (4.5, 300.0)),
    )


def test_at_equal_energy_by_hand(curves):
    """2 J: 80 against 100 s; 3 J: 60 against 75 s; from 4 J on 60 against 50 s."""
    duels = at_equal_energy(curves)
    assert [duel.at for duel in duels] == [2.0, 3.0, 4.0, 4.5]
    assert [duel.gain for duel in duels] == pytest.approx([1.25, 1.25, 50 / 60, 50 / 60])
    assert {(duel.own, duel.rival) for duel in duels} == {("milp", "pollux-like+zeus")}
    assert strongest(curves) == {"pollux-like+zeus"}


def test_at_equal_jct_by_hand(curves):
    """50 s ours never reaches; 60 s: 3 of 3.6 J; 100 s: 1 of 2 J; 300 s the same."""
    duels = at_equal_jct(curves)
    assert [duel.at for duel in duels] == [50.0, 60.0, 100.0, 300.0]
    assert [duel.gain for duel in duels] == pytest.approx([-1.0, 1 - 3 / 3.6, 0.5, 0.5])
    assert [duel.own for duel in duels] == [None, "milp", "milp", "milp"]


def test_neighbours_of_the_same_two_are_one_span(curves):
    """The worst gain of the span counts."""
    (span,) = spans(at_equal_energy(curves))
    assert span[:2] == (2.0, 4.5)
    assert span[2].gain == pytest.approx(50 / 60)
    assert [(start, end) for start, end, _ in spans(at_equal_jct(curves))] == [(50, 50), (60, 300)]


def test_a_curve_that_uses_more_energy_with_less_budget_says_so(curves):
    """5 J at the first budget, 4.5 J at the second."""
    assert [each.rises for each in curves] == [(), (), (1,)]
