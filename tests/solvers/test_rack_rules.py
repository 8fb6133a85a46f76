"""Rules of the user's own that see racks: against brute force over plans on nodes, and refused."""

import os
from itertools import combinations

import numpy as np
import pytest

import ronda
from ronda.formulations.objectives.by_name import values
from ronda.formulations.objectives.switching_cost import loss_of_moves
from ronda.formulations.positions.variables import NODE_SHARE
from ronda.instances.cluster import Rack
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation, Costs, Estimate, Job, JobState, Option
from ronda.instances.plan import SolutionStatus
from ronda.instances.profile import Rated, rigid_profile

EXACT = "milp(placement=exact, gap=0)"
RACKS = ("north", "south")


def tiny(seed):
    """Return a round of up to three jobs on two racks of one or two nodes, and random rules."""
    rng = np.random.default_rng([seed, 71])
    size = int(rng.integers(2, 4))
    kind = ronda.GpuType(name="G", memory_gib=16, idle_w=20.0)
    about = {"gpus_per_node": size, "gpu_type": "G"}
    groups = [
        ronda.NodeGroup(name=r, count=int(rng.integers(1, 3)), rack=r, **about) for r in RACKS
    ]
    cluster = ronda.Cluster(
        gpu_types=(kind,), node_groups=tuple(groups), racks=tuple(Rack(name=r) for r in RACKS)
    )
    gpus = range(1, 5)
    rates = [float(n ** rng.uniform(0.5, 1.0)) for n in gpus]
    profile = ronda.Profile(
        name="p",
        throughput={
            "G": Rated(
                gpus=tuple(gpus),
                nodes=tuple(-(-n // size) for n in gpus),
                batch=(1.0,) * 4,
                clock=(1.0,) * 4,
                rate=tuple(rates),
                power_w=tuple(100.0 * n for n in gpus),
            )
        },
    )
    states, free = [], cluster.topology.node_gpus.copy()
    for j in range(int(rng.integers(2, 4))):
        few = int(rng.integers(1, 4))
        job = Job(
            id=f"j{j}",
            submit_s=float(j),
            profile="p",
            gpus=few,
            min_gpus=few,
            max_gpus=int(rng.integers(few, 5)),
            preemptible=bool(rng.random() < 0.7),
            estimate=Estimate(work=float(rng.uniform(500, 5000))),
        )
        wide = few > size
        at = ((0, size), (len(free) - 1, few - size)) if wide else ((j % len(free), few),)
        held = None
        if rng.random() < 0.4 and all(free[node] >= gpus for node, gpus in at):
            for node, gpus in at:
                free[node] -= gpus
            span, rate = "cluster" if wide else "node", rates[few - 1]
            option = Option(pool=0, gpus=few, span=span, rate=rate, power_w=100.0 * few)
            held = Allocation(option=option, placement=at)
        about = {"started": held is not None, "allocation": held}
        states.append(JobState(job=job, since_s=job.submit_s, **about))
    round_ = ronda.Round(
        now_s=100.0,
        cluster=cluster,
        profiles={"p": profile},
        costs=Costs(restart_s=300.0),
        running=tuple(s for s in states if s.allocation is not None),
        waiting=tuple(s for s in states if s.allocation is None),
    )
    return round_, [_rule(seed, number) for number in range(int(rng.integers(1, 3)))]


def _rule(seed, number):
    """Return a random rule, whose coefficients are of jobs, racks and GPUs alone."""

    def rule(round, table, rack):
        return _said(seed, number, table, rack)

    rule.__name__ = f"r{number}"
    return rule


def _said(seed, number, table, rack):
    rng = np.random.default_rng([seed, number, 72])
    by_job = rng.choice([0.0, 1.0, 1.0, -1.0], size=(3, len(RACKS) + 1))
    by_job[rng.random(3) < 0.3] = by_job[0, -1]  # for some jobs racks are no matter
    named = np.array([int(state.job.id[1:]) for state in table.jobs], dtype=int)
    use = by_job[named[table.job], rack] * (table.gpus if rng.random() < 0.5 else 1.0)
    if rng.random() < 0.25:
        return ronda.Term(0.2 * use)
    sense = str(rng.choice(["<=", "<=", ">="]))
    penalty = None if rng.random() < 0.6 else float(rng.choice([0.01, 0.1, 1.0]))
    return ronda.Limit(use, sense, float(rng.integers(0, 3)), penalty=penalty)


def best(round_, seed, rules):
    """Return the greatest worth of a plan on nodes that keeps rules; None if there is none.

    What rules count differently by rack is in one rack wherever one has the GPUs for it; only what
    runs may stay across racks.
    """
    table = ronda.option_table(round_)
    worth = values(round_, table)
    racks = round_.cluster.topology.node_rack
    lots = [_placed(table, k, worth, round_, seed, rules) for k in range(len(table))]
    top = None

    def search(j, free, taken, total):
        nonlocal top
        if j == len(table.jobs):
            found = _judged(seed, rules, table, taken)
            if found is not None:
                top = total + found if top is None else max(top, total + found)
            return
        if not table.must_run[j]:
            search(j + 1, free, taken, total)
        for k in range(table.start[j], table.start[j + 1]):
            for pieces, value in lots[k]:
                if all(free[n] >= g for n, g in pieces):
                    left = free.copy()
                    for n, g in pieces:
                        left[n] -= g
                    at = {int(racks[n]) for n, _ in pieces}
                    where = at.pop() if len(at) == 1 else -1
                    search(j + 1, left, [*taken, (k, where)], total + value)

    search(0, round_.cluster.topology.node_gpus.copy(), [], 0.0)
    return top


def _placed(table, k, worth, round_, seed, rules):
    """Return the places of an option, whole nodes and a block, and what it is worth in each."""
    topology, state = round_.cluster.topology, table.jobs[table.job[k]]
    nodes, size = range(len(topology.node_gpus)), int(topology.node_gpus[0])
    count, rest = divmod(int(table.gpus[k]), size)
    in_rack = np.bincount(topology.node_rack, topology.node_gpus)
    fits = [r for r in range(len(RACKS)) if in_rack[r] >= table.gpus[k]]
    found = [(state.allocation.placement, worth[k])] if table.current[k] else []
    if table.must_run[table.job[k]]:
        return found
    for filled in combinations(nodes, count):
        for block in [n for n in nodes if n not in filled] if rest else [None]:
            pieces = [(n, size) for n in filled] + ([(block, rest)] if rest else [])
            at = {int(topology.node_rack[n]) for n, _ in pieces}
            if len(at) > 1 and fits and _minds(table, k, fits, seed, rules):
                continue
            lost = 0.0
            if table.current[k]:
                with_terms = worth + _terms(table, at.pop() if len(at) == 1 else -1, seed, rules)
                lost = loss_of_moves(round_, table, with_terms, np.array([k]), {state.job.id})
            found.append((pieces, worth[k] - lost))
    return found


def _terms(table, where, seed, rules):
    """Return what terms add to options in a rack: a restart takes its share of that, too."""
    said = [_said(seed, number, table, np.full(len(table), where)) for number in range(rules)]
    return sum(each.coefficients for each in said if isinstance(each, ronda.Term))


def _minds(table, k, fits, seed, rules):
    """Return whether any rule counts an option differently by rack."""
    for number in range(rules):
        said = [
            np.asarray(_said(seed, number, table, np.full(len(table), r)).coefficients)[k]
            for r in (-1, *fits)
        ]
        if len(set(said)) > 1:
            return True
    return False


def _judged(seed, rules, table, taken):
    """Return what rules add to a plan's worth; None if it breaks one."""
    total = 0.0
    for number in range(rules):
        used, said = 0.0, None
        for k, where in taken:
            said = _said(seed, number, table, np.full(len(table), where))
            used += float(np.asarray(said.coefficients)[k])
        said = said or _said(seed, number, table, np.full(len(table), -1))
        if isinstance(said, ronda.Term):
            total += used
            continue
        over = used - said.limit if said.sense == "<=" else said.limit - used
        if over > 1e-9 and said.penalty is None:
            return None
        total -= (said.penalty or 0.0) * max(0.0, over)
    return total


def test_plans_are_the_best_on_nodes_that_keep_random_rules_about_racks():
    """Of 60 tiny rounds on two racks; a node in use costs as little as it does in the model."""
    none = moved = 0
    for seed in range(60 if os.environ.get("SOAK") else 24):
        round_, extra = tiny(seed)
        top = best(round_, seed, len(extra))
        plan = ronda.solve(round_, EXACT, extra=extra)
        if top is None:
            none += 1
            kept = not ronda.broken_rules(extra, round_, plan)
            assert plan.status is SolutionStatus.NONE or kept, seed
            assert plan.status in (SolutionStatus.NONE, SolutionStatus.FALLBACK), seed
            continue
        scale = np.abs(values(round_, ronda.option_table(round_))).max() + 1.0
        slack = 2 * NODE_SHARE * scale * len(round_.cluster.topology.node_gpus)
        assert plan.status is SolutionStatus.OPTIMAL, (seed, plan.record.message)
        assert top - slack <= plan.objective <= top + 1e-7, (seed, plan.objective, top)
        assert plan.bound >= top - slack, seed
        assert ronda.check(round_, plan) == [], seed
        assert ronda.broken_rules(extra, round_, plan) == [], seed
        moved += bool(plan.details.moved)
    assert 0 < none < 30
    assert moved


def apart(round, table, rack):
    """Jobs j0 and j1 are never in one rack."""
    named = np.array([state.job.id in ("j0", "j1") for state in table.jobs])
    return [
        ronda.Limit(1.0 * named[table.job] * (rack == r), "<=", 1)
        for r in range(len(round.cluster.topology.racks))
    ]


@pytest.mark.parametrize("policy", ["milp", "prices", "milp(placement=aggregate)"])
def test_a_policy_that_decides_without_nodes_refuses_rules_that_see_racks(policy):
    """In one line that names the rule and the policy that can."""
    with pytest.raises(InputError, match="apart, which sees racks") as refused:
        ronda.solve(tiny(0)[0], policy, extra=[apart])
    assert "milp(placement=exact)" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_rule_whose_price_is_not_known_is_named():
    """Apart on two nodes, a and b leave d (4 GPUs) none: the rule costs d, and prices say 0."""
    kind = ronda.GpuType(name="A100", memory_gib=40, idle_w=50.0)
    nodes = {"count": 1, "gpus_per_node": 4, "gpu_type": "A100"}
    groups = tuple(ronda.NodeGroup(name=name, rack=name, **nodes) for name in ("n", "s"))
    racks = tuple(Rack(name=name) for name in ("n", "s"))
    cluster = ronda.Cluster(gpu_types=(kind,), node_groups=groups, racks=racks)
    jobs = [
        {"id": name, "gpus": n, "work": 3600.0, "rates": {"gpus": [n], "rate": [1.0]}}
        for name, n in (("a", 2), ("b", 2), ("d", 4))
    ]

    def never_together(round, table, rack):
        pair = np.array([state.job.id in ("a", "b") for state in table.jobs])[table.job]
        for r in (0, 1):
            yield ronda.Limit(1.0 * pair * (rack == r), "<=", 1)

    round_ = ronda.make_round(cluster, jobs)
    exact = "milp(placement=exact)"
    plan, free = ronda.solve(round_, exact, extra=[never_together]), ronda.solve(round_, exact)
    assert (set(plan.allocations), set(free.allocations)) == ({"a", "b"}, {"a", "b", "d"})
    names = {"rule[never_together,0]", "rule[never_together,1]"}
    assert (set(plan.details.unpriced), names & plan.prices.keys()) == (names, set())
    assert free.details.unpriced == ()


def test_a_plan_is_judged_by_the_racks_that_its_jobs_are_really_in():
    """The same two jobs break the rule in one rack, and keep it in two."""
    option = Option(pool=0, gpus=1, span="node", rate=1.0, power_w=100.0)
    round_ = next(r for r, _ in map(tiny, range(20)) if len(r.cluster.topology.node_gpus) == 2)

    def on(*nodes):
        held = {
            f"j{j}": Allocation(option=option, placement=((node, 1),))
            for j, node in enumerate(nodes)
        }
        return ronda.broken_rules([apart], round_, ronda.Plan(allocations=held))

    assert [str(v) for v in on(0, 0)] == ["rule: rule[apart,0]: 2, at most 1"]
    assert on(0, 1) == []


def test_what_runs_in_several_racks_may_stay_there_but_not_move_to_others():
    """Its rule forbids any one rack: a job that needs a whole one runs only if it is stopped."""
    kind = ronda.GpuType(name="G", memory_gib=16, idle_w=20.0)
    groups = tuple(
        ronda.NodeGroup(name=r, count=2, rack=r, gpus_per_node=2, gpu_type="G") for r in RACKS
    )
    racks = tuple(Rack(name=r) for r in RACKS)
    cluster = ronda.Cluster(gpu_types=(kind,), node_groups=groups, racks=racks)
    option = Option(pool=0, gpus=3, span="cluster", rate=1.0, power_w=60.0)
    held = Allocation(option=option, placement=((0, 2), (3, 1)))

    def job(name, gpus, allocation=None):
        asked = Job(
            id=name, submit_s=0.0, profile="rigid", gpus=gpus, estimate=Estimate(work=4000.0)
        )
        return JobState(job=asked, since_s=0.0, allocation=allocation)

    round_ = ronda.Round(
        now_s=100.0,
        cluster=cluster,
        profiles={"rigid": rigid_profile("G")},
        running=(job("wide", 3, held),),
        waiting=(job("whole", 4),),
    )

    def places(round, table, rack):
        wide = np.array([state.job.id == "wide" for state in table.jobs])[table.job]
        return ronda.Limit(1.0 * np.where(wide, rack >= 0, rack < 0), "<=", 0)

    plan = ronda.solve(round_, EXACT, extra=[places])
    assert plan.status is SolutionStatus.OPTIMAL
    assert len(plan.allocations) == 1
    assert len(ronda.solve(round_, EXACT).allocations) == 2


@pytest.mark.parametrize(("bonus", "node"), [(1e-3, 0), (10.0, 1)])
def test_what_moves_to_another_rack_for_a_rule_loses_its_restart(bonus, node):
    """It moves only for a term that is worth more than the restart takes."""
    kind = ronda.GpuType(name="G", memory_gib=16, idle_w=20.0)
    groups = tuple(
        ronda.NodeGroup(name=r, count=1, rack=r, gpus_per_node=2, gpu_type="G") for r in RACKS
    )
    racks = tuple(Rack(name=r) for r in RACKS)
    option = Option(pool=0, gpus=1, span="node", rate=1.0, power_w=20.0)
    work = Estimate(work=4000.0)
    job = Job(id="a", submit_s=0.0, profile="rigid", gpus=1, estimate=work)
    held = Allocation(option=option, placement=((0, 1),))
    round_ = ronda.Round(
        now_s=100.0,
        cluster=ronda.Cluster(gpu_types=(kind,), node_groups=groups, racks=racks),
        profiles={"rigid": rigid_profile("G")},
        costs=Costs(restart_s=300.0),
        running=(JobState(job=job, since_s=0.0, started=True, allocation=held),),
    )

    def south(round, table, rack):
        return ronda.Term(bonus * (rack == 1))

    plan = ronda.solve(round_, EXACT, extra=[south])
    assert plan.status is SolutionStatus.OPTIMAL
    assert plan.allocations["a"].placement == ((node, 1),)
    assert plan.details.move_loss > 0 or node == 0
