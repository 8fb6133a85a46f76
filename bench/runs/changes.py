"""What a variant changes about jobs: which there are, when they come, how long they take.

What is drawn follows a seed; cluster, power and budget are in `ronda.bench.runs.variant`.
"""

import numpy as np
from msgspec.structs import replace

from ronda.instances.base import Count, Index, Name, Record
from ronda.instances.errors import InputError
from ronda.instances.instance import Instance
from ronda.instances.job import Costs, Truth
from ronda.instances.rules.problem import one_of, show

GANGS = (0.5, 0.9)
"""The least and the most of the cluster's GPUs that a gang wants."""


class Window(Record, frozen=True, kw_only=True):
    """Jobs in a row, from one that is drawn; one in every `gangs` becomes a gang (0: none)."""

    jobs: Count
    gangs: Index = 0

    def cut(self, instance: Instance, seed: int) -> Instance:
        """Return the window of a trace of rigid jobs; gangs run for as long as before.

        A gang wants half to nine tenths of the cluster.
        """
        rng, gpus = np.random.default_rng([seed, 7]), instance.cluster.gpus
        first = int(rng.integers(max(1, len(instance.jobs) - self.jobs + 1)))
        own = instance.jobs[first : first + self.jobs]
        widths = np.array([job.gpus for job in own])
        wide = rng.permutation(len(own))[: len(own) // self.gangs if self.gangs else 0]
        widths[wide] = np.round(gpus * rng.uniform(*GANGS, len(wide)))
        pairs = zip(own, widths.tolist(), strict=True)
        begin_s = own[0].submit_s
        jobs = tuple(replace(job, gpus=n, submit_s=job.submit_s - begin_s) for job, n in pairs)
        return replace(instance, jobs=jobs)


class SearchDraw(Record, frozen=True, kw_only=True):
    """Some `trials` of one `sweep` in an order that is drawn, at once, on a node of `gpus` GPUs."""

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
    """Return rigid jobs whose submissions are spread so that they bring a load.

    That is their GPU-seconds over those of the cluster, from the first submission to the last.
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
    """Return true sizes times ``exp(sigma z - sigma^2 / 2)``, z normal; estimates stay."""
    drawn = np.random.default_rng(seed).standard_normal(len(instance.jobs))
    factors = np.exp(sigma * drawn - 0.5 * sigma**2).tolist()
    jobs = []
    for k, (job, factor) in enumerate(zip(instance.jobs, factors, strict=True)):
        own = truth(instance, k)
        jobs.append(replace(job, truth=replace(own, work=own.work * factor)))
    return replace(instance, jobs=tuple(jobs))


def restarting(instance: Instance, restart_s: float) -> Instance:
    """Return the instance with this restart cost for all jobs; a first start costs as before."""
    costs = Costs(start_s=instance.costs.start_s, restart_s=restart_s)
    return replace(
        instance, costs=costs, jobs=tuple(replace(job, costs=None) for job in instance.jobs)
    )


def by_checkpoint(instance: Instance) -> Instance:
    """Return the instance on a system that cannot scale a running job in place."""
    jobs = tuple(
        replace(job, costs=job.costs and replace(job.costs, scale_s=None)) for job in instance.jobs
    )
    return replace(instance, costs=replace(instance.costs, scale_s=None), jobs=jobs)


def truth(instance: Instance, k: int) -> Truth:
    """Return what will happen to a job; refuse one of which nobody knows."""
    found = instance.jobs[k].truth
    if found is None:
        place = f"instance {show(instance.name)}, jobs[{k}]"
        raise InputError(place, "a job without truth", "jobs whose sizes are known")
    return found
