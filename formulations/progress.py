"""The work of a round's live jobs as arrays: what is done by now, and what is left."""

from math import nan

import numpy as np

from ronda.formulations.per_record import per_record
from ronda.instances.arrays import Floats
from ronda.instances.round import Round


@per_record(maxsize=2)
def work_done(round: Round) -> Floats:
    """Return (J,) the work that each job has done by now (`JobState.done_at`)."""
    return np.array([state.done_at(round.now_s) for state in round.jobs], dtype=float)


@per_record(maxsize=2)
def work_left(round: Round) -> Floats:
    """Return (J,) the work left of each job (`JobState.remaining_at`), NaN if it is not known."""
    left = [state.remaining_at(round.now_s) for state in round.jobs]
    return np.array([nan if work is None else work for work in left], dtype=float)


def work_ahead(round: Round) -> Floats:
    """Return (J,) the work left of each job, infinite if it is not known."""
    left = work_left(round)
    return np.where(np.isnan(left), np.inf, left)
