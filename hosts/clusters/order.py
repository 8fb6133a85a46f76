"""The order in which a policy would start the jobs that wait, as a few tiers.

A plan says who runs now. A host that sorts its queue by priorities also has to know who comes next.
"""

from msgspec.structs import replace

from ronda.formulations.site.order import why_not
from ronda.horizon.gate import answer
from ronda.instances.check.incremental import Ledger
from ronda.instances.clock import Deadline
from ronda.instances.plan import Plan, SolutionStatus
from ronda.instances.round import Round
from ronda.solvers.contract import Policy


def start_tiers(
    policy: Policy, round: Round, plan: Plan, *, deadline: Deadline, seed: int, most: int = 4
) -> list[list[str]]:
    """Return the ids of all waiting jobs in at most `most` tiers, the first to start first.

    The jobs that the plan starts now are the first tier, which may be empty. Each further tier has
    the jobs that the policy would start if the running jobs and those of all earlier tiers were
    gone; it is asked at most ``most - 2`` times, in the time until the deadline. The rest follows
    in one tier, also where the policy fails, starts nobody or is out of time. Jobs that may not
    start yet come last. A tier lists its jobs as the plan does, which for a policy with a queue is
    the order of that queue; the rest is in order of submission.
    """
    ready = {s.job.id: s for s in round.waiting if why_not(round, s) is None}
    late = [s.job.id for s in round.waiting if s.job.id not in ready]
    tiers: list[list[str]] = []
    while len(tiers) < most - 1 and (ready or not tiers):
        if tiers:
            then = replace(round, running=(), waiting=tuple(ready.values()))
            mine = deadline.share(1 / (most - 1 - len(tiers)))
            found = answer(policy, then, Ledger(round.cluster), deadline=mine, seed=seed)
            plan = found.plan
            if found.replaced or plan.status in (SolutionStatus.FALLBACK, SolutionStatus.NONE):
                break
        tier = [job for job in plan.allocations if job in ready]
        if tiers and not tier:
            break
        tiers.append(tier)
        for job in tier:
            del ready[job]
    for more in ([*ready], late):
        if more and len(tiers) < most:
            tiers.append(more)
        elif more:
            tiers[-1] += more
    return tiers
