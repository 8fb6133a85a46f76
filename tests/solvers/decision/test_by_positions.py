"""Options and nodes together: equal to trying every plan, and the measure of the quick repack."""

import numpy as np
import pytest
from msgspec.structs import replace

from brute_positions import best_plan, random_values, tiny
from ronda.formulations.allocation.model_data import Fidelity, make_case
from ronda.formulations.options.build import build
from ronda.formulations.options.table import RACK, option
from ronda.formulations.placement.requests import place
from ronda.formulations.positions import model, solution
from ronda.formulations.positions.model import build_positions as exact_model
from ronda.formulations.positions.variables import NODE_SHARE, restrict_ways, ways
from ronda.instances import generate
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation, Costs, Estimate, Job, JobState, Option
from ronda.instances.plan import Plan
from ronda.instances.profile import Parametric, Profile, rigid_profile
from ronda.instances.round import Round
from ronda.questions.explain import explain_jobs
from ronda.solvers.decision import by_positions
from ronda.solvers.decision.by_positions import allocate_on_nodes
from ronda.solvers.exact.from_pyomo import solve
from ronda.solvers.prices.dual import Search
from ronda.solvers.registry import policy
from ronda.testing import without

MOVES, UNEQUAL, CAPPED_RACK, CAPPED = (3, 5, 8, 58, 71), (6, 8), (17, 43), (28, 53)


def decided(seed):
    """Return a tiny round, what is chosen, and what the best of all plans is worth."""
    round_ = tiny(seed)
    table = build(round_)
    values = random_values(table, seed)
    node_price = NODE_SHARE * make_case(round_, table, values, Fidelity.NODES).scale
    best = best_plan(round_, table, values, node_price)
    return round_, allocate_on_nodes(round_, table, values, Search(gap=0.0)), best


@pytest.mark.parametrize("seed", [0, 1, *MOVES, *UNEQUAL, *CAPPED_RACK, *CAPPED])
def test_equal_to_brute_force(seed):
    """Value and bound are those of the best of all plans: mixed sizes, racks, caps, moves."""
    round_, choice, best = decided(seed)
    assert choice.objective == pytest.approx(best, abs=1e-7)
    assert choice.bound == pytest.approx(best, abs=1e-6)
    assert (choice.details.move_loss > 0) == (seed in MOVES)
    allocations = choice.realised.allocations
    broken = check(round_, Plan(allocations=allocations, asleep=choice.realised.asleep))
    # Options of a tiny round that run say nothing true of rate and power.
    assert [v for v in broken if v.code not in ("rate", "option-power")] == []


def test_with_a_variable_for_each_node_it_is_as_exact(monkeypatch):
    """As where rules tell nodes apart: value and bound are those of the best of all plans."""
    for room in (by_positions, model, solution):
        monkeypatch.setattr(room, "concerns_nodes", lambda round_: True)
    for seed in (0, 1, *MOVES, *UNEQUAL, *CAPPED_RACK, *CAPPED):
        test_equal_to_brute_force(seed)


def test_decomposed_it_is_as_exact(monkeypatch):
    """From a few ways on, with cuts: no bound is below the best plan, which is found."""
    monkeypatch.setattr(by_positions, "WHOLE", 0)
    monkeypatch.setattr(by_positions, "CORE", 3)
    bounds, first_answer = [], by_positions.first_answer

    def watched(problem, search):
        answer = first_answer(problem, search)
        bounds.append(answer.bound)
        return answer

    monkeypatch.setattr(by_positions, "first_answer", watched)
    cuts = tightened = 0
    for seed in range(12):
        bounds.clear()
        _, choice, best = decided(seed)
        assert choice.objective == pytest.approx(best, abs=1e-7)
        assert choice.bound == pytest.approx(best, abs=1e-6)
        assert min(bounds) >= best - 1e-7
        cuts += choice.details.node_cuts
        tightened += min(bounds) < bounds[0] - 1e-4
    assert cuts >= 8
    assert tightened >= 3


def test_the_policy_takes_it_and_refuses_other_fidelities():
    """`milp(placement=exact)` plans within its gap and breaks no rule."""
    round_ = snapshot(room(2, 2), {"a": ((0, 2),), "b": ((1, 2),)}, {"c": 4, "d": 8})
    plan = policy("milp(placement=exact)").plan(round_, deadline=Deadline(), seed=0)
    assert check(round_, plan) == []
    assert plan.gap <= 1e-4
    assert plan.details.move_loss >= 0
    with pytest.raises(InputError, match="nodes, exact, aggregate"):
        policy("milp(placement=roughly)")


@pytest.mark.parametrize(("blocked", "span"), [((0, 2), "cluster"), ((0, 1), "rack")])
def test_an_option_within_a_rack_has_all_its_nodes_there(blocked, span):
    """With one empty node in each rack the wide job spans both; with two in one it need not."""
    held = {f"p{n}": ((n, 4),) for n in blocked}
    round_ = snapshot(room(2, 2), held, {"w": 8}, pinned=tuple(held))
    speed = Parametric(alpha_c_s=0.01, beta_c_s=0.02, alpha_n_s=0.02, alpha_x_s=0.2)
    slow = Profile(name="slow", throughput={"v": speed}, base_batch=8.0)
    wide = replace(round_.waiting[0].job, profile="slow", min_gpus=8, max_gpus=8)
    waiting = (replace(round_.waiting[0], job=wide),)
    round_ = replace(round_, profiles=round_.profiles | {"slow": slow}, waiting=waiting)
    table = build(round_)
    values = np.where(table.span == RACK, 2.0, 1.0)
    choice = allocate_on_nodes(round_, table, values, Search(gap=0.0))
    assert choice.realised.allocations["w"].option.span == span


def test_nodes_that_hinder_are_named():
    """Two jobs that must stay split the free GPUs, 2 and 2: a job of 4 waits for a node."""
    round_ = snapshot(room(2), {"a": ((0, 2),), "b": ((1, 2),)}, {"c": 4, "d": 8}, ("a", "b"))
    plan = policy("milp(placement=exact)").plan(round_, deadline=Deadline(), seed=0)
    assert plan.allocations.keys() == {"a", "b"}
    first, second = explain_jobs(round_, plan, ["c", "d"])
    assert "at most 2 on one node" in first.hindrance
    assert second.hindrance is None  # not even its GPUs are there


def room(*racks, size=4):
    """Return a cluster with these numbers of nodes in its racks."""
    return Cluster(
        gpu_types=(GpuType(name="v", memory_gib=16),),
        racks=tuple(Rack(name=f"r{k}") for k in range(len(racks))),
        node_groups=tuple(
            NodeGroup(name=f"g{k}", count=n, gpus_per_node=size, gpu_type="v", rack=f"r{k}")
            for k, n in enumerate(racks)
        ),
    )


def snapshot(cluster, running, waiting, pinned=()):
    """Return a round of rigid jobs: running ones with their placement, waiting ones' GPUs."""
    states = []
    for job, what in (running | waiting).items():
        gpus = what if job in waiting else sum(g for _, g in what)
        held = None
        if job in running:
            span = "node" if len(what) == 1 else "cluster"
            held = Allocation(option=Option(pool=0, gpus=gpus, span=span), placement=what)
        states.append(
            JobState(
                job=Job(
                    id=job,
                    submit_s=0,
                    profile="rigid",
                    gpus=gpus,
                    preemptible=job not in pinned,
                    estimate=Estimate(work=1e6),
                ),
                since_s=0,
                started=held is not None,
                allocation=held,
            )
        )
    return Round(
        cluster=cluster,
        profiles={"rigid": rigid_profile("v")},
        running=tuple(s for s in states if s.allocation is not None),
        waiting=tuple(s for s in states if s.allocation is None),
        costs=Costs(restart_s=6.0),
    )


def exact(round_):
    """Return what runs of jobs that are worth 1 each; a move loses 6 s of 600: 0.01."""
    table = build(round_)
    search = Search(gap=0.0)
    return allocate_on_nodes(round_, table, np.ones(len(table)), search).realised


def quick(round_):
    """Return the quick placement of all jobs."""
    table = build(round_)
    return place(round_, {s.job.id: option(table, k) for k, s in enumerate(table.jobs)})


def test_one_migration_makes_a_whole_node():
    """Two nodes half full: one of the two jobs moves for a job of a whole node."""
    placed = exact(snapshot(room(2), {"a": ((0, 2),), "b": ((1, 2),)}, {"c": 4}))
    assert len(placed.moved) == 1
    assert len(placed.allocations) == 3


def test_pinned_jobs_decide_who_moves():
    """As before, but `a` may not move: `b` does."""
    round_ = snapshot(room(2), {"a": ((0, 2),), "b": ((1, 2),)}, {"c": 4}, pinned=("a",))
    assert exact(round_).moved == ("b",)


def test_what_runs_keeps_its_allocation_and_fills_nodes_in_use():
    """A job that fits in place leaves the running one alone, and takes one node rather than two."""
    round_ = snapshot(room(2), {"a": ((0, 2),)}, {"b": 2})
    placed = exact(round_)
    assert placed.allocations["a"] is round_.running[0].allocation
    assert placed.allocations["b"].placement == ((0, 2),)


def random_case(seed, sizes, fill):
    """Return a fragmented round of three or four nodes with arrivals that suffice to fill it."""
    rng = np.random.default_rng(seed)
    cluster = room(2, int(rng.integers(1, 3)))
    free = [4] * len(cluster.topology.node_gpus)
    running = {}
    for k in range(8):
        count, node = int(rng.choice([s for s in sizes if s < 4])), int(rng.integers(len(free)))
        if free[node] >= count and rng.random() < 0.8:
            free[node] -= count
            running[f"r{k}"] = ((node, count),)
    left, new = int(fill * sum(free)), {}
    while left > 0 and len(new) < 5:
        count = int(rng.choice(sizes))
        if count <= left:
            new[f"n{len(new)}"] = count
            left -= count
    return snapshot(cluster, running, new)


def test_quick_repack_places_powers_of_two_and_moves_little_more():
    """On fragmented rounds nothing is left out (the buddy theorem); few more jobs move."""
    moved = best = 0
    for seed in range(16):
        round_ = random_case(seed, [1, 1, 2, 4, 8], 1.0)
        placed, optimum = quick(round_), exact(round_)
        assert len(optimum.allocations) == len(round_.jobs)
        assert placed.unplaced == ()
        assert len(placed.moved) >= len(optimum.moved)
        moved += len(placed.moved)
        best += len(optimum.moved)
    assert best >= 5  # the rounds do need moves
    assert moved <= 1.1 * best


def test_quick_repack_with_sizes_that_do_not_divide():
    """With threes among the sizes the repack places no job more, and seldom fewer."""
    missed = placed = 0
    for seed in range(12):
        round_ = random_case(seed, [1, 2, 3, 3, 4, 5], 0.9)
        most, some = len(exact(round_).allocations), len(quick(round_).allocations)
        assert some <= most
        missed += most - some
        placed += most
    assert missed <= 0.05 * placed


def test_a_wide_job_of_one_rack_stays_out_of_racks_that_cannot_hold_it():
    """16 GPUs on nodes of 8, 4 and 4, or of 2, 2 and 2: the model has no variable for these."""
    made = generate.round(3, 48, "loose", 0, generate.Structure(racks=2))
    state = made.waiting[0]
    job = replace(state.job, gpus=16, min_gpus=16, max_gpus=16)
    alone = replace(made, running=(), waiting=(replace(state, job=job),), power_cap_w=None)
    round_ = without(alone, {1: 4, 2: 4, 3: 6, 4: 6, 5: 6})
    table = build(round_)
    found = ways(make_case(round_, table, table.rate, Fidelity.NODES))
    assert (found.mixed & found.tied).any()
    model = exact_model(restrict_ways(found, np.flatnonzero(found.mixed & found.tied)))
    assert solve(model).objective > 0
    assert {c for (_, c), taken in model.mixed.items() if taken.value} == {0, 1}
