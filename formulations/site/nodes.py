"""The nodes that the rules of a round's site close to a job, whoever else runs there."""

from collections.abc import Callable

import numpy as np

from ronda.instances.base import Mask
from ronda.instances.job import JobState, Option
from ronda.instances.round import Round

CLOSES: tuple[Callable[[Round, JobState, Option], Mask | None], ...] = ()
"""Functions that return the nodes (N,) that a rule closes to a job with an option, or None."""


def closed_to(round: Round, state: JobState, option: Option) -> Mask | None:
    """Return the nodes (N,) that are closed to a job with an option, or None if none is."""
    found = None
    for closes in CLOSES:
        more = closes(round, state, option)
        if more is not None:
            found = more if found is None else found | more
    return None if found is None or not np.any(found) else found
