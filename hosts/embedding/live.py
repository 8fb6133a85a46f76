"""A job while its host knows it: what was said of it, and its state as policies see it."""

import msgspec
from msgspec.structs import replace

from ronda.formulations.options.application import pool_shapes, suits
from ronda.hosts.embedding.held import Placement, held, with_way
from ronda.hosts.embedding.jobs import UNRATED, UNTOLD, Given, shown
from ronda.instances.cluster import Cluster
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation, Costs, Job, JobState
from ronda.instances.profile import Profile


class Tracked(msgspec.Struct, frozen=True, kw_only=True):
    """One job.

    `given` is what its host said of it, `done` the work that the host has reported. `state` and
    `profile` are what is shown: of a job whose speed is not known, its work counts in GPU-seconds.
    `began` is when its allocation began to progress, and the work that it had done then; `leaves`
    what it runs on until the next decision though it may not any more.
    """

    given: Given
    done: float
    state: JobState
    profile: Profile
    began: tuple[float, float] = (0.0, 0.0)
    leaves: Allocation | None = None

    @property
    def known(self) -> bool:
        """Whether anything is known of its speed."""
        return self.profile.name != UNTOLD


def tracked(given: Given, unrated: dict[str, Profile], shared: dict[str, Profile]) -> Tracked:
    """Return a job that has just been submitted."""
    job, profile = shown(given, unrated, shared)
    state = JobState(job=job, since_s=job.submit_s)
    return Tracked(given=given, done=0.0, state=state, profile=profile)


def again(
    of: Tracked,
    given: Given,
    cluster: Cluster,
    unrated: dict[str, Profile],
    shared: dict[str, Profile],
    now_s: float,
) -> Tracked:
    """Return a job as it is described now; what it has done by now was done as it was before.

    Without a row for what it runs on, that keeps its rate, and the job may go on so. InputError if
    that rate is not known. Of a job whose speed becomes known, and of which nothing was reported,
    its new rate says what it has done in the seconds that it has run.
    """
    job, profile = shown(given, unrated, shared)
    state, done = of.state, state_done(of, now_s)
    since_s = max(state.since_s, now_s) if state.allocation is not None else state.since_s
    before, rated = state.allocation, of.profile.name not in UNRATED
    if before is not None:
        option = before.option
        same = of.given.speeds is given.speeds and of.profile.name == profile.name
        if same and _model(of.given.job) == _model(given.job):
            profile, kept = of.profile, option
        else:
            batch = (
                option.batch if of.given.speeds is not None and given.speeds is not None else None
            )
            found = held(cluster, job, profile, before.placement, clock=option.clock, batch=batch)
            if found is None and (given.speeds is None or not rated):
                how = (
                    f"none for the {option.gpus} GPUs on {len(before.placement)} nodes that it has"
                )
                raise InputError(f"rates of job {job.id!r}", how, "a row for what it runs on")
            if found is None:
                profile, found = with_way(profile, cluster, before, option.rate), before
            kept = replace(found.option, span=option.span)
            if not rated and not of.done:
                done = kept.rate * state.done_at(now_s) / option.rate
        if profile.name in UNRATED:
            job = replace(job, gpus=kept.gpus)
        else:
            low, high = job.min_gpus or job.gpus, job.max_gpus or job.gpus
            job = replace(job, min_gpus=min(low, kept.gpus), max_gpus=max(high, kept.gpus))
        state = replace(state, allocation=replace(before, option=kept))
    gpu_s = profile.name == UNTOLD and not of.known  # what it has done still counts in these
    had = state.done_at(now_s) if gpu_s else done
    state = replace(state, job=job, done=had, since_s=since_s)
    told = of.done if profile.name in UNRATED else done
    return replace(of, given=given, done=told, state=state, profile=profile)


def _model(job: Job) -> tuple[str, float | None]:
    return job.profile, job.batch


def state_done(of: Tracked, now_s: float) -> float:
    """Return the work that a job has done; of one whose speed is not known what was reported."""
    return of.state.done_at(now_s) if of.known else of.done


def progressed(of: Tracked, done: float, now_s: float) -> Tracked:
    """Return a job of which its host says how much it has done."""
    if not of.known:
        return replace(of, done=done)
    state = replace(of.state, done=done)
    if state.allocation is not None:
        state = replace(state, since_s=max(state.since_s, now_s))
    return replace(of, done=done, state=state)


def stopped(of: Tracked, now_s: float) -> Tracked:
    """Return a job that gives up what it holds."""
    return replace(of, state=of.state.stopped(now_s, of.state.done_at(now_s)), leaves=None)


def begun(of: Tracked, state: JobState) -> Tracked:
    """Return a job that begins to run so."""
    return replace(of, state=state, began=(state.since_s, state.done), leaves=None)


def failed(of: Tracked, now_s: float, usual: Costs) -> Tracked:
    """Return a job that has lost its node: it waits, with the work of its last checkpoint.

    One at its believed rate; a report of what is saved takes its place.
    """
    after = stopped(of, now_s)
    if of.state.allocation is None:
        return after
    since_s, least = of.began
    seconds, costs = max(0.0, now_s - since_s), of.state.job.costs or usual
    done, lost_s = after.state.done, seconds - costs.kept_s(seconds)
    kept = max(min(least, done), done - of.state.allocation.option.rate * lost_s)
    return replace(after, state=replace(after.state, done=kept))


def resized(of: Tracked, job: Job, cluster: Cluster, now_s: float, *, elastic: bool) -> Tracked:
    """Return a job whose user has asked for other GPUs; `job` is it as it is shown now.

    Where it runs on what it may not have any more (or, if policies are not `elastic`, on another
    number than was asked for) it leaves that with the next decision, its work and its debts kept.
    """
    held = of.state.allocation
    if held is None:
        return of
    low, high = job.min_gpus or job.gpus, job.max_gpus or job.gpus
    shape, gpus = pool_shapes(cluster)[held.option.pool], held.option.gpus
    may_stay = suits(job, shape)
    if not job.preemptible and not may_stay:
        place, found = f"changed: job {job.id!r}", f"no {shape.pool.name} any more, where it runs"
        raise InputError(place, found, "what it has: it may not be stopped")
    sized = gpus == job.gpus or (elastic and low <= gpus <= high)
    if not job.preemptible or (may_stay and sized):
        return of
    limits = {"gpus": job.gpus, "min_gpus": job.min_gpus, "max_gpus": job.max_gpus}
    state = stopped(of, now_s).state
    return replace(of, state=replace(state, job=replace(state.job, **limits)), leaves=held)


def runs_on(
    of: Tracked,
    placement: Placement,
    cluster: Cluster,
    now_s: float,
    *,
    clock: float,
    batch: float | None,
) -> Tracked:
    """Return a job that its host says runs on these nodes, since now unless it did so already."""
    now = of.state.allocation
    if now is not None and now.placement == placement and now.option.clock == clock:
        return of
    job, profile = of.state.job, of.profile
    shape = pool_shapes(cluster)[int(cluster.topology.node_pool[placement[0][0]])]
    if not suits(job, shape):
        how = f"{shape.pool.gpu_type.name} of partition {shape.pool.partition!r}"
        raise InputError(f"running: job {job.id!r}", how, "GPUs that it may use")
    found = held(cluster, job, profile, placement, clock=clock, batch=batch)
    if found is None:
        gpus = sum(n for _, n in placement)
        how = f"{gpus} GPUs of {len(placement)} nodes at clock {clock:g}, without a rate"
        raise InputError(f"running: job {job.id!r}", how, "a row of its rates for that")
    if not of.known:
        job = replace(job, gpus=found.option.gpus)
    low, high = job.min_gpus or job.gpus, job.max_gpus or job.gpus
    if not low <= found.option.gpus <= high:
        how = f"{found.option.gpus} GPUs"
        raise InputError(f"running: job {job.id!r}", how, f"{low} to {high}, as it may have")
    state = stopped(of, now_s).state.holding(found, now_s, None)
    return begun(of, replace(state, job=job))
