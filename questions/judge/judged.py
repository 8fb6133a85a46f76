"""The answer of ``ronda judge``: the judgements of a log's queues, with their worst decisions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from operator import attrgetter
from typing import Any

import numpy as np

from ronda.instances.errors import InputError
from ronda.instances.tables.numbers import moment
from ronda.instances.traces.audit.sample import sample_of
from ronda.instances.traces.logs.instance import ReadLog
from ronda.questions.judge.answer import POLICY, SAME, judge, queues_seen
from ronda.questions.judge.certified import certified_regret
from ronda.questions.judge.decisions import CostlyDecision, Rule, costly_decisions
from ronda.questions.judge.judgement import FULL, PROVEN, Judgement, QueueSeen
from ronda.questions.judge.orders import Backfilling, least_first
from ronda.questions.judge.queue import JudgedJobs, Starts
from ronda.questions.judge.space import Space

LOG = "the log"
"""The name of the recorded schedule among replays."""

POINTS = 400
"""The number of points of a curve."""


@dataclass(frozen=True)
class JudgedQueue:
    """The judgement of a queue, the decisions that cost the most waiting, and curves.

    By each moment of `clock_s` jobs had waited `waited_s`, in the recorded schedule, which is
    `LOG`, and in replays. Times are seconds from the instance's start.
    """

    judgement: Judgement
    decisions: tuple[CostlyDecision, ...]
    clock_s: tuple[float, ...]
    waited_s: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class JudgedLog:
    """The judgements of a log, of which `others` are the queues that are in none.

    The instance starts `began_s` seconds after 1970. `nodes` are names of nodes by index; `notes`
    say what was read, inferred and left out.
    """

    source: str
    began_s: float
    zone: str
    nodes: Mapping[int, str]
    queues: tuple[JudgedQueue, ...]
    others: tuple[QueueSeen, ...]
    notes: tuple[str, ...]

    def when(self, at_s: float) -> str:
        """Return the date and time of a second of the instance."""
        return moment(self.began_s + at_s, self.zone)


def judged_log(
    read: ReadLog,
    *,
    zone: str = "UTC",
    queues: Sequence[str] = (),
    decisions: int = 20,
    progress: Callable[[str], None] = lambda words: None,
    **how: Any,
) -> JudgedLog:
    """Return the judgements of some queues of a log, or of the one that waited the most.

    Times are told in a time `zone`, and of each queue the worst `decisions`. `trust`, `topology`
    and `policies` are passed to `judge`. Raise InputError if the log is a sample of what ran, or
    tells of no nodes or no such queue.
    """
    instance, recorded = read.instance, read.recorded
    source = instance.source or instance.name
    if (why := sample_of(read)) is not None:
        raise InputError(source, why, "a log of all jobs that ran: of a sample no loss is known")
    judged = list[JudgedQueue]()
    for name in queues or (None,):
        given = {**how, "cluster_known": read.machines == "given", "progress": progress}
        found, jobs, space = judge(instance, recorded, queue=name, **given)
        worst = costly_decisions(jobs, space, _rules(jobs), decisions, progress)
        progress("decisions: certificates")
        worst = tuple(replace(w, regret=certified_regret(jobs, space, w)) for w in worst)
        judged.append(JudgedQueue(found, worst, *_curves(found, jobs)))
    names = {name for each in judged for name in _parts(each.judgement.queue)}
    return JudgedLog(
        source=source,
        began_s=float(instance.made.get("unix_start_s", 0.0)),
        zone=zone,
        nodes=dict(recorded.nodes),
        queues=tuple(judged),
        others=tuple(
            other
            for other in queues_seen(instance, recorded)
            if other.name not in names and other.name.partition("/")[0] not in names
        ),
        notes=tuple(read.words),
    )


def _parts(queue: str) -> list[str]:
    """Return the names of a queue and of the partitions in it."""
    return [queue, *(queue.split("+") if "/" not in queue else ())]


def _rules(jobs: JudgedJobs) -> Mapping[str, Rule]:
    """Return the rules that know no more of the jobs than the scheduler did.

    The second is for jobs that their time limits tell apart.
    """

    def easy(own: JudgedJobs, space: Space, fixed: Starts) -> Starts:
        return Backfilling(own, space, fixed).run()

    def least(own: JudgedJobs, space: Space, fixed: Starts) -> Starts:
        return least_first(own, space, own.limit_s * own.size / own.weight, fixed)

    alike = len(set((jobs.limit_s * jobs.size).tolist())) == 1 or np.isinf(jobs.limit_s).any()
    return {POLICY: easy} | ({} if alike else {"least work by time limits first": least})


def _curves(
    found: Judgement, jobs: JudgedJobs
) -> tuple[tuple[float, ...], dict[str, tuple[float, ...]]]:
    """Return times, and what the jobs had waited by them in the log and in the main replays."""
    starts = {LOG: jobs.start_s}
    for space in (PROVEN, FULL):
        own = [r for r in found.replays if r.space == space and r.wait_s < inf]
        best = min(own, key=attrgetter("wait_s"), default=None)
        for replay in own:
            if replay is best or (space == PROVEN and replay.name in (SAME, POLICY)):
                name = f"{replay.name} ({space} space{', best' if replay is best else ''})"
                starts[name] = np.array([replay.starts[job][0] for job in jobs.ids])
    last_s = max((float(own.max()) for own in starts.values() if len(own)), default=0.0)
    clock_s = np.linspace(found.window_s[0], max(found.window_s[1], last_s), POINTS)
    curves = dict[str, tuple[float, ...]]()
    for name, start_s in starts.items():
        passed_s = np.clip(clock_s[:, None], jobs.ready_s, start_s) - jobs.ready_s
        curves[name] = tuple((passed_s @ jobs.weight).round(1).tolist())
    return tuple(clock_s.round(1).tolist()), curves
