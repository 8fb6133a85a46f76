"""The belief of where trials end, from the losses of their sweep."""

from math import exp, inf, log1p

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.systems.hermes.sweep import MOST, Posterior, evidence, trend

STALLED = tuple(1.0 - 0.3 * min(k, 2) for k in range(12))
FALLING = tuple(2.0 - 0.4 * log1p(k) for k in range(12))
CURVES = st.lists(st.lists(st.floats(0.05, 5), min_size=2, max_size=10).map(tuple), max_size=6)


def test_the_trend_is_that_of_the_later_half():
    """Per unit of log(1 + k); none if the loss rises."""
    assert trend((2.0, 1.0)) == pytest.approx(1 / log1p(1))
    assert trend((2.0, 1.0, 0.9)) == pytest.approx(0.1 / (log1p(2) - log1p(1)))
    assert trend((1.0, 2.0)) == 0.0


def test_what_the_leaders_did_is_expected_of_the_others():
    """Falls are believed where they have come true; less where trials have stalled."""
    falls, stalls = Posterior([FALLING]), Posterior([STALLED])
    assert falls.rho > 0.6
    assert stalls.rho < 0.35
    behind = (2.0, 1.7)
    assert falls.final(behind, 50).mean < stalls.final(behind, 50).mean < behind[-1]


def test_without_experience_the_last_loss_is_believed():
    """And less surely, the more reports are to come."""
    fresh = Posterior([(2.0, 1.5), (2.0, 1.8)])
    soon, late = fresh.final((2.0, 1.5), 2), fresh.final((2.0, 1.5), 50)
    assert soon.mean == late.mean == 1.5
    assert soon.sd < late.sd
    assert fresh.final((2.0, 1.5), 1).sd == 0.0


def test_chances_are_those_of_the_normal_distribution():
    """Half below the mean; a diverged trial has none."""
    final = Posterior([FALLING]).final((2.0, 1.0), 50)
    assert final.chance_below(final.mean) == pytest.approx(0.5)
    assert final.chance_below(final.mean - 1.645 * final.sd) == pytest.approx(0.05, abs=1e-3)
    assert Posterior([]).final((2.0, inf), 50).chance_below(1e9) == 0.0


@given(CURVES, st.floats(0.01, 100))
def test_the_scale_of_losses_does_not_matter(curves, scale):
    """Losses of any unit give the same belief, in that unit."""
    scaled = [tuple(scale * loss for loss in losses) for losses in curves]
    one, other = Posterior(curves), Posterior(scaled)
    assert 0 <= one.rho <= MOST
    assert other.rho == pytest.approx(one.rho, rel=1e-6, abs=1e-9)
    for losses, same in zip(curves, scaled, strict=True):
        a, b = one.final(losses, 20), other.final(same, 20)
        assert b.mean == pytest.approx(scale * a.mean, rel=1e-6, abs=1e-9)
        assert b.sd == pytest.approx(scale * a.sd, rel=1e-6, abs=1e-9)


def test_evidence_ends_where_a_trial_diverges():
    """What it did before still counts."""
    curve = tuple(exp(-0.1 * k) for k in range(6))
    assert evidence((*curve, inf)) == evidence(curve)
