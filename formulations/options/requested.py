"""The configuration that a user asked for, as options: what policies for rigid jobs give."""

from functools import partial

from ronda.formulations.models.power import job_power_w
from ronda.formulations.models.throughput import work_rate
from ronda.formulations.remembered import remembered
from ronda.instances.cluster import Pool
from ronda.instances.job import Job, JobState, Option
from ronda.instances.profile import NoiseScale, Profile
from ronda.instances.round import Round


def requested_options(round: Round, state: JobState) -> list[Option]:
    """Return the requested GPUs and batch at full clock, once for each pool that can give them.

    Parameters
    ----------
    round
        For its cluster and profiles.
    state
        The job; its noise scale sets the expected rate.

    Returns
    -------
    list of Option
        In the order of the cluster's pools; empty if no pool suits the job.
    """
    job, profile = state.job, round.profiles[state.job.profile]
    options = []
    for index, pool in enumerate(round.cluster.topology.pools):
        if not suits(job, profile, pool) or pool.gpus < job.gpus:
            continue
        batch = job.batch or profile.base_batch
        option = option_at(profile, pool, index, job.gpus, batch, state.noise)
        if option is not None:
            options.append(option)
    return options


def option_at(
    profile: Profile,
    pool: Pool,
    index: int,
    gpus: int,
    batch: float,
    noise: NoiseScale | None,
    clock: float = 1.0,
) -> Option | None:
    """Return one configuration on the fewest nodes, or None where the profile has no speed for it.

    Several nodes promise no more than they give in several racks, if those of the pool are.

    Parameters
    ----------
    profile
        The application; the option is kept with it.
    pool, index
        The pool, and its index in the cluster.
    gpus, batch, clock
        GPUs, global batch size, clock as a fraction of the maximum.
    noise
        Gradient noise scale; None: every sample counts fully.
    """
    known = (index, pool.gpu_type, pool.gpus_per_node, pool.racks, gpus, batch, noise, clock)
    make = partial(_option, profile, pool, index, gpus, batch, noise, clock)
    return remembered(profile, ("option", *known), make)


def suits(job: Job, profile: Profile, pool: Pool) -> bool:
    """Tell whether the job may use the pool's GPUs at all."""
    name = pool.gpu_type.name
    return (
        pool.partition == job.partition
        and name in profile.throughput
        and (not job.gpu_types or name in job.gpu_types)
    )


def _option(
    profile: Profile,
    pool: Pool,
    index: int,
    gpus: int,
    batch: float,
    noise: NoiseScale | None,
    clock: float,
) -> Option | None:
    nodes = -(-gpus // pool.gpus_per_node)
    rate = work_rate(profile, pool.gpu_type, gpus, nodes, batch, clock, noise, pool.racks)
    if not rate > 0:
        return None
    return Option(
        pool=index,
        gpus=gpus,
        span="node" if nodes == 1 else "cluster",
        clock=clock,
        batch=batch,
        rate=rate,
        power_w=job_power_w(profile, pool.gpu_type, gpus, nodes, batch, clock, pool.racks),
    )


def remaining_s(round: Round, state: JobState) -> float:
    """Return how many seconds a job still needs as requested, restarts included.

    A running job needs what is left of its pause and of its work; a stopped job also the restart
    that it will pay and what it owes of an earlier one. Infinite if its size is not known or no
    pool suits it.
    """
    work = state.remaining_at(round.now_s)
    if work is None:
        return float("inf")
    if state.allocation is not None:
        return work / state.allocation.option.rate + max(0.0, state.since_s - round.now_s)
    options = requested_options(round, state)
    if not options:
        return float("inf")
    costs = state.job.costs or round.costs
    pause = costs.restart(state.job.gpus) if state.started else costs.start_s
    return work / max(option.rate for option in options) + pause + state.owed_s
