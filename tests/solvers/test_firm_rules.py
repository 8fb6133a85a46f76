"""Rules that what runs breaks, and may not be stopped: they give way to it, and no further."""

import numpy as np
import pytest
from msgspec.structs import replace

import ronda
from odd_rules import best_beside_firm_jobs, firm_round
from ronda.instances.errors import RondaError
from ronda.instances.instance import Instance
from ronda.instances.job import Estimate, Truth
from ronda.instances.plan import SolutionStatus
from ronda.instances.profile import rigid_profile
from ronda.solvers.policies.optimising.milp import Milp
from ronda.solvers.rules import rules


def teams(**running):
    """Return 8 GPUs on two nodes, v1 (4 GPUs) runs on node 0, and w1 (4) and v2 (2) wait.

    `running` are more fields of v1, which may not be stopped.
    """
    kind = ronda.GpuType(name="A100", memory_gib=40, idle_w=50.0)
    four, two = ({"gpus": n, "rates": {"gpus": [n], "rate": [1.0]}} for n in (4, 2))
    v1 = {"id": "v1", "user": "v", "work": 3600.0, "nodes": {0: 4}, "preemptible": False}
    w1 = {"id": "w1", "user": "w", "work": 600.0}
    v2 = {"id": "v2", "user": "v", "work": 60.0}
    jobs = [v1 | four | running, w1 | four, v2 | two]
    return ronda.make_round(ronda.uniform_cluster(kind, 2, 4), jobs)


def of(sense, limit, team="v", **fields):
    """Return a rule of the GPUs of a team."""

    def rule(round, table):
        mine = np.array([state.job.user == team for state in table.jobs])[table.job]
        return ronda.Limit(table.gpus * mine, sense, limit, **fields)

    return rule


EXACT = "milp(placement=exact)"


@pytest.mark.parametrize("policy", ["milp", "prices", EXACT, "milp(solver=scip)"])
@pytest.mark.parametrize(
    ("rules_", "run", "gave"),
    [
        ([of("<=", 2, name="q")], {"v1", "w1"}, ["rule[q] (at most 2)"]),
        ([of("==", 2, name="q")], {"v1", "w1"}, ["rule[q] (at most 2)"]),
        ([of("<=", 2, name="q"), of("<=", 0, "w", name="r")], {"v1"}, ["rule[q] (at most 2)"]),
        # Two soft ones: the dearer one keeps v2 waiting, and w1 is worth more than the other costs.
        ([of("<=", 2, penalty=9.0, name="q"), of("<=", 3, "w", penalty=1e-6)], {"v1", "w1"}, []),
        # Of v 6 GPUs are possible, and wanted: no limit gives way, and v2 starts beside v1.
        ([of(">=", 6, name="q")], {"v1", "v2"}, []),
        ([of("==", 6, name="q"), of("<=", 2, name="r")], {"v1", "w1"}, ["rule[r] (at most 2)"]),
    ],
)
def test_a_rule_gives_way_to_what_may_not_be_stopped_and_no_further(policy, rules_, run, gave):
    """v1 goes on, what takes nothing of the rule starts, and the plan names both."""
    round_ = teams()
    plan = ronda.solve(round_, policy, extra=rules_)
    assert set(plan.allocations) == run
    found = [conflict.message for conflict in plan.details.conflicts]
    assert all(f"no plan keeps {limit} and job v1, which" in plan.record.message for limit in gave)
    assert len(found) >= len(gave)
    if len(rules_) != 2 or gave != ["rule[r] (at most 2)"]:
        assert plan.status is SolutionStatus.OPTIMAL
        assert (ronda.check(round_, plan), ronda.broken_rules(rules_, round_, plan)) == ([], [])
    else:  # v2 may not start by one rule, and must by the other
        assert [v.where for v in ronda.broken_rules(rules_, round_, plan)] == ["rule[q,least]"]


def test_an_excess_that_need_not_be_is_told_from_one_that_must():
    """v1 has 4 of 2 GPUs in any case; v2 would make it 6. If v1 may be stopped, 4 are too many."""
    round_, rule = teams(), of("<=", 2, name="q")
    plan = ronda.solve(round_, "milp", extra=[of(">=", 6)])  # v1 and v2
    (broken,) = ronda.broken_rules([rule], round_, plan)
    assert broken.message == "6, at most 2"
    held = replace(plan, allocations=round_.held)
    assert ronda.broken_rules([rule], round_, held) == []
    soft = teams(preemptible=True)
    assert len(ronda.broken_rules([rule], soft, held)) == 1
    assert set(ronda.solve(soft, "milp", extra=[rule]).allocations) == {"w1", "v2"}


@pytest.mark.parametrize("policy", ["milp", "prices"])
def test_what_runs_goes_on_where_no_room_is_left_for_what_a_rule_asks(policy):
    """W is to have 8 GPUs, but v1 may not be stopped: w1 starts, and the rule is named."""
    round_, rule = teams(), of(">=", 8, "w", name="all")
    w2 = replace(round_.waiting[0], job=replace(round_.waiting[0].job, id="w2"))
    round_ = replace(round_, waiting=(*round_.waiting, w2))
    plan = ronda.solve(round_, policy, extra=[rule])
    assert "v1" in plan.allocations
    assert "w1" in plan.allocations
    assert "no plan keeps rule[all] and job v1" in plan.record.message
    assert ronda.check(round_, plan) == []


def test_a_quota_that_falls_below_its_use_ends_no_run():
    """From 50 s on team v has 2 GPUs: v1, which runs on 4 to 100 s, goes on, and v2 waits."""
    round_ = teams()
    jobs = tuple(
        replace(s.job, profile="p", submit_s=at_s, estimate=Estimate(work=w), truth=Truth(work=w))
        for s, at_s, w in zip(round_.jobs, (0, 60, 60), (100.0, 20.0, 10.0), strict=True)
    )
    rigid = replace(rigid_profile("A100"), name="p")
    made = Instance(name="day", cluster=round_.cluster, profiles={"p": rigid}, jobs=jobs)

    def quota(round, table):
        return of("<=", 8 if round.now_s < 50 else 2, name="quota")(round, table)

    schedule = ronda.run(made, Milp(extra=rules([quota])))
    assert {o.id: (o.segments[0].start_s, o.end_s) for o in schedule.jobs} == {
        "v1": (0, 100),
        "w1": (60, 80),
        "v2": (100, 110),
    }
    said = "no plan keeps rule[quota] (at most 2) and job v1, which may not be stopped: 4"
    assert [(r.now_s, r.conflicts) for r in schedule.rounds if r.conflicts] == [
        (60, (said,)),
        (80, (said,)),
    ]
    assert ronda.check(made, schedule) == []


@pytest.mark.parametrize("firm", [True, False])
def test_a_host_whose_quota_falls_is_told_of_what_may_not_be_stopped(firm):
    """It goes on and is named; what may be stopped is stopped."""
    policy = Milp(extra=rules([of("<=", 2, name="q")]))
    host = ronda.Embedded(policy, teams().cluster, node_names=["n0", "n1"])
    rates = {"gpus": [4], "rate": [1.0]}
    v1 = {"id": "v1", "user": "v", "gpus": 4, "work": 3600.0, "rates": rates}
    host.update(now_s=0.0, added=[v1 | {"preemptible": not firm}], running={"v1": {"n0": 4}})
    changes = host.update(now_s=60.0, added=[{**v1, "id": "w1", "user": "w"}]) or host.decide()
    assert (list(changes.start), list(changes.stop)) == (["w1"], [] if firm else ["v1"])
    assert ["v1, which may" in c.message for c in changes.plan.details.conflicts] == [True] * firm


@pytest.mark.parametrize("seed", [0, 1, 3, 5, 8, 34, 35, 39])
def test_the_plan_is_the_best_that_keeps_what_can_be_kept(seed):
    """By trying all choices of tiny rounds with firm jobs and random rules, several at once."""
    round_, extra = firm_round(seed)
    top = best_beside_firm_jobs(round_, extra)
    for policy in ("milp(gap=0)", "prices(gap=1e-8)"):
        plan = ronda.solve(round_, policy, extra=extra)
        assert ronda.check(round_, plan) == []
        if top is not None:
            assert ronda.broken_rules(extra, round_, plan) == []
            assert plan.objective == pytest.approx(top, abs=1e-6)


def test_a_run_whose_rules_leave_a_job_no_room_names_them():
    """v1 may be stopped, and is: then no rule ever lets it run, and no budget is blamed."""
    round_ = teams(preemptible=True)
    rigid = replace(rigid_profile("A100"), name="p")
    job = replace(round_.jobs[0].job, profile="p", estimate=None, truth=Truth(work=100.0))
    made = Instance(name="day", cluster=round_.cluster, profiles={"p": rigid}, jobs=(job,))
    with pytest.raises(RondaError, match=r"too large for the rules \(rule\)"):
        ronda.run(made, Milp(extra=rules([of("<=", 2, name="q")])))
