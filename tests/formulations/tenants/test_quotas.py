"""Quotas of tenants and limits of groups: rows, accounts and the checker's sums agree."""

import numpy as np
import pytest
from msgspec.structs import replace

import ronda
from ronda.formulations.options.table import option
from ronda.formulations.site.accounts import accounts
from ronda.instances.check.site.rules import site_violations
from ronda.instances.job import Allocation, Need
from ronda.instances.plan import Plan
from ronda.instances.site import LimitGroup, Quota, Tenant
from ronda.solvers.decision.plan import Question
from tenant_rounds import held, quota, tenant_round, tree

ENGINES = ["milp", "prices", "milp(placement=exact)"]
OBJECTIVE = ("weighted-goodput", {"power": 1.0})


def names(round_):
    """Return the names of the site's rows of a round."""
    own = Question.of(round_, OBJECTIVE[0], parameters=OBJECTIVE[1]).table.own
    return [] if own is None else list(own.names)


LENDERS = tree(A=quota(8, lend=4), B=quota(4), C=quota(4))
NESTED = tree(X=quota(borrow=0), A=("X", quota(4, borrow=2)), B=("X", quota(4)), Y=quota(4))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("tenants", "running", "waiting", "expected"),
    [
        (LENDERS, {}, {"B": 16}, {"B": 12}),  # 4 stay at home with A
        (LENDERS, {"A": 6}, {"B": 16}, {"A": 6, "B": 10}),
        (NESTED, {}, {"A": 12}, {"A": 6}),  # its own limit; what Y has is out of reach for X
        (NESTED, {"B": 4}, {"A": 12}, {"A": 4, "B": 4}),
    ],
)
def test_what_leaves_home_counts_for_the_parent(engine, tenants, running, waiting, expected):
    """Lending limits, borrowing limits, and a cohort that may not borrow."""
    round_ = tenant_round(
        16 if tenants is LENDERS else 12,
        tenants,
        [(t, 1) for t, n in waiting.items() for _ in range(n)],
        [*running.items()],
        fields={f"{t}0": {"preemptible": False} for t in running},
    )
    plan = ronda.solve(round_, engine)
    assert ronda.check(round_, plan) == []
    assert held(round_, plan) == expected


def _random_tree(rng):
    """Return a tree of three levels with quotas that are lent and borrowed, and its leaves."""

    def own(root=False):
        has = int(rng.integers(0, 7))
        lend, borrow = (
            None if root or rng.random() < 0.6 else int(rng.integers(0, 7)) for _ in "ab"
        )
        limit = None if rng.random() < 0.8 else int(rng.integers(0, 12))
        lend = None if lend is None else min(lend, has)
        return (Quota(guaranteed=has, lend=lend, borrow=borrow, limit=limit),)

    found, leaves = [Tenant(name="r", quotas=own(root=True))], []
    for i in range(int(rng.integers(1, 4))):
        found.append(Tenant(name=f"c{i}", parent="r", quotas=own()))
        for j in range(int(rng.integers(1, 4))):
            found.append(Tenant(name=f"c{i}l{j}", parent=f"c{i}", quotas=own()))
            leaves.append(found[-1].name)
    return tuple(found), leaves


def test_rows_accounts_and_recursion_agree():
    """Random admissions in random trees of three levels: the three statements say the same.

    The rows take what leaves home as an excess, the checker and the account recurse.
    """
    seen = {True: 0, False: 0}
    for seed in range(120):
        rng = np.random.default_rng([seed, 541])
        tenants, leaves = _random_tree(rng)
        jobs = [(str(rng.choice(leaves)), int(rng.integers(1, 5))) for _ in range(14)]
        round_ = tenant_round(64, tenants, jobs)
        question = Question.of(round_, OBJECTIVE[0], parameters=OBJECTIVE[1])
        table, (book,) = question.table, accounts(round_)
        rows, given = np.zeros(0, dtype=int), {}
        for k in rng.permutation(len(table)).tolist():
            state = table.jobs[table.job[k]]
            more = np.append(rows, k)
            own = Allocation(option=option(table, k), placement=((0, int(table.gpus[k])),))
            plan = Plan(allocations=given | {state.job.id: own})
            fits = not site_violations(round_, plan)
            assert (table.own is None or not table.own.broken(more).any()) == fits, seed
            assert book.fits(state, own) == fits, seed
            seen[fits] += 1
            if fits:
                rows, given = more, plan.allocations
                book.take(state, own)
    assert min(seen.values()) > 500


@pytest.mark.parametrize("engine", [*ENGINES, "srtf", "las"])
def test_a_quota_cut_below_use_stops_nobody(engine):
    """Kueue 5176: what runs goes on, and nothing is added until use is below the quota."""
    tenants = (Tenant(name="A", quotas=quota(4, limit=4)), Tenant(name="B"))
    running = [("A", 3), ("A", 3), ("B", 1)]
    round_ = tenant_round(16, tenants, [("A", 1), ("B", 2)], running)
    plan = ronda.solve(round_, engine)
    assert ronda.check(round_, plan) == []
    assert plan.allocations.keys() == {"A0", "A1", "B2", "B4"}
    more = plan.allocations | {"A3": replace(plan.allocations["B2"], placement=((0, 1),))}
    (fault,) = {v.where for v in ronda.check(round_, Plan(allocations=more)) if v.code == "quota"}
    assert fault == "tenant A"


@pytest.mark.parametrize("engine", ENGINES)
def test_limits_count_what_is_below_at_any_level(engine):
    """A limit of 3 on the parent, of 2 on a child, of no GPU and of one job: the least rules."""
    tenants = (
        Tenant(name="up", quotas=quota(limit=3)),
        Tenant(name="A", parent="up", quotas=quota(limit=2)),
        Tenant(name="B", parent="up"),
        Tenant(name="none", quotas=quota(limit=0)),
        Tenant(name="one", max_jobs=1),
    )
    waiting = [(t, 1) for t in ("A", "B", "none", "one") for _ in range(4)]
    round_ = tenant_round(16, tenants, waiting)
    assert set(names(round_)) == {
        "limit[up,gpus]",
        "limit[A,gpus]",
        "limit[none,gpus]",
        "jobs[one]",
    }
    plan = ronda.solve(round_, engine)
    found = held(round_, plan)
    assert ronda.check(round_, plan) == []
    assert found["one"] == 1
    assert found.get("A", 0) <= 2
    assert found.keys() <= {"A", "B", "one"}
    assert found.get("A", 0) + found.get("B", 0) == 3


def test_limits_that_cannot_bind_have_no_row():
    """Quotas as large as the cluster, or as what is asked for, and tenants without jobs."""
    tenants = (*tree(A=quota(4, borrow=8), B=quota(8)), Tenant(name="idle", max_jobs=0))
    assert names(tenant_round(12, tenants, [("A", 12), ("B", 8)])) == []
    assert names(tenant_round(13, tenants, [("A", 12), ("B", 8)])) == [
        "tree[root,gpus]",
    ]
    assert names(tenant_round(13, tenants, [("A", 4), ("B", 8)])) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_jobs_that_may_not_be_stopped_fit_into_guarantees(engine):
    """KAI: the firm jobs of a tenant, and of all below a tenant, hold no more than is theirs."""
    tenants = tree(A=quota(2), B=quota(2), C=quota(4))
    jobs = [("A", 2), ("A", 2), ("B", 1), ("B", 3)]
    firm = {f"{t}{k}": {"preemptible": False} for k, (t, _) in enumerate(jobs)}
    round_ = tenant_round(8, tenants, jobs, fields=firm, firm_within_guarantee=True)
    plan = ronda.solve(round_, engine)
    assert ronda.check(round_, plan) == []
    assert held(round_, plan) == {"A": 2, "B": 1}
    loose = ronda.solve(tenant_round(8, tenants, jobs, firm_within_guarantee=True), engine)
    assert held(round_, loose) == {"A": 4, "B": 4}
    assert [v.code for v in ronda.check(round_, loose)] == ["firm", "firm"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (LimitGroup(name="g", users=("u0",), most={"gpus": 3}), {"A": 9}),
        (LimitGroup(name="g", per="user", most={"A100": 3}), {"A": 6}),
        (LimitGroup(name="g", per="user", max_jobs=1), {"A": 2}),
        (LimitGroup(name="g", tenants=("A",), per="tenant", most={"gpus": 4}), {"A": 4}),
        (LimitGroup(name="g", partitions=("default",), most={"cpu": 20}), {"A": 5}),
        (LimitGroup(name="g", max_gpu_s=4000.0), {"A": 4}),
    ],
)
def test_groups_share_limits_by_label(engine, group, expected):
    """Slurm's limits per user, per account, and of a QOS: on GPUs, CPUs, jobs, and time ahead."""
    more = {"needs": {"cpu": Need(per_gpu=3.0, flat=1.0)}, "limit_s": 1000.0}
    fields = {f"A{k}": {"user": f"u{k % 2}"} | more for k in range(12)}
    round_ = tenant_round(16, (Tenant(name="A"),), [("A", 1)] * 12, fields=fields, groups=(group,))
    plan = ronda.solve(round_, engine)
    assert ronda.check(round_, plan) == []
    assert held(round_, plan) == expected
    assert ronda.solve(replace(round_, site=replace(round_.site, groups=())), engine)
    greedy = ronda.solve(round_, "srtf")
    assert ronda.check(round_, greedy) == []
    assert held(round_, greedy) == expected


def test_the_time_of_running_jobs_counts_until_their_limits():
    """A job with a limit of 1,000 s that has run for 400 s still holds its GPUs for 600 s."""
    tenants = (Tenant(name="A", max_gpu_s=2199.0),)
    fields = {f"A{k}": {"limit_s": 1000.0} for k in range(3)}
    round_ = tenant_round(8, tenants, [("A", 1), ("A", 1)], [("A", 2)], fields=fields)
    running = tuple(replace(s, held_s=round_.now_s - 400.0) for s in round_.running)
    round_ = replace(round_, running=running)
    assert len(ronda.solve(round_, "milp").allocations) == 1  # 1,000 + 1,000 is worth more
    wider = replace(
        round_, site=replace(round_.site, tenants=(Tenant(name="A", max_gpu_s=2200.0),))
    )
    assert len(ronda.solve(wider, "milp").allocations) == 2


def test_a_part_of_a_gpu_counts_as_its_share():
    """Three halves of a GPU fill a quota of one and a half."""
    tenants = (Tenant(name="A", quotas=quota(limit=1.5)),)
    fields = {f"A{k}": {"share": 0.5} for k in range(5)}
    round_ = tenant_round(8, tenants, [("A", 1)] * 5, fields=fields, shared=True)
    question = Question.of(round_, OBJECTIVE[0], parameters=OBJECTIVE[1])
    limit = question.table.own.only(np.array(question.table.own.names) == "limit[A,gpus]")
    assert not limit.broken(np.arange(3)).any()
    assert limit.broken(np.arange(4)).any()
