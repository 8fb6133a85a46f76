"""Which of several operators to use: the more often one has succeeded lately, the more often."""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

LEARNING = 0.2  # weight of the last generation in an operator's credit
FLOOR = 0.1  # no operator is used more rarely than in so many cases, lest it be forgotten


class Rates:
    """Probability matching over operators (Goldberg 1990), with a floor.

    Parameters
    ----------
    kinds
        Number of operators; they begin with equal credit.

    Attributes
    ----------
    credit
        (K,) moving average of the share of successes of each operator.
    """

    def __init__(self, kinds: int) -> None:
        self.credit: NDArray[np.float64] = np.full(kinds, 0.5)

    @property
    def probability(self) -> NDArray[np.float64]:
        """Return (K,) how often each operator is used."""
        total = float(self.credit.sum())
        kinds = len(self.credit)
        share = self.credit / total if total > 0 else np.full(kinds, 1.0 / kinds)
        return FLOOR + (1.0 - FLOOR * kinds) * share

    def draw(self, size: int, rng: Generator) -> NDArray[np.int64]:
        """Return (size,) operators to use."""
        edges = np.cumsum(self.probability)[:-1]
        return np.searchsorted(edges, rng.random(size), side="right")

    def learn(self, kinds: NDArray[np.int64], success: NDArray[np.bool_]) -> None:
        """Take (P,) uses and whether each succeeded into account; -1 is no use."""
        for kind in range(len(self.credit)):
            used = kinds == kind
            if used.any():
                share = float(success[used].mean())
                self.credit[kind] += LEARNING * (share - self.credit[kind])
