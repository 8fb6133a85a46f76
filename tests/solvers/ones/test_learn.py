"""The predictor of ONES: kept between ticks, retrained where there is time."""

import pytest

from ronda.formulations.clock import Deadline, OutOfTimeError
from ronda.solvers.ones.learn import JOBS, history, predictor
from ronda.solvers.ones.memory import Memory


def after(ended: int) -> Memory:
    """Return the memory of one job whose rows are kept, and how many have ended."""
    features, progress = history()
    log = {"rows": features[:20].tolist(), "done": progress[:20].tolist()}
    return Memory(past={"a": log}, ended=ended)


def test_the_last_training_serves_where_there_is_no_time_for_another():
    """Nor is it tried again at every tick: not until as many jobs more have ended."""
    first, kept = predictor(Memory(), {}, 0.25, Deadline(), artifact=False)
    more = after(JOBS)
    old, late = predictor(more, kept, 0.25, Deadline(1e-9), artifact=False)
    assert (old.network.weights == first.network.weights).all()
    assert late == kept | {"ended": JOBS}
    new, known = predictor(more, kept, 0.25, Deadline(), artifact=False)
    assert (new.network.weights != first.network.weights).any()
    assert predictor(more, known, 0.25, Deadline(1e-9), artifact=False)[1] is known


def test_without_any_training_the_tick_is_cut():
    """What runs then goes on."""
    with pytest.raises(OutOfTimeError):
        predictor(after(1), {}, 0.25, Deadline(1e-9), artifact=False)
