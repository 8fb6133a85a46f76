"""The round that is made of a snapshot: its jobs with GPUs, on its nodes with GPUs.

Jobs without GPUs are left out; what they hold on nodes with GPUs is taken. So are jobs that a round
cannot state: GPUs that they hold are out of service, as nobody else may have them.
"""

import re
from collections import defaultdict
from math import ceil

from msgspec.structs import replace

from ronda.instances.cluster import Cluster
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation, Estimate, Job, JobState, Need, Option, Pieces
from ronda.instances.models.power import NodeDraw
from ronda.instances.profile import rigid_profile
from ronda.instances.round import Round
from ronda.instances.rules.problem import Problem, as_error
from ronda.instances.rules.validate import problems, validate
from ronda.instances.site import GPUS
from ronda.instances.snapshots.gpu_nodes import GpuNodes
from ronda.instances.snapshots.labels import Labels
from ronda.instances.snapshots.snapshot import Noted, SeenJob, SeenNode, Snapshot
from ronda.instances.traces.rigid import HELIOS_COSTS, RESTARTS

RESTARTS_ASSUMED = "assumption of a round"
"""The entry of `Noted` that says which costs of restarts a round has."""


def round_of(seen: Snapshot, noted: Noted | None = None, *, draw: NodeDraw | None = None) -> Round:
    """Return the valid round of a snapshot, in which every job is rigid and runs at rate 1.

    A node that is going down sleeps in the round, because a job that is placed there waits until it
    is down and up again. A sleeping node on which a job has been started is waking.

    Parameters
    ----------
    seen
        The cluster.
    noted
        Where to count what is left out or assumed; by default, the snapshot's own.
    draw
        What every node draws without jobs and how fast it wakes, so that policies may let it sleep.
        By default an assumption if some node of the snapshot is not on, else nothing.

    Raises
    ------
    InputError
        If the snapshot has no node with GPUs, or contradicts itself.
    """
    noted = seen.noted if noted is None else noted
    if not any(node.has.get(GPUS, 0.0) >= 1 for node in seen.nodes):
        raise InputError(seen.source, "no node with GPUs", "some: a round is about jobs with GPUs")
    if draw is None and any(node.power != "on" for node in seen.nodes):
        draw = NodeDraw()
    if draw is not None:
        watts = f"{draw.idle_w:g} W idle, {draw.sleep_w:g} W asleep"
        what = f"node taken to draw {watts}, and to wake in {draw.wake_s:g} s"
        noted.add(what, seen.nodes[0].name, len(seen.nodes))
    maker = _Maker(seen, noted, draw)
    while True:
        round = maker.round()
        found = problems(round)
        if not found:
            noted.add(RESTARTS_ASSUMED, RESTARTS)
            return validate(round)
        maker.leave_out(round, found)


class _Maker:
    """A maker of rounds, which leaves out more jobs from one round to the next."""

    def __init__(self, seen: Snapshot, noted: Noted, draw: NodeDraw | None) -> None:
        self.seen, self.noted, self.draw = seen, noted, draw
        self.jobs = [job for job in seen.jobs if job.has_gpus]
        self.floor = GpuNodes(seen, self.jobs, noted)
        self.labels = Labels(seen, self.jobs, apart=self.floor.apart)
        self.started = {job.id for job in seen.jobs if job.on}
        self.left: set[str] = set()
        for job in self.jobs:
            self._look_over(job)
        idle = [node.name for node in seen.nodes if node.name not in self.floor.number]
        others = [f"job {job.id}" for job in seen.jobs if not job.has_gpus]
        for what, examples in (("node without GPUs", idle), ("job without GPUs", others)):
            if examples:
                noted.add(f"{what}, left out", examples[0], len(examples))

    def round(self) -> Round:
        """Return the round with all jobs that are not left out, valid or not."""
        kept = [job for job in self.jobs if job.id not in self.left]
        states = sorted(map(self._state, kept), key=lambda state: state.job.submit_s)
        cluster, now_s = self._cluster({job.id for job in kept}), self.seen.now_s
        nodes = list(enumerate(self.floor.nodes))
        leaving = {
            k: node.leaves_s
            for k, node in nodes
            if node.leaves_s is not None and _in_service(node, now_s)
        }
        gone = dict.fromkeys((k for k, _ in cluster.out), now_s) | leaving
        back = [(k, node.back_s) for k, node in nodes if k in gone and node.back_s is not None]
        called = {name for job in self.seen.jobs for name in job.on}
        rests = {k: node for k, node in nodes if node.out is None and node.power != "on"}
        waking = [k for k, n in rests.items() if n.power == "waking" or n.name in called]
        return Round(
            name=self.seen.system,
            source=self.seen.source,
            now_s=now_s,
            cluster=cluster,
            profiles={"rigid": rigid_profile(*(kind.name for kind in cluster.gpu_types))},
            running=tuple(state for state in states if state.allocation is not None),
            waiting=tuple(state for state in states if state.allocation is None),
            costs=HELIOS_COSTS,
            site=self.labels.site([state.job for state in states]),
            leaving=tuple(leaving.items()),
            returning=tuple((k, back_s) for k, back_s in back if back_s > gone[k]),
            asleep=tuple(k for k in rests if k not in waking),
            waking=tuple(waking),
        )

    def leave_out(self, round: Round, found: list[Problem]) -> None:
        """Leave out the jobs that have problems; raise problems that are no job's own."""
        before = len(self.left)
        for problem in found:
            place = re.match(r"(running|waiting)\[(\d+)\]\.(?:job\.)?(\S+)", problem.place)
            if place is not None:
                job = getattr(round, place[1])[int(place[2])].job
                words = f"{place[3]} is {problem.found}, expected {problem.expected}"
                self._leave(job.id, f"{place[1]} job that no round can have, left out", words)
        if len(self.left) == before:
            raise as_error(self.seen.source, found)

    def _leave(self, job: str, reason: str, words: str = "") -> None:
        if job not in self.left:
            self.left.add(job)
            self.noted.add(reason, f"job {job}" + (f" ({words})" if words else ""))

    def _look_over(self, job: SeenJob) -> None:
        """Leave out a job that a round cannot state."""
        if job.on and self._held(job) is None:
            self._leave(job.id, "running job on parts of GPUs, or on several types, left out")
        elif not job.on and job.reservation is not None:
            self._leave(job.id, "waiting job of a reservation, left out")
        elif not job.on and (job.nodes or job.not_nodes) and not self._nodes(job):
            self._leave(job.id, "waiting job that may use no node with GPUs, left out")
        elif not job.on and job.count > 1 and (job.part or job.share):
            self._leave(job.id, "waiting job with several parts of GPUs, left out")
        elif job.least is not None and job.least < job.count:
            self.noted.add("job that could do with fewer pieces, taken whole", f"job {job.id}")

    def _cluster(self, kept: set[str]) -> Cluster:
        """Return the cluster less what is out of service, or held by jobs that are left out."""
        names = {of for group in self.floor.cluster.node_groups for of in group.has}
        own, lost = defaultdict[int, float](float), defaultdict[int, float](float)
        taken = defaultdict[tuple[int, str], float](float)
        licences = defaultdict[str, float](float, self.seen.licences_taken)
        for job in self.seen.jobs:
            for name in job.on:
                k, held = self.floor.number.get(name), job.holds(name)
                if k is None:
                    continue
                if job.id in kept:
                    own[k] += held.get(GPUS, 0.0)
                    continue
                for of in names & held.keys():
                    taken[k, of] += held[of]
                parts = job.on[name] * (job.share or 1.0) if job.has_gpus else 0.0
                lost[k] += held.get(GPUS) or parts
            if job.on and job.id not in kept:
                for of, count in job.licences.items():
                    licences[of] += count
        out = {}
        for k, node in enumerate(self.floor.nodes):
            whole, serves = int(node.has[GPUS]), _in_service(node, self.seen.now_s)
            left = whole - ceil(own[k])
            gone = min(left, ceil(lost[k])) if serves else left
            if gone > 0:
                out[k] = gone
        groups, draw, draws = self.floor.cluster.node_groups, self.draw, dict[str, float]()
        if draw is not None:  # the host's power counts that of idle GPUs, which have none here
            draws = {"host_idle_w": draw.idle_w, "sleep_w": draw.sleep_w, "wake_s": draw.wake_s}
            draws |= {"wake_w": max(0.0, draw.wake_w - draw.idle_w)}
        return replace(
            self.floor.cluster,
            node_groups=tuple(replace(group, **draws) for group in groups),
            out=tuple(out.items()),
            taken=tuple((*key, amount) for key, amount in sorted(taken.items()) if amount > 0),
            licences={of: int(count) for of, count in self.seen.licences.items()},
            licences_taken={of: ceil(licences[of]) for of in self.seen.licences if licences[of]},
        )

    def _held(self, job: SeenJob) -> Allocation | None:
        """Return the GPUs of a running job, or None if they are not whole ones of one pool."""
        amounts = {name: job.holds(name).get(GPUS, 0.0) for name in job.on}
        placement = [(self.floor.number.get(name), n) for name, n in amounts.items() if n > 0]
        known = [(k, int(n)) for k, n in placement if k is not None and n == int(n)]
        pools = {int(self.floor.cluster.topology.node_pool[k]) for k, _ in known}
        if len(known) < len(placement) or len(pools) != 1 or job.part or job.share:
            return None
        gpus, asked = sum(n for _, n in known), int(job.gpus)
        idle = job.exclusive and 0 < asked < gpus
        option = Option(pool=pools.pop(), gpus=gpus, asked=asked if idle else None)
        return Allocation(option=option, placement=tuple(known))

    def _state(self, job: SeenJob) -> JobState:
        now_s, held = self.seen.now_s, self._held(job) if job.on else None
        if held is None:
            return JobState(
                job=self._job(job, ceil(job.count * job.per.get(GPUS, 1.0))),
                since_s=job.submit_s,
                restarts=job.restarts,
                started=job.restarts > 0,
                blocked=job.blocked or self._waits_for(job),
                rank=job.rank,
            )
        begun_s = now_s if job.start_s is None else job.start_s
        return JobState(
            job=self._job(job, held.option.computing),
            since_s=begun_s,
            held_s=begun_s,
            restarts=job.restarts,
            started=True,
            allocation=held,
            rank=job.rank,
        )

    def _job(self, job: SeenJob, gpus: int) -> Job:
        partition, labels = self.floor.home(job.partitions)
        cut = job.part is not None or job.share is not None
        each, limit_s = 1.0 if cut else job.per.get(GPUS, 0.0), job.limit_s
        if limit_s is None and job.on and job.ends_s is not None:
            begun_s = self.seen.now_s if job.start_s is None else job.start_s
            limit_s = max(0.0, job.ends_s - begun_s)
        asks = {of: amount for of, amount in job.per.items() if of != GPUS and amount > 0}
        pieces = Pieces(count=job.count, own_nodes=job.own_nodes)
        submit_s = min(job.submit_s, self.seen.now_s)
        return Job(
            id=job.id,
            submit_s=submit_s,
            profile="rigid",
            gpus=gpus,
            partition=partition,
            gpu_types=job.gpu_types,
            preemptible=job.preemptible,
            user=job.user,
            name=job.name,
            estimate=Estimate(work=limit_s) if limit_s else None,
            tenant=self.labels.tenant(job),
            priority=self.labels.priority(job),
            limit_s=limit_s or None,
            eligible_s=job.eligible_s if (job.eligible_s or 0.0) > submit_s else None,
            after=job.after,
            after_all=job.after_all,
            job_array=job.job_array if job.array_most else None,
            slices=job.slices,
            one_node=job.one_node or job.count == 1,
            exclusive=job.exclusive,
            nodes=() if job.on else self._nodes(job),
            features=(*job.features, *labels),
            needs={of: Need(per_gpu=amount / each) for of, amount in asks.items()},
            licences={of: ceil(count) for of, count in job.licences.items() if count > 0},
            part=job.part,
            share=job.share,
            pieces=pieces if gpus == job.count * each and not cut else None,
        )

    def _nodes(self, job: SeenJob) -> tuple[int, ...]:
        """Return the numbers of the nodes that a job may use; none for all."""
        if not job.nodes and not job.not_nodes:
            return ()
        only = set(job.nodes or self.floor.number) - set(job.not_nodes)
        return tuple(sorted(k for name, k in self.floor.number.items() if name in only))

    def _waits_for(self, job: SeenJob) -> str | None:
        """Return why a job waits for others, or None if enough of them have come."""
        left = [a.job for a in job.after if a.when != "start" or a.job not in self.started]
        enough = not left if job.after_all else len(left) < len(job.after)
        return None if enough or not job.after else f"it waits for job {', '.join(left)}"


def _in_service(node: SeenNode, now_s: float) -> bool:
    return node.out is None and (node.leaves_s is None or node.leaves_s > now_s)
