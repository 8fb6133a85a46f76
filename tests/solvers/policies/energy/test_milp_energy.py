"""The exact policy under an energy budget: optimal, monotone in the budget."""

from itertools import pairwise, product

import msgspec
import numpy as np
import pytest

from ronda.bench.runs.variant import Variant, reference_w
from ronda.formulations.objectives.by_name import values
from ronda.formulations.options.build import build
from ronda.horizon.driver import run
from ronda.horizon.solve import solve
from ronda.instances import generate
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.errors import InputError
from ronda.instances.files.packaged import load
from ronda.instances.job import Allocation, Estimate, Job, JobState, Option
from ronda.instances.outcome.metrics import summarise
from ronda.instances.profile import PowerCurve, Profile, Tabular
from ronda.instances.round import Round
from ronda.questions.explain import explain_jobs
from ronda.solvers.greedy.counted import Counted, uses
from ronda.solvers.policies.energy.milp_energy import MilpEnergy, WakingNodes
from ronda.solvers.policies.optimising.prices import ByPrices
from ronda.solvers.registry import policy

EXACT = MilpEnergy(gap=1e-9)


def metered(round_, energy_j):
    """Return a round with this much energy for its window."""
    return msgspec.structs.replace(round_, energy_j=energy_j)


def best_of_all(round_):
    """Return the value of the best choice, by trying all."""
    table = build(round_, mind_power=True)
    worth = values(round_, table, EXACT.objective)
    left, used = Counted.of(round_), uses(round_, table)
    choices = [
        [*range(table.start[j], table.start[j + 1]), *([] if table.must_run[j] else [-1])]
        for j in range(len(table.jobs))
    ]
    return max(
        (
            float(worth[rows[rows >= 0]].sum())
            for rows in map(np.array, product(*choices))
            if within(left.rest(), used, rows[rows >= 0])
        ),
        default=-np.inf,
    )


def within(left, used, rows):
    """Tell whether some rows keep all limits, nodes awake counted by their GPUs."""
    return all(left.take(used.pool[k], used.gpus[k], used.watts[k]) for k in rows.tolist())


def reached(plan):
    """Return what a plan chose, placed or not."""
    return plan.objective + plan.details.placement_loss


def test_it_is_the_price_engine_with_another_objective():
    """Nothing is solved in a second way."""
    assert isinstance(policy("milp-energy"), ByPrices)
    thrift = {"thrift": 0.3}
    assert policy("milp-energy") == MilpEnergy(
        objective="thrifty-rank", gap=1e-3, parameters=thrift
    )


def test_thrift_saves_energy():
    """With watts for everything, a thriftier plan draws less; without thrift `rank` decides."""
    round_ = generate.round(20, None, "loose", 1)
    drawn_w, objectives = [], []
    for thrift in (0.0, 0.3, 0.6):
        plan = solve(round_, MilpEnergy(parameters={"thrift": thrift}))
        assert check(round_, plan) == []
        drawn_w.append(sum(a.option.power_w for a in plan.allocations.values()))
        objectives.append(plan.objective)
    assert drawn_w[0] > drawn_w[1] > drawn_w[2]
    assert objectives[0] == pytest.approx(solve(round_, "milp(gap=1e-3)").objective, rel=1e-3)


def test_thrift_is_a_share():
    """Out of range: refused before any round is seen."""
    with pytest.raises(InputError, match="thrift"):
        policy("milp-energy(thrift=1.5)")


def test_optimal_on_tiny_rounds():
    """On rounds with a limit on energy or power it finds what trying all choices finds."""
    tried = 0
    for seed in range(200):
        round_ = generate.tiny_round(seed)
        sizes = np.diff(build(round_, mind_power=True).start) + 1
        if round_.watts is None or np.prod(sizes.astype(float)) > 3000:
            continue
        plan = solve(round_, EXACT)
        assert reached(plan) == pytest.approx(best_of_all(round_), rel=1e-8), seed
        assert check(round_, plan) == []
        tried += 1
        if tried == 25:
            break
    assert tried == 25


@pytest.mark.parametrize("seed", [0, 1])
def test_more_energy_never_hurts(seed):
    """From what the idle cluster needs to three times the budget, the optimum only rises."""
    round_ = generate.round(14, None, "tight", seed)
    idle_j = round_.cluster.topology.idle_w * round_.window_s
    assert round_.energy_j is not None
    free_j = round_.energy_j - idle_j
    found = []
    for share in (0.3, 1.0, 3.0):
        plan = solve(metered(round_, idle_j + share * free_j), MilpEnergy(gap=1e-6))
        assert check(metered(round_, idle_j + share * free_j), plan) == []
        found.append(reached(plan))
    assert all(after >= before * (1 - 2e-6) for before, after in pairwise(found))
    assert found[-1] > found[0]


def waits_for_a_node(step_s=0.5):
    """Return a round: a long job on the node of 2 GPUs that is awake; another one sleeps.

    4 GPUs are twice as fast as 2 with half a second a step. A node draws 60 W idle, a busy GPU
    100 W, waking takes 100 s.
    """
    table = Tabular(
        gpus=(2, 4), nodes=(1, 2), local_batch=(2.0, 1.0), step_s=(1.0, step_s), sync_s=(0.0, 0.0)
    )
    curve = PowerCurve(a_w=20.0, b_w=80.0)
    profile = Profile(name="p", base_batch=4.0, throughput={"G": table}, power={"G": curve})
    group = NodeGroup(
        name="n", count=2, gpus_per_node=2, gpu_type="G", host_idle_w=40.0, wake_s=100.0
    )
    cluster = Cluster(
        gpu_types=(GpuType(name="G", memory_gib=16, idle_w=10.0),), node_groups=(group,)
    )
    work = Estimate(work=1e6)
    job = Job(id="a", submit_s=0.0, profile="p", gpus=2, min_gpus=2, max_gpus=4, estimate=work)
    option = Option(pool=0, gpus=2, batch=4.0, rate=4.0, power_w=200.0)
    held = Allocation(option=option, placement=((0, 2),))
    return Round(
        cluster=cluster,
        profiles={"p": profile},
        running=(JobState(job=job, since_s=0.0, allocation=held, started=True),),
        asleep=(1,),
        power_cap_w=1000.0,
    )


def test_a_job_runs_on_while_the_node_that_it_waits_for_wakes():
    """It keeps its node for the 100 s, though the plan is for 4 GPUs, and moves then."""
    policy_, round_ = MilpEnergy(), waits_for_a_node()
    first = solve(round_, policy_)
    assert check(round_, first) == []
    assert first.allocations["a"].placement == ((0, 2),)
    assert first.asleep == ()
    assert WakingNodes.recall(first).ready_s == {1: 100.0}
    for now_s, gpus in ((60.0, 2), (100.0, 4)):
        later = msgspec.structs.replace(round_, now_s=now_s, asleep=())
        plan = policy_.plan(later, deadline=Deadline(), seed=0, initial=first)
        assert check(later, plan) == []
        assert plan.asleep in (None, ())
        assert sum(n for _, n in plan.allocations["a"].placement) == gpus


def test_the_node_is_woken_where_racks_have_limits():
    """The same with both nodes in a rack of 1 kW; one of 250 W has no power for a second node."""
    round_ = waits_for_a_node()
    (group,) = round_.cluster.node_groups
    for cap_w, asleep in ((1000.0, ()), (250.0, (1,))):
        cluster = msgspec.structs.replace(
            round_.cluster,
            node_groups=(msgspec.structs.replace(group, rack="r"),),
            racks=(Rack(name="r", power_cap_w=cap_w),),
        )
        capped = msgspec.structs.replace(round_, cluster=cluster)
        plan = solve(capped, MilpEnergy())
        assert check(capped, plan) == []
        assert plan.allocations["a"].placement == ((0, 2),)
        assert (round_.asleep if plan.asleep is None else plan.asleep) == asleep


@pytest.mark.parametrize("name", ["milp", "prices", "milp-energy", "genetic(generations=5)"])
def test_watts_of_waking_are_counted_before_the_choice(name):
    """4 GPUs and two hosts draw 480 W, and 20 W while the second wakes: a cap of 490 W is too low.

    The job goes on with 2 GPUs; 4 of them chosen, it would have to stop.
    """
    round_ = waits_for_a_node()
    (group,) = round_.cluster.node_groups
    groups = (msgspec.structs.replace(group, wake_w=20.0),)
    cluster = msgspec.structs.replace(round_.cluster, node_groups=groups)
    for cap_w, awake in ((490.0, 1), (500.0, 2)):
        capped = msgspec.structs.replace(round_, cluster=cluster, power_cap_w=cap_w)
        plan = solve(capped, name)
        assert check(capped, plan) == []
        asleep = round_.asleep if plan.asleep is None else plan.asleep
        assert 2 - len(asleep) == awake
        gpus = 2 * awake if name != "milp-energy" else 2  # which waits for the node first
        assert plan.allocations["a"].option.gpus == gpus


def test_an_idle_node_sleeps_at_break_even():
    """A rigid job of 2 GPUs leaves node 1 idle: for 100 s, as waking and idling draw 60 W each."""
    policy_, round_ = MilpEnergy(parameters={"thrift": 0.5}), waits_for_a_node()
    state = round_.running[0]
    job = msgspec.structs.replace(state.job, max_gpus=2)
    running = (msgspec.structs.replace(state, job=job),)
    plan = None
    for now_s, asleep in ((0.0, ()), (99.0, ()), (101.0, (1,))):
        later = msgspec.structs.replace(round_, now_s=now_s, running=running, asleep=())
        plan = policy_.plan(later, deadline=Deadline(), seed=0, initial=plan)
        assert check(later, plan) == []
        assert plan.asleep == asleep


def test_a_node_that_stands_by_is_used_for_what_its_gpus_draw():
    """4 GPUs are 1.54 times as fast as 2: at thrift 0.6 worth their own watts, not a second host.

    2 GPUs: 4 units/s, 240 W, 60 J a unit; 4 GPUs: 6.15 units/s, 480 W, 78 J, 58.5 J without hosts.
    With hosts 2 GPUs are worth 4 (1 - 0.6), 4 are worth 6.15 (1 - 0.6 x 1.3); without hosts
    4 (1 - 0.6 x 0.75) and 6.15 (1 - 0.6 x 0.975).
    """
    round_ = waits_for_a_node(step_s=0.65)
    policy_, plan = MilpEnergy(parameters={"thrift": 0.6}), None
    for now_s, gpus, asleep in ((0.0, 4, ()), (99.0, 4, ()), (101.0, 2, (1,))):
        later = msgspec.structs.replace(round_, now_s=now_s, asleep=())
        plan = policy_.plan(later, deadline=Deadline(), seed=0, initial=plan)
        assert check(later, plan) == []
        assert (plan.allocations["a"].option.gpus, plan.asleep or ()) == (gpus, asleep)
    assert solve(round_, policy_).allocations["a"].option.gpus == 2
    (told,) = explain_jobs(
        later, policy_.plan(later, deadline=Deadline(), seed=0), ["a"], parameters={"thrift": 0.6}
    )
    worth = {o.gpus: o.worth for o in told.options}
    assert worth[4] / worth[2] == pytest.approx(6.15 * (1 - 0.585) / (4 * (1 - 0.45)), rel=1e-3)


class AllReady(MilpEnergy):
    """The policy in which a node that wakes is as good as one that is awake."""

    def ready(self, round, initial):
        """Tell nothing of nodes that wake."""
        return None


def test_rounds_that_know_which_nodes_are_ready_end_jobs_sooner():
    """The last jobs of pollux-1 at 0.8 of full power end, with rounds shorter than wake-ups.

    When only restarts counted, a job waited for eight nodes in one round and left them in the next.
    """
    instance = load("pollux-1")
    factor = Variant(sustained_w=0.8 * reference_w(instance))
    short = factor.apply(msgspec.structs.replace(instance, jobs=instance.jobs[:8]))
    mean_s = []
    for policy_ in (MilpEnergy(), AllReady()):
        schedule = run(short, policy_)
        assert check(short, schedule) == []
        assert len(schedule.sleeps) < 16 * 4
        mean_s.append(summarise(short, schedule)["mean_jct_s"])
    assert mean_s[0] < 0.97 * mean_s[1]
