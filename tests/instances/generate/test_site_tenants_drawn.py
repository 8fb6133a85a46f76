"""Tenants drawn for rounds: valid, from a seed, and binding as the severity says."""

import pytest
from msgspec.structs import replace

import ronda
from ronda.instances.generate.rounds import round as drawn
from ronda.instances.plan import PlanDetails
from ronda.instances.rules.validate import validate
from ronda.solvers.decision.plan import Question
from ronda.solvers.plan_report import plan_report
from site_drawn import with_tenants
from tenant_rounds import quota, tenant_round, tree

BIND = ["borrow", "tree"]


@pytest.mark.parametrize(("severity", "binds"), [(0, []), (0.5, BIND), (1, BIND)])
def test_more_binds_at_a_higher_severity(severity, binds):
    """All GPUs are guaranteed; nothing but what is owed binds where all may be lent."""
    made = validate(with_tenants(drawn(48, severity="tight"), severity=severity, seed=3))
    assert made == with_tenants(drawn(48, severity="tight"), severity=severity, seed=3)
    names = Question.of(made, "rank").table.own.names
    families = {name.partition("[")[0] for name in names} - {"owed", "fair", "lent"}
    assert sorted(families) == binds
    own = [q.guaranteed for t in made.site.tenants for q in t.quotas if q.guaranteed is not None]
    assert sum(own) == made.cluster.gpus
    assert ronda.check(made, ronda.solve(made, "srtf")) == []


def test_the_report_says_what_is_owed_and_borrowed():
    """A gets 3 of the 4 that it is owed, as its jobs of 1 wait for one GPU that B borrows."""
    tenants = tree(A=quota(4), B=quota(4))
    running = [("A", 1)] * 3 + [("B", 3), ("B", 2)]
    fields = {name: {"preemptible": False} for name in ("B3", "B4")}
    round_ = tenant_round(8, tenants, [("A", 1)], running, fields=fields)
    plan = ronda.solve(round_, "prices")
    report = plan_report("r", round_, plan, None, seed=0, elapsed_s=0.0)
    facts = dict(report.parts[1].rows)
    assert facts["owed"] == "7 of 8 GPUs; not given: A,gpus 3 of 4"
    assert facts["borrowed"] == "B 1 of 5: the first to go when their owners ask"
    none = replace(plan, details=PlanDetails())
    facts = dict(plan_report("r", round_, none, None, seed=0, elapsed_s=0.0).parts[1].rows)
    assert "owed" not in facts
