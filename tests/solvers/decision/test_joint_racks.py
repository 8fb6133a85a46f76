"""Options within a rack: their rates, their tables, and choosing racks together with options."""

import dataclasses

import numpy as np
import pytest
from msgspec.structs import replace

from ronda.formulations.allocation.model_data import Fidelity, make_case
from ronda.formulations.allocation.racks import fit_racks
from ronda.formulations.objectives.by_name import values
from ronda.formulations.options.build import build
from ronda.formulations.options.table import CLUSTER, NODE, RACK, option
from ronda.horizon.driver import run
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.generate import tiny_round
from ronda.instances.instance import Instance
from ronda.instances.job import Allocation, Costs, Estimate, Job, JobState, Truth
from ronda.instances.profile import Parametric, PowerCurve, Profile
from ronda.instances.round import Round
from ronda.questions.explain import explain_jobs
from ronda.solvers.policies.optimising.milp import Milp
from ronda.solvers.policies.optimising.prices import Prices
from ronda.solvers.registry import policy

# n GPUs compute 8/n s a step of 8 samples. Across racks they also synchronise for 3 s:
# 4 GPUs (a node) rate 4; 8 GPUs rate 8 in one rack, 8/(1 + 3) = 2 in several.
FAR = Parametric(alpha_c_s=0.0, beta_c_s=1.0, alpha_x_s=3.0)


def racks_of(*nodes, gpus_per_node=4, **fields):
    """Return a cluster; `nodes` says how many nodes are in each rack."""
    return Cluster(
        gpu_types=(GpuType(name="G", memory_gib=16.0),),
        racks=tuple(Rack(name=f"r{k}") for k in range(len(nodes))),
        node_groups=tuple(
            NodeGroup(
                name=f"g{k}", count=n, gpus_per_node=gpus_per_node, gpu_type="G", rack=f"r{k}"
            )
            for k, n in enumerate(nodes)
        ),
        **fields,
    )


def profiles(**models):
    """Return profiles of batch 8; a GPU draws 100 W."""
    watts = {"G": PowerCurve(a_w=100.0)}
    return {
        name: Profile(name=name, throughput={"G": model}, power=watts, base_batch=8.0)
        for name, model in models.items()
    }


def waiting(job_id, work=8000.0, profile="far", **fields):
    """Return a job that waits; by default it takes 4 or 8 GPUs."""
    fields = {"gpus": 8, "min_gpus": 4, "max_gpus": 8} | fields
    job = Job(id=job_id, submit_s=0.0, profile=profile, estimate=Estimate(work=work), **fields)
    return JobState(job=job, since_s=0.0)


def plan_of(made, round_, initial=None):
    """Return a policy's plan, which must break no rule."""
    plan = made.plan(round_, deadline=Deadline(None), seed=0, initial=initial)
    assert check(round_, plan) == []
    return plan


@pytest.mark.parametrize(
    ("fidelity", "kept"),
    [
        (Fidelity.COUNTS, [(4, NODE), (8, RACK)]),
        (Fidelity.RACKS, [(4, NODE), (8, RACK), (8, RACK), (8, CLUSTER)]),
        (Fidelity.NODES, [(4, NODE), (8, RACK), (8, CLUSTER)]),
    ],
)
def test_options_are_compared_with_their_like(fidelity, kept):
    """8 GPUs across racks, at 8 / 1.5, are worth less than in one rack, and more than 4 GPUs, at 4.

    They stay where some rack may have no room. Where racks are chosen, the option of one rack has a
    variable for each of the two.
    """
    model = Parametric(alpha_c_s=0.0, beta_c_s=1.0, alpha_x_s=0.5)
    round_ = Round(
        cluster=racks_of(2, 2),
        profiles=profiles(far=model),
        waiting=(waiting("a"),),
    )
    table = build(round_, mind_power=True)
    case = make_case(round_, table, table.rate, fidelity)
    assert list(zip(case.gpus.tolist(), table.span[case.rows].tolist(), strict=True)) == kept


def sizes(plan):
    """Return (GPUs, span) of all jobs, sorted."""
    return sorted((a.option.gpus, a.option.span) for a in plan.allocations.values())


THREE = Round(
    cluster=racks_of(3, 3),
    profiles=profiles(far=FAR),
    waiting=tuple(waiting(name) for name in "abc"),
)
"""Two racks of 12 GPUs, three jobs: 24 GPUs are there, but each rack has room for one of 8."""


# At this objective a job at s times the rate of its node is worth 1.1 - 1/sqrt(s).
JOINT = Prices(gap=1e-9, objective="weighted-goodput")
TWO_STEPS = dataclasses.replace(JOINT, joint=False, placement="aggregate")
MILP = Milp(gap=0.0, objective="weighted-goodput", placement="aggregate")
TWICE, ONCE, ACROSS = 1.1 - 2**-0.5, 0.1, 1.1 - 1.6**-0.5


@pytest.mark.parametrize("made", [TWO_STEPS, MILP])
def test_two_steps_choose_again_without_what_racks_have_no_room_for(made):
    """Three times 8 GPUs look best, but the third job finds two nodes in two racks.

    Without these it takes 4 GPUs of one node. The bound is that of the first choice.
    """
    plan = plan_of(made, THREE)
    assert sizes(plan) == [(4, "node"), (8, "rack"), (8, "rack")]
    assert plan.details.unplaced == {}
    assert plan.objective == pytest.approx(2 * TWICE + ONCE)
    assert plan.details.placement_loss == pytest.approx(TWICE - ONCE)
    assert plan.bound == pytest.approx(3 * TWICE)


@pytest.mark.parametrize("made", [TWO_STEPS, MILP])
def test_two_steps_are_held_to_a_bound_of_plans_on_nodes(made):
    """By default the nodes are asked, which say that there is no better plan."""
    plan = plan_of(dataclasses.replace(made, placement="nodes"), THREE)
    assert plan.objective == pytest.approx(2 * TWICE + ONCE)
    assert plan.bound == pytest.approx(plan.objective)


def test_joint_choice_gives_the_third_job_a_node():
    """Both racks are full but for a node each, and one of them is taken."""
    plan = plan_of(JOINT, THREE)
    assert sizes(plan) == [(4, "node"), (8, "rack"), (8, "rack")]
    assert plan.details.placement_loss == 0
    assert plan.details.joint
    assert plan.objective == pytest.approx(2 * TWICE + ONCE)
    assert plan.bound == pytest.approx(plan.objective)
    assert {"gpus[default/G]", "gpus[default/G,r0]", "gpus[default/G,r1]"} == set(plan.prices)


def test_two_steps_spread_over_racks_what_fits_in_none():
    """With 0.25 s across racks 8 GPUs give 8/1.25 = 6.4 there: the third job takes that.

    It was chosen for 8: the difference is lost by placement.
    """
    near = profiles(far=replace(FAR, alpha_x_s=0.25))
    plan = plan_of(TWO_STEPS, replace(THREE, profiles=near))
    assert sizes(plan) == [(8, "cluster"), (8, "rack"), (8, "rack")]
    assert plan.details.widened == ("c",)
    assert plan.details.unplaced == {}
    assert plan.details.placement_loss == pytest.approx(TWICE - ACROSS)
    joint = plan_of(JOINT, replace(THREE, profiles=near))
    assert joint.objective == pytest.approx(plan.objective) == pytest.approx(2 * TWICE + ACROSS)
    assert joint.details.placement_loss == 0


def test_racks_have_no_price_where_all_find_one():
    """Racks of 4 nodes hold two jobs each: the choice without racks is the best one with them."""
    round_ = replace(THREE, cluster=racks_of(4, 4))
    two, joint = (plan_of(made, round_) for made in (TWO_STEPS, JOINT))
    assert sizes(joint) == [(8, "rack")] * 3
    assert joint.objective == joint.bound == pytest.approx(3 * TWICE)
    assert list(joint.prices) == ["gpus[default/G]"]
    assert (joint.prices, joint.bound) == (two.prices, two.bound)


def test_racks_are_counted_with_what_stays_in_them():
    """A runs in rack 0 (8 of 12 GPUs), so 8 more go to rack 1 of 12, and a third finds none."""
    first = plan_of(TWO_STEPS, replace(THREE, waiting=THREE.waiting[:1]))
    held = replace(THREE.waiting[0], allocation=first.allocations["a"], started=True)
    round_ = replace(THREE, running=(held,), waiting=THREE.waiting[1:])
    table, topology = build(round_), round_.cluster.topology
    assert {int(topology.node_rack[n]) for n, _ in held.allocation.placement} == {0}
    row = [
        int(np.flatnonzero((table.job == j) & (table.span == RACK))[0])
        for j in range(len(table.jobs))
    ]
    assert table.current[row].tolist() == [True, False, False]
    assert fit_racks(topology, table, np.array([row[0], row[1], -1]))
    assert not fit_racks(topology, table, np.array(row))


def test_no_job_moves_for_a_rack_while_another_is_empty():
    """A runs on a node of the first rack; 8 GPUs for B go to the second one, and A stays."""
    small = waiting("a", gpus=1, min_gpus=1, max_gpus=1)
    round_ = replace(THREE, cluster=racks_of(2, 2), waiting=(small,))
    held = plan_of(JOINT, round_).allocations["a"]
    assert held.placement == ((0, 1),)
    runs = replace(small, allocation=held, started=True)
    plan = plan_of(JOINT, replace(round_, running=(runs,), waiting=(waiting("b"),)))
    assert plan.allocations["a"] == held
    assert plan.allocations["b"].placement == ((2, 4), (3, 4))


def test_explanation_counts_the_rack():
    """In a joint plan an option within a rack costs the pool's price and the rack's."""
    round_ = replace(THREE, waiting=tuple(waiting(name) for name in "abcd"))
    plan = plan_of(JOINT, round_)
    pool, *racks = (plan.prices[f"gpus[default/G{rack}]"] for rack in ("", ",r0", ",r1"))
    assert pool + min(racks) > 0
    told = explain_jobs(round_, plan, ["a"])[0]
    eight, four = (next(o for o in told.options if o.gpus == n) for n in (8, 4))
    assert eight.gpu_cost == pytest.approx(8 * (pool + min(racks)))
    assert four.gpu_cost == pytest.approx(4 * pool)


def random_round(seed):
    """Return a tiny round on two or three racks of nodes of 2 GPUs; sometimes watts are limited."""
    rng = np.random.default_rng(seed)
    cluster = racks_of(*rng.integers(1, 4, rng.integers(2, 4)).tolist(), gpus_per_node=2)
    known = profiles(
        **{
            f"p{k}": Parametric(
                alpha_c_s=float(rng.uniform(0, 0.3)),
                beta_c_s=1.0,
                alpha_n_s=float(rng.uniform(0, 0.3)),
                alpha_x_s=float(rng.uniform(0.3, 1.5)) if k else None,
                beta_x_s=float(rng.uniform(0, 0.2)),
            )
            for k in range(2)
        }
    )
    jobs = tuple(
        waiting(
            f"j{k}",
            float(rng.uniform(1e3, 1e4)),
            f"p{rng.integers(2)}",
            gpus=int(2 ** rng.integers(0, 3)),
            min_gpus=1,
            max_gpus=8,
            preemptible=bool(rng.random() < 0.8),
        )
        for k in range(rng.integers(2, 5))
    )
    gpus = cluster.topology.node_gpus.sum()
    cap = float(100 * rng.integers(2, gpus + 1)) if rng.random() < 0.3 else None
    return Round(cluster=cluster, profiles=known, waiting=jobs, power_cap_w=cap)


def later(round_, plan, seed):
    """Return the round with some of the plan's jobs running."""
    rng = np.random.default_rng(seed)
    states = [
        replace(s, allocation=plan.allocations[s.job.id], started=True)
        if s.job.id in plan.allocations and rng.random() < 0.7
        else s
        for s in round_.waiting
    ]
    return replace(
        round_,
        now_s=60.0,
        running=tuple(s for s in states if s.allocation is not None),
        waiting=tuple(s for s in states if s.allocation is None),
    )


def best_of_all(round_):
    """Return the value of the best choice of options and racks, by trying all.

    What runs on more than a node, or must run, keeps its nodes; a rack option needs its GPUs in
    one rack; everything else needs them anywhere.
    """
    table = build(round_)
    worth = values(round_, table)
    topology = round_.cluster.topology
    free = np.bincount(topology.node_rack, topology.node_gpus)
    ways = []
    for j in range(len(table.jobs)):
        own = [] if table.must_run[j] else [(0.0, 0, 0.0, np.zeros(len(free)))]
        for k in range(table.start[j], table.start[j + 1]):
            n, w = int(table.gpus[k]), float(table.power_w[k])
            tied = [np.zeros(len(free))]
            if table.current[k] and (n > 2 or table.must_run[j]):
                for node, gpus in table.jobs[j].allocation.placement:
                    tied[0][topology.node_rack[node]] += gpus
            elif table.span[k] == RACK:
                tied = list(n * np.eye(len(free)))
            own += [(float(worth[k]), n, w, racks) for racks in tied]
        ways.append(own)
    cap = np.inf if round_.power_cap_w is None else round_.power_cap_w * (1 + 1e-12)

    def best(left, gpus, watts, racks):
        if gpus < 0 or watts < 0 or (racks < 0).any():
            return -np.inf
        if not left:
            return 0.0
        return max(v + best(left[1:], gpus - n, watts - w, racks - r) for v, n, w, r in left[0])

    return best(ways, free.sum(), cap, free)


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in (50, 100))]
)
def test_joint_choice_equals_brute_force(first):
    """50 tiny rounds, and what becomes of them: best of all options and racks, all of it placed."""
    joint = Prices(gap=1e-9)
    for seed in range(first, first + 50):
        round_ = random_round(seed)
        plan = plan_of(joint, round_)
        assert plan.objective == pytest.approx(best_of_all(round_), rel=1e-7), seed
        assert plan.details.placement_loss == 0
        two = plan_of(Prices(gap=1e-9, joint=False), round_)
        assert two.objective <= plan.objective * (1 + 1e-7)
        next_ = later(round_, two, seed)
        plan = plan_of(joint, next_, plan)
        assert plan.objective == pytest.approx(best_of_all(next_), rel=1e-7), seed
        assert plan.details.placement_loss == 0


def test_tables_have_rows_within_racks_only_where_that_is_known_to_differ():
    """One rack, or a profile that knows of none: the rows are what they always were, to the bit."""
    old = replace(FAR, alpha_x_s=None)
    columns = ("job", "gpus", "span", "clock", "batch", "rate", "power_w")

    def table(cluster, model):
        state = waiting("a", gpus=16, min_gpus=1, max_gpus=16)
        return build(Round(cluster=cluster, profiles=profiles(far=model), waiting=(state,)))

    plain = table(racks_of(4), old)
    assert plain.span.tolist() == [NODE, NODE, NODE, CLUSTER, CLUSTER]
    for other in (table(racks_of(4), FAR), table(racks_of(2, 2), old)):
        for name in columns:
            np.testing.assert_array_equal(getattr(other, name), getattr(plain, name))
    # 8 GPUs fit in a rack and are no use across (rate 2, a node gives 4); 16 GPUs are in two racks:
    # 8 / (1/2 + 3) < 4, of no use either. With 0.25 s: 8 GPUs 6.4 and 16 GPUs 8/0.75.
    far = table(racks_of(2, 2), FAR)
    assert far.gpus.tolist() == [1, 2, 4, 8]
    assert far.span.tolist() == [NODE, NODE, NODE, RACK]
    near = table(racks_of(2, 2), replace(FAR, alpha_x_s=0.25))
    assert near.gpus.tolist() == [1, 2, 4, 8, 8, 16]
    assert near.span.tolist() == [NODE, NODE, NODE, RACK, CLUSTER, CLUSTER]
    np.testing.assert_allclose(near.rate, [1, 2, 4, 8, 6.4, 8 / 0.75])


def test_the_rate_of_what_runs_is_that_of_its_racks():
    """An option over the cluster that got nodes of one rack is as fast as one within it."""
    near = profiles(far=replace(FAR, alpha_x_s=0.25))
    for nodes, rate in (((0, 1), 8.0), ((1, 2), 6.4)):
        round_ = Round(cluster=racks_of(2, 2), profiles=near, waiting=(waiting("a"),))
        table = build(round_)
        k = int(np.flatnonzero((table.gpus == 8) & (table.span == CLUSTER))[0])
        held = Allocation(option=option(table, k), placement=tuple((n, 4) for n in nodes))
        state = replace(round_.waiting[0], allocation=held, started=True)
        after = build(replace(round_, running=(state,), waiting=()))
        assert after.rate[after.current].tolist() == pytest.approx([rate])


@pytest.mark.parametrize(("cluster", "rate"), [(racks_of(2, 2), 8.0), (racks_of(1, 1), 2.0)])
@pytest.mark.parametrize("chosen", ["fifo", "prices", "prices(joint=false)", "milp"])
def test_the_driver_runs_jobs_at_the_rate_of_their_racks(cluster, rate, chosen):
    """8 GPUs on two nodes of one rack do 8 a second, in two racks 2: 80 of work take 10 or 40 s.

    `fifo` promises the speed across racks in either case.
    """
    job = Job(
        id="a",
        submit_s=0.0,
        profile="far",
        gpus=8,
        estimate=Estimate(work=80.0),
        truth=Truth(work=80.0),
    )
    instance = Instance(
        name="far", cluster=cluster, profiles=profiles(far=FAR), jobs=(job,), costs=Costs()
    )
    schedule = run(instance, policy(chosen))
    assert check(instance, schedule) == []
    assert schedule.jobs[0].end_s - schedule.jobs[0].segments[0].resume_s == pytest.approx(
        80 / rate
    )


def test_rounds_without_racks_are_decided_alike():
    """Where no option is tied to a rack both modes give the same plan to the last bit."""
    for seed in range(20):
        round_ = tiny_round(seed)
        plans = [
            made.plan(round_, deadline=Deadline(None), seed=0)
            for made in (Prices(), Prices(joint=False))
        ]
        assert plans[0].allocations == plans[1].allocations
        assert plans[0].prices == plans[1].prices
        assert plans[0].bound == plans[1].bound
        assert plans[0].details == plans[1].details


def test_racks_have_room_although_nodes_sleep():
    """Idle nodes that draw 100 + 2 x 20 W may sleep at 5 W: what is chosen for a rack wakes it."""
    slept = 0
    for seed in range(30):
        round_ = random_round(seed)
        cluster = round_.cluster
        cluster = replace(
            cluster,
            gpu_types=(replace(cluster.gpu_types[0], idle_w=20.0),),
            node_groups=tuple(
                replace(group, host_idle_w=100.0, sleep_w=5.0) for group in cluster.node_groups
            ),
        )
        nodes = cluster.topology.node_gpus
        cap_w = 5.0 * len(nodes) + float(np.random.default_rng(seed).uniform(60, 180) * nodes.sum())
        first = replace(round_, cluster=cluster, power_cap_w=cap_w)
        plan = plan_of(Prices(gap=1e-9), first)
        second = replace(later(first, plan, seed), asleep=plan.asleep or ())
        for found in (plan, plan_of(Prices(gap=1e-9), second, plan)):
            assert found.details.placement_loss == 0, seed
            slept += bool(found.asleep)
    assert slept > 10
