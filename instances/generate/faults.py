"""Generated faults of an instance: in nodes, jobs, profiles and reports."""

from collections.abc import Iterator

import numpy as np
from msgspec import structs

from ronda.instances.errors import InputError, refuse_beyond
from ronda.instances.generate.common import Parameters
from ronda.instances.instance import Faults, Instance, Outage, Straggler
from ronda.instances.job import Job

DAY_S = 86_400.0
Span = tuple[float, float]


class Breakage(Parameters, frozen=True, kw_only=True):
    """The rates and sizes of faults; by default nothing breaks.

    Every kind of fault has its own random numbers, so that changing one kind does not affect the
    others.

    Attributes
    ----------
    node_failures
        Failures per node and day, a Poisson process; jobs lose the work since their last
        checkpoint.
    repair_s
        Mean seconds until a failed node is back; exponential.
    drains
        Drains for maintenance per node and day, a Poisson process.
    drain_s
        Duration of maintenance in seconds.
    notice_s
        Seconds of notice before maintenance, during which no new job starts on the node.
    job_failures
        Mean number of failures of a job by itself, Poisson; they occur at uniformly distributed
        work.
    retries
        Number of restarts that a job is allowed after its own failures.
    checkpoint_s
        Seconds of progress between checkpoints.
    stragglers
        Fraction of the time for which a node is slow.
    slow_s
        Mean seconds for which a node stays slow; exponential.
    slowest
        Lowest speed of a slow node; speeds are uniform from there to 1.
    speed_error
        Error of the profiles' speeds: standard deviation of log(true / profile).
    power_error
        Error of the profiles' watts, likewise.
    silences
        Fraction of the time in which progress reports are lost.
    silence_s
        Mean seconds of a period without reports; exponential.
    report_s
        Delay of progress reports in seconds.
    decision_s
        Seconds until a decision takes effect.
    """

    node_failures: float = 0.0
    repair_s: float = 3600.0
    drains: float = 0.0
    drain_s: float = 7200.0
    notice_s: float = 3600.0
    job_failures: float = 0.0
    retries: int = 3
    checkpoint_s: float = 1800.0
    stragglers: float = 0.0
    slow_s: float = 3600.0
    slowest: float = 0.5
    speed_error: float = 0.0
    power_error: float = 0.0
    silences: float = 0.0
    silence_s: float = 1800.0
    report_s: float = 0.0
    decision_s: float = 0.0

    def __post_init__(self) -> None:
        """Refuse parameters that are out of range."""
        least = {"repair_s": 1.0, "drain_s": 1.0, "slow_s": 1.0, "silence_s": 1.0, "slowest": 0.01}
        most = {"stragglers": 0.9, "silences": 0.9, "slowest": 1.0}
        for name, value in structs.asdict(self).items():
            refuse_beyond(name, value, least.get(name, 0.0), most.get(name, float("inf")))


def broken(instance: Instance, breakage: Breakage, seed: int) -> Instance:
    """Return the instance with new faults, up to a day after three times its last arrival.

    Existing faults are replaced, and the name is kept. A default `breakage` changes nothing.
    """
    if not breakage.changed:
        return instance
    until_s = 3 * max(job.submit_s for job in instance.jobs) + DAY_S
    faults = Faults(
        outages=tuple(_outages(instance, breakage, seed, until_s)),
        stragglers=tuple(_stragglers(instance, breakage, seed, until_s)),
        silences=tuple(
            _phases(np.random.default_rng([seed, 24]), *_cycle(breakage, "silence"), until_s)
        ),
        report_s=breakage.report_s,
        decision_s=breakage.decision_s,
        retries=breakage.retries,
    )
    costs = structs.replace(instance.costs, checkpoint_s=breakage.checkpoint_s)
    made = {**instance.made, "breakage": breakage.changed, "breakage_seed": seed}
    jobs = tuple(_jobs(instance.jobs, breakage, seed))
    return structs.replace(instance, faults=faults, costs=costs, jobs=jobs, made=made)


def _nodes(instance: Instance) -> range:
    return range(sum(group.count for group in instance.cluster.node_groups))


def _outages(instance: Instance, breakage: Breakage, seed: int, until_s: float) -> Iterator[Outage]:
    """Yield the failures of each node, and its drains that do not overlap a failure."""
    for node in _nodes(instance):
        rng = np.random.default_rng([seed, 21, node])
        gap_s = DAY_S / breakage.node_failures if breakage.node_failures else np.inf
        failures = list(_phases(rng, gap_s, breakage.repair_s, until_s))
        rng = np.random.default_rng([seed, 22, node])
        gap_s = DAY_S / breakage.drains if breakage.drains else np.inf
        length_s, notice_s = breakage.drain_s, breakage.notice_s
        own = [Outage(node=node, start_s=a, end_s=b) for a, b in failures]
        last_s = 0.0
        for start_s, _ in _phases(rng, gap_s, length_s, until_s):
            end_s, known_s = start_s + length_s, max(0.0, start_s - notice_s)
            if known_s >= last_s and all(b <= known_s or a >= end_s for a, b in failures):
                own.append(Outage(node=node, start_s=start_s, end_s=end_s, notice_s=notice_s))
                last_s = end_s
        yield from sorted(own, key=lambda outage: outage.start_s)


def _stragglers(
    instance: Instance, breakage: Breakage, seed: int, until_s: float
) -> Iterator[Straggler]:
    gap_s, mean_s = _cycle(breakage, "straggler")
    for node in _nodes(instance):
        rng = np.random.default_rng([seed, 23, node])
        for start_s, end_s in _phases(rng, gap_s, mean_s, until_s):
            speed = round(float(rng.uniform(breakage.slowest, 1.0)), 3)
            yield Straggler(node=node, start_s=start_s, end_s=end_s, speed=speed)


def _cycle(breakage: Breakage, kind: str) -> tuple[float, float]:
    """Return the mean gap between two phases and the mean length of a phase, in seconds."""
    share, mean_s = {
        "straggler": (breakage.stragglers, breakage.slow_s),
        "silence": (breakage.silences, breakage.silence_s),
    }[kind]
    return mean_s * (1 - share) / share if share else np.inf, mean_s


def _phases(
    rng: np.random.Generator, gap_s: float, mean_s: float, until_s: float
) -> Iterator[Span]:
    """Yield the (start, end) of phases before `until_s`, with exponential gaps and lengths."""
    if not np.isfinite(gap_s):
        return
    start_s = float(rng.exponential(gap_s))
    while start_s < until_s:
        end_s = start_s + max(1.0, float(rng.exponential(mean_s)))
        yield round(start_s, 3), round(end_s, 3)
        start_s = end_s + max(1.0, float(rng.exponential(gap_s)))


def _jobs(jobs: tuple[Job, ...], breakage: Breakage, seed: int) -> Iterator[Job]:
    """Yield the jobs with their true speed, power and failures."""
    for k, job in enumerate(jobs):
        if job.truth is None:
            raise InputError(f"job {job.id!r}", "no truth", "the true work of every job")
        speed, power = np.random.default_rng([seed, 25, k]).standard_normal(2)
        rng = np.random.default_rng([seed, 26, k])
        points = np.unique(rng.random(rng.poisson(breakage.job_failures)))
        work = job.truth.work
        truth = structs.replace(
            job.truth,
            throughput=round(float(np.exp(breakage.speed_error * speed)), 4),
            power=round(float(np.exp(breakage.power_error * power)), 4),
            failures=tuple(float(f"{work * p:.9g}") for p in points.tolist() if 0 < p < 1 - 1e-6),
        )
        costs = job.costs
        if costs is not None:
            costs = structs.replace(costs, checkpoint_s=breakage.checkpoint_s)
        yield structs.replace(job, truth=truth, costs=costs)
