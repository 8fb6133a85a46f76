"""Time of k models on one GPU."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.instances.errors import InputError
from ronda.instances.models.sharing import speed_up, step_s
from ronda.instances.profile import AffineTime, MeasuredTime


def test_line_and_floor():
    """max(3, 1 + 0.5 k): 3 up to k = 4, then 3.5."""
    time = AffineTime(alpha_s=1.0, beta_s=0.5, floor_s=3.0)
    assert [step_s(time, k) for k in (1, 4, 5)] == [3.0, 3.0, 3.5]


def test_measured_times_are_interpolated_and_nothing_else():
    """Between 2 s at k = 1 and 6 s at k = 5 lie 1 s a model; beyond is nothing."""
    time = MeasuredTime(models=(1, 5), step_s=(2.0, 6.0))
    assert [step_s(time, k) for k in (1, 2, 5)] == [2.0, 3.0, 6.0]
    for outside in (0, 6):
        with pytest.raises(InputError, match="1 to 5"):
            step_s(time, outside)


@given(alpha=st.floats(0, 5), beta=st.floats(0.01, 5), models=st.integers(1, 100))
def test_speed_up_tends_to_the_share_of_each_model(alpha, beta, models):
    """It grows with k and stays below T(1) / beta."""
    time = AffineTime(alpha_s=alpha, beta_s=beta)
    alone = step_s(time, 1)
    here, more = speed_up(time, models, alone), speed_up(time, models + 1, alone)
    assert here <= more * (1 + 1e-12)
    assert more <= alone / beta * (1 + 1e-12)
