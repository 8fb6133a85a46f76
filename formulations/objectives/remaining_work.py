"""The remaining work of each job, which is known, unknown or guessed."""

from math import nan

import numpy as np

from ronda.instances.base import Floats
from ronda.instances.models.cache import per_record
from ronda.instances.round import Round


@per_record(maxsize=2)
def work_done(round: Round) -> Floats:
    """Return the work that each job has done by now (`JobState.done_at`), shape (J,)."""
    return np.array([state.done_at(round.now_s) for state in round.jobs], dtype=float)


@per_record(maxsize=2)
def work_left(round: Round) -> Floats:
    """Return the remaining work (`JobState.remaining_at`), NaN where it is unknown, shape (J,)."""
    left = [state.remaining_at(round.now_s) for state in round.jobs]
    return np.array([nan if work is None else work for work in left], dtype=float)


def work_ahead(round: Round) -> Floats:
    """Return the remaining work of each job, infinite where it is unknown, shape (J,)."""
    left = work_left(round)
    return np.where(np.isnan(left), np.inf, left)


def expected_left(round: Round, rate: Floats) -> Floats:
    """Return the remaining work that orders jobs, guessed where it is unknown, shape (J,).

    A job of unknown size is assumed to have as much work left as it has done
    (`ronda.formulations.objectives.rank`), and at least one round at its `rate` (J,) on its fewest
    GPUs. The guess is only for the order of jobs; use `work_ahead` where the end of a job matters.
    """
    left = work_left(round)
    guess = np.maximum(work_done(round), np.nan_to_num(rate * round.length_s))
    return np.where(np.isnan(left), guess, left)
