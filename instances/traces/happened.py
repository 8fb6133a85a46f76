"""The schedule that a log tells of: the recorded runs of an instance's jobs, as they happened."""

import heapq
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from itertools import pairwise

import numpy as np
from msgspec.structs import replace

from ronda.instances.check.option import Examiner, own_batch
from ronda.instances.check.timeline import energy, flatten, with_off_times
from ronda.instances.errors import InputError
from ronda.instances.files.json import fingerprint
from ronda.instances.instance import Instance
from ronda.instances.job import Job, JobState, Option
from ronda.instances.rules.problem import show
from ronda.instances.schedule import RECORDED, JobOutcome, Schedule, Segment
from ronda.instances.traces.recorded import Recorded, RecordedRun

Placement = tuple[tuple[int, int], ...]


def recorded_schedule(instance: Instance, recorded: Recorded) -> Schedule:
    """Return the schedule of the runs that a log tells of, with the policy `RECORDED`.

    Starts, ends and nodes are those of the log. Runs without nodes get any nodes with room at that
    moment, in order of start. Runs for which the cluster has no room keep their time as well, on
    nodes that are full: the checker shows what is too much. A job's work is done in its last runs,
    as late as possible; the rest of the time that it held its GPUs counts as pause. A run that had
    not ended counts up to the end of the log. The notes in ``config`` count all this.

    Raises
    ------
    InputError
        If a run is of a job that the instance does not have, ends before it starts, overlaps
        another run of its job, or is on a node that the cluster does not have.
    """
    _refuse(instance, recorded)
    known = {job.id: job for job in instance.jobs}
    runs = [(run, k, name) for name, own in recorded.runs.items() for k, run in enumerate(own)]
    places, held = _Places(instance, recorded.until_s), dict[tuple[str, int], Placement]()
    for run, k, name in sorted(runs, key=lambda each: each[0].start_s):
        held[name, k] = places.take(known[name], run)
    written = _Segments(instance, recorded.until_s, held)
    jobs = tuple(written.outcome(job, recorded.runs.get(job.id, ())) for job in instance.jobs)
    ends = [s.end_s for outcome in jobs for s in outcome.segments]
    if any(outcome.end_s is None for outcome in jobs):
        ends.append(recorded.until_s)
    made = Schedule(
        instance=instance.name,
        fingerprint=fingerprint(instance),
        policy=RECORDED,
        config={"notes": [*places.notes(), *written.notes()]},
        jobs=jobs,
        end_s=max(ends, default=0.0),
        versions={"ronda": version("ronda")},
    )
    flat, _ = with_off_times(flatten(instance, made), instance.faults, made.end_s)
    return replace(made, energy=energy(flat, instance.cluster.topology, made.end_s))


def _refuse(instance: Instance, recorded: Recorded) -> None:
    jobs, nodes = {job.id for job in instance.jobs}, len(instance.cluster.topology.node_gpus)
    for job, runs in recorded.runs.items():
        place = f"recorded runs of job {show(job)}"
        if job not in jobs:
            raise InputError(place, "no such job", f"a job of {instance.name}")
        for run in runs:
            if run.end_s is not None and run.end_s < run.start_s:
                found = f"an end at {run.end_s:g} s, before the start at {run.start_s:g} s"
                raise InputError(place, found, "an end after the start")
            if strange := [node for node in run.held if not 0 <= node < nodes]:
                raise InputError(place, f"node {strange[0]}", f"one of the {nodes} nodes")
        for before, after in pairwise(runs):
            if before.end_s is None or after.start_s < before.end_s:
                found = f"a run from {after.start_s:g} s on, while one from {before.start_s:g} s on"
                raise InputError(place, f"{found} has not ended", "one run after the other")


class _Places:
    """The free GPUs of each node over time, while runs take them in order of their starts."""

    def __init__(self, instance: Instance, until_s: float) -> None:
        self._instance, self._until_s, self._topology = instance, until_s, instance.cluster.topology
        self._sizes, self._free = self._topology.node_gpus, self._topology.node_gpus.copy()
        self._ends: list[tuple[float, Placement]] = []
        self._allowed: dict[object, list[np.ndarray]] = {}
        self._named = self._found = 0
        self._above: list[str] = []

    def take(self, job: Job, run: RecordedRun) -> Placement:
        """Return the nodes of a run with the number of GPUs on each."""
        while self._ends and self._ends[0][0] <= run.start_s:
            for node, gpus in heapq.heappop(self._ends)[1]:
                self._free[node] += gpus
        given = tuple(sorted((node, gpus) for node, gpus in run.held.items() if gpus))
        self._named += bool(given)
        self._found += not given
        given = given or self._first_fit(job)
        for node, gpus in given:
            self._free[node] -= gpus
        if any(self._free[node] < 0 for node, _ in given):
            self._above.append(f"job {job.id} at {run.start_s:g} s")
        end_s = max(run.start_s, self._until_s) if run.end_s is None else run.end_s
        heapq.heappush(self._ends, (end_s, given))
        return given

    def notes(self) -> Iterator[str]:
        """Describe which runs have the nodes of the log, and which exceed the cluster."""
        if self._named:
            yield f"runs on the nodes that the log names: {self._named:,}"
        if self._found:
            yield f"runs on any nodes with room, as the log names none: {self._found:,}"
        if self._above:
            yield (
                f"runs that start when too few GPUs are free for them: {len(self._above):,}, such "
                f"as {self._above[0]} (the log or the cluster is not as it was)"
            )

    def _first_fit(self, job: Job) -> Placement:
        """Return the first node with room, or else the fewest of a pool, even if they are full."""
        pools = [nodes for nodes in self._nodes(job) if len(nodes)]
        if not pools:
            raise InputError(
                f"job {show(job.id)}", "no node that it may use", "one, or its nodes in the log"
            )
        for nodes in pools:
            if (roomy := nodes[self._free[nodes] >= job.gpus]).size:
                return ((int(roomy[0]), job.gpus),)
        room = [int(np.maximum(self._free[nodes], 0).sum()) for nodes in pools]
        best = next((k for k, free in enumerate(room) if free >= job.gpus), int(np.argmax(room)))
        nodes = pools[best]
        by_room = nodes[np.argsort(-self._free[nodes], kind="stable")]
        most = np.maximum(self._free, 0) if room[best] >= job.gpus else self._sizes
        given, left = dict[int, int](), job.gpus
        for node in by_room.tolist():
            given[node] = min(left, int(most[node]))
            left -= given[node]
        given[int(by_room[0])] += left  # more than the whole pool has
        return tuple(sorted((node, gpus) for node, gpus in given.items() if gpus))

    def _nodes(self, job: Job) -> list[np.ndarray]:
        """Return the nodes that a job may use, by pool."""
        key = job.partition, job.gpu_types, job.profile, job.nodes, job.features
        if key not in self._allowed:
            topology, groups = self._topology, self._instance.cluster.node_groups
            known = self._instance.profiles[job.profile].throughput
            types = {*(job.gpu_types or known)} & known.keys()
            able = np.array([{*job.features} <= {*group.features} for group in groups])
            able = able[topology.node_group]
            if job.nodes:
                able &= np.isin(np.arange(len(able)), job.nodes)
            self._allowed[key] = [
                np.flatnonzero(able & topology.in_service(k))
                for k, pool in enumerate(topology.pools)
                if pool.partition == job.partition and pool.gpu_type.name in types
            ]
        return self._allowed[key]


class _Segments:
    """The segments of runs, with the work that the instance says their jobs have done."""

    def __init__(
        self, instance: Instance, until_s: float, held: dict[tuple[str, int], Placement]
    ) -> None:
        self._instance, self._until_s, self._held = instance, until_s, held
        self._examiner = Examiner(instance.cluster, instance.profiles)
        self._open = self._without = 0

    def outcome(self, job: Job, runs: Sequence[RecordedRun]) -> JobOutcome:
        """Return the history of a job."""
        self._without += not runs
        left = 0.0 if job.truth is None else job.truth.work
        segments = list[Segment]()
        for k, run in reversed([*enumerate(runs)]):
            placement = self._held[job.id, k]
            option, rate = self._option(job, placement)
            end_s = max(run.start_s, self._until_s) if run.end_s is None else run.end_s
            able_s = max(0.0, end_s - run.start_s - run.suspended_s)
            done = min(left, rate * able_s)
            left -= done
            segments.append(
                Segment(
                    start_s=run.start_s,
                    resume_s=max(run.start_s, end_s - done / rate),
                    end_s=end_s,
                    done=done,
                    option=option,
                    placement=placement,
                )
            )
        segments.reverse()
        goes_on = bool(runs) and runs[-1].end_s is None
        self._open += goes_on
        ended_s = segments[-1].end_s if segments and not goes_on else None
        cut = bool(runs) and runs[-1].state.startswith("TIMEOUT") and job.limit_s is not None
        return JobOutcome(
            id=job.id,
            submit_s=job.submit_s,
            end_s=ended_s,
            segments=tuple(segments),
            ended_by="time limit" if cut and left > 0 else None,
            eligible_s=job.eligible_s,
        )

    def notes(self) -> Iterator[str]:
        """Describe the jobs without a run or an end."""
        if self._without:
            yield f"jobs without a run in the log, which count as unfinished: {self._without:,}"
        if self._open:
            yield f"jobs that run when the log ends, which count as unfinished: {self._open:,}"

    def _option(self, job: Job, placement: Placement) -> tuple[Option, float]:
        """Return the option of a run, and its true work per second; 1 if the job cannot have it."""
        topology, profile = self._instance.cluster.topology, self._instance.profiles[job.profile]
        pool = int(topology.node_pool[max(placement, key=lambda each: each[1])[0]])
        gpus = sum(count for _, count in placement)
        option = Option(
            pool=pool,
            gpus=gpus,
            batch=own_batch(JobState(job=job, since_s=0.0), profile),
            asked=job.gpus if job.exclusive and gpus > job.gpus else None,
            part=job.part,
            share=topology.pools[pool].gpu_type.fraction(job.part, job.share),
        )
        verdict = self._examiner.verdict(job, option, placement)
        if verdict.actual is None or job.truth is None:
            return option, 1.0
        rate = verdict.actual.samples_per_s
        return replace(option, rate=rate, power_w=verdict.power_w), rate * job.truth.throughput
