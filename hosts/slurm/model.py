"""The round of a real Slurm, as the controller sees it.

It is the round of the snapshot, with the terms of owners and operator in it: who may be stopped,
who may have other numbers of GPUs, and without the begin times and nodes that ronda gave itself.
"""

from collections.abc import Mapping
from dataclasses import replace as with_
from typing import NamedTuple

from msgspec.structs import replace

from ronda.hosts.slurm.scope import JobTerms, Scope
from ronda.hosts.slurm.state import SlurmState, TouchedJob
from ronda.instances.job import Costs, Estimate, Job, JobState, Need
from ronda.instances.models.power import NodeDraw
from ronda.instances.profile import Profile, Rated
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate
from ronda.instances.snapshots.gpu_nodes import GpuNodes
from ronda.instances.snapshots.rounds import RESTARTS_ASSUMED, round_of
from ronda.instances.snapshots.snapshot import Noted, SeenJob, Snapshot


class SlurmModel(NamedTuple):
    """A cluster as a decision sees it.

    Attributes
    ----------
    found
        The cluster as Slurm shows it.
    round
        Its round.
    noted
        What the round lacks or assumes.
    nodes
        The names of the round's nodes, in order.
    jobs
        The jobs that Slurm shows, by id.
    terms
        What ronda may do with each of them.
    """

    found: Snapshot
    round: Round
    noted: Noted
    nodes: tuple[str, ...]
    jobs: dict[str, SeenJob]
    terms: dict[str, JobTerms]

    def state(self, job: str) -> JobState:
        """Return the state of a job of the round."""
        return next(state for state in self.round.jobs if state.job.id == job)


def modelled(found: Snapshot, scope: Scope, state: SlurmState, length_s: float) -> SlurmModel:
    """Return the model of a cluster; decisions are about `length_s` seconds apart.

    Raises
    ------
    InputError
        If the cluster has no GPUs, or if no round can be made of it.
    """
    jobs = {job.id: job for job in found.jobs}
    terms = {job.id: scope.terms(job) for job in found.jobs}
    out = {node.name for node in found.nodes if node.out is not None}
    for job in found.jobs:
        if not out.isdisjoint(job.on) or state.of(job).ends(job):  # nobody could have its GPUs
            terms[job.id] = terms[job.id]._replace(stop=False, speeds={})
    seen = with_(found, jobs=tuple(_as_submitted(job, state.of(job)) for job in found.jobs))
    draw = NodeDraw(wake_s=scope.wake_s) if scope.power else None
    plain = round_of(seen, noted := Noted(), draw=draw)
    noted.counts.pop(RESTARTS_ASSUMED)  # the scope states what a restart costs
    plain = state.sizes.believe(plain)
    with_gpus = [job for job in seen.jobs if job.has_gpus]
    names = tuple(node.name for node in GpuNodes(seen, with_gpus, Noted()).nodes)
    profiles = dict(plain.profiles)
    types = [kind.name for kind in plain.cluster.gpu_types]

    def agreed(given: JobState) -> JobState:
        own, memory = terms[given.job.id], state.of(jobs[given.job.id])
        given = replace(given, done=memory.done_s, job=_stoppable(given, own, scope))
        speeds = own.speeds if given.job.gpus in own.speeds else {}
        if speeds:
            profile = _speeds(given.job.id, speeds, types)
            profiles[profile.name] = profile
            given = _elastic(given, profile.name, speeds, memory.work_s)
        done, size = given.done_at(found.now_s), given.job.estimate
        if size is not None and size.work <= done:  # it has outlived what was believed before
            given = replace(given, job=replace(given.job, estimate=Estimate(work=2 * done)))
        return given

    round = replace(
        plain,
        length_s=length_s,
        costs=Costs(restart_s=scope.restart_s),
        running=tuple(map(agreed, plain.running)),
        waiting=tuple(map(agreed, plain.waiting)),
        profiles=profiles,
    )
    return SlurmModel(found, validate(round), noted, names, jobs, terms)


def _as_submitted(job: SeenJob, memory: TouchedJob) -> SeenJob:
    """Return a job without what ronda has told Slurm about it."""
    submit_s = min(job.submit_s, memory.submit_s)
    if job.on:
        return replace(job, submit_s=submit_s)
    eligible_s = None if memory.delays(job) else job.eligible_s
    nodes = () if memory.chose(job) else job.nodes
    return replace(job, submit_s=submit_s, eligible_s=eligible_s, nodes=nodes)


def _stoppable(given: JobState, own: JobTerms, scope: Scope) -> Job:
    return replace(given.job, preemptible=own.stop, min_run_s=scope.min_run_s)


def _speeds(job: str, speeds: Mapping[int, float], types: list[str]) -> Profile:
    count, gpus = len(speeds), sorted(speeds)
    rated = Rated(
        gpus=tuple(gpus),
        nodes=(1,) * count,
        batch=(1.0,) * count,
        clock=(1.0,) * count,
        rate=tuple(speeds[n] for n in gpus),
    )
    return Profile(name=f"speeds of {job}", throughput=dict.fromkeys(types, rated))


def _elastic(
    given: JobState, profile: str, speeds: Mapping[int, float], work_s: float | None
) -> JobState:
    """Return an elastic job, whose work counts in seconds at speed 1.

    Its time limit is that of the GPUs that it asks for now, and changes with them.
    """
    job, speed = given.job, speeds[given.job.gpus]
    if work_s is None and job.estimate is not None:
        work_s = job.estimate.work * speed
    work = None if work_s is None else Estimate(work=work_s)
    needs = {of: Need(per_node=need.per_gpu * job.gpus) for of, need in job.needs.items()}
    job = replace(
        job,
        profile=profile,
        min_gpus=min(speeds),
        max_gpus=max(speeds),
        sizes=tuple(sorted(speeds)),
        estimate=work,
        limit_s=None,
        needs=needs,
        one_node=True,
        pieces=None,
    )
    held = given.allocation
    if held is not None:
        held = replace(held, option=replace(held.option, rate=speed))
    return replace(given, job=job, allocation=held)
