"""The judgement of one queue of a log, from the proof of its space to the causes of its waiting."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import inf
from operator import attrgetter

import numpy as np
from msgspec import structs

from ronda.horizon.driver import run
from ronda.instances.errors import InputError, printable
from ronda.instances.instance import Instance
from ronda.instances.job import Costs
from ronda.instances.outcome.usage import steps
from ronda.instances.traces.recorded import Recorded
from ronda.questions.judge.bound import least_wait
from ronda.questions.judge.judgement import (
    CAUSES,
    FULL,
    POOLED,
    PROVEN,
    TOPOLOGY,
    Judgement,
    QueueSeen,
    ReplayedQueue,
    WaitCause,
)
from ronda.questions.judge.orders import Backfilling, in_order, least_first, moved_up, with_recorded
from ronda.questions.judge.queue import (
    JudgedJobs,
    Starts,
    judged_jobs,
    labels_of,
    names_of,
    on_given_nodes,
    ready_s,
)
from ronda.questions.judge.space import (
    IDLE_S,
    Space,
    as_one_node,
    idle_node_s,
    node_uses,
    proven_share,
)

SAME, POLICY = "same order", "first come, with backfilling"
"""Names of replays; those by hindsight are named in `_replayed`."""


def queues_seen(
    instance: Instance, recorded: Recorded, since_s: float | None = None
) -> tuple[QueueSeen, ...]:
    """Return the queues of a log, those that waited the most first."""
    begin_s = _first_end_s(recorded) if since_s is None else since_s
    found = defaultdict[str, list[float]](list)
    nodes, labels = defaultdict[str, set[int]](set), labels_of(instance)
    for job in instance.jobs:
        for run_ in recorded.runs.get(job.id, ())[:1]:
            for name in names_of(job, labels):
                nodes[name].update(run_.held)
                if run_.start_s >= begin_s:
                    found[name].append(max(0.0, run_.start_s - ready_s(job, begin_s)))
    seen = [QueueSeen(name, len(own), len(nodes[name]), sum(own)) for name, own in found.items()]
    return tuple(sorted(seen, key=lambda each: (-each.waited_s, each.name)))


def judge(
    instance: Instance,
    recorded: Recorded,
    *,
    cluster_known: bool,
    queue: str | None = None,
    since_s: float | None = None,
    trust: float = 0.9,
    topology: bool = False,
    policies: Sequence[str] = (),
    progress: Callable[[str], None] = lambda words: None,
) -> tuple[Judgement, JudgedJobs, Space]:
    """Return the judgement of a queue of a log, its jobs, and their proven space.

    All jobs that are not judged are held at their true times.

    Parameters
    ----------
    instance, recorded, cluster_known
        The instance that is made of the log, with jobs that ended in the second in which they
        started (``instant`` of `log_instance`); what ran; and whether its cluster was given.
    queue
        Name of a `QueueSeen`; None for the partition that waited the most.
    since_s, trust
        The first second from which the log has every job that ended, None for the first end in it.
        The window ends where less than the share `trust` of the queue's nodes is proven; 0 judges
        all of the log.
    topology, policies
        Whether the recorded order is replayed as if all nodes were one, too; and policies of ronda
        that are driven over the whole instance, with all its jobs.
    progress
        Is told in words how far the work is.

    Raises
    ------
    InputError
        If the queue is none of the log's, or if no job of it started in the window.
    """
    begin_s = _first_end_s(recorded) if since_s is None else since_s
    name = _queue(instance, recorded, queue, begin_s)
    progress(f"{name}: reading what is proven")
    jobs = _judged(instance, recorded, name, (begin_s, recorded.until_s))
    proven = node_uses(jobs, begin_s, recorded.until_s)
    moments = np.linspace(begin_s, recorded.until_s, 145)[:-1]
    share = proven_share(proven, moments)
    until_s, why = _trusted(moments, share, recorded.until_s, trust)
    if until_s < recorded.until_s:
        jobs = _judged(instance, recorded, name, (begin_s, until_s))
        proven = node_uses(jobs, begin_s, recorded.until_s)
    wide = on_given_nodes(jobs, instance) if cluster_known else jobs
    machines, groups = instance.cluster.topology, instance.cluster.node_groups
    has = {node: groups[int(machines.node_group[node])].has for node in wide.nodes}
    sizes = {
        node: (float(machines.node_gpus[node]), *(own.get(name, inf) for name in wide.hosts))
        for node, own in has.items()
    }
    full = node_uses(wide, begin_s, recorded.until_s, sizes)

    replays = list[ReplayedQueue]()
    for space, own, uses in ((PROVEN, jobs, proven), (FULL, wide, full)):
        progress(f"{name}: replays in the {space} space")
        replays += _replayed(own, space, uses)
    if topology:
        shapes = tuple(shape.as_one() for shape in jobs.shapes)
        one = replace(jobs, shapes=shapes, where=((0,),) * len(shapes))
        starts = _same_order(one, as_one_node(proven))
        replays.append(_told(one, POOLED, SAME, False, starts))
    best = min((each for each in replays if each.space == FULL), key=attrgetter("wait_s"))
    first = np.array([best.starts[each][0] for each in jobs.ids])
    least = least_wait(wide, full, first, lambda words: progress(f"{name}: {words}"))
    for policy in policies:
        progress(f"{name}: {policy} over the whole log")
        replays.append(_driven(instance, jobs, policy))
    waited_s, most = jobs.waited_s, jobs.waited_s - least
    joules = [run_.energy_j for each in jobs.ids for run_ in recorded.runs[each]]
    told = [each for each in joules if each is not None]
    energy_j = sum(told) if len(told) == len(joules) else None
    spared = [max(0.0, waited_s - _least(replays, PROVEN, each)) for each in ("", POLICY)]
    judgement = Judgement(
        queue=name,
        jobs=len(jobs.ids),
        window_s=(begin_s, until_s),
        trusted_why=why,
        waited_s=waited_s,
        causes=_causes(jobs, replays, least, cluster_known),
        hindsight=(spared[0], most),
        same_knowledge=(spared[1], most),
        replays=tuple(replays),
        energy_j=energy_j,
        rests_on=tuple(_rests_on(jobs, begin_s, cluster_known)),
        unknown=tuple(_unknown(instance, jobs, proven, begin_s, recorded.until_s, energy_j)),
    )
    return judgement, jobs, proven


def _first_end_s(recorded: Recorded) -> float:
    """Return the first end in a log: earlier, jobs that had ended may be missing."""
    ends = (run_.end_s for runs in recorded.runs.values() for run_ in runs)
    return min((end_s for end_s in ends if end_s is not None), default=0.0)


def _queue(instance: Instance, recorded: Recorded, queue: str | None, begin_s: float) -> str:
    seen = queues_seen(instance, recorded, begin_s)
    names = [each.name for each in seen]
    if queue is None:
        narrow = [name for name in names if "/" not in name and "+" not in name]
        queue = next(iter(narrow or names), "")
    if queue not in names:
        known = ", ".join(map(printable, names[:8])) or "a log with jobs that start after an end"
        raise InputError("queue", repr(printable(queue)), f"one of {known}")
    return queue


def _judged(
    instance: Instance, recorded: Recorded, name: str, window_s: tuple[float, float]
) -> JudgedJobs:
    jobs = judged_jobs(instance, recorded, name, window_s)
    if not jobs.ids:
        apart = "; ".join(f"{many:,} {why}" for why, (many, _) in jobs.apart.items())
        found = f"no job that can be judged{': ' if apart else ''}{apart}"
        place = f"queue {printable(name)}, {window_s[0]:,.0f} to {window_s[1]:,.0f} s"
        raise InputError(place, found, "jobs that started, on nodes that the log names")
    return jobs


def _trusted(
    moments: np.ndarray, share: np.ndarray, until_s: float, trust: float
) -> tuple[float, str]:
    """Return the end of the window, and why it is there."""
    low = np.flatnonzero(share < trust)
    if not len(low):
        return until_s, (
            f"All of the log is judged; until its end it proves at least {share.min():.0%} of the "
            "most that was in use on the nodes."
        )
    k = int(low[0])
    return float(moments[k]), (
        f"From {(moments[k] - moments[0]) / 3600:,.2f} h after its beginning on, the log proves "
        f"{share[k]:.0%} of the most that was in use "
        f"on the nodes, less than {trust:.0%}: what runs at its end is missing in it."
    )


def _told(
    jobs: JudgedJobs, space: str, name: str, foresight: bool, starts: Starts
) -> ReplayedQueue:
    """Return starts as a replay, which counts if every job has one."""
    by_id = {jobs.ids[k]: start for k, start in sorted(starts.items())}
    return ReplayedQueue(name, space, foresight, jobs.wait_of(starts), by_id)


def _same_order(jobs: JudgedJobs, uses: Space) -> Starts:
    """Return the better of two replays in the recorded order."""
    return min(in_order(jobs, uses, range(len(jobs.ids))), moved_up(jobs, uses), key=jobs.wait_of)


def _replayed(jobs: JudgedJobs, space: str, uses: Space) -> Iterator[ReplayedQueue]:
    """Yield the replays in a space: those that see no run times first, the policy if proven."""
    yield _told(jobs, space, SAME, False, _same_order(jobs, uses))
    if space == PROVEN:
        easy = with_recorded(jobs, lambda fixed: Backfilling(jobs, uses, fixed).run())
        yield _told(jobs, space, POLICY, False, easy)
    keys = {"shortest first": jobs.lasts_s / jobs.weight}
    if len(set(jobs.size.tolist())) > 1:
        keys["smallest first"] = jobs.lasts_s * jobs.size / jobs.weight
    for name, key in keys.items():
        starts = with_recorded(jobs, partial(least_first, jobs, uses, key))
        yield _told(jobs, space, name, True, starts)


def _driven(instance: Instance, jobs: JudgedJobs, policy: str) -> ReplayedQueue:
    """Return a run of a policy over the whole instance, without pauses for starts."""
    free = structs.replace(instance, costs=Costs())
    own = tuple(structs.replace(job, costs=None) for job in instance.jobs)
    schedule = run(structs.replace(free, jobs=own), policy)
    ends = {each.id: each for each in schedule.jobs}
    starts = dict[str, tuple[float, tuple[int, ...]]]()
    waits = 0.0
    for k, name in enumerate(jobs.ids):
        each = ends[name]
        if each.end_s is not None and each.segments:
            nodes = tuple(node for node, _ in each.segments[0].placement)
            starts[name] = each.segments[0].start_s, nodes
            late_s = each.end_s - jobs.lasts_s[k] - jobs.ready_s[k]
            waits += float(jobs.weight[k] * max(0.0, late_s))
    wait_s = waits if len(starts) == len(jobs.ids) else inf
    return ReplayedQueue(policy, "driven", False, wait_s, starts)


def _least(replays: Sequence[ReplayedQueue], space: str, name: str = "") -> float:
    """Return the least wait of the replays in a space that placed every job."""
    own = (each for each in replays if each.space == space and name in ("", each.name))
    return min((each.wait_s for each in own), default=inf)


def _causes(
    jobs: JudgedJobs, replays: Sequence[ReplayedQueue], least: float, cluster_known: bool
) -> tuple[WaitCause, ...]:
    """Return the causes, whose waits add up to what was waited."""
    waited = jobs.waited_s
    same = min(waited, _least(replays, PROVEN, SAME))
    policy = _least(replays, PROVEN, POLICY)
    policy = same if policy == inf else policy
    best = min(same, _least(replays, PROVEN))
    full = min(best, _least(replays, FULL))
    sizes = "given" if cluster_known else "inferred from peaks, which is a lower bound"
    certain = (
        "The same jobs in the recorded order fit into space that the log proves to be free.",
        "A policy that sees no run times places the same jobs in proven space.",
        "A schedule by true run times fits into proven space; nobody knew them.",
        f"It holds if all nodes were in service; their sizes are {sizes}.",
        "No schedule is known that is better, and no proof that there is none.",
        f"No schedule in the full space waits less, by prices of its slots; sizes are {sizes}.",
    )
    steps = (waited, same, policy, best, full, least, 0.0)
    parts = [before - after for before, after in pairwise(steps)]
    causes = [WaitCause(*each) for each in zip(CAUSES, parts, certain, strict=True)]
    if (pooled := _least(replays, POOLED)) < inf:
        words = "The recorded order with all proven space on one node; it is no further part."
        causes.append(WaitCause(TOPOLOGY, _least(replays, PROVEN, SAME) - pooled, words))
    return tuple(causes)


def _shared(jobs: JudgedJobs, begin_s: float) -> set[int]:
    """Return the nodes that jobs may use and on which others ran after the beginning."""
    return {use.node for use in jobs.others if use.until_s > begin_s} & {*jobs.nodes}


def _rests_on(jobs: JudgedJobs, begin_s: float, cluster_known: bool) -> Iterator[str]:
    for why, (many, waited_s) in jobs.apart.items():
        yield (
            f"Jobs that are not judged and keep their true times: {many:,}, as they {why}. They "
            f"waited {waited_s / 3600:,.1f} h."
        )
    many, held_s = jobs.held
    if many:
        yield (
            f"Jobs that could start only some time after they were submitted (holds, start times, "
            f"jobs before them): {many:,}. These {held_s / 3600:,.1f} h in all count as no wait."
        )
    if cut := sum(each.startswith("CANCELLED") for each in jobs.states):
        yield (
            f"Jobs that were cancelled while they ran: {cut:,}. Started at other times they might "
            "have run longer."
        )
    if others := _shared(jobs, begin_s):
        yield (
            f"Nodes of the queue on which other jobs ran, too: {len(others):,} of "
            f"{len(jobs.nodes):,}. These keep their true times, and what they could spare does not "
            "add up with this."
        )
    if not cluster_known:
        yield (
            "Sizes of nodes are what was in use on one of a kind, a lower bound: what could have "
            "been spared at most holds for these sizes alone."
        )


def _unknown(
    instance: Instance,
    jobs: JudgedJobs,
    proven: Space,
    begin_s: float,
    until_s: float,
    energy_j: float | None,
) -> Iterator[str]:
    if idle_s := idle_node_s(proven, until_s):
        yield (
            f"why nodes were without a job for {idle_s / 3600:,.1f} h in all, longer than "
            f"{IDLE_S:.0f} s each time, which does not count as free."
        )
    accounts = {job.tenant for job in instance.jobs if job.id in {*jobs.ids}}
    if len(accounts) > 1:
        yield f"shares and priorities of the queue's {len(accounts):,} accounts."
    times_s = np.concatenate([jobs.start_s + jobs.lasts_s, jobs.start_s])
    if steps(times_s, np.repeat([-1.0, 1.0], len(jobs.ids)))[1].max() == 1:  # ran at once
        yield "whether one job at once was a limit, or for want of nodes, which look alike."
    if _shared(jobs, begin_s):
        yield "whether jobs of other queues come first by right."
    yield "limits of users and QOS, reservations, states of nodes, and priorities."
    if energy_j is None:
        yield "the energy of all of the jobs."
