"""Whole runs with and without a power cap over a window: which jobs end how much later."""

from collections.abc import Callable, Sequence
from math import inf

import numpy as np
from msgspec.structs import replace

from ronda.horizon.driver import run
from ronda.instances.base import Record
from ronda.instances.budget import StepSeries
from ronda.instances.instance import Instance
from ronda.instances.outcome.usage import Usage, usage_of
from ronda.instances.schedule import Schedule
from ronda.solvers.contract import Policy


class Late(Record, frozen=True, kw_only=True):
    """The jobs of a tenant, user or partition that end later by a cap in a window.

    `mean_s` is the mean over all its jobs of the seconds by which they end later, and `longest_s`
    the most; `jobs` are those that do.
    """

    name: str
    jobs: int
    mean_s: float
    longest_s: float


class Driven(Record, frozen=True, kw_only=True):
    """A run with a cap in a window, compared with the run without.

    Attributes
    ----------
    cap_w, peak_w, peak_before_w
        Power cap in the window, in watts, and the most watts that the cluster draws there, with and
        without it.
    less_j, more_after_j
        Joules that it draws less in the window, and more outside it.
    late
        Who is late, by name.
    """

    cap_w: float
    peak_w: float
    peak_before_w: float
    less_j: float
    more_after_j: float
    late: tuple[Late, ...]


def driven(
    instance: Instance,
    policy: Policy,
    caps_w: Sequence[float],
    *,
    at_s: float,
    for_s: float,
    borne_by: str = "partition",
    seed: int = 0,
    time_limit_s: float | None = 10.0,
    progress: Callable[[float, str], None] | None = None,
) -> tuple[Driven, ...]:
    """Drive a policy over an instance without and with each cap from `at_s` on for `for_s` seconds.

    What is lost in the window may be caught up after it, so this is the delay that jobs really
    have. Jobs that do not end in both runs are left out. Both runs may put nodes to sleep.
    """
    told = progress or (lambda share, what: None)
    window = at_s, at_s + for_s

    def under(cap_w: float, done: int) -> tuple[Schedule, Usage]:
        words = f"run under {cap_w:,.0f} W" if cap_w < inf else "run as it is"
        told(done / (1 + len(caps_w)), words)
        own = with_cap(instance, at_s, for_s, cap_w)
        schedule = run(own, policy, seed=seed, time_limit_s=time_limit_s)
        return schedule, usage_of(own, schedule)

    base, before = under(inf, 0)
    found = []
    for k, cap_w in enumerate(caps_w):
        schedule, after = under(cap_w, k + 1)
        less_j = _joules(before, *window) - _joules(after, *window)
        all_j = _joules(before, 0.0, inf) - _joules(after, 0.0, inf)
        one = Driven(
            cap_w=cap_w,
            peak_w=_peak_w(after, *window),
            peak_before_w=_peak_w(before, *window),
            less_j=less_j,
            more_after_j=less_j - all_j,
            late=_late(instance, borne_by, base, schedule),
        )
        found.append(one)
    return tuple(found)


def with_cap(instance: Instance, at_s: float, for_s: float, cap_w: float) -> Instance:
    """Return an instance whose power cap is at most `cap_w` in a window, and else as before."""
    known = instance.budget.power_cap_w
    if known is None:
        most_w = 1e6 * instance.cluster.gpus  # outside the window nothing is limited
        known = StepSeries(times_s=(0.0,), values=(most_w,))
    ends = (at_s, at_s + for_s)
    times_s = sorted({*known.times_s, *ends})
    values = [min(known.at(t), cap_w) if ends[0] <= t < ends[1] else known.at(t) for t in times_s]
    capped = StepSeries(times_s=tuple(times_s), values=tuple(values))
    return replace(instance, budget=replace(instance.budget, power_cap_w=capped))


def _joules(usage: Usage, start_s: float, end_s: float) -> float:
    """Return the joules drawn between two times; the run ends at the last of the usage's."""
    times = np.clip(usage.time_s, start_s, min(end_s, float(usage.time_s[-1])))
    return float(usage.watts[:-1] @ np.diff(times))


def _peak_w(usage: Usage, start_s: float, end_s: float) -> float:
    ends_s = np.append(usage.time_s[1:], inf)
    inside = (usage.time_s < end_s) & (ends_s > start_s)
    return float(usage.watts[inside].max(initial=0.0))


def _late(instance: Instance, kind: str, base: Schedule, other: Schedule) -> tuple[Late, ...]:
    """Return how much later jobs end in the other run, by name, the latest on average first."""
    delays: dict[str, list[float]] = {}
    for job, one, then in zip(instance.jobs, base.jobs, other.jobs, strict=True):
        if one.end_s is not None and then.end_s is not None:
            name = str(getattr(job, kind) or "(none)")
            delays.setdefault(name, []).append(then.end_s - one.end_s)
    late = [
        Late(
            name=name,
            jobs=sum(delay > 1.0 for delay in own),
            mean_s=sum(own) / len(own),
            longest_s=max(0.0, *own),
        )
        for name, own in delays.items()
    ]
    return tuple(sorted(late, key=lambda each: (-each.mean_s, each.name)))
