"""Rules for jobs, fast enough for instances with a hundred thousand jobs."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import floor

import numpy as np
from numpy.typing import NDArray

from ronda.instances.cluster import Cluster
from ronda.instances.job import Costs, Job, Truth
from ronda.instances.profile import NoiseCurve, Profile, Rigid
from ronda.instances.rules.cluster import owners
from ronda.instances.rules.problem import Problem, one_of, show, too_many
from ronda.instances.rules.profile import batch_problems
from ronda.instances.violation import LONGEST_S, ROUNDING

LAST_S = LONGEST_S / 2
"""The latest allowed submission time."""

Places = Callable[[int], str]
"""A function that returns the place of job k, such as ``jobs[3]``."""

_Shape = tuple[str, str, tuple[str, ...]]  # profile, partition, GPU types


def job_problems(
    jobs: Sequence[Job], places: Places, profiles: Mapping[str, Profile], cluster: Cluster | None
) -> Iterator[Problem]:
    """Yield the inconsistencies in jobs, apart from order and truth.

    Without a cluster (if it is inconsistent itself), capacity is not checked.
    """
    yield from too_many("jobs", "jobs", len(jobs))
    ids = [j.id for j in jobs]
    if len(set(ids)) < len(ids):
        yield from _repeated_ids(ids, places)
    yield from _gpu_ranges(jobs, places)
    yield from _references(jobs, places, profiles, cluster)
    yield from _capacity(jobs, places, profiles, cluster)
    yield from _batches(jobs, places, profiles)
    for k, job in enumerate(jobs):
        if job.costs is not None:
            place = at(places, k, ".costs.restart_by_gpus", job)
            yield from cost_problems(job.costs, place)


def order_problems(jobs: Sequence[Job], places: Places) -> Iterator[Problem]:
    """Yield the first job that was submitted too late, or before its predecessor in the list."""
    submit = np.array([j.submit_s for j in jobs], dtype=float)
    for k in np.flatnonzero(submit > LAST_S)[:1]:
        place = at(places, int(k), ".submit_s", jobs[k])
        yield Problem(
            place, f"{submit[k]:g}", f"at most {LAST_S:g}: later, no microsecond is exact"
        )
    for k in np.flatnonzero(np.diff(submit) < 0)[:1] + 1:
        found = f"{submit[k]:g} after a job submitted at {submit[k - 1]:g}"
        expected = "jobs in order of submission: sort them by submit_s"
        yield Problem(at(places, k, ".submit_s", jobs[k]), found, expected)


def truth_problems(
    jobs: Sequence[Job], places: Places, curves: Mapping[str, NoiseCurve]
) -> Iterator[Problem]:
    """Yield the jobs that cannot be simulated because they lack a consistent truth."""
    for k, job in enumerate(jobs):
        if job.truth is None:
            yield Problem(at(places, k, "", job), "no truth", "truth.work, to run the instance")
        elif job.truth.curve is not None and job.truth.curve not in curves:
            place = at(places, k, ".truth.curve", job)
            yield Problem(place, show(job.truth.curve), one_of(curves))
        elif job.truth.learning is not None and (odd := learning_problem(job, job.truth)):
            yield Problem(at(places, k, ".truth.learning", job), *odd)
        elif job.truth.failures:
            yield from _failures(job.truth, at(places, k, ".truth.failures", job))


def learning_problem(job: Job, truth: Truth) -> tuple[str, str] | None:
    """Return the found and expected values of a faulty learning curve, or None if it is valid."""
    if job.epoch is None:
        return "a job without an epoch", "job.epoch, for losses are per epoch"
    if not isinstance(truth.learning, tuple):
        return None
    if not truth.learning or not truth.learning[0]:
        return "no loss before the first epoch", "one above 0"
    needed = 1 + floor(truth.work / job.epoch * (1 + ROUNDING))
    if len(truth.learning) < needed:
        return f"{len(truth.learning)} losses", f"{needed}: before its epochs, and after each"
    return None


def sweep_problems(
    jobs: Sequence[Job], places: Places, sweeps: Collection[str]
) -> Iterator[Problem]:
    """Yield the trials that name an unknown sweep or have no losses."""
    for k, job in enumerate(jobs):
        if job.sweep is None:
            continue
        place = at(places, k, ".sweep", job)
        if job.sweep not in sweeps:
            yield Problem(place, show(job.sweep), one_of(sweeps))
        if job.epoch is None:
            yield Problem(place, "a job without an epoch", "job.epoch: trials report after each")
        if job.truth is not None and not isinstance(job.truth.learning, tuple):
            yield Problem(place, "a trial without losses", "truth.learning, as they were logged")


def _failures(truth: Truth, place: str) -> Iterator[Problem]:
    points = (*truth.failures, truth.work)
    if any(a >= b for a, b in pairwise(points)):
        yield Problem(place, show(truth.failures), f"ascending, below its work {truth.work:g}")


def cost_problems(costs: Costs, place: str = "costs.restart_by_gpus") -> Iterator[Problem]:
    """Yield the inconsistencies in switching costs, whose table is at `place`."""
    sizes = [up_to for up_to, _ in costs.restart_by_gpus]
    if any(a >= b for a, b in pairwise(sizes)):
        yield Problem(place, show(sizes), "ascending numbers of GPUs")


def at(places: Places, k: int, field: str, job: Job) -> str:
    """Return the place of a job's field, with the job's id."""
    return f"{places(k)}{field} (id {show(job.id)})"


def _repeated_ids(ids: Sequence[str], places: Places) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for k, name in enumerate(ids):
        earlier = first.setdefault(name, k)
        if earlier != k:
            expected = f"unique ids: {places(earlier)} has it too"
            yield Problem(f"{places(k)}.id", show(name), expected)


def _gpu_ranges(jobs: Sequence[Job], places: Places) -> Iterator[Problem]:
    for k, job in enumerate(jobs):
        least, most, gpus = job.min_gpus, job.max_gpus, job.gpus
        if least is None and most is None:
            continue
        if least is not None and most is not None and least > most:
            place = at(places, k, ".min_gpus", job)
            yield Problem(place, f"{least} above max_gpus {most}", "at most that")
        elif least is not None and gpus < least:
            yield Problem(at(places, k, ".gpus", job), str(gpus), f"at least {least}, its min_gpus")
        elif most is not None and gpus > most:
            yield Problem(at(places, k, ".gpus", job), str(gpus), f"at most {most}, its max_gpus")


def _references(
    jobs: Sequence[Job], places: Places, profiles: Mapping[str, Profile], cluster: Cluster | None
) -> Iterator[Problem]:
    yield from _unknown(jobs, places, "profile", [(j.profile,) for j in jobs], profiles)
    if cluster is None:
        return
    partitions = sorted(owners(cluster))
    yield from _unknown(jobs, places, "partition", [(j.partition,) for j in jobs], partitions)
    types = [t.name for t in cluster.gpu_types]
    yield from _unknown(jobs, places, "gpu_types", [j.gpu_types for j in jobs], types)


def _unknown(
    jobs: Sequence[Job],
    places: Places,
    field: str,
    used: Sequence[tuple[str, ...]],
    known: Iterable[str],
) -> Iterator[Problem]:
    names = set(known)
    bad = {name for group in set(used) for name in group} - names
    if not bad:
        return
    expected = one_of(sorted(names))
    for k, group in enumerate(used):
        for name in bad.intersection(group):
            yield Problem(at(places, k, f".{field}", jobs[k]), show(name), expected)


def _batches(
    jobs: Sequence[Job], places: Places, profiles: Mapping[str, Profile]
) -> Iterator[Problem]:
    first: dict[tuple[str, float], int] = {}
    for k, job in enumerate(jobs):
        if job.batch is not None and job.profile in profiles:
            first.setdefault((job.profile, job.batch), k)
    for (name, batch), k in first.items():
        yield from batch_problems(profiles[name], batch, at(places, k, ".batch", jobs[k]))


def _capacity(
    jobs: Sequence[Job], places: Places, profiles: Mapping[str, Profile], cluster: Cluster | None
) -> Iterator[Problem]:
    """Check that each job fits into a pool that it may use, and that a rigid job has one size."""
    shapes: list[_Shape] = [(j.profile, j.partition, j.gpu_types) for j in jobs]
    kinds = {s: (_room(s, profiles, cluster), _is_rigid(s, profiles)) for s in set(shapes)}
    gpus = np.array([j.gpus for j in jobs], dtype=float)
    room = np.array([kinds[s][0] for s in shapes], dtype=float)
    for k in map(int, np.flatnonzero(gpus > room)):
        yield _too_large(jobs[k], at(places, k, ".gpus", jobs[k]), int(room[k]))
    rigid: NDArray[np.bool_] = np.array([kinds[s][1] for s in shapes], dtype=bool)
    for k in map(int, np.flatnonzero(rigid)):
        job = jobs[k]
        if {job.min_gpus or job.gpus, job.max_gpus or job.gpus} != {job.gpus}:
            found = f"{job.min_gpus or job.gpus} to {job.max_gpus or job.gpus} GPUs"
            expected = f"no range: its profile {show(job.profile)} is rigid"
            yield Problem(at(places, k, "", job), found, expected)


def _too_large(job: Job, place: str, room: int) -> Problem:
    if room == 0:
        expected = f"a GPU type that partition {show(job.partition)} has and the profile knows"
        return Problem(place, f"{job.gpus} GPUs but no pool that the job may use", expected)
    expected = f"at most {room}, its largest pool in partition {show(job.partition)}"
    return Problem(place, str(job.gpus), expected)


def _room(shape: _Shape, profiles: Mapping[str, Profile], cluster: Cluster | None) -> float:
    name, partition, gpu_types = shape
    if cluster is None or name not in profiles or partition not in owners(cluster):
        return np.inf
    models, known = set(profiles[name].throughput), {t.name for t in cluster.gpu_types}
    if not models | set(gpu_types) <= known:
        return np.inf  # the unknown type is reported elsewhere
    allowed = models & set(gpu_types) if gpu_types else models
    pools = (p for p in cluster.topology.pools if p.partition == partition)
    return max((p.gpus for p in pools if p.gpu_type.name in allowed), default=0)


def _is_rigid(shape: _Shape, profiles: Mapping[str, Profile]) -> bool:
    name, _, gpu_types = shape
    models = profiles[name].throughput if name in profiles else {}
    return any(isinstance(m, Rigid) for t, m in models.items() if not gpu_types or t in gpu_types)
