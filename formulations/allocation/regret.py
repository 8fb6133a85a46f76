"""What prices say about every choice: its surplus, and how far it is from the next best.

At prices p the surplus of option k is its value less what it uses at these prices,
``s_k = v_k - p.a_k``; not to run has surplus 0. A job's regret is the surplus of its choice less
that of the best of all its other options, not to run included: what it would lose at these prices
if it had to do something else. It is negative if the job got something else than its favourite.
Options that another one of the job beats (worth as much, and no more of anything) do not count.
"""

import numpy as np

from ronda.formulations.allocation.separable import Separable
from ronda.instances.arrays import Floats, Mask, Rows


def surpluses(problem: Separable, prices: Floats) -> Floats:
    """Return (K,) value less price of every option; `prices` (R,) are per unit of each resource."""
    return np.asarray(problem.value - prices @ problem.use)


def regrets(start: Rows, surplus: Floats, must: Mask, chosen: Rows) -> Floats:
    """Return (J,) the regret of every job; infinite for a job that has no other choice.

    `start` (J + 1,) are the offsets of each job's options; `surplus` (K,) is -inf for options that
    are out of the question; not to run is no choice where `must` (J,); `chosen` (J,) is the row of
    each job's choice, -1 for not to run.
    """
    others = np.empty(len(surplus) + 1)  # the last one is where -1 points to: not to run
    others[:-1] = surplus
    others[-1] = 0.0
    own = others[chosen]
    others[chosen] = others[-1] = -np.inf
    best = np.maximum.reduceat(others, start[:-1])
    bare = start[1:] == start[:-1]
    if np.count_nonzero(bare):
        best[bare] = -np.inf
    may_stop = chosen >= 0
    if np.count_nonzero(must):
        own[must & ~may_stop] = -np.inf
        may_stop &= ~must
        own[must & (best == -np.inf)] = 0.0  # no other choice, whatever its own
    np.maximum(best, 0.0, out=best, where=may_stop)
    return np.subtract(own, best)
