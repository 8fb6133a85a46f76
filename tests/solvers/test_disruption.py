"""The disruption budget: one purse for options and placement, and for rules that know neither."""

import os

import numpy as np
import pytest
from msgspec.structs import replace

import ronda
from ronda.formulations.placement import place
from ronda.formulations.placement.moves import MoveRoom
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.generate import round as generated
from ronda.instances.job import Costs, Option
from ronda.instances.profile import PowerCurve
from ronda.instances.site import Disruption, Site, Tenant
from ronda.solvers.decision.plan import Question
from site_cases import disturbed, rigid, round_of

INSIDE = "objective=weighted-goodput,power=1.0"
ENGINES = [f"prices({INSIDE})", f"milp({INSIDE})", f"milp({INSIDE},placement=exact)"]
RULES = ["srtf", "las", "pollux-like", "sia-like", f"genetic({INSIDE})", f"evolve({INSIDE})"]


def may_disrupt(gpus=None, jobs=None):
    """Return a site with a budget."""
    return Site(disruption=Disruption(gpus=gpus, jobs=jobs))


def on_one_node(**budget):
    """Return r1 and r2 of 4 GPUs on a node, r3 of 4 on another, and a gang of 8 for one node."""
    return round_of(
        (rigid("r1", 4, 4.0), ((0, 4),)),
        (rigid("r2", 4, 4.0), ((0, 4),)),
        (rigid("r3", 4, 4.0), ((1, 4),)),
        rigid("gang", 8, 80.0),
        nodes=2,
        site=may_disrupt(**budget),
    )


def fragmented(**budget):
    """Return 6 + 4 GPUs in use on two nodes: options stop one job of 2, nodes move another too."""
    return round_of(
        (rigid("r1", 4, 4.0), ((0, 4),)),
        (rigid("r2", 2, 2.0), ((0, 2),)),
        (rigid("r3", 2, 2.0), ((1, 2),)),
        (rigid("r4", 2, 2.0), ((1, 2),)),
        rigid("gang", 8, 80.0),
        nodes=2,
        site=may_disrupt(**budget),
    )


def spent(round_, plan):
    """Return the GPUs of jobs that a plan disturbs; the checker accepts it."""
    assert ronda.check(round_, plan) == []
    return sum(round_.held[job].option.gpus for job in disturbed(round_, plan))


@pytest.mark.parametrize("name", ENGINES)
def test_a_gang_runs_once_the_budget_pays_for_its_node(name):
    """B = 3 is not enough to stop r3 of 4 GPUs; B = 4 is."""
    poor, rich = on_one_node(gpus=3), on_one_node(gpus=4)
    waits, runs = ronda.solve(poor, name), ronda.solve(rich, name)
    assert ({*waits.allocations}, spent(poor, waits)) == ({"r1", "r2", "r3"}, 0)
    assert waits.prices["stopped"] > 0
    assert ({*runs.allocations}, spent(rich, runs)) == ({"r1", "r2", "gang"}, 4)


@pytest.mark.parametrize("name", ENGINES)
def test_moves_and_stops_spend_the_same_budget(name):
    """Option rows say that B = 2 is enough; nodes need one stop and one move: B = 4.

    Nobody stops for a gang that finds no nodes, as in Kueue's issue 10815.
    """
    for gpus in (2, 3):
        poor = fragmented(gpus=gpus)
        waits = ronda.solve(poor, name)
        assert spent(poor, waits) == 0  # nobody stops for a gang that finds no node
        assert "gang" not in waits.allocations
        assert len(waits.allocations) == 4
    rich = fragmented(gpus=4)
    runs = ronda.solve(rich, name)
    assert "gang" in runs.allocations
    assert spent(rich, runs) == 4
    assert len(runs.allocations) == 4


@pytest.mark.parametrize("name", ENGINES)
def test_the_budget_may_count_jobs(name):
    """A gang costs r3 in one round, and a stop and a move in the other."""
    for made, needed in ((on_one_node, 1), (fragmented, 2)):
        poor, rich = made(jobs=needed - 1), made(jobs=needed)
        assert "gang" not in ronda.solve(poor, name).allocations
        runs = ronda.solve(rich, name)
        assert "gang" in runs.allocations
        assert len(disturbed(rich, runs)) == needed
        assert ronda.check(rich, runs) == []


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("made", [on_one_node, fragmented])
def test_policies_that_know_no_budget_are_held_to_it(name, made):
    """No plan is refused; what does not make way goes on."""
    for gpus in range(6):
        round_ = made(gpus=gpus)
        plan = ronda.solve(round_, name)
        assert spent(round_, plan) <= gpus
        assert plan.status in ("feasible", "optimal")
        assert {*round_.held} - {*plan.allocations} == {*disturbed(round_, plan)} - {
            *plan.allocations
        }


@pytest.mark.parametrize("name", ENGINES)
def test_consolidation_counts(name):
    """Six half-full nodes: each gang of 8 needs a move of 4 GPUs, which KAI 1565 did not count."""
    halves = [(rigid(f"h{n}", 4, 4.0), ((n, 4),)) for n in range(6)]
    gangs = [rigid(f"g{k}", 8, 80.0) for k in range(3)]
    for gpus, started in ((3, 0), (4, 1), (8, 2), (11, 2), (12, 3)):
        round_ = round_of(*halves, *gangs, nodes=6, site=may_disrupt(gpus))
        plan = ronda.solve(round_, name)
        assert spent(round_, plan) <= gpus
        assert sum(job.startswith("g") for job in plan.allocations) == started
        assert sum(job.startswith("h") for job in plan.allocations) == 6


def test_placement_moves_no_more_than_it_may():
    """Of three gangs that need a move of 4 GPUs each, as many are placed as the room pays for."""
    halves = [(rigid(f"h{n}", 4, 4.0), ((n, 4),)) for n in range(6)]
    round_ = round_of(*halves, *(rigid(f"g{k}", 8, 80.0) for k in range(3)), nodes=6)
    gang = Option(pool=0, gpus=8, span="node")
    chosen = {f"g{k}": gang for k in range(3)} | {i: a.option for i, a in round_.held.items()}
    for left in (0.0, 4.0, 7.0, 8.0, 12.0):
        room = MoveRoom(np.array([left]), {f"h{n}": np.array([4.0]) for n in range(6)})
        placed = place(round_, chosen, room=room)
        assert len(placed.moved) == left // 4
        assert len(placed.unplaced) == 3 - left // 4
        assert {*round_.held} <= {*placed.allocations}
    assert len(place(round_, chosen).moved) == 3


@pytest.mark.parametrize("name", ENGINES)
def test_tenants_have_budgets_with_all_below_them(name):
    """The department's budget protects r3 of its team, so that r1 and r2 stop; else r3 does."""
    made = on_one_node()
    teams = {"r1": "other", "r2": "other", "r3": "team", "gang": "other"}

    def owned(states):
        return tuple(replace(s, job=replace(s.job, tenant=teams[s.job.id])) for s in states)

    def under(budget):
        tenants = (
            Tenant(name="department", disruption=budget),
            Tenant(name="team", parent="department"),
            Tenant(name="other"),
        )
        return replace(
            made,
            site=Site(tenants=tenants),
            running=owned(made.running),
            waiting=owned(made.waiting),
        )

    kept = ronda.solve(under(Disruption(jobs=0)), name)
    assert "r3" not in disturbed(made, kept)
    assert "gang" in kept.allocations
    assert ronda.check(under(Disruption(jobs=0)), kept) == []
    free = ronda.solve(under(Disruption(gpus=4)), name)
    assert "gang" in free.allocations
    broken = ronda.check(under(Disruption(gpus=3)), free)
    assert [(v.code, v.where) for v in broken] == [("disruption", "tenant department")] * (
        "r3" in disturbed(made, free)
    )


def asked(**budget):
    """Return the question of the gang's round."""
    return Question.of(on_one_node(**budget), "weighted-goodput")


def test_what_cannot_bind_has_no_row():
    """A budget of all GPUs that run, or none."""
    assert asked(gpus=12).table.own is None
    assert asked(jobs=3).table.own is None
    assert asked().table.own is None
    own = asked(gpus=11).table.own
    assert own.names == ("stopped",)
    assert own.capacity.tolist() == [-1.0]
    assert own.use.toarray().sum() == -12
    assert (own.moves.toarray() == -own.use.toarray()).all()


@pytest.mark.parametrize("name", ENGINES)
def test_jobs_that_scale_in_place_or_leave_with_their_nodes_do_not_count(name):
    """A move without a checkpoint is free, a stop is not; jobs on nodes that leave are free."""
    usual = fragmented(gpus=2)
    scaling = replace(usual, costs=Costs(scale_s=0.0))
    runs = ronda.solve(scaling, name)
    assert "gang" in runs.allocations
    assert ronda.check(scaling, runs) == []
    assert len([job for job in usual.held if job not in runs.allocations]) == 1  # 2 GPUs stop
    leaves = replace(on_one_node(gpus=0), leaving=((1, 1e6),))
    plan = ronda.solve(leaves, name)
    assert ronda.check(leaves, plan) == []
    assert {*plan.allocations} == {"r1", "r2", "gang"}
    stopped = replace(ronda.Plan(), allocations={i: a for i, a in leaves.held.items() if i != "r3"})
    assert ronda.check(leaves, stopped) == []
    assert [v.code for v in ronda.check(on_one_node(gpus=0), stopped)] == ["disruption"]


@pytest.mark.parametrize("name", [*ENGINES[:2], "srtf"])
def test_limits_that_fall_come_first(name):
    """Where what runs draws more than a cap, no budget holds; else it does."""
    cluster = Cluster(
        gpu_types=(GpuType(name="A", memory_gib=16.0, idle_w=0.0),),
        node_groups=(NodeGroup(name="n", count=2, gpus_per_node=8, gpu_type="A"),),
    )
    made = on_one_node(gpus=0)
    watts = {"A": PowerCurve(a_w=100.0)}
    profiles = {"rigid": replace(made.profiles["rigid"], power=watts)}
    drawing = tuple(
        replace(
            s, allocation=replace(s.allocation, option=replace(s.allocation.option, power_w=400.0))
        )
        for s in made.running
    )
    made = replace(made, cluster=cluster, profiles=profiles, running=drawing)
    for cap_w in (1200.0, 1199.0, 400.0):
        capped = replace(made, power_cap_w=cap_w)
        plan = ronda.solve(capped, name)
        assert ronda.check(capped, plan) == []
        assert plan.status != "fallback"
        assert bool(disturbed(capped, plan)) == (cap_w < 1200.0)


def test_the_checker_names_who_does_not_go_on():
    """Two jobs of 4 GPUs, against 7."""
    round_ = on_one_node(gpus=7)
    held = round_.held
    plan = ronda.Plan(allocations={"r1": held["r1"]})
    (fault,) = ronda.check(round_, plan)
    assert str(fault) == (
        "disruption: the site: 8 GPUs of jobs that do not go on, at most 7: r2, r3"
    )
    assert ronda.check(on_one_node(gpus=8), plan) == []
    moved = {**held, "r3": replace(held["r3"], placement=((1, 4),))}
    assert ronda.check(on_one_node(gpus=0), ronda.Plan(allocations=moved)) == []


def test_budgets_are_kept_in_many_random_rounds():
    """Placement by packing: rounds of equal nodes, many jobs elastic, with small budgets."""
    rng = np.random.default_rng(54)
    for seed in range(12 if os.environ.get("SOAK") else 5):
        made = generated(jobs=12, severity="tight", seed=seed)
        most = int(rng.integers(0, 12))
        round_ = replace(made, site=may_disrupt(gpus=most, jobs=int(rng.integers(1, 4))))
        for name in ("prices", "srtf"):
            plan = ronda.solve(round_, name)
            assert ronda.check(round_, plan) == []
            assert plan.status != "fallback", (seed, name)
