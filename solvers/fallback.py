"""When a policy has no valid plan: what runs keeps running, and load is shed if it must."""

import msgspec

from ronda.instances.check import Ledger, Violation
from ronda.instances.errors import RondaError
from ronda.instances.instance import Round
from ronda.instances.plan import Plan, SolutionStatus


def fallback(round: Round, ledger: Ledger, rejected: Plan) -> Plan:
    """Return a valid plan that starts nothing.

    Running jobs keep their allocations. If even these break a limit (a power cap that dropped,
    a budget that is spent) jobs are stopped until it holds, those that would lose the least
    GPU time since they began to run here first; jobs that must not be stopped go last.

    Parameters
    ----------
    round, ledger
        The round, and the ledger that checks plans for it.
    rejected
        The plan that could not be used; its stop reason and record are kept.

    Raises
    ------
    RondaError
        If stopping every job that runs does not help.
    """
    victims = sorted(
        (s for s in round.running if s.allocation is not None),
        key=lambda s: (
            not s.job.preemptible,
            s.allocation.option.gpus * (round.now_s - s.held_s) if s.allocation else 0.0,
        ),
    )
    kept = {s.job.id: s.allocation for s in round.running if s.allocation is not None}
    plan = Plan(
        policy=rejected.policy,
        allocations=dict(kept),
        stop=rejected.stop,
        status=SolutionStatus.FALLBACK,
        record=rejected.record,
        details=rejected.details,
    )
    violations: list[Violation] = ledger.check(round, plan)
    for victim in victims:
        if not violations:
            return plan
        del kept[victim.job.id]
        plan = msgspec.structs.replace(plan, allocations=dict(kept))
        violations = [v for v in ledger.check(round, plan) if v.code != "must-run"]
    if violations:
        raise RondaError(
            f"at {round.now_s:g} s no plan is valid, not even an empty one: {violations[0].message}"
        )
    return plan
