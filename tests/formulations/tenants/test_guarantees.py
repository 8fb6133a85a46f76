"""What is owed to tenants: whom it stops and whom not, and what the plan says of it."""

import numpy as np
import pytest
from msgspec.structs import replace

import ronda
from ronda.formulations.tenants.guarantees import price_of_a_gpu
from ronda.instances.site import Quota, Site, Tenant
from ronda.solvers.decision.plan import Question
from tenant_rounds import held, quota, tenant_round, tree

ENGINES = ["milp", "prices", "milp(placement=exact)"]
HALVES = tree(A=quota(4), B=quota(4))


def solve(round_, engine="prices"):
    """Return the plan by an objective in which jobs are worth as much as they have GPUs."""
    inside = "objective=weighted-goodput,power=1"
    name = f"{engine[:-1]},{inside})" if engine.endswith(")") else f"{engine}({inside})"
    plan = ronda.solve(round_, name)
    assert ronda.check(round_, plan) == []
    return plan


def claims(round_):
    """Return the guarantees of a round by name."""
    question = Question.of(round_, "weighted-goodput", parameters={"power": 1.0})
    return {claim.name: claim for claim in question.claims}


@pytest.mark.parametrize("engine", ENGINES)
def test_nobody_is_stopped_for_a_job_above_its_quota(engine):
    """Two tenants are owed 4 of 8 GPUs: a job of 6 counts nothing, and four of 2 are worth more."""
    round_ = tenant_round(8, HALVES, [("A", 6), ("B", 2), ("B", 2), ("B", 2), ("B", 2)])
    plan = solve(round_, engine)
    assert held(round_, plan) == {"B": 8}
    assert plan.details.owed == {"owed[B,gpus]": (4.0, 4.0)}
    assert plan.objective == pytest.approx(8 + 4, rel=1e-4)
    assert plan.details.owed_worth == pytest.approx(4)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("reclaim", "expected"),
    [("weighted", {"A": 4, "B": 4}), ("strict", {"A": 4, "B": 4}), ("never", {"B": 8})],
)
def test_a_guaranteed_gpu_is_worth_more_than_a_borrowed_one(engine, reclaim, expected):
    """B holds all 8 GPUs, of which 4 are A's, whose jobs are worth a tenth less."""
    waiting = [("A", 2), ("A", 2), ("A", 2)]
    fields = {f"A{k}": {"weight": 1.8} for k in (4, 5, 6)}
    round_ = tenant_round(8, HALVES, waiting, [("B", 2)] * 4, fields=fields, reclaim=reclaim)
    plan = solve(round_, engine)
    assert held(round_, plan) == expected
    assert plan.details.owed["owed[A,gpus]"] == (float(expected.get("A", 0)), 4.0)
    assert [stage.reached for stage in plan.details.stages] == [8.0] * (reclaim == "strict")


def test_free_gpus_go_to_their_owners_even_if_nobody_is_stopped():
    """4 GPUs are free: A's, though B's waiting jobs are worth twice as much."""
    fields = {f"B{k}": {"weight": 4.0} for k in (4, 5)}
    waiting = [("A", 2), ("A", 2), ("B", 2), ("B", 2)]
    round_ = tenant_round(8, HALVES, waiting, [("B", 2)] * 2, fields=fields, reclaim="never")
    assert held(round_, solve(round_)) == {"A": 4, "B": 4}


@pytest.mark.parametrize(("asked", "expected"), [(1, (1, 3, 2)), (2, (2, 2, 2))])
def test_other_departments_give_before_siblings(asked, expected):
    """A asks for its own: first c gives, of another department, and then b, though c is worth more.

    Kueue calls it the hierarchical advantage.
    """
    tenants = (
        Tenant(name="root"),
        Tenant(name="D", parent="root"),
        Tenant(name="E", parent="root"),
        Tenant(name="a", parent="D", quotas=quota(2)),
        Tenant(name="b", parent="D", quotas=quota(2)),
        Tenant(name="c", parent="E", quotas=quota(2)),
    )
    running = [("b", 1)] * 3 + [("c", 1)] * 3
    fields = {f"c{k}": {"weight": 1.4} for k in (3, 4, 5)}
    round_ = tenant_round(6, tenants, [("a", 1)] * asked, running, fields=fields)
    found = held(round_, solve(round_))
    assert (found["a"], found["b"], found["c"]) == expected


def test_what_is_owed_is_shared_out_over_the_levels():
    """Each way from a leaf to below the root has ω in sum; levels that say nothing have no part."""
    tenants = (
        Tenant(name="root", quotas=quota(1)),
        Tenant(name="D", parent="root"),
        Tenant(name="a", parent="D", quotas=quota(2)),
        Tenant(name="b", parent="D"),
        Tenant(name="c", parent="root", quotas=quota(3)),
        Tenant(name="alone", quotas=quota(2)),
    )
    found = claims(tenant_round(8, tenants, [(t, 1) for t in ("a", "b", "c", "alone")]))
    assert {name: (claim.price, claim.most) for name, claim in found.items()} == {
        "owed[D,gpus]": (0.5, 2.0),
        "owed[a,gpus]": (0.5, 2.0),
        "owed[c,gpus]": (1.0, 3.0),
        "owed[alone,gpus]": (1.0, 2.0),
    }


def test_types_count_alone_and_hosts_are_not_owed():
    """A quota of GPUs, of their type, of a type that is not there, and of CPUs; 2 are asked for."""
    tenants = (
        Tenant(
            name="A",
            quotas=tuple(Quota(of=of, guaranteed=8) for of in ("gpus", "A100", "H100", "cpu")),
        ),
    )
    round_ = tenant_round(8, tenants, [("A", 2)])
    assert set(claims(round_)) == {"owed[A,gpus]", "owed[A,A100]"}
    assert [claim.asked for claim in claims(round_).values()] == [2.0, 2.0]


@pytest.mark.parametrize(
    ("owed", "amounts"), [(4, [1, 2, 2, 0]), (3, [1, 2, 0, 0]), (8, [1, 2, 2, 2])]
)
def test_an_option_claims_no_more_than_its_job_asks_for(owed, amounts):
    """2 of up to 8 GPUs are asked for; an option as large as the quota counts, a larger one not."""
    cluster = ronda.uniform_cluster(ronda.GpuType(name="A100", memory_gib=40), 1, 8)
    rates = {"gpus": [1, 2, 4, 8], "rate": [1.0, 1.9, 3.6, 7.0]}
    job = {"id": "a", "gpus": 2, "max_gpus": 8, "work": 900.0, "rates": rates, "tenant": "A"}
    site = Site(tenants=(Tenant(name="A", quotas=quota(owed)),))
    round_ = ronda.make_round(cluster, [job], site=site)
    (claim,) = claims(round_).values()
    found = np.zeros(4)
    found[claim.rows] = claim.amount
    assert found.tolist() == amounts


def test_the_price_does_not_depend_on_who_holds_what():
    """Restarts are dear, so what runs is worth more than if it waited; ω is as if nobody ran."""
    jobs = [("A", 2), ("B", 4), ("B", 2)]
    waits = tenant_round(8, HALVES, jobs)
    for n in (1, 2, 3):
        runs = tenant_round(8, HALVES, jobs[n:], jobs[:n])
        dear = replace(runs, costs=replace(runs.costs, restart_s=600.0))
        assert {c.price for c in claims(dear).values()} == {c.price for c in claims(waits).values()}


def test_the_price_is_the_greatest_worth_of_a_gpu():
    """Of options worth 6 on 2 GPUs, 5 on 1, and one that may not be: 5."""
    round_ = tenant_round(8, HALVES, [("A", 2), ("A", 1), ("A", 1)])
    table = Question.of(round_, "rank").table
    assert price_of_a_gpu(table, np.array([6.0, 5.0, -np.inf])) == 5.0


def test_the_gap_is_relative_to_worth_alone():
    """One job is worth a thousand others: what it makes owed GPUs worth hides no gap."""
    rng = np.random.default_rng(7)
    sizes = rng.choice([1, 2, 3, 5], 30).tolist()
    fields = {f"A{k}": {"weight": float(rng.uniform(1, 2)) * n} for k, n in enumerate(sizes)}
    fields["A0"]["weight"] *= 1000
    tenants = tree(A=quota(20), B=quota(20))
    round_ = tenant_round(40, tenants, [("A", n) for n in sizes], fields=fields)
    plan = solve(round_, "prices(gap=1e-3)")
    worth = plan.objective - plan.details.owed_worth
    assert plan.status == "optimal"
    assert plan.details.owed_worth > worth
    assert plan.bound - plan.objective <= 1e-3 * worth
    assert plan.gap == pytest.approx((plan.bound - plan.objective) / worth, abs=1e-9)
