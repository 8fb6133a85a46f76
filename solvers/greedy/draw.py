"""What a greedy policy may still draw: watts at once, and joules until its jobs have ended."""

from collections.abc import Sequence

import numpy as np

from ronda.formulations.energy import left_w, seconds_left
from ronda.instances.job import JobState, Option
from ronda.instances.round import Round

ROUNDING = 1e-9
"""Relative rounding allowed against the limit on watts."""

Piece = tuple[float, float]
"""Watts on top of the cluster without jobs, and for how many seconds."""


class Draw:
    """What has been taken of a round's limits on power and energy.

    Parameters
    ----------
    base
        Watts of the cluster without jobs.
    until_end
        Whether the energy budget must bear jobs until they end, because they cannot be stopped;
        else until the end of its window, as there are other rounds before.
    """

    def __init__(self, round: Round, base: float, *, until_end: bool) -> None:
        self.limited = round.watts is not None
        self._round, self._base = round, base
        self._until_end = until_end
        self._watts: list[float] = []
        self._seconds: list[float] = []
        self._rounding = ROUNDING * (round.watts or 0.0)
        self._spare = self._throughout()

    def seconds(self, state: JobState, option: Option) -> float:
        """Return for how long a job draws its power; infinite if its size is not known."""
        return seconds_left(self._round, state, option)

    def node_seconds(self, seconds: float) -> float:
        """Return for how long a job keeps its node awake: throughout the window, if not longer."""
        window_s = self._round.window_s
        return max(window_s, seconds) if np.isfinite(seconds) else window_s

    def fits(self, pieces: Sequence[Piece]) -> bool:
        """Tell whether there is room for some pieces together."""
        if not self.limited or sum(max(0.0, watts) for watts, _ in pieces) <= self._spare:
            return True
        return self._left_w(pieces) >= -self._rounding

    def take(self, pieces: Sequence[Piece]) -> None:
        """Take pieces, whether or not there is room."""
        self._watts += [watts for watts, _ in pieces]
        self._seconds += [seconds for _, seconds in pieces]
        self._spare -= sum(max(0.0, watts) for watts, _ in pieces)

    def _left_w(self, pieces: Sequence[Piece]) -> float:
        """Return the watts that are left beside some pieces more."""
        watts = np.array([*self._watts, *(w for w, _ in pieces)])
        seconds = np.array([*self._seconds, *(s for _, s in pieces)])
        return left_w(self._round, self._base, watts, seconds, until_end=self._until_end)

    def _throughout(self) -> float:
        """Return the watts that may come on top for as long as one likes."""
        sustained_w = self._round.sustained_w
        left = self._left_w([])
        if self._until_end and sustained_w is not None:
            left = min(left, sustained_w - self._base)
        return left
