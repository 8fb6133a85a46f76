"""The configuration that a user asked for, as options: what policies for rigid jobs give."""

from ronda.formulations.options.application import applications
from ronda.instances.job import JobState, Option
from ronda.instances.round import Round


def requested_options(round: Round, state: JobState) -> list[Option]:
    """Return a job's requested GPUs and batch at full clock, once for each pool that can give them.

    They are in the order of the cluster's pools; none if no pool suits the job.
    """
    job = state.job
    return [
        option
        for of in applications(round, job)
        if job.gpus <= of.shape.pool.gpus
        and (option := of.option(job.gpus, of.batch(job), state.noise)) is not None
    ]


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
