"""The answer of ``ronda judge``: the judgements of a log's queues, as shown and as stored."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np

from ronda.instances.instance import Instance
from ronda.instances.traces.recorded import Recorded
from ronda.questions.judge.decisions import CostlyDecision
from ronda.questions.judge.judgement import Judgement

LOG = "the log"
"""The name of the recorded schedule among replays."""

STEPS = 400
"""The most points of a curve."""


@dataclass(frozen=True)
class JudgedQueue:
    """The judgement of a queue with its worst decisions.

    Attributes
    ----------
    judgement
        The judgement.
    decisions
        The decisions that cost the most waiting, the worst first.
    clock_s
        Times of the curves, in seconds from the instance's start.
    waited_s
        What jobs had waited by these times, by replay; the recorded schedule is `LOG`.
    """

    judgement: Judgement
    decisions: tuple[CostlyDecision, ...]
    clock_s: tuple[float, ...]
    waited_s: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class JudgedLog:
    """The judgements of a log.

    Attributes
    ----------
    source
        Names of the files.
    began_s
        The instance's start in seconds since 1970.
    zone
        Time zone in which times are told.
    queues
        The queues that were judged.
    others
        Names of the queues that were not.
    notes
        What was read, inferred and left out.
    """

    source: str
    began_s: float
    zone: str
    queues: tuple[JudgedQueue, ...]
    others: tuple[str, ...]
    notes: tuple[str, ...]

    def when(self, at_s: float) -> str:
        """Return the date and time of a second of the instance."""
        return (
            f"{datetime.fromtimestamp(self.began_s + at_s, ZoneInfo(self.zone)):%Y-%m-%d %H:%M:%S}"
        )


def judged_queue(
    judgement: Judgement,
    instance: Instance,
    recorded: Recorded,
    decisions: tuple[CostlyDecision, ...],
) -> JudgedQueue:
    """Return a judgement with its decisions, and what was waited over time instead of starts."""
    low_s, high_s = judgement.window_s
    shown = [r for r in judgement.replays if r.wait_s is not None and r.starts]
    starts = {r.name: {job: start_s for job, (start_s, _) in r.starts.items()} for r in shown}
    names = set[str]().union(*starts.values())
    jobs = [job for job in instance.jobs if job.id in names]
    starts = {LOG: {job.id: recorded.runs[job.id][-1].start_s for job in jobs}} | starts
    last_s = max((max(own.values(), default=high_s) for own in starts.values()), default=high_s)
    clock_s = np.linspace(low_s, max(high_s, last_s), STEPS)
    curves = {}
    for name, own in starts.items():
        waited = np.zeros(STEPS)
        for job in jobs:
            from_s = max(job.submit_s if job.eligible_s is None else job.eligible_s, low_s)
            waited += job.weight * (np.clip(clock_s, from_s, max(from_s, own[job.id])) - from_s)
        curves[name] = tuple(waited.round(1).tolist())
    bare = replace(judgement, replays=tuple(replace(r, starts={}) for r in judgement.replays))
    return JudgedQueue(bare, decisions, tuple(clock_s.round(1).tolist()), curves)
