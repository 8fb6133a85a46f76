"""The room that stated rows leave for jobs that placement moves to other nodes."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ronda.formulations.options.stated_rows import ROUNDED
from ronda.formulations.options.table import OptionTable
from ronda.instances.base import Floats, Rows


class MoveRoom(NamedTuple):
    """What rows have ``left`` (R,), and the ``cost`` (R,) of each job that would move, by id."""

    left: Floats
    cost: dict[str, Floats]

    def allows(self, jobs: Iterable[str]) -> bool:
        """Return whether all given jobs may move."""
        return bool((self.after(jobs).left >= 0).all())

    def after(self, jobs: Iterable[str]) -> "MoveRoom":
        """Return the room after all given jobs have moved."""
        costs = [self.cost[job] for job in jobs if job in self.cost]
        return self._replace(left=self.left - sum(costs)) if costs else self


def move_room(table: OptionTable, rows: Rows) -> MoveRoom | None:
    """Return the room that rows of a table leave for moves, or None if no stated row minds them."""
    own = table.own
    if own is None or own.moves is None:
        return None
    moves = own.moves[:, rows].toarray()
    minds = np.flatnonzero(np.diff(own.moves.tocsr().indptr) > 0)
    use = np.asarray(own.use[:, rows].sum(axis=1)).ravel()
    left = own.capacity - use + ROUNDED * (1.0 + np.abs(own.capacity))
    some = np.flatnonzero(moves[minds].any(axis=0)).tolist()
    ids = [table.jobs[j].job.id for j in table.job[rows].tolist()]
    return MoveRoom(left[minds], {ids[i]: moves[minds, i] for i in some})
