"""HyperSched's rules: who may still start before the deadline, and how spare GPUs are shared.

HyperSched (Liaw et al., SoCC 2019) gives every live trial one atom, which is a GPU here, and what
is left to the trials in order of their metric, evenly.
"""

from collections.abc import Sequence
from math import inf

RESIZE_EVERY = 5
"""Reports of a trial from one resize to the next."""

GAIN = 1.1
"""By how much more work a resize must make possible by the deadline."""


def admits(time_left_s: float, longest_s: float, eta: int, whole_s: float) -> bool:
    """Tell whether a trial may start or resume with some time left to the deadline.

    Not if that is less than eta times the longest run so far, and less than a whole trial takes.
    """
    return time_left_s >= min(longest_s * eta, whole_s)


def shares(most: Sequence[int], atoms: int) -> list[int]:
    """Return the GPUs of trials in order of their metric, best first: one each, the rest evenly.

    `most` is what each can use; what does not come out evenly goes to the first ones.
    """
    given = [1] * len(most)
    left = atoms - len(most)
    while left > 0 and any(g < m for g, m in zip(given, most, strict=True)):
        for k, limit in enumerate(most):
            if left > 0 and given[k] < limit:
                given[k] += 1
                left -= 1
    return given


def worth_resizing(now: float, then: float, time_left_s: float, pause_s: float) -> bool:
    """Tell whether a trial gets further by the deadline with speed `then` after a pause."""
    if time_left_s == inf:
        return then > GAIN * now
    return then * (time_left_s - pause_s) > GAIN * now * time_left_s
