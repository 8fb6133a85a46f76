"""Plans against rounds: sound ones pass, and every rule is broken by exactly one mutation."""

import re

import pytest
from msgspec.structs import replace

from ronda.instances.check import checker as check_module
from ronda.instances.check.checker import check
from ronda.instances.cluster import (
    Cluster,
    GpuType,
    NodeGroup,
    Partition,
    Rack,
    uniform_cluster,
)
from ronda.instances.errors import InputError
from ronda.instances.instance import Instance
from ronda.instances.job import Allocation, Estimate, Job, JobState, Option
from ronda.instances.plan import Plan
from ronda.instances.profile import (
    Memory,
    NoiseScale,
    Parametric,
    PowerCurve,
    Profile,
    Rigid,
    Tabular,
)
from ronda.instances.round import Round
from ronda.instances.schedule import Schedule

# Nodes: 0 and 1 (4 x A, rack r1), 2 (4 x A, rack r2), 3 (2 x B, rack r2), 4 (4 x A, partition
# "other", rack r2). Pools: 0 default/A, 1 default/B, 2 other/A. Rack row holds r1 and r2.
CLUSTER = Cluster(
    gpu_types=(
        GpuType(name="A", memory_gib=16, idle_w=50, clocks=(0.5, 1.0)),
        GpuType(name="B", memory_gib=16, idle_w=20),
    ),
    node_groups=(
        NodeGroup(
            name="g1", count=2, gpus_per_node=4, gpu_type="A", rack="r1", host_idle_w=100, sleep_w=8
        ),
        NodeGroup(
            name="g2", count=1, gpus_per_node=4, gpu_type="A", rack="r2", host_idle_w=100, sleep_w=8
        ),
        NodeGroup(name="g3", count=1, gpus_per_node=2, gpu_type="B", rack="r2", host_idle_w=100),
        NodeGroup(
            name="g4",
            count=1,
            gpus_per_node=4,
            gpu_type="A",
            rack="r2",
            partition="other",
            host_idle_w=100,
        ),
    ),
    racks=(
        Rack(name="row", power_cap_w=5000),
        Rack(name="r1", parent="row", power_cap_w=2000),
        Rack(name="r2", parent="row"),
    ),
    partitions=(Partition(name="other"),),
)
FIT = Parametric(alpha_c_s=0.1, beta_c_s=0.01, alpha_r_s=0.4, alpha_n_s=0.7)
PROFILES = {
    "elastic": Profile(
        name="elastic",
        throughput={"A": FIT},
        power={"A": PowerCurve(a_w=40, b_w=160)},
        base_batch=40,
        batches=(40, 80, 4000),
        max_local_batch=40,
        min_local_batch=10,
    ),
    "rigid": Profile(
        name="rigid",
        throughput={"A": Rigid(), "B": Rigid()},
        power={"A": PowerCurve(a_w=200)},
    ),
    "heavy": Profile(
        name="heavy",
        throughput={"A": FIT},
        base_batch=40,
        batches=(40, 80),
        min_local_batch=40,
        memory=Memory(base_gib=2, model_gib=2, sample_gib=0.3),
    ),
}
NOISE = NoiseScale(batches=(40, 80), scale=(120, 120))


def state(job_id, profile, allocation=None, **fields):
    """Return the state of a job that runs on `allocation`, or waits."""
    noise = NOISE if profile == "elastic" else None
    job = Job(id=job_id, submit_s=0, profile=profile, **fields)
    return JobState(
        job=job, since_s=0, allocation=allocation, noise=noise, started=allocation is not None
    )


# e1: B = 40 on 2 GPUs of one node: T_grad = 0.1 + 0.01 * 20 = 0.3, gamma 1: T = 0.3 + 0.4 = 0.7 s,
# efficiency 1 at the base batch: 40/0.7; power 2 (40 + 160) = 400 W.
E1 = Allocation(
    option=Option(pool=0, gpus=2, span="node", clock=1, batch=40, rate=40 / 0.7, power_w=400),
    placement=((0, 2),),
)
# e2: B = 80 on 8 GPUs over two nodes at half clock: b = 10, T_grad = 0.2/0.5 = 0.4, T = 0.4 + 0.7,
# efficiency (120 + 40)/(120 + 80) = 0.8; power 8 (40 + 160 * 0.5) = 960 W.
E2 = Allocation(
    option=Option(
        pool=0, gpus=8, span="cluster", clock=0.5, batch=80, rate=80 / 1.1 * 0.8, power_w=960
    ),
    placement=((1, 4), (2, 4)),
)
R1 = Allocation(option=Option(pool=1, gpus=2, span="node", rate=1, power_w=40), placement=((3, 2),))
FIXED = Allocation(
    option=Option(pool=0, gpus=1, span="node", rate=1, power_w=200), placement=((0, 1),)
)
ROUND = Round(
    cluster=CLUSTER,
    profiles=PROFILES,
    running=(
        state("e1", "elastic", E1, gpus=2, min_gpus=1, max_gpus=8),
        state("fixed", "rigid", FIXED, gpus=1, preemptible=False),
    ),
    waiting=(
        state("e2", "elastic", gpus=8, min_gpus=2, max_gpus=8),
        state("r1", "rigid", gpus=2),
        state("h1", "heavy", gpus=1, max_gpus=2),
        state("a1", "rigid", gpus=1, gpu_types=("A",)),
    ),
    # Hosts 5 * 100; 16 A less 11 in use idle at 50, B none idle; jobs 400 + 960 + 40 + 200.
    power_cap_w=500 + 5 * 50 + 1600,
    energy_j=(500 + 5 * 50 + 1600) * 60.0,
    window_s=60,
)
PLAN = Plan(allocations={"e1": E1, "e2": E2, "r1": R1, "fixed": FIXED}, asleep=())
LOOSE = replace(ROUND, power_cap_w=None, energy_j=None)


def plan(asleep=(), **changes):
    """Return the sound plan with some allocations changed (None: taken away)."""
    allocations = {**PLAN.allocations, **changes}
    return Plan(allocations={k: v for k, v in allocations.items() if v is not None}, asleep=asleep)


def but(base, placement=None, **option):
    """Return an allocation with these fields of its option, and perhaps its placement, changed."""
    return Allocation(
        option=replace(base.option, **option),
        placement=base.placement if placement is None else placement,
    )


# e1 on one GPU: b = 40, T = 0.1 + 0.4 = 0.5 s.
ONE = but(E1, ((0, 1),), gpus=1, rate=80, power_w=200)
# The heavy job has no power curve: its GPUs count at idle power.
HEAVY = Allocation(option=Option(pool=0, gpus=1, batch=80, rate=1, power_w=50), placement=((1, 1),))


def racks(**caps):
    """Return the round with other power caps of racks."""
    changed = tuple(replace(rack, power_cap_w=caps.get(rack.name)) for rack in CLUSTER.racks)
    return replace(LOOSE, cluster=replace(CLUSTER, racks=changed))


def profiled(name, **fields):
    """Return the round with some fields of a profile changed."""
    changed = replace(PROFILES[name], **fields)
    return replace(LOOSE, profiles={**PROFILES, name: changed})


def trial(job_id, **fields):
    """Return the round with one of its jobs as a trial of a sweep."""

    def swapped(states):
        job = {"sweep": "s", "epoch": 1.0, **fields}
        return tuple(
            replace(s, job=replace(s.job, **job)) if s.job.id == job_id else s for s in states
        )

    return replace(LOOSE, running=swapped(LOOSE.running), waiting=swapped(LOOSE.waiting))


NO_ELASTIC = replace(LOOSE, profiles={k: p for k, p in PROFILES.items() if k != "elastic"})
BROKEN = {
    "unknown-job": (LOOSE, plan(ghost=but(FIXED))),
    "pool, there is none": (LOOSE, plan(r1=but(R1, pool=7))),
    "pool, node of another": (LOOSE, plan(e1=but(ONE, ((4, 1),)))),
    "partition": (LOOSE, plan(e1=but(E1, ((4, 2),), pool=2))),
    "options, speed unknown": (LOOSE, plan(r1=None, e1=but(ONE, ((3, 1),), pool=1))),
    "options, type not wanted": (LOOSE, plan(r1=None, a1=but(R1, ((3, 1),), gpus=1, power_w=20))),
    "options, no profile": (NO_ELASTIC, plan(e2=None)),
    "gpus, rigid": (LOOSE, plan(r1=but(R1, ((3, 1),), gpus=1, power_w=20))),
    "gpus, above the maximum": (LOOSE, plan(e2=None, h1=but(HEAVY, ((1, 3),), gpus=3))),
    "gpus, below the minimum": (LOOSE, plan(e2=but(ONE, ((1, 1),)))),
    "clock, not of the type": (LOOSE, plan(e1=but(E1, clock=0.7))),
    "clock, rigid": (LOOSE, plan(e1=None, a1=but(FIXED, clock=0.5))),
    "batch": (LOOSE, plan(e1=but(E1, batch=60))),
    # 40 samples on 8 GPUs are 5 each, fewer than 10.
    "local-batch": (LOOSE, plan(e2=but(E2, batch=40))),
    # 2 + 2 + 0.3 b <= 16 for b <= 40; one pass of 80 does not fit, two fall below 41.
    "memory": (profiled("heavy", min_local_batch=41.0), plan(e2=None, h1=HEAVY)),
    "width": (LOOSE, plan(e1=but(E1, width=2))),
    "array": (LOOSE, plan(e1=replace(E1, array="alone"))),
    "span, node": (LOOSE, plan(e2=but(E2, span="node"))),
    "span, rack": (LOOSE, plan(e2=but(E2, span="rack"))),
    "span, unknown": (LOOSE, plan(e1=but(E1, span="galaxy"))),
    "gang, too few": (LOOSE, plan(e1=but(E1, ((0, 1),)))),
    "gang, nothing": (LOOSE, plan(e1=but(E1, ()))),
    "gang, negative": (LOOSE, plan(e1=but(E1, ((0, 3), (1, -1)), span="cluster"))),
    "node": (LOOSE, plan(e1=but(E1, ((5, 2),)))),
    "node, negative": (LOOSE, plan(e1=but(E1, ((-1, 2),)))),
    "node, asleep": (LOOSE, plan(asleep=(9,))),
    "duplicate-node": (LOOSE, plan(e1=but(E1, ((0, 1), (0, 1))))),
    "duplicate-node, asleep": (LOOSE, plan(asleep=(4, 4))),
    # The efficiency of 0.8 is forgotten.
    "rate": (LOOSE, plan(e2=but(E2, rate=80 / 1.1))),
    "rate, NaN": (LOOSE, plan(e2=but(E2, rate=float("nan")))),
    "option-power": (LOOSE, plan(e2=but(E2, power_w=961))),
    "capacity": (LOOSE, plan(e1=but(E1, ((1, 2),)))),
    "asleep, by the plan": (LOOSE, plan(asleep=(3,))),
    "asleep, already": (replace(LOOSE, asleep=(3,)), plan(asleep=None)),
    "must-run, stopped": (LOOSE, plan(fixed=None)),
    "must-run, changed": (LOOSE, plan(fixed=but(FIXED, teardown_s=1))),
    "must-run, moved": (LOOSE, plan(e2=None, fixed=but(FIXED, ((1, 1),)))),
    "discard": (LOOSE, replace(PLAN, discarded=("h1",))),
    "discard, must run": (trial("h1", preemptible=False), replace(PLAN, discarded=("h1",))),
    "discard, and runs": (trial("e1"), replace(PLAN, discarded=("e1",))),
    "discard, twice": (trial("h1"), replace(PLAN, discarded=("h1", "h1"))),
    "unknown-job, discarded": (LOOSE, replace(PLAN, discarded=("ghost",))),
    "power": (replace(LOOSE, power_cap_w=2349.9), PLAN),
    "energy": (replace(LOOSE, energy_j=2349.9 * 60), PLAN),
    # r1: 2 hosts, 1 idle GPU, e1, fixed, half of e2: 200 + 50 + 400 + 200 + 480 = 1330.
    "rack-power": (racks(r1=1329.9), PLAN),
    # Its parent holds the whole cluster: 2350.
    "rack-power, of the parent": (racks(row=2349.9), PLAN),
}


def test_a_sound_plan_has_no_violation():
    """A plan that uses the power cap, the energy and the racks' caps to the full passes."""
    assert check(ROUND, PLAN) == []
    assert check(racks(row=2350, r1=1330, r2=1020), PLAN) == []


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_rule_is_found_alone(case):
    """Each mutation triggers the code of its rule and no other, and the words say where."""
    found = check(*BROKEN[case])
    assert [v.code for v in found] == [case.partition(",")[0]]
    assert found[0].where
    assert found[0].message
    assert str(found[0]).startswith(found[0].code + ": " + found[0].where)


def test_every_documented_code_is_broken_once():
    """The first table of the module's docstring and the mutations name the same codes."""
    table = check_module.__doc__.split("of a site's rules")[0]
    documented = set(re.findall(r"^([a-z-]+) {2,}\S", table, flags=re.MULTILINE)) - {"code"}
    assert documented == {case.partition(",")[0] for case in BROKEN}


def test_trials_that_wait_or_run_may_be_given_up():
    """A waiting one, and one that runs and is stopped by the same plan."""
    assert check(trial("h1"), replace(PLAN, discarded=("h1",))) == []
    assert check(trial("e1"), replace(plan(e1=None), discarded=("e1",))) == []


def test_all_broken_rules_are_listed_at_once():
    """Two jobs, a node and the cluster are all reported."""
    broken = plan(e1=but(E1, ((1, 2),), clock=0.7), r1=but(R1, pool=7))
    found = check(replace(ROUND, power_cap_w=10), broken)
    assert {(v.code, v.where) for v in found} == {
        ("clock", "job e1"),
        ("pool", "job r1"),
        ("capacity", "node 1"),
        ("power", "cluster"),
    }


def test_sleeping_nodes_draw_their_sleeping_power():
    """Nodes 1 and 2 asleep save their host and idle GPUs, and cost 8 W each."""
    # Hosts 300; idle: node 0 1 * 50, node 4 4 * 50; asleep 2 * 8; jobs 400 + 40 + 200: 1206.
    sleeping = plan(e2=None, asleep=(1, 2))
    assert check(replace(LOOSE, power_cap_w=1206), sleeping) == []
    assert [v.code for v in check(replace(LOOSE, power_cap_w=1205.9), sleeping)] == ["power"]
    # Left as they are, which is asleep.
    kept = replace(LOOSE, power_cap_w=1206, asleep=(1, 2))
    assert check(kept, plan(e2=None, asleep=None)) == []


def test_waking_a_node_by_the_plan_lets_it_run_jobs():
    """A node that sleeps now is free to run jobs in a plan that does not leave it asleep."""
    assert check(replace(LOOSE, asleep=(1, 2)), PLAN) == []


def test_an_unchanged_allocation_keeps_its_rate():
    """What is measured while a job runs does not make its old claim wrong; a new claim must fit."""
    later = NoiseScale(batches=(40, 80), scale=(400, 400))
    held = replace(ROUND.waiting[0], allocation=E2, noise=later, started=True)
    moved_on = replace(LOOSE, running=(*LOOSE.running, held), waiting=LOOSE.waiting[1:])
    assert check(moved_on, PLAN) == []
    # On other nodes the rate that was measured may be claimed, but no third one.
    elsewhere = but(E2, ((2, 4), (1, 4)))
    assert check(moved_on, plan(e2=elsewhere)) == []
    invented = but(elsewhere, rate=80 / 1.1 * 0.9)
    assert [v.code for v in check(moved_on, plan(e2=invented))] == ["rate"]
    # (400 + 40)/(400 + 80) = 0.9167 instead of 0.8 is what the profile says by now.
    updated = but(E2, rate=80 / 1.1 * 440 / 480)
    assert check(moved_on, plan(e2=updated)) == []


def test_an_updated_rate_does_not_change_a_job_that_must_run():
    """Only the expected rate of a job that may not be preempted was measured again."""
    pinned = replace(ROUND.running[0], job=replace(ROUND.running[0].job, preemptible=False))
    fixed = replace(LOOSE, running=(pinned, ROUND.running[1]))
    assert check(fixed, plan(e1=but(E1, rate=50))) == []


def test_speed_must_be_known_on_the_nodes_really_used():
    """A job measured on one node only cannot be spread over two."""
    table = Tabular(gpus=(2,), nodes=(1,), local_batch=(20,), step_s=(0.7,), sync_s=(0.4,))
    measured = profiled("elastic", throughput={"A": table})
    spread = but(E1, ((0, 1), (1, 1)), span="cluster")
    assert check(measured, plan(e2=None)) == []
    assert [v.code for v in check(measured, plan(e2=None, e1=spread))] == ["options"]


def test_rates_are_claimed_for_the_fewest_nodes():
    """A job spread wider than it need be still claims the rate of the fewest nodes."""
    spread = but(E1, ((0, 1), (1, 1)), span="cluster")
    assert check(LOOSE, plan(e2=None, e1=spread)) == []


def test_a_round_and_a_schedule_do_not_match():
    """A programming error is not reported as a violation."""
    with pytest.raises(InputError, match="found a schedule; expected a plan"):
        check(ROUND, Schedule(instance="x", fingerprint="", policy="", jobs=()))
    with pytest.raises(InputError, match="found a plan; expected a schedule"):
        check(Instance(name="x", cluster=CLUSTER, profiles={}, jobs=()), PLAN)


def test_waking_nodes_draw_more_while_they_wake():
    """Nodes 1 and 2, woken, draw 30 W more each for 20 s: at first 2,410 W, in all 1,200 J more."""
    (first, *others) = CLUSTER.node_groups
    groups = tuple(replace(group, wake_s=20.0, wake_w=30.0) for group in (first, *others))
    cluster = replace(CLUSTER, node_groups=groups)
    woken = replace(LOOSE, cluster=cluster, asleep=(1, 2))
    for limit in ("power_cap_w", "energy_j"):
        enough = 2410 if limit == "power_cap_w" else 2350 * 60 + 1200
        assert check(replace(woken, **{limit: enough}), PLAN) == []
        found = check(replace(woken, **{limit: enough - 1}), PLAN)
        assert [v.code for v in found] == ["power" if limit == "power_cap_w" else "energy"]
    # Those that wake already have been taken off the round's own limits.
    still = replace(woken, asleep=(), waking=(1, 2), power_cap_w=2350)
    assert check(still, PLAN) == []


@pytest.mark.parametrize(("banked_j", "said"), [(900.0, []), (899.0, ["energy"])])
def test_energy_is_counted_when_a_node_has_woken(banked_j, said):
    """10 W awake and 100 W for the first 10 s: 1,100 J by then, where 20 W come in besides.

    By the end of the window it has used 1,600 J of 2,099.
    """
    cluster = uniform_cluster(
        GpuType(name="A", memory_gib=16), 1, 1, host_idle_w=10.0, wake_s=10.0, wake_w=100.0
    )
    round_ = Round(
        cluster=cluster,
        profiles={},
        asleep=(0,),
        window_s=60.0,
        energy_j=banked_j + 20.0 * 60.0,
        banked_j=banked_j,
    )
    assert [v.code for v in check(round_, Plan(asleep=()))] == said


def test_a_job_is_charged_until_it_ends():
    """Node 0 runs 300 W more for 10 of 60 s: 3,000 J, where 2,999 J are too few.

    Of 3,000 J that come evenly 500 J are there by then: too few as well, until 2,500 J are banked.
    """
    job = Job(id="a", submit_s=0, profile="rigid", gpus=1, estimate=Estimate(work=10.0))
    gpu = GpuType(name="A", memory_gib=16)
    round_ = Round(
        cluster=uniform_cluster(gpu, 1, 1),
        profiles={
            "rigid": Profile(
                name="rigid", throughput={"A": Rigid()}, power={"A": PowerCurve(a_w=300)}
            )
        },
        waiting=(JobState(job=job, since_s=0.0),),
        energy_j=3000.0,
        window_s=60.0,
    )
    option = Option(pool=0, gpus=1, batch=1.0, rate=1.0, power_w=300.0)
    plan = Plan(policy="p", allocations={"a": Allocation(option=option, placement=((0, 1),))})
    assert check(round_, plan) == []
    for spoilt in ({"energy_j": 2999.0}, {"banked_j": 0.0}, {"banked_j": 2990.0, "window_s": 3e5}):
        assert [v.code for v in check(replace(round_, **spoilt), plan)] == ["energy"], spoilt
    assert check(replace(round_, banked_j=3000.0), plan) == []
