"""Licences as rows over options, Σ_k l_k x_k ≤ total − taken for each, and as an account."""

from collections import Counter

import numpy as np

from ronda.formulations.options.stated_rows import Sheet
from ronda.formulations.options.table import OptionTable
from ronda.instances.base import Floats
from ronda.instances.job import Allocation, JobState
from ronda.instances.round import Round


def left(round: Round) -> dict[str, int]:
    """Return the number of each licence that others leave, negative if they hold too many."""
    taken = round.cluster.licences_taken
    return {name: n - taken.get(name, 0) for name, n in round.cluster.licences.items()}


def licence_rows(round: Round, table: OptionTable, values: Floats, sheet: Sheet) -> None:
    """State that options hold no more of a licence than others leave, or than are held now."""
    for name, most in left(round).items():
        each = np.array([float(s.job.licences.get(name, 0)) for s in table.jobs])
        rows = np.flatnonzero(each[table.job] > 0)
        if each.sum() > most and len(rows):
            use = each[table.job[rows]]
            now = float(use[table.current[rows]].sum())
            sheet.state(f"licence[{name}]", rows, use, max(float(most), now))


class LicenceAccount:
    """The licences left while jobs are added; an array counts once."""

    def __init__(self, round: Round) -> None:
        self._left = Counter(left(round))
        self._arrays: set[object] = set()

    def fits(self, state: JobState, given: Allocation) -> bool:
        """Return whether there are enough licences for a job."""
        if (given.array, given.placement) in self._arrays:
            return True
        return all(count <= self._left[name] for name, count in state.job.licences.items())

    def take(self, state: JobState, given: Allocation) -> None:
        """Take the licences of a job."""
        if (given.array, given.placement) in self._arrays:
            return
        if given.array is not None:
            self._arrays.add((given.array, given.placement))
        self._left.subtract(state.job.licences)


def licence_account(round: Round) -> LicenceAccount | None:
    """Return the account of licences, or None if the cluster has none."""
    return LicenceAccount(round) if round.cluster.licences else None
