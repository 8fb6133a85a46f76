"""The check of a plan, and of a schedule, against all rules of a site."""

from collections.abc import Callable

from ronda.instances.check.site.disruption import disrupted_too_much, disrupts_too_much
from ronda.instances.check.site.given import JobInPlan
from ronda.instances.check.site.hosts import host_faults, host_faults_in_time
from ronda.instances.check.site.min_run import changes_too_soon, runs_too_short
from ronda.instances.check.site.order import (
    array_violations,
    crowded_arrays,
    early_starts,
    limit_violations,
    order_violations,
)
from ronda.instances.check.site.outages import leaving_violations
from ronda.instances.check.site.parts import plan_parts, schedule_parts
from ronda.instances.check.site.shapes import schedule_shape_violations, shape_violations
from ronda.instances.check.site.tenants import tenant_schedule_violations, tenant_violations
from ronda.instances.instance import Instance
from ronda.instances.job import Allocation, JobState
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.schedule import Schedule
from ronda.instances.violation import Violation

PLAN_RULES: tuple[Callable[[Round, Plan, list[JobInPlan]], list[Violation]], ...] = (
    shape_violations,
    early_starts,
    crowded_arrays,
    leaving_violations,
    plan_parts,
    host_faults,
    tenant_violations,
    changes_too_soon,
    disrupts_too_much,
)
"""Functions that return the violations of a rule by a plan, given all jobs of the round."""

SCHEDULE_RULES: tuple[Callable[[Instance, Schedule], list[Violation]], ...] = (
    schedule_shape_violations,
    array_violations,
    order_violations,
    limit_violations,
    schedule_parts,
    host_faults_in_time,
    tenant_schedule_violations,
    runs_too_short,
    disrupted_too_much,
)
"""Functions that return the violations of a rule by a schedule."""


def site_violations(round: Round, plan: Plan) -> list[Violation]:
    """Return every violation of a rule of the round's site by a plan."""
    if not round.has_rules:
        return []
    given = [
        JobInPlan(s, a, _kept(s, a)) for s in round.jobs for a in [plan.allocations.get(s.job.id)]
    ]
    return [fault for rule in PLAN_RULES for fault in rule(round, plan, given)]


def _kept(state: JobState, given: Allocation | None) -> bool:
    held = state.allocation
    return held is not None and given is not None and (held is given or held.goes_on(given))


def site_schedule_violations(instance: Instance, schedule: Schedule) -> list[Violation]:
    """Return every violation of a rule of the instance's site by a schedule."""
    return [fault for rule in SCHEDULE_RULES for fault in rule(instance, schedule)]
