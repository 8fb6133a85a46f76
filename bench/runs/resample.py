"""Workloads that resemble an instance's: its submissions resampled in blocks (docs/statistics.md).

The method is the circular block bootstrap of D. Politis and J. Romano, "A circular block-resampling
procedure for stationary data", in: Exploring the Limits of Bootstrap, Wiley 1992.
"""

from math import isqrt

import numpy as np
from msgspec.structs import replace

from ronda.instances.base import Index, Record
from ronda.instances.errors import InputError
from ronda.instances.instance import Instance
from ronda.instances.job import Job
from ronda.instances.rules.problem import show


class Resample(Record, frozen=True, kw_only=True):
    """Submissions drawn with replacement, in blocks of `block` in a row, as many as there are.

    A block keeps order and gaps, so bursts survive. A block of 0 means the square root of the
    number of submissions, as for batch means (J. Flegal and G. Jones, Ann. Stat. 38, 2010).
    """

    block: Index = 0

    def draw(self, instance: Instance, seed: int) -> Instance:
        """Return the instance with a resampled workload.

        The names of jobs begin with the position of their submission, as in ``12-NAME``. Deadlines
        move with their jobs; outages, limits and prices stay at their times.
        """
        units = submissions(instance)
        count, place = len(units), f"instance {show(instance.name)}"
        block = self.block or max(1, isqrt(count))
        if count < 2:
            raise InputError(place, f"{count} submissions", "several, to draw from")
        if block > count:
            expected = f"at most its {count} submissions"
            raise InputError(f"{place}, resample.block", f"{block}", expected)
        rng = np.random.default_rng([seed, 11])
        firsts = rng.integers(count, size=-(-count // block))
        drawn = ((firsts[:, None] + np.arange(block)) % count).ravel()[:count]
        begin_s = np.array([unit[0].submit_s for unit in units])
        gaps_s = np.diff(begin_s, prepend=begin_s[0] - np.diff(begin_s).mean())
        at_s = begin_s[0] + np.concatenate([[0.0], np.cumsum(gaps_s[drawn[1:]])])
        jobs, sweeps = list[Job](), dict(instance.sweeps)
        for k, (unit, when_s) in enumerate(zip(drawn.tolist(), at_s.tolist(), strict=True)):
            jobs += _moved(units[unit], f"{k}-", when_s)
            if (name := units[unit][0].sweep) is not None:
                own, later_s = instance.sweeps[name], when_s - units[unit][0].submit_s
                sweeps[f"{k}-{name}"] = replace(own, deadline_s=_later(own.deadline_s, later_s))
        used = {job.sweep for job in jobs}
        return replace(
            instance,
            jobs=tuple(sorted(jobs, key=lambda job: job.submit_s)),
            sweeps={name: sweep for name, sweep in sweeps.items() if name in used},
        )


def submissions(instance: Instance) -> list[list[Job]]:
    """Return the groups of jobs that are submitted together: the trials of a sweep, or one job."""
    found: dict[tuple[str, str], list[Job]] = {}
    for job in instance.jobs:
        key = ("job", job.id) if job.sweep is None else ("sweep", job.sweep)
        found.setdefault(key, []).append(job)
    return list(found.values())


def _moved(unit: list[Job], before: str, when_s: float) -> list[Job]:
    """Return the jobs of a submission, moved to `when_s` and with names prefixed by `before`."""
    later_s = when_s - unit[0].submit_s
    return [
        replace(
            job,
            id=before + job.id,
            submit_s=round(job.submit_s + later_s, 6),
            deadline_s=_later(job.deadline_s, later_s),
            sweep=None if job.sweep is None else before + job.sweep,
        )
        for job in unit
    ]


def _later(deadline_s: float | None, later_s: float) -> float | None:
    return None if deadline_s is None else max(0.0, deadline_s + later_s)
