"""An instance with other limits, machines, costs or jobs: the points of a suite or a sweep."""

from math import isqrt
from typing import Annotated

import msgspec
import numpy as np
from msgspec import structs
from msgspec.structs import replace

from ronda.formulations.bounds.least_needs import needs
from ronda.instances import generate
from ronda.instances.base import Count, Index, Name, NonNegative, Positive, Record
from ronda.instances.budget import EnergyBudget
from ronda.instances.errors import InputError
from ronda.instances.instance import Instance
from ronda.instances.job import Costs, Job, Truth
from ronda.instances.models.configuration import Configuration
from ronda.instances.models.power import job_power_w
from ronda.instances.profile import PowerCurve, Profile
from ronda.instances.rules.problem import one_of, show
from ronda.instances.site import Disruption
from ronda.instances.violation import ROUNDING


class Window(Record, frozen=True, kw_only=True):
    """Consecutive jobs from a random start; one in every `gangs` becomes a gang (0: none)."""

    jobs: Count
    gangs: Index = 0

    def cut(self, instance: Instance, seed: int) -> Instance:
        """Return the window of a trace of rigid jobs; gangs run for as long as before.

        A gang asks for half to nine tenths of the cluster.
        """
        rng, gpus = np.random.default_rng([seed, 7]), instance.cluster.gpus
        first = int(rng.integers(max(1, len(instance.jobs) - self.jobs + 1)))
        own = instance.jobs[first : first + self.jobs]
        widths = np.array([job.gpus for job in own])
        wide = rng.permutation(len(own))[: len(own) // self.gangs if self.gangs else 0]
        widths[wide] = np.round(gpus * rng.uniform(0.5, 0.9, len(wide)))
        pairs = zip(own, widths.tolist(), strict=True)
        begin_s = own[0].submit_s
        jobs = tuple(replace(job, gpus=n, submit_s=job.submit_s - begin_s) for job, n in pairs)
        return replace(instance, jobs=jobs)


class SearchDraw(Record, frozen=True, kw_only=True):
    """Some random `trials` of one `sweep`, submitted at once, on a node with `gpus` GPUs."""

    sweep: Name
    trials: Count
    gpus: Count

    def cut(self, instance: Instance, seed: int) -> Instance:
        """Return the search as an instance of its own."""
        if self.sweep not in instance.sweeps:
            known = one_of(instance.sweeps)
            raise InputError(f"instance {show(instance.name)}", f"no sweep {self.sweep!r}", known)
        rng = np.random.default_rng([seed, *self.sweep.encode()])
        own = [job for job in instance.jobs if job.sweep == self.sweep]
        chosen = rng.permutation(len(own))[: self.trials].tolist()
        node = replace(instance.cluster.node_groups[0], count=1, gpus_per_node=self.gpus)
        return replace(
            instance,
            cluster=replace(instance.cluster, node_groups=(node,)),
            jobs=tuple(replace(own[k], submit_s=0.0) for k in chosen),
            sweeps={self.sweep: instance.sweeps[self.sweep]},
        )


def loaded(instance: Instance, load: float) -> Instance:
    """Return the instance with the submissions of its rigid jobs spread to give a load.

    The load is the jobs' share of the cluster's GPU-seconds from first to last submission.
    """
    submit_s = np.array([job.submit_s for job in instance.jobs]) - instance.jobs[0].submit_s
    if not submit_s[-1] > 0:
        raise InputError(f"instance {show(instance.name)}", "all jobs submitted at once", "a load")
    widths = np.array([job.gpus for job in instance.jobs])
    work = np.array([truth(instance, k).work for k in range(len(instance.jobs))])
    spread = float(widths @ work) / (instance.cluster.gpus * load * float(submit_s[-1]))
    pairs = zip(instance.jobs, submit_s.tolist(), strict=True)
    jobs = tuple(replace(job, submit_s=float(round(when * spread, 3))) for job, when in pairs)
    return replace(instance, jobs=jobs)


def resized(instance: Instance, sigma: float, seed: int) -> Instance:
    """Return true sizes times ``exp(sigma z - sigma^2 / 2)``, z normal; estimates do not change."""
    drawn = np.random.default_rng(seed).standard_normal(len(instance.jobs))
    factors = np.exp(sigma * drawn - 0.5 * sigma**2).tolist()
    jobs = []
    for k, (job, factor) in enumerate(zip(instance.jobs, factors, strict=True)):
        own = truth(instance, k)
        jobs.append(replace(job, truth=replace(own, work=own.work * factor)))
    return replace(instance, jobs=tuple(jobs))


def truth(instance: Instance, k: int) -> Truth:
    """Return the truth about a job; refuse a job without one."""
    found = instance.jobs[k].truth
    if found is None:
        place = f"instance {show(instance.name)}, jobs[{k}]"
        raise InputError(place, "a job without truth", "jobs whose sizes are known")
    return found


class Sleep(Record, frozen=True, kw_only=True):
    """The fields of `NodeGroup` that let nodes sleep."""

    host_idle_w: NonNegative
    sleep_w: NonNegative
    wake_s: NonNegative
    wake_w: NonNegative = 0.0


class Resample(Record, frozen=True, kw_only=True):
    """Submissions drawn with replacement, in blocks of `block` in a row, as many as there are.

    It is the circular block bootstrap of D. Politis and J. Romano, "A circular block-resampling
    procedure for stationary data", in: Exploring the Limits of Bootstrap, Wiley 1992
    (docs/statistics.md).

    A block keeps order and gaps, so bursts survive. A block of 0 means the square root of the
    number of submissions, as for batch means (J. Flegal and G. Jones, Ann. Stat. 38, 2010).
    """

    block: Index = 0

    def draw(self, instance: Instance, seed: int) -> Instance:
        """Return the instance with a resampled workload.

        The names of jobs begin with the position of their submission, as in ``12-NAME``. Deadlines
        move with their jobs; outages, limits and prices stay at their times.
        """
        units = submissions(instance)
        count, place = len(units), f"instance {show(instance.name)}"
        block = self.block or max(1, isqrt(count))
        if count < 2:
            raise InputError(place, f"{count} submissions", "several, to draw from")
        if block > count:
            expected = f"at most its {count} submissions"
            raise InputError(f"{place}, resample.block", f"{block}", expected)
        rng = np.random.default_rng([seed, 11])
        firsts = rng.integers(count, size=-(-count // block))
        drawn = ((firsts[:, None] + np.arange(block)) % count).ravel()[:count]
        begin_s = np.array([unit[0].submit_s for unit in units])
        gaps_s = np.diff(begin_s, prepend=begin_s[0] - np.diff(begin_s).mean())
        at_s = begin_s[0] + np.concatenate([[0.0], np.cumsum(gaps_s[drawn[1:]])])
        jobs, sweeps = list[Job](), dict(instance.sweeps)
        for k, (unit, when_s) in enumerate(zip(drawn.tolist(), at_s.tolist(), strict=True)):
            jobs += _moved(units[unit], f"{k}-", when_s)
            if (name := units[unit][0].sweep) is not None:
                own, later_s = instance.sweeps[name], when_s - units[unit][0].submit_s
                sweeps[f"{k}-{name}"] = replace(own, deadline_s=_later(own.deadline_s, later_s))
        used = {job.sweep for job in jobs}
        return replace(
            instance,
            jobs=tuple(sorted(jobs, key=lambda job: job.submit_s)),
            sweeps={name: sweep for name, sweep in sweeps.items() if name in used},
        )


def submissions(instance: Instance) -> list[list[Job]]:
    """Return the groups of jobs that are submitted together: the trials of a sweep, or one job."""
    found: dict[tuple[str, str], list[Job]] = {}
    for job in instance.jobs:
        key = ("job", job.id) if job.sweep is None else ("sweep", job.sweep)
        found.setdefault(key, []).append(job)
    return list(found.values())


def _moved(unit: list[Job], before: str, when_s: float) -> list[Job]:
    """Return the jobs of a submission, moved to `when_s` and with names prefixed by `before`."""
    later_s = when_s - unit[0].submit_s
    return [
        replace(
            job,
            id=before + job.id,
            submit_s=round(job.submit_s + later_s, 6),
            deadline_s=_later(job.deadline_s, later_s),
            sweep=None if job.sweep is None else before + job.sweep,
        )
        for job in unit
    ]


def _later(deadline_s: float | None, later_s: float) -> float | None:
    return None if deadline_s is None else max(0.0, deadline_s + later_s)


class Variant(Record, frozen=True, kw_only=True):
    """The changes to an instance, in the order of the fields; the defaults change nothing."""

    window: Window | None = None  # consecutive jobs instead of all; some become gangs
    resample: Resample | None = None  # a workload that is resampled from the instance's own
    search: SearchDraw | None = None  # some trials of one sweep on a node of their own
    share: str = ""  # the model whose sharing of GPUs trials get (`generate.SHARED`)
    load: Positive | None = None  # the load for which submissions of rigid jobs are spread
    size_noise: NonNegative = 0.0  # standard deviation of the log of factors on true sizes
    wrong_sizes: bool = False  # declared sizes as wrong as in Helios' experiment on Philly
    faults: generate.Breakage | None = None  # faults instead of the instance's own
    restart_s: NonNegative | None = None  # the cost of a restart for each job
    in_place: bool = True  # whether running jobs that can do so are scaled without a checkpoint
    disruption: NonNegative | None = None  # share of the GPUs that a decision may disrupt
    disrupted_jobs: Index | None = None  # jobs that a decision may disrupt
    period_s: Positive | None = None  # the time between decisions
    on_event: bool | None = None
    sleep: Sleep | None = None  # nodes that may sleep
    idle: Positive = 1.0  # factor on the idle power of hosts and GPUs
    power: Positive = 1.0  # factor on all power curves
    nodes: Annotated[int, msgspec.Meta(ge=0, le=2**20)] = 0  # added to the first group
    sustained_w: Positive | None = None
    """Watts at which the energy budget accrues; its credit is scaled likewise. An instance without
    a budget gets one without credit."""
    factor: Positive | None = None
    """The same as a share of `reference_w`; only tables use it."""
    seed: Index = 0  # the seed for random windows, workloads, searches, sizes and faults

    @property
    def draws(self) -> bool:
        """Whether anything depends on the seed."""
        breaks = self.faults is not None and bool(self.faults.changed)
        drawn = (self.window, self.resample, self.search, self.size_noise, self.wrong_sizes)
        return breaks or any(drawn)

    @property
    def change(self) -> str:
        """A description of all changes except the budget's; empty if there are none."""
        words = [f"{name} ×{getattr(self, name):g}" for name in ("idle", "power")]
        words = [word for word in words if not word.endswith("×1")]
        words += [f"nodes +{self.nodes}"] if self.nodes else []
        for name in ("load", "size_noise", "restart_s", "period_s"):
            if (value := getattr(self, name)) != getattr(UNCHANGED, name):
                words.append(f"{name} {value:g}")
        words += [] if self.on_event is None else [f"{'' if self.on_event else 'not '}on events"]
        words += [f"window of {self.window.jobs} jobs"] if self.window else []
        words += ["resampled"] if self.resample else []
        words += [f"search {self.search.sweep}"] if self.search else []
        words += [f"shares as {self.share}"] if self.share else []
        words += ["nodes that sleep"] if self.sleep else []
        broken = {} if self.faults is None else self.faults.changed
        words += [f"faults {' '.join(f'{k}={v:g}' for k, v in broken.items())}"] if broken else []
        words += ["wrong sizes"] if self.wrong_sizes else []
        words += [] if self.in_place else ["not in place"]
        words += [] if self.disruption is None else [f"disruption {self.disruption:g}"]
        words += [] if self.disrupted_jobs is None else [f"{self.disrupted_jobs} jobs disrupted"]
        return ", ".join(words)

    @property
    def title(self) -> str:
        """A description of all changes; empty if there are none."""
        budget = "" if self.factor is None else f"budget ×{self.factor:g}"
        return ", ".join(filter(None, (budget, self.change)))

    def apply(self, instance: Instance) -> Instance:
        """Return the changed instance with its name, but without its known reference values."""
        made = instance
        if self.window is not None:
            made = self.window.cut(made, self.seed)
        if self.resample is not None:
            made = self.resample.draw(made, self.seed)
        if self.search is not None:
            made = self.search.cut(made, self.seed)
        if self.share:
            made = replace(generate.fusible(made, self.share), name=made.name)
        if self.load is not None:
            made = loaded(made, self.load)
        if self.size_noise:
            made = resized(made, self.size_noise, self.seed)
        if self.wrong_sizes:
            from ronda.formulations.prediction.helios_errors import (
                with_errors,  # its package loads scipy
            )

            made = with_errors(made, self.seed)
        if self.faults is not None:
            made = generate.broken(made, self.faults, self.seed)
        if self.restart_s is not None:
            costs = Costs(start_s=made.costs.start_s, restart_s=self.restart_s)
            made = replace(
                made, costs=costs, jobs=tuple(replace(job, costs=None) for job in made.jobs)
            )
        if not self.in_place:
            jobs = tuple(
                replace(job, costs=job.costs and replace(job.costs, scale_s=None))
                for job in made.jobs
            )
            made = replace(made, costs=replace(made.costs, scale_s=None), jobs=jobs)
        if self.disruption is not None or self.disrupted_jobs is not None:
            share = self.disruption
            gpus = None if share is None else int(share * made.cluster.gpus + ROUNDING)
            most = Disruption(gpus=gpus, jobs=self.disrupted_jobs)
            made = replace(made, site=replace(made.site, disruption=most))
        made = replace(
            made,
            cadence=replace(
                made.cadence,
                period_s=self.period_s or made.cadence.period_s,
                on_event=made.cadence.on_event if self.on_event is None else self.on_event,
            ),
        )
        if self.sleep is not None:
            asleep = structs.asdict(self.sleep)
            groups = tuple(replace(group, **asleep) for group in made.cluster.node_groups)
            made = replace(made, cluster=replace(made.cluster, node_groups=groups))
        if self.idle != 1.0 or self.nodes:
            types = (replace(g, idle_w=self.idle * g.idle_w) for g in made.cluster.gpu_types)
            first, *rest = (
                replace(group, host_idle_w=self.idle * group.host_idle_w)
                for group in made.cluster.node_groups
            )
            groups = replace(first, count=first.count + self.nodes), *rest
            cluster = replace(made.cluster, gpu_types=tuple(types), node_groups=groups)
            made = replace(made, cluster=cluster)
        if self.power != 1.0:
            profiles = {name: _scaled_profile(p, self.power) for name, p in made.profiles.items()}
            made = replace(made, profiles=profiles)
        if self.sustained_w is not None:
            budget = replace(made.budget, energy=_budget(made, self.sustained_w))
            made = replace(made, budget=budget)
        return instance if made == instance else replace(made, reference={})


UNCHANGED = Variant()
"""The variant that leaves an instance as it is."""


def reference_w(instance: Instance) -> float:
    """Return the watts that a budget factor of 1 stands for.

    They are the watts that the instance's own energy budget sustains. Without a budget, they are
    the draw with all nodes awake and all GPUs busy at full clock. A busy GPU's draw is the mean
    over jobs as requested, weighted by each job's fewest GPU-seconds.
    """
    if instance.budget.energy is not None:
        return instance.budget.energy.sustained_w
    topology = instance.cluster.topology
    gpu_s = needs(instance).gpu_s
    total = float(topology.host_idle_w.sum())
    known: dict[tuple[str, str, int, float], float] = {}
    for pool in topology.pools:
        watts, weights = [], []
        for job, weight in zip(instance.jobs, gpu_s.tolist(), strict=True):
            profile = instance.profiles[job.profile]
            if job.partition != pool.partition or pool.gpu_type.name not in profile.throughput:
                continue
            batch = job.batch or profile.base_batch
            key = (job.profile, pool.gpu_type.name, job.gpus, batch)
            if key not in known:
                nodes = -(-job.gpus // pool.gpus_per_node)
                draw = job_power_w(profile, pool.gpu_type, Configuration(job.gpus, nodes, batch))
                known[key] = draw / job.gpus
            if np.isfinite(known[key]):
                watts.append(known[key])
                weights.append(weight)
        busy_w = float(np.average(watts, weights=weights)) if watts else pool.gpu_type.idle_w
        total += pool.gpus * busy_w
    if not total > 0:
        found = "a cluster that draws 0 W: it has no power data"
        raise InputError(f"instance {show(instance.name)}", found, "one with powers, or a budget")
    return total


def _budget(instance: Instance, sustained_w: float) -> EnergyBudget:
    own = instance.budget.energy
    if own is not None:
        share = sustained_w / own.sustained_w
        if share == 1.0:
            return own  # without rounding: it is the instance itself
        return replace(own, joules=sustained_w * own.horizon_s, credit_j=share * own.credit_j)
    horizon_s = max(3600.0, max(job.submit_s for job in instance.jobs))
    return EnergyBudget(joules=sustained_w * horizon_s, horizon_s=horizon_s)


def _scaled_profile(profile: Profile, factor: float) -> Profile:
    def scaled(curve: PowerCurve) -> PowerCurve:
        sync_w = None if curve.sync_w is None else factor * curve.sync_w
        a_w, b_w, c_w = (factor * watts for watts in (curve.a_w, curve.b_w, curve.c_w))
        return replace(curve, a_w=a_w, b_w=b_w, c_w=c_w, sync_w=sync_w)

    return replace(profile, power={name: scaled(curve) for name, curve in profile.power.items()})
