"""The configuration that a user asked for, as options: what policies for rigid jobs give."""

from functools import partial

from ronda.formulations.power import job_power_w
from ronda.formulations.remembered import remembered
from ronda.formulations.throughput import work_rate
from ronda.instances.cluster import Pool
from ronda.instances.instance import Round
from ronda.instances.job import Job, JobState, Option
from ronda.instances.profile import NoiseScale, Profile


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
        if not _suits(job, profile, pool):
            continue
        batch = job.batch or profile.base_batch
        known = (index, pool.gpu_type, pool.gpus_per_node, job.gpus, batch, state.noise)
        option = remembered(
            profile,
            ("requested", *known),
            partial(_requested, profile, pool, index, job.gpus, batch, state.noise),
        )
        if option is not None:
            options.append(option)
    return options


def _suits(job: Job, profile: Profile, pool: Pool) -> bool:
    """Tell whether the job may use the pool at all."""
    name = pool.gpu_type.name
    return (
        pool.partition == job.partition
        and name in profile.throughput
        and (not job.gpu_types or name in job.gpu_types)
        and pool.gpus >= job.gpus
    )


def _requested(
    profile: Profile, pool: Pool, index: int, gpus: int, batch: float, noise: NoiseScale | None
) -> Option | None:
    """Return the option, or None where the profile has no speed for it."""
    nodes = -(-gpus // pool.gpus_per_node)
    rate = work_rate(profile, pool.gpu_type, gpus, nodes, batch, 1.0, noise)
    if not rate > 0:
        return None
    return Option(
        pool=index,
        gpus=gpus,
        span="node" if nodes == 1 else "cluster",
        clock=1.0,
        batch=batch,
        rate=rate,
        power_w=job_power_w(profile, pool.gpu_type, gpus, nodes, batch, 1.0),
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
