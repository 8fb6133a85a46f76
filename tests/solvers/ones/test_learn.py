"""The predictor of ONES: kept between ticks, retrained where there is time."""

import pytest
from msgspec.structs import replace

from ronda.formulations.clock import Deadline, OutOfTimeError
from ronda.solvers.ones.learn import JOBS, history, predictor
from ronda.solvers.ones.memory import FinishedLog, OnesMemory
from ronda.solvers.ones.progress import ProgressPredictor


def after(ended, kept=None):
    """Return the memory of one job whose rows are kept, and how many have ended."""
    rows, progress = history()
    log = FinishedLog(rows[:20].tolist(), progress[:20].tolist())
    return OnesMemory(past={"a": log}, ended=ended, predictor=kept)


def trained(memory, limit_s=None):
    """Return the weights that serve this tick."""
    return predictor(memory, 0.25, Deadline(limit_s), ProgressPredictor).weights.tolist()


def test_the_last_training_serves_where_there_is_no_time_for_another():
    """Nor is it tried again at every tick: not until as many jobs more have ended."""
    memory = OnesMemory()
    first = trained(memory)
    later = after(JOBS, memory.predictor)
    assert trained(later, 1e-9) == first
    assert later.predictor == replace(memory.predictor, ended=JOBS)
    again = after(JOBS, memory.predictor)
    new = trained(again)
    assert new != first
    assert trained(again, 1e-9) == new
    assert again.predictor.weights == new


def test_without_any_training_the_tick_is_cut():
    """What runs then goes on."""
    with pytest.raises(OutOfTimeError):
        trained(after(1), 1e-9)
