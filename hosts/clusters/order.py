"""The order in which a policy would start the jobs that wait, as a few tiers.

A plan says who runs now. A host that sorts its queue by priorities also has to know who comes next.
"""

from math import inf

from msgspec.structs import replace

from ronda.formulations.site.order import why_not
from ronda.formulations.watts import seconds_left
from ronda.horizon.gate import answer
from ronda.instances.check.incremental import Ledger
from ronda.instances.clock import Deadline
from ronda.instances.job import JobState
from ronda.instances.plan import Plan, SolutionStatus
from ronda.instances.round import Round
from ronda.solvers.contract import Policy


def start_tiers(
    policy: Policy,
    round: Round,
    plan: Plan,
    *,
    deadline: Deadline,
    seed: int,
    most: int = 4,
    ends: int = 0,
) -> list[list[str]]:
    """Return the ids of all waiting jobs in at most `most` tiers, the first to start first.

    The jobs that the plan starts now are the first tier, which may be empty. The next tiers are
    fine: running jobs are taken away, the one that is expected to end first before the others, and
    the policy is asked whom it would start; it is asked `ends` times. Each further tier is coarse:
    it has the jobs that the policy would start if all running jobs and all earlier tiers were gone.
    The policy is asked at most ``ends + most - 2`` times, in the time until the deadline. The rest
    follows in one tier, also where the policy fails, starts nobody or is out of time. Jobs that may
    not start yet come last. A tier lists its jobs as the plan does, which for a policy with a queue
    is the order of that queue; the rest is in order of submission.
    """
    ready = {s.job.id: s for s in round.waiting if why_not(round, s) is None}
    late = [s.job.id for s in round.waiting if s.job.id not in ready]
    tiers: list[list[str]] = []

    def taken(plan: Plan) -> bool:
        """Add the waiting jobs of a plan as a tier, if there are some."""
        tier = [job for job in plan.allocations if job in ready]
        if tier or not tiers:
            tiers.append(tier)
        for job in tier:
            del ready[job]
        return bool(tier)

    def asked(then: Round, left: int) -> Plan | None:
        mine = deadline.share(1 / left)
        found = answer(policy, then, Ledger(round.cluster), deadline=mine, seed=seed)
        none = found.plan.status in (SolutionStatus.FALLBACK, SolutionStatus.NONE)
        return None if found.replaced or none else found.plan

    if most > 1:
        taken(plan)
    then, gone = round_after(round, plan), 1
    for k in range(ends):
        if not ready or not then.running or len(tiers) >= most - 1:
            break
        left_s = {s.job.id: _left_s(then, s) for s in then.running}
        first = sorted(left_s, key=left_s.__getitem__)[:gone]
        kept = tuple(s for s in then.running if s.job.id not in first)
        then = replace(then, running=kept)
        found = asked(then, ends - k + max(0, most - 2))
        if found is None:
            break
        gone = 1 if taken(found) else 2 * gone
        then = round_after(then, found)
    while ready and len(tiers) < most - 1:
        then = replace(round, running=(), waiting=tuple(ready.values()))
        found = asked(then, most - 1 - len(tiers))
        if found is None or not taken(found):
            break
    for more in ([*ready], late):
        if more and len(tiers) < most:
            tiers.append(more)
        elif more:
            tiers[-1] += more
    return tiers


def round_after(round: Round, plan: Plan) -> Round:
    """Return a round at the moment at which a plan has been carried out."""
    states = {state.job.id: state for state in round.jobs}
    given = plan.allocations.items()
    return replace(
        round,
        running=tuple(replace(states[job], allocation=allocation) for job, allocation in given),
        waiting=tuple(state for state in round.waiting if state.job.id not in plan.allocations),
        asleep=round.asleep if plan.asleep is None else plan.asleep,
    )


def _left_s(round: Round, state: JobState) -> float:
    return inf if state.allocation is None else seconds_left(round, state, state.allocation.option)
