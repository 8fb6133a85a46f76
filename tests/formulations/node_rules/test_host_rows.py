"""Rows of host resources and licences: examples, needless rows, and no valid plan cut off."""

from itertools import product

import numpy as np
import pytest
from msgspec.structs import replace

from placing import gpus, room, snapshot, state
from ronda.formulations.node_rules.host_rows import dff, too_much
from ronda.formulations.node_rules.hosts import needs_of
from ronda.formulations.node_rules.licences import LicenceAccount
from ronda.formulations.placement.node_reasons import stranded
from ronda.formulations.placement.reasons import why_unplaced
from ronda.formulations.placement.requests import place
from ronda.formulations.site.accounts import accounts
from ronda.hosts.embedding.nodes import with_nodes
from ronda.instances.check.checker import check
from ronda.instances.job import Allocation, Need
from ronda.instances.plan import Plan
from ronda.instances.rules.validate import validate
from ronda.solvers.decision.plan import Question
from ronda.solvers.greedy.site_limits import within_site_limits
from ronda.solvers.registry import policy

GOODPUT = "objective=weighted-goodput"


def hosts(cluster, **has):
    """Return a cluster whose nodes all have some amounts."""
    groups = tuple(replace(group, has=has) for group in cluster.node_groups)
    return replace(cluster, node_groups=groups)


def needing(job, count, placement=None, *, licences=None, weight=1.0, **needs):
    """Return a job of so many GPUs that needs flat amounts, or a `Need` given."""
    option = None if placement is None else gpus(count, span="node")
    made = state(job, placement, option)
    found = {n: x if isinstance(x, Need) else Need(flat=x) for n, x in needs.items()}
    changed = replace(made.job, gpus=count, needs=found, licences=licences or {}, weight=weight)
    return replace(made, job=changed)


def decided(cluster, *states, name=f"milp({GOODPUT})"):
    """Return the round of some jobs, and a policy's plan for it."""
    running = tuple(s for s in states if s.allocation is not None)
    waiting = tuple(s for s in states if s.allocation is None)
    round_ = validate(snapshot(cluster, running, waiting))
    return round_, policy(name).plan(round_)


def rows(round_):
    """Return the names and capacities of the site's rows."""
    own = Question.of(round_, "weighted-goodput").table.own
    return {} if own is None else dict(zip(own.names, own.capacity.tolist(), strict=True))


def blocks(*cpus):
    """Return jobs a, b, … of 4 GPUs that need so many CPUs."""
    return [needing(n, 4, cpu=c) for n, c in zip("abcdef", cpus, strict=False)]


@pytest.mark.parametrize("name", [f"milp({GOODPUT})", f"prices({GOODPUT})", "srtf"])
def test_three_run_where_the_sum_allows_four(name):
    """40, 40, 40 and 8 CPUs fill 128 of 128, but two 40s share no node: f_1 allows three."""
    cluster = hosts(room(2), cpu=64.0)
    round_, plan = decided(cluster, *blocks(40, 40, 40, 8), name=name)
    assert set(plan.allocations) == {"a", "b", "d"}
    assert check(round_, plan) == []
    assert rows(round_) == {"host_nodes[default/v,cpu,1]": 2.0}
    if plan.bound is not None:
        assert plan.bound == pytest.approx(plan.objective)
        assert plan.prices["host_nodes[default/v,cpu,1]"] > 0


def test_all_run_as_they_fit():
    """40, 40, 24 and 24 CPUs run in pairs, after a move if both 24s run on one node."""
    cluster = hosts(room(2), cpu=64.0)
    _, plan = decided(cluster, *blocks(40, 24, 24, 40))
    assert len(plan.allocations) == 4
    running = [needing(n, 4, ((0, 4),), cpu=24) for n in "cd"]
    round_, plan = decided(cluster, *running, *[needing(n, 4, cpu=40) for n in "ab"])
    assert len(plan.allocations) == 4
    assert len(plan.details.moved) == 1
    assert check(round_, plan) == []


@pytest.mark.parametrize("name", [f"milp({GOODPUT})", f"prices({GOODPUT})"])
def test_licences(name):
    """Of jobs that need 2, 2 and 1 of three licences and are worth 3, 3 and 1, {2, 1} run."""
    cluster = replace(room(2), licences={"solver": 3})
    jobs = [
        needing(n, 4, licences={"solver": count}, weight=worth)
        for n, count, worth in (("a", 2, 3), ("b", 2, 3), ("c", 1, 1))
    ]
    round_, plan = decided(cluster, *jobs, name=name)
    assert len(plan.allocations) == 2
    assert "c" in plan.allocations
    assert rows(round_) == {"licence[solver]": 3.0}
    assert check(round_, plan) == []
    fewer = replace(cluster, licences_taken={"solver": 2})
    assert set(decided(fewer, *jobs, name=name)[1].allocations) == {"c"}


def test_what_cannot_bind_has_no_row():
    """Neither licences for all, nor CPUs for the densest jobs, nor a sum that all jobs keep."""
    cluster = replace(hosts(room(2), cpu=64.0), licences={"solver": 5})
    jobs = [needing(n, 4, cpu=Need(per_gpu=8), licences={"solver": 2}) for n in "ab"]
    assert rows(decided(cluster, *jobs)[0]) == {}
    jobs = [needing(n, 1, cpu=12, licences={"solver": 3}) for n in "ab"]
    assert rows(decided(cluster, *jobs)[0]) == {"licence[solver]": 5.0}
    many = [needing(f"j{k}", 1, cpu=9) for k in range(16)]
    assert rows(decided(cluster, *many)[0])["host[default/v,cpu]"] == 128.0


def test_nobody_stops_because_others_came():
    """What runs goes on although others hold its CPUs and licences now; nothing is added."""
    cluster = replace(hosts(room(1), cpu=64.0), taken=((0, "cpu", 60.0),), licences={"x": 2})
    cluster = replace(cluster, licences_taken={"x": 2})
    running = needing("a", 2, ((0, 2),), cpu=30, licences={"x": 1}, weight=3)
    waiting = [needing("b", 2, cpu=8), needing("c", 2, licences={"x": 1}), needing("d", 2)]
    for name in (f"milp({GOODPUT})", f"prices({GOODPUT})", "srtf", "las"):
        round_, plan = decided(cluster, running, *waiting, name=name)
        assert set(plan.allocations) == {"a", "d"}
        assert check(round_, plan) == []


def test_an_option_that_no_node_can_hold_is_forbidden():
    """A piece on which no node has enough, or whole nodes of which too few have."""
    cluster = replace(hosts(room(3), cpu=64.0), taken=((0, "cpu", 20.0), (1, "cpu", 20.0)))
    jobs = (
        needing("a", 4, cpu=50),
        needing("b", 4, cpu=64.1),
        needing("c", 20, cpu=Need(per_gpu=6, flat=0)),
        needing("d", 12, cpu=Need(per_gpu=6, flat=0)),
    )
    round_ = snapshot(cluster, (), jobs)
    table = Question.of(round_, "weighted-goodput").table
    assert too_much(round_, table).tolist() == [False, True, True, False]


def test_shares_of_nearly_a_multiple_count_as_one():
    """f_1 counts more than a half as 1; a half, with rounding, is a half."""
    shares = np.array([0.5, 0.5 + 1e-12, 0.5 - 1e-12, 0.51, 0.49, 1.0, 0.0])
    found = dff(shares, 1)
    assert found[:3] == pytest.approx(0.5)
    assert (found[:3] <= 0.5).all()
    assert found[3:].tolist() == [1.0, 0.0, 1.0, 0.0]
    third = dff(np.array([1 / 3, 0.34, 2 / 3, 0.67]), 2)
    assert third == pytest.approx([1 / 3, 0.5, 2 / 3, 1.0])


def overfull(seed):
    """Return a random round of 3 nodes of 4 GPUs on which others hold much, and some jobs run."""
    rng = np.random.default_rng(seed)
    cluster = hosts(room(3, size=4), cpu=16.0, memory=16.0)
    second = replace(cluster.node_groups[0], name="h", count=1, has={"cpu": 10.0, "memory": 20.0})
    first = replace(cluster.node_groups[0], count=2)
    held = zip(range(3), rng.integers(0, 14, 3).tolist(), strict=True)
    taken = tuple((n, "cpu", float(h)) for n, h in held)
    cluster = replace(cluster, node_groups=(first, second), taken=taken)
    free, jobs = [4] * 3, []
    for k in range(3):
        size, node = int(rng.choice([1, 2, 3, 4, 6, 8])), int(rng.integers(0, 3))
        run = size <= free[node] and rng.random() < 0.5
        free[node] -= size * run
        needs = {
            n: Need(
                per_gpu=float(rng.integers(0, 4)),
                per_node=float(rng.integers(0, 4)),
                flat=float(rng.integers(0, 6)),
            )
            for n in ("cpu", "memory")
        }
        jobs.append(needing(f"j{k}", size, ((node, size),) if run else None, **needs))
    running = [s for s in jobs if s.allocation is not None]
    return snapshot(cluster, running, [s for s in jobs if s.allocation is None])


def cuts(size):
    """Return the placements of a size on three nodes of 4 GPUs."""
    if size <= 4:
        return [((n, size),) for n in range(3)]
    pairs = [(a, b) for a in range(3) for b in range(3) if a != b]
    return [tuple(sorted([(a, 4), (b, size - 4)])) for a, b in pairs]


def test_no_valid_plan_breaks_a_row():
    """Every plan that the checker accepts keeps all rows and uses no forbidden option."""
    binding = tight = 0
    for seed in range(24):
        round_ = overfull(seed)
        table = Question.of(round_, "weighted-goodput").table
        if table.own is None:
            continue
        binding += 1
        never = too_much(round_, table)
        ways = []
        for state_ in table.jobs:
            own = state_.allocation
            found = [None] if own is None else [None, own]
            option = own.option if own is not None else gpus(state_.job.gpus)
            found += [Allocation(option=option, placement=p) for p in cuts(state_.job.gpus)]
            ways.append(found)
        rows_ = [int(table.start[j]) for j in range(len(table.jobs))]
        for plan_ in product(*ways):
            given = {s.job.id: a for s, a in zip(table.jobs, plan_, strict=True) if a is not None}
            codes = {v.code for v in check(round_, Plan(allocations=given))}
            if codes & {"capacity", "host"}:
                continue
            chosen = [row for row, a in zip(rows_, plan_, strict=True) if a is not None]
            assert not table.own.broken(np.array(chosen, dtype=int)).any(), seed
            use = table.own.dense(np.array(chosen, dtype=int)).sum(axis=1)
            tight += bool((use >= table.own.capacity - 1e-9).any())
            new = [
                r
                for r, a, s in zip(rows_, plan_, table.jobs, strict=True)
                if a is not None and a is not s.allocation
            ]
            assert never is None or not never[new].any(), seed
    assert binding > 10
    assert tight > 5


def test_accounts_cut_the_plans_of_others():
    """A plan that knows nothing of hosts and licences keeps what fits, in its order."""
    cluster = replace(hosts(room(2), cpu=64.0), licences={"x": 1})
    jobs = [
        needing("a", 2, cpu=40),
        needing("b", 2, cpu=40),
        needing("c", 2, cpu=24, licences={"x": 1}),
        needing("d", 2, licences={"x": 1}),
    ]
    round_ = snapshot(cluster, (), jobs)
    given = {s.job.id: Allocation(option=gpus(2), placement=((0, 2),)) for s in jobs}
    cut = within_site_limits(round_, Plan(allocations=given))
    assert set(cut.allocations) == {"a", "c"}
    assert accounts(snapshot(room(1), (), (state("a"),))) == ()


def test_an_array_counts_once():
    """Jobs of an array take hosts and licences once, in accounts and for the checker."""
    cluster = replace(hosts(room(1), cpu=64.0), licences={"x": 1})
    jobs = [needing(n, 1, cpu=40, licences={"x": 1}) for n in "ab"]
    round_ = snapshot(cluster, (), jobs)
    option = gpus(1, width=2, mode="fused")
    one = Allocation(option=option, placement=((0, 1),), array="ab")
    other = replace(one, array="cd")
    for account in accounts(round_):
        account.take(jobs[0], one)
        assert account.fits(jobs[1], one)
        account.take(jobs[1], one)
        assert not account.fits(jobs[1], other)
    codes = {v.code for v in check(round_, Plan(allocations={"a": one, "b": one}))}
    assert not codes & {"host", "licence"}
    codes = {v.code for v in check(round_, Plan(allocations={"a": one, "b": other}))}
    assert {"host", "licence"} <= codes
    assert isinstance(accounts(round_)[1], LicenceAccount)


def test_why_a_job_waits():
    """The nodes with enough GPUs are named, with what they lack; closed ones too."""
    cluster = replace(hosts(room(3), cpu=64.0), taken=((0, "cpu", 40.0), (1, "cpu", 39.0)))
    jobs = [needing("a", 6, ((2, 6),), cpu=60, weight=9), needing("b", 4, cpu=30)]
    round_ = snapshot(cluster, (jobs[0],), (jobs[1],))
    placed = place(round_, {"a": jobs[0].allocation.option, "b": gpus(4)})
    (why,) = why_unplaced(round_, {"a": gpus(6), "b": gpus(4)}, placed).values()
    assert why == (
        "pool default/v has 18 GPUs free, but too little cpu on nodes 0, 1: "
        "the job needs 30 there, at most 25 is left"
    )
    assert stranded(round_, placed.allocations) == (
        "18 GPUs are free, 16 of them on nodes without what waiting jobs ask "
        "(cpu: at least 30 is asked, at most 25 is left)"
    )
    assert stranded(snapshot(cluster, (jobs[0],), ()), placed.allocations) is None


def test_what_is_needed_once_is_on_the_fewest_gpus():
    """On the block, wherever it stands; on the first of equal nodes."""
    state_ = needing("a", 12, cpu=Need(per_gpu=1, per_node=2, flat=5))
    needs = needs_of(state_.job, ("cpu",))
    assert needs.on(((0, 8), (1, 4))).tolist() == [[10.0, 11.0]]
    assert needs.on(((2, 8), (1, 8))).tolist() == [[15.0, 10.0]]


def test_new_nodes_shift_what_others_hold():
    """A node that comes in the middle leaves what others hold on their nodes."""
    groups = room(2, 1).node_groups
    cluster = hosts(room(2, 1), cpu=64.0)
    cluster = replace(cluster, taken=((0, "cpu", 1.0), (2, "cpu", 3.0)))
    found, names = with_nodes(cluster, ["a", "b", "c"], {"new": groups[0].name})
    assert names == ["a", "b", "new", "c"]
    assert found.taken == ((0, "cpu", 1.0), (3, "cpu", 3.0))
