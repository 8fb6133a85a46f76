"""The predictor of ONES: kept between ticks, retrained where there is time."""

import pytest
from msgspec.structs import replace

from ronda.instances.clock import Deadline, OutOfTimeError
from ronda.systems.ones.learn import history, predictor, trained
from ronda.systems.ones.memory import FinishedLog, OnesMemory


def after(ended, kept=None):
    """Return the memory of one job whose rows are kept, and how many have ended."""
    rows, progress = history()
    log = FinishedLog(rows[:20].tolist(), progress[:20].tolist())
    return OnesMemory(past={"a": log}, ended=ended, predictor=kept)


def serving(memory, limit_s=None):
    """Return the training that serves this tick."""
    return trained(memory, 0.25, Deadline(limit_s))


def test_the_last_training_serves_where_there_is_no_time_for_another():
    """Nor is it tried again at every tick: not until as many jobs more have ended."""
    first = serving(OnesMemory())
    later = serving(after(20, first), 1e-9)
    assert later == replace(first, ended=20)
    assert serving(after(20, later)) == later
    new = serving(after(20, first))
    assert new.weights != first.weights
    assert serving(after(20, new), 1e-9) == new
    assert predictor(new).weights.tolist() == new.weights


def test_without_any_training_the_tick_is_cut():
    """What runs then goes on."""
    with pytest.raises(OutOfTimeError):
        serving(after(1), 1e-9)
