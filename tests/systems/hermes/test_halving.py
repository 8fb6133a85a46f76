"""Rungs, cutoffs and brackets of early stopping, by hand and against the published tables."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.systems.hermes.halving import (
    best,
    bracket_of,
    brackets,
    cutoff,
    promoted,
    rungs,
    survivors,
)
from ronda.systems.hermes.hypersched import admits
from ronda.systems.hermes.trials import shares, worth_resizing


def test_rungs_are_below_the_last_report():
    """r, r eta, r eta^2, ..."""
    assert rungs(1, 4, 50) == (1, 4, 16)
    assert rungs(2, 3, 18) == (2, 6)
    assert rungs(1, 4, 1) == ()


def test_of_few_at_least_so_many_go_on():
    """Of five losses two are the best half, equal ones by name; of one none, or at least it."""
    losses = {"a": 3.0, "b": 1.0, "c": 2.0, "e": inf, "d": 1.0}
    assert best(losses, 2) == ["b", "d"]
    assert best({"a": inf}, 2) == []
    assert best({"a": inf}, 2, least=1) == ["a"]


def test_one_in_eta_of_those_that_came_goes_on():
    """Of four at the first rung one goes on; a diverged one never does."""
    trials = {"a": (2, 1.0), "b": (2, 0.5), "c": (2, 1.5)}
    assert promoted(trials, (1, 4), 4) == {}
    assert promoted(trials | {"d": (2, inf)}, (1, 4), 4) == {"b": 1}
    # b has gone on: it counts at its rung, but has left it.
    gone = trials | {"b": (2, 0.5, 0.4), "d": (2, 0.7)}
    assert promoted(gone, (1, 4), 4) == {}
    assert promoted(gone | {f"e{k}": (2, 3.0) for k in range(4)}, (1, 4), 4) == {"d": 1}
    lost = {str(k): (2, inf) for k in range(8)}
    assert promoted(lost, (1, 4), 4) == {}


def test_a_cutoff_is_a_percentile_of_at_least_two():
    """The quarter point of five losses is the second; linear between."""
    assert cutoff([1.0], 4) == inf
    assert cutoff([3, 1, 2, 5, 4], 4) == 2
    assert cutoff([1.0, 2.0], 4) == 1.25
    assert cutoff([1.0, inf], 2) == 1.0


def test_the_brackets_are_hyperbands():
    """R = 81, eta = 3: 81, 34, 15, 8 and 5 trials (Li et al., table 1)."""
    found = brackets(81, 3)
    assert [b.trials for b in found] == [81, 34, 15, 8, 5]
    assert found[0].rungs == (1, 3, 9, 27)
    assert found[-1].rungs == ()
    assert brackets(50, 3)[0].rungs == (2, 6, 17)
    assert [bracket_of(place, found)[0] for place in (0, 80, 81, 142, 143)] == [0, 0, 1, 4, 5]


def test_a_bracket_waits_until_all_have_come():
    """Then the worse ones fail at once; one that ended before counts as the worst."""
    trials = {"a": (2, 1.0), "b": (2, 0.5), "c": (2,)}
    assert survivors(trials, trials, (1,), 3) == ({"a", "b"}, set())
    assert survivors(trials | {"c": (2, 0.7)}, trials, (1,), 3) == (set(), {"a", "c"})
    assert survivors(trials, {"a", "b"}, (1,), 3) == (set(), {"a"})
    assert survivors({"a": (2, 1.0)}, {"a"}, (1,), 3) == (set(), set())  # one goes on at least


@given(st.lists(st.integers(1, 8), min_size=1, max_size=8), st.integers(0, 40))
def test_spare_gpus_are_shared_evenly(most, atoms):
    """Everybody has one; nobody more than it can use; nothing is left that somebody could use."""
    given_ = shares(most, atoms)
    assert all(1 <= g <= m for g, m in zip(given_, most, strict=True))
    assert sum(given_) == max(len(most), min(atoms, sum(most)))
    growing = [g for g, m in zip(given_, most, strict=True) if g < m]
    assert all(max(given_) <= g + 1 for g in growing)


@pytest.mark.parametrize(
    ("left_s", "admitted"), [(99.0, False), (100.0, True), (399.0, True), (inf, True)]
)
def test_nobody_starts_too_late(left_s, admitted):
    """Less than eta times the longest run, 25 s, and less than a whole trial."""
    assert admits(left_s, 25.0, 4, 400.0) is admitted
    assert admits(60.0, 25.0, 4, 50.0)


def test_a_resize_must_be_worth_its_pause():
    """ResNet50 from 1 to 2 GPUs, 1.87 times as fast: 60 s of pause are too long 140 s before."""
    assert worth_resizing(1.0, 1.87, 200.0, 60.0)
    assert not worth_resizing(1.0, 1.87, 140.0, 60.0)
    assert not worth_resizing(3.43, 3.7, inf, 0.0)
