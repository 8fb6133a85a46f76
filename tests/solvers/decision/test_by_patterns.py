"""Options on nodes by patterns: valid plans below true bounds, and what patterns cannot state."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import ronda
from every_site_plan import best_plan
from ronda.formulations.allocation.model_data import Fidelity, make_case
from ronda.formulations.allocation.rows import separable
from ronda.formulations.patterns.of_jobs import unstated
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.job import Allocation, Estimate, Job, JobState, Need, Option, Slices
from ronda.instances.plan import Plan, SolutionStatus
from ronda.instances.profile import rigid_profile
from ronda.instances.round import Round
from ronda.instances.site import Neighbourhood, Site
from ronda.solvers.decision import by_patterns as by_patterns_module
from ronda.solvers.decision.by_patterns import choose_by_patterns
from ronda.solvers.decision.plan import PATTERNS, Choice, Question, to_plan
from ronda.solvers.prices.dual import Search
from site_rounds import OBJECTIVE, RULES, drawn_rules, tiny

TINY = 300 if os.environ.get("SOAK") else 20


def by_patterns(question, prices=()):
    """Return the choice of patterns beside a plan in which nobody runs, and its plan."""
    waits = np.full(len(question.table.jobs), -1)
    nobody = Choice(chosen=waits, bound=np.inf, prices=dict(prices))
    choice = choose_by_patterns(question, nobody, Plan(objective=-np.inf), Search())
    return choice, to_plan(question, choice, Deadline())


@pytest.mark.parametrize("seed", range(TINY))
def test_no_plan_of_a_tiny_round_is_above_the_bound(seed, monkeypatch):
    """So it is with rows or any prices of what couples jobs; the plan is valid, and no better."""
    round_ = tiny(seed, drawn_rules(seed, tuple(RULES)))
    parameters = {"power": OBJECTIVE["power"]}
    question = Question.of(round_, OBJECTIVE["objective"], parameters=parameters)
    if unstated(question.round, question.table):
        pytest.skip("patterns cannot state the round")
    case = make_case(question.round, question.table, question.values, Fidelity.NODES)
    names, rng = separable(case).names, np.random.default_rng(seed)
    best = best_plan(question).worth
    for most in (0.0, 1.0, 20.0):
        monkeypatch.setattr(by_patterns_module, "KINDS", 0 if most else 500)
        choice, plan = by_patterns(question, {name: most * rng.random() for name in names})
        assert check(round_, plan) == []
        assert choice.objective <= best + 1e-6 * max(1.0, abs(best))
        assert choice.bound >= best - 1e-6 * max(1.0, abs(best))


def drawn(seed, nodes=6, jobs=14, *, running=True):
    """Return a round of jobs that need CPUs and memory, some on some nodes only, some apart."""
    rng = np.random.default_rng(seed)
    has = [{"cpu": 32.0, "memory": 64.0}, {"cpu": 32.0, "memory": 48.0}]
    features = [(), ("fast",)]
    groups = tuple(
        NodeGroup(
            name=f"g{k}",
            count=nodes // 2,
            gpus_per_node=4,
            gpu_type="A100",
            has=has[k],
            features=features[k],
        )
        for k in range(2)
    )
    states = []
    for k in range(jobs):
        needs = {
            name: Need(
                per_gpu=float(rng.integers(1, most)),
                per_node=float(rng.choice([0, 0, 1.5])),
                flat=float(rng.choice([0, 0, 2.5])),
            )
            for name, most in (("cpu", 8), ("memory", 12))
        }
        kind = rng.integers(8)
        job = Job(
            id=f"j{k}",
            submit_s=0.0,
            profile="rigid",
            gpus=int(rng.choice([1, 2, 3, 4, 5, 7, 8])),
            estimate=Estimate(work=float(rng.integers(600, 6000))),
            needs=needs,
            features=("fast",) if kind == 0 else (),
            nodes=tuple(range(1, nodes)) if kind == 1 else (),
            neighbourhoods=("spread",) if kind in (2, 3) else (),
        )
        states.append(JobState(job=job, since_s=0.0))
    held = ()
    if running:  # one job that may not stop, and one that may
        held = tuple(
            JobState(
                job=replace(states[k].job, gpus=2, neighbourhoods=(), nodes=(), preemptible=k > 0),
                since_s=0.0,
                started=True,
                allocation=Allocation(
                    option=Option(pool=0, gpus=2), placement=((nodes - 1 - k, 2),)
                ),
            )
            for k in range(2)
        )
        states = states[2:]
    return Round(
        cluster=Cluster(gpu_types=(GpuType(name="A100", memory_gib=80.0),), node_groups=groups),
        profiles={"rigid": rigid_profile("A100")},
        running=held,
        waiting=tuple(states),
        now_s=700.0,
        site=Site(neighbourhoods=(Neighbourhood(name="spread", rule="apart"),)),
    )


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), nodes=st.sampled_from([2, 6, 20]), running=st.booleans())
def test_plans_are_valid_and_below_their_bounds(seed, nodes, running):
    """So they are with hosts, features, neighbourhoods, gangs, and jobs that must run."""
    round_ = drawn(seed, nodes, 3 * nodes, running=running)
    question = Question.of(round_, "rank")
    assert unstated(question.round, question.table) is None
    choice, plan = by_patterns(question)
    assert check(round_, plan) == []
    assert choice.realised is not None
    assert 0 < choice.objective <= choice.bound


@pytest.mark.parametrize("seed", range(4))
def test_the_exact_model_of_nodes_lies_between(seed):
    """Its plan is no better than the bound of patterns, and their plan is close to it."""
    round_ = drawn(seed, 4, 10)
    exact = ronda.solve(round_, "milp(placement=exact)")
    question = Question.of(round_, "rank")
    choice, _ = by_patterns(question)
    assert choice.bound >= exact.objective * (1 - 1e-9)
    assert choice.objective <= exact.bound * (1 + 1e-4)
    assert choice.objective >= 0.8 * exact.objective


def scarce(seed, nodes):
    """Return a round in which half of the nodes have little memory and many CPUs."""
    round_ = drawn(seed, nodes, 4 * nodes, running=False)
    first, second = round_.cluster.node_groups
    groups = (first, replace(second, has={"cpu": 48.0, "memory": 16.0}))
    return replace(round_, cluster=replace(round_.cluster, node_groups=groups))


def test_prices_use_them_where_placement_loses_much():
    """The plan is better than the placed sums, and the record says how it was found."""
    round_ = scarce(0, 40)
    sums = ronda.solve(round_, "prices(placement=aggregate)")
    plan = ronda.solve(round_, "prices")
    assert check(round_, plan) == []
    assert plan.objective > sums.objective
    assert plan.gap < 0.035 < 0.05 < sums.gap
    assert plan.record.solver == PATTERNS
    assert plan.prices.keys() == sums.prices.keys()


def test_the_node_that_bears_what_a_job_needs_once_comes_first():
    """Only the second node has room for it beside what each of the job's GPUs needs."""
    round_ = drawn(0, 2, 1, running=False)
    groups = [
        replace(group, has={"cpu": cpu, "memory": 64.0})
        for group, cpu in zip(round_.cluster.node_groups, (16.0, 20.0), strict=True)
    ]
    needs = {"cpu": Need(per_gpu=4.0, flat=4.0)}
    job = replace(round_.waiting[0].job, gpus=8, needs=needs, features=(), nodes=())
    round_ = replace(
        round_,
        cluster=replace(round_.cluster, node_groups=tuple(groups)),
        waiting=(replace(round_.waiting[0], job=job),),
    )
    _, plan = by_patterns(Question.of(round_, "rank"))
    assert check(round_, plan) == []
    assert plan.allocations["j0"].placement == ((1, 4), (0, 4))


def test_a_better_plan_in_hand_is_kept():
    """Patterns then give it a bound at most."""
    question = Question.of(drawn(2, running=False), "rank")
    waits = np.full(len(question.table.jobs), -1)
    nobody = Choice(chosen=waits, bound=np.inf)
    again = choose_by_patterns(question, nobody, Plan(objective=1e9), Search())
    assert again.realised is None
    assert again.objective == 1e9


def test_licences_are_used_up_and_not_exceeded():
    """Their rows have prices of their own, so that the plan is close to the bound."""
    round_ = drawn(1, 40, 240, running=False)
    held = tuple(
        replace(state, job=replace(state.job, licences={"solver": 1})) if k % 3 else state
        for k, state in enumerate(round_.waiting)
    )
    cluster = replace(round_.cluster, licences={"solver": 20})
    round_ = replace(round_, cluster=cluster, waiting=held)
    choice, plan = by_patterns(Question.of(round_, "rank"))
    assert check(round_, plan) == []
    assert sum(bool(s.job.licences) and s.job.id in plan.allocations for s in held) == 20
    assert choice.objective >= 0.97 * choice.bound


def test_nodes_whose_jobs_have_all_left_are_not_cleared():
    """They once made placement fail, so that the plan was a fallback."""
    plan = ronda.solve(scarce(0, 20), "prices(placement=aggregate)")
    assert plan.status is SolutionStatus.FEASIBLE


def test_what_runs_stays_where_moves_gain_nothing():
    """With every placed job running, few move that the plan keeps on their options."""
    round_ = drawn(5, 60, 240, running=False)
    first = ronda.solve(round_, "prices")
    held = tuple(
        replace(state, started=True, allocation=first.allocations[state.job.id])
        for state in round_.waiting
        if state.job.id in first.allocations
    )
    ids = {state.job.id for state in held}
    waiting = tuple(state for state in round_.waiting if state.job.id not in ids)
    round_ = replace(round_, running=held, waiting=waiting)
    plan = ronda.solve(round_, "prices")
    assert check(round_, plan) == []
    moved = [s for s in held if plan.allocations.get(s.job.id) not in (None, s.allocation)]
    assert len(moved) <= 0.05 * len(held)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"share": 0.5, "gpus": 1}, "parts of GPUs"),
        ({"neighbourhoods": ("near",)}, "run together"),
        ({"neighbourhoods": ("wide", "spread")}, "in two ways"),
        ({"slices": Slices(nodes=1), "gpus": 8}, "in slices of racks"),
    ],
)
def test_what_patterns_cannot_state_is_told(change, why):
    """The record gives the reason, and the bound is that of sums."""
    round_ = drawn(3, running=False)
    apart = (Neighbourhood(name=name, rule="apart") for name in ("spread", "wide"))
    near = Neighbourhood(name="near", rule="together")
    groups = tuple(replace(group, shared=True) for group in round_.cluster.node_groups)
    first, *rest = round_.waiting
    round_ = replace(
        round_,
        site=Site(neighbourhoods=(*apart, near)),
        cluster=replace(round_.cluster, node_groups=groups),
        waiting=(replace(first, job=replace(first.job, **change)), *rest),
    )
    choice, _ = by_patterns(Question.of(round_, "rank"))
    assert why in choice.record.message
    assert choice.bound == np.inf
