"""Arrays whose members have different numbers of steps, and how to cut a class into them.

Without re-slicing an array keeps its k members until the longest ends (HFTA); with it, survivors go
on as a narrower array whenever one ends (Hydro, OSDI 2023).
"""

from collections.abc import Sequence
from math import inf

from ronda.formulations.fusion.time import step_s
from ronda.instances.profile import AffineTime, MeasuredTime


def array_s(time: AffineTime | MeasuredTime, steps: Sequence[float], *, reslice: bool) -> float:
    """Return the seconds of GPU of one array: ``T(k) max W``, or the sum of T(alive) over steps."""
    ordered = sorted(steps)
    if not reslice:
        return step_s(time, len(ordered)) * ordered[-1]
    total = before = 0.0
    for ended, own in enumerate(ordered):
        if own > before:
            total += step_s(time, len(ordered) - ended) * (own - before)
            before = own
    return total


def cut_by_length(
    time: AffineTime | MeasuredTime, steps: Sequence[float], most: int, *, reslice: bool
) -> tuple[float, tuple[tuple[int, ...], ...]]:
    """Return the least seconds of GPU of a class on arrays of at most `most`, and the arrays.

    Jobs of similar lengths go together: in order of length arrays are runs of neighbours, and the
    best cut is a shortest path. That is optimal: other members for the same sizes make no longest
    one shorter. With re-slicing T must be a line, so that the members' own share is the same in
    every cut. Arrays hold indices of jobs.
    """
    order = sorted(range(len(steps)), key=lambda job: (steps[job], job))
    best, start = [0.0], [0]
    for end in range(1, len(order) + 1):
        found, where = inf, 0
        for begin in range(max(0, end - most), end):
            own = [steps[job] for job in order[begin:end]]
            seconds = best[begin] + array_s(time, own, reslice=reslice)
            if seconds < found:
                found, where = seconds, begin
        best.append(found)
        start.append(where)
    arrays: list[tuple[int, ...]] = []
    end = len(order)
    while end:
        arrays.append(tuple(order[start[end] : end]))
        end = start[end]
    return best[-1], tuple(reversed(arrays))
