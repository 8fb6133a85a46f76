"""Generated demand series."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.instances import generate
from ronda.instances.errors import InputError
from ronda.instances.rules.validate import problems


@settings(max_examples=20, deadline=None)
@given(days=st.integers(1, 9), nodes=st.integers(1, 300), seed=st.integers(0, 2**40))
def test_series_are_valid_and_seeded(days, nodes, seed):
    """As many steps as the days have, no problem, and the same seed gives the same series."""
    made = generate.demand(days, nodes, seed)
    assert problems(made) == []
    assert len(made.needed) == 144 * days
    assert made == generate.demand(days, nodes, seed)


def test_rhythm_is_that_of_days_and_weeks():
    """Evenings need more than mornings, working days more than weekends, bursts more than none."""
    made = generate.demand(28, 1000, 3, bursts=0).needed_nodes.reshape(28, 24, 6).mean(axis=2)
    assert (made[:, 18].mean() - made[:, 6].mean()) / 1000 == pytest.approx(0.16, abs=0.03)
    free = np.arange(28) % 7 >= 5
    assert (made[~free].mean() - made[free].mean()) / 1000 == pytest.approx(0.1, abs=0.03)
    plain, more = (generate.demand(28, 1000, 3, bursts=b).needed_nodes for b in (0, 4))
    assert (more >= plain).all()
    assert more.mean() > plain.mean() + 5


@pytest.mark.parametrize("wrong", [{"days": 0}, {"load": 1.5}, {"bursts": -1}, {"step_s": 1}])
def test_impossible_series_are_refused(wrong):
    """Each parameter has its range."""
    with pytest.raises(InputError):
        generate.demand(**wrong)
