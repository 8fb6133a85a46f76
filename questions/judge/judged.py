"""The answer of ``ronda judge``: the judgements of a log's queues, with their worst decisions.

Single decisions are told as rounds: what the log started, against the best plan for that moment.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import inf
from operator import attrgetter
from typing import Any

import numpy as np
from msgspec import structs

from ronda.horizon.solve import solve
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation, Estimate, Job, JobState
from ronda.instances.profile import Profile, Rigid
from ronda.instances.round import Round
from ronda.instances.tables.numbers import moment
from ronda.instances.traces.audit.sample import sample_of
from ronda.instances.traces.logs.instance import ReadLog
from ronda.questions.certificates.certify import certificate
from ronda.questions.judge.answer import POLICY, SAME, judge, queues_seen
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


CERTIFIED_POLICY = "prices(elastic=false)"


def certified_regret(
    jobs: JudgedJobs, space: Space, told: CostlyDecision
) -> tuple[float, float] | None:
    """Return the least and the most that the worth of what was started then is below the best.

    Both are shares of the bound. The worth is that of the objective ``rank`` at time limits, for
    the jobs that waited and the devices that are proven to be free then, and certified. None if
    nothing is known of the sizes of jobs, or no job could start.
    """
    at_s = told.at_s
    free = _free(jobs, space, at_s)
    able = (jobs.ready_s <= at_s) & (jobs.start_s >= at_s) & (jobs.size <= sum(free.values()))
    here = np.flatnonzero(able)[:300].tolist()  # the jobs that came first
    if told.decisions > 1 or not here or not np.isfinite(jobs.limit_s[here]).all():
        return None
    rows = {node: row for row, node in enumerate(free)}
    groups = tuple(
        NodeGroup(name=f"{node}", count=1, gpus_per_node=free[node], gpu_type="device")
        for node in free
    )
    waiting = tuple(
        JobState(
            job=Job(
                id=jobs.ids[k],
                submit_s=0.0,
                profile="rigid",
                gpus=int(jobs.size[k]),
                weight=float(jobs.weight[k]),
                estimate=Estimate(work=float(jobs.limit_s[k])),
            ),
            since_s=0.0,
        )
        for k in here
    )
    round = Round(
        name="decision",
        now_s=0.0,
        cluster=Cluster(gpu_types=(GpuType(name="device", memory_gib=1.0),), node_groups=groups),
        profiles={"rigid": Profile(name="rigid", throughput={"device": Rigid()})},
        waiting=waiting,
    )
    plan = solve(round, CERTIFIED_POLICY)
    best = certificate(round, plan, CERTIFIED_POLICY)
    ways = best.jobs
    began = dict[str, Allocation]()
    for k, uses in enumerate(jobs.judged):
        if jobs.ids[k] in told.started and ways.get(jobs.ids[k]):
            if not {use.node for use in uses} <= free.keys():
                return None
            placement = tuple((rows[use.node], int(use.amounts[0])) for use in uses)
            began[jobs.ids[k]] = Allocation(option=ways[jobs.ids[k]][0].option, placement=placement)
    own = certificate(round, structs.replace(plan, allocations=began), CERTIFIED_POLICY)
    bound = min(best.bound, own.bound)
    if bound <= 0:
        return None
    return max(0.0, best.worth - own.worth) / bound, max(0.0, bound - own.worth) / bound


def _free(jobs: JudgedJobs, space: Space, at_s: float) -> dict[int, int]:
    """Return the devices of nodes that are proven to be free at a moment, where there are any."""
    used = Counter[int]()
    for use in chain(*jobs.judged):
        if use.since_s < at_s < use.until_s:
            used[use.node] += int(use.amounts[0])
    free = dict[int, int]()
    for node, own in space.items():
        k = int(np.searchsorted(own.times_s, at_s, side="right")) - 1
        most = own.most[own.ends_s > at_s, 0].max(initial=0.0)
        if k >= 0 and (left := most - own.used[k, 0] - used[node]) >= 1:
            free[node] = int(left)
    return free
