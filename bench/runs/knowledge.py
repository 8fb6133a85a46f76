"""What a policy knows about the sizes of jobs, in a word for tables."""

from ronda.instances.instance import DECLARED, LEARNT, Instance, Knowledge
from ronda.solvers.contract import Capability
from ronda.solvers.registry import policy_class


def knowledge(instance: Instance, policy: str, level: Knowledge = DECLARED) -> str:
    """Return where a policy has the sizes from that it decides by, in a run at some level.

    ``oracle``: estimates that are the truth; ``declared``: estimates that may be wrong;
    ``history``: what has been learnt from jobs that ran; ``none``: it looks at no sizes, or at
    what live jobs have done. Where energy is limited, all policies ask the estimates how long a
    job draws its power.
    """
    if level in LEARNT:
        return level
    able: Capability = policy_class(policy).capabilities  # type: ignore[attr-defined]
    told = level == "oracle" or any(job.estimate is not None for job in instance.jobs)
    if Capability.SIZES not in able or not told:
        return "history" if Capability.HISTORY in able else "none"
    exact = level == "oracle" or all(
        job.truth is not None and job.estimate is not None and job.estimate.work == job.truth.work
        for job in instance.jobs
    )
    return "oracle" if exact else "declared"
