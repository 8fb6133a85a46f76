"""The minimum run time and the disruption budget of a site over the rounds of a run."""

import pytest
from msgspec.structs import replace

import ronda
from ronda.formulations.site.min_run import least_run_s, with_minimum_runs
from ronda.instances.instance import Faults, Outage
from ronda.instances.job import Costs, Job
from ronda.instances.site import Disruption, PriorityClass, Site, Tenant
from ronda.questions.explain import explain_jobs
from ronda.solvers.decision.plan import Question
from site_cases import NOW_S, disturbed, rigid, round_of
from small import make_instance


def short_after_long(**fields):
    """Return a job of 2,000 s that holds the node, and one of 100 s that comes after 10 s."""
    made = make_instance([("long", 0.0, 4, 2000.0), ("short", 10.0, 4, 100.0)], **fields)
    return made


def starts(schedule):
    """Return when each job starts, by job."""
    return {o.id: [segment.start_s for segment in o.segments] for o in schedule.jobs}


@pytest.mark.parametrize("policy", ["srtf", "prices", "milp"])
def test_a_job_runs_for_its_minimum_and_then_gives_way_at_once(policy):
    """The driver wakes at 300 s, when nothing else happens."""
    made = short_after_long()
    protected = replace(made, site=classes_of(300.0), jobs=in_class(made.jobs))
    for instance, start_s in ((made, 10.0), (protected, 300.0)):
        found = ronda.run(instance, policy)
        assert starts(found)["short"] == [start_s]
        assert ronda.check(instance, found) == []
    soon = ronda.run(made, policy)
    found = replace(soon, fingerprint=ronda.run(protected, policy).fingerprint)
    broken = ronda.check(protected, found)
    assert [(v.code, v.where) for v in broken] == [("min-run", "job long")]
    assert "runs 10 s from 0 s, not at least 300 s" in broken[0].message


def classes_of(min_run_s):
    """Return a site with a class of a minimum run time."""
    return Site(classes=(PriorityClass(name="firm", rank=0, min_run_s=min_run_s),))


def in_class(jobs):
    """Return jobs in the class."""
    return tuple(replace(job, priority="firm") for job in jobs)


def test_a_failed_node_overrides_the_minimum():
    """The long job fails with its node at 50 s, and its minimum begins anew when it runs again."""
    made = short_after_long()
    faults = Faults(outages=(Outage(node=0, start_s=50.0, end_s=60.0),))
    made = replace(made, site=classes_of(300.0), jobs=in_class(made.jobs), faults=faults)
    found = ronda.run(made, "srtf")
    assert ronda.check(made, found) == []
    assert starts(found) == {"short": [60.0], "long": [0.0, 161.0]}


def test_the_largest_minimum_counts():
    """Of the job, its class, its tenant and every tenant above."""
    site = Site(
        tenants=(
            Tenant(name="top", min_run_s=50.0),
            Tenant(name="team", parent="top", min_run_s=20.0),
            Tenant(name="other", min_run_s=900.0),
        ),
        classes=(PriorityClass(name="c", rank=0, min_run_s=40.0),),
    )
    job = Job(id="j", submit_s=0.0, profile="p", gpus=1)
    for fields, least_s in (
        ({}, 0.0),
        ({"min_run_s": 10.0}, 10.0),
        ({"priority": "c"}, 40.0),
        ({"tenant": "team"}, 50.0),
        ({"tenant": "team", "priority": "c", "min_run_s": 60.0}, 60.0),
    ):
        assert least_run_s(site, replace(job, **fields)) == least_s


@pytest.mark.parametrize("policy", ["srtf", "prices", "milp", "milp(placement=exact)", "las"])
def test_until_the_minimum_is_over_a_job_is_as_one_that_must_run(policy):
    """It is neither stopped nor moved a second before; at the second itself it may be."""
    for since_s, stops in ((NOW_S - 299.0, False), (NOW_S - 300.0, True)):
        long = rigid("long", 8, 1.0, min_run_s=300.0)
        urgent = replace(rigid("urgent", 8, 90.0), estimate=replace(long.estimate, work=60.0))
        made = round_of((long, ((0, 8),)), urgent, since_s=since_s)
        plan = ronda.solve(made, policy)
        assert bool(disturbed(made, plan)) == stops
        assert ronda.check(made, plan) == []
        stopped = ronda.Plan()
        assert [v.code for v in ronda.check(made, stopped)] == ["min-run"] * (not stops)
        assert Question.of(made, "rank").table.must_run.tolist() == [not stops, False]


def test_a_round_without_minimum_runs_stays_the_same_object():
    """So nothing that is kept for a round is built anew."""
    made = round_of((rigid("a", 8), ((0, 8),)))
    assert with_minimum_runs(made) is made


@pytest.mark.parametrize("policy", ["srtf", "prices"])
def test_no_decision_of_a_run_disrupts_more_than_its_budget(policy):
    """Short jobs of 4 GPUs push long ones aside, two GPUs a decision at most."""
    jobs = [(f"long{k}", 0.0, 2, 4000.0 + k) for k in range(4)]
    jobs += [(f"short{k}", 100.0 + k, 4, 50.0) for k in range(3)]
    made = make_instance(jobs, nodes=2, costs=Costs(restart_s=10.0))
    counts = {}
    for gpus in (None, 0, 2, 4):
        instance = replace(made, site=Site(disruption=Disruption(gpus=gpus)))
        found = ronda.run(instance, policy)
        assert ronda.check(instance, found) == []
        assert not any(record.violations for record in found.rounds)
        counts[gpus] = sum(len(o.segments) - 1 for o in found.jobs)
    assert counts[0] == 0
    assert counts[None] > 0
    free = ronda.run(made, policy)
    site = Site(disruption=Disruption(gpus=0))
    strict = replace(made, site=site)
    broken = ronda.check(strict, replace(free, fingerprint=ronda.run(strict, policy).fingerprint))
    assert {v.code for v in broken} == {"disruption"}


def test_hosts_tell_when_a_run_began_and_explanations_say_that_it_is_young():
    """A job that has held its GPUs for 100 of 300 s keeps them from one that is worth more."""
    cluster = ronda.uniform_cluster(ronda.GpuType(name="A", memory_gib=40), 1, 8)
    for held_s, stops in ((3500.0, False), (3300.0, True)):
        rows = [
            {"id": "long", "gpus": 8, "work": 9e4, "min_run_s": 300.0, "nodes": {0: 8}},
            {"id": "urgent", "gpus": 8, "work": 60.0, "weight": 99.0},
        ]
        rows[0] |= {"since_s": held_s, "held_s": held_s, "started": True}
        made = ronda.make_round(cluster, rows, now_s=NOW_S)
        plan = ronda.solve(made, "prices")
        assert ("long" not in plan.allocations) == stops
        (why,) = explain_jobs(made, plan, ["long"])
        assert (why.reason == "young") == (not stops)
