"""The options of a round by consecutive numbers of their jobs, and what the jobs use."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ronda.formulations.options.table import OptionTable
from ronda.instances.base import Floats, Rows
from ronda.instances.job import Job
from ronda.instances.round import Round
from ronda.instances.site import GPUS


class Use(NamedTuple):
    """What some jobs use of a resource: now, and at most."""

    now: float
    most: float


class ByNumber:
    """The options of a table by the numbers of their jobs."""

    def __init__(self, table: OptionTable, number: Callable[[Job], int]) -> None:
        self._table = table
        self._number = np.array([number(state.job) for state in table.jobs], dtype=np.int64)
        of_option = self._number[table.job]
        self._order = np.argsort(of_option, kind="stable")
        self._sorted = of_option[self._order]

    def rows(self, first: int, end: int) -> Rows:
        """Return the options of jobs with numbers from `first` to below `end`."""
        at = np.searchsorted(self._sorted, (first, end))
        return self._order[at[0] : at[1]]

    def use(self, amount: Floats) -> Callable[[int, int], Use]:
        """Return a function from numbers (first, end) to what their jobs have of amounts (K,)."""
        table = self._table
        most, now = np.zeros((2, len(table.jobs)))
        np.maximum.at(most, table.job, amount)
        now[table.job[table.current]] = amount[table.current]
        size, known = int(self._number.max(initial=-1)) + 1, self._number >= 0
        sums = [
            np.append(0.0, np.bincount(self._number[known], each[known], size).cumsum())
            for each in (now, most)
        ]

        def of(first: int, end: int) -> Use:
            first, end = min(first, size), min(end, size)
            return Use(*(float(total[end] - total[first]) for total in sums))

        return of


def there_is(round: Round, of: str) -> float:
    """Return the GPUs of a resource in service; infinite for resources of hosts."""
    pools = round.cluster.topology.pools
    if of == GPUS:
        return float(sum(pool.gpus for pool in pools))
    own = [pool.gpus for pool in pools if pool.gpu_type.name == of]
    return float(sum(own)) if own else np.inf
