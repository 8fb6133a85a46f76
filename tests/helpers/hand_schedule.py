"""An instance and its schedule, derived by hand: every figure beside its arithmetic."""

from msgspec.structs import replace

from records import record
from ronda.instances.budget import Budget, EnergyBudget, StepSeries
from ronda.instances.check.timeline import energy, flatten, with_off_times
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Partition, Rack
from ronda.instances.instance import Instance
from ronda.instances.job import Costs, Job, Option, Truth
from ronda.instances.profile import (
    NoiseCurve,
    Parametric,
    PowerCurve,
    Profile,
    Rigid,
)
from ronda.instances.schedule import Energy, JobOutcome, Schedule, Segment


def group(name, count, rack, **fields):
    """Return nodes of two A that draw 100 W awake and 5 W asleep, and wake in 20 s."""
    host = {"gpus_per_node": 2, "gpu_type": "A", "host_idle_w": 100, "sleep_w": 5, "wake_s": 20}
    return NodeGroup(name=name, count=count, rack=rack, **{**host, **fields})


# Nodes 0 and 1 in rack r1, node 2 in r2; node 3 is of another partition and draws nothing.
CLUSTER = Cluster(
    gpu_types=(
        GpuType(name="A", memory_gib=16, idle_w=10, clocks=(0.5, 1.0)),
        GpuType(name="Z", memory_gib=16),
    ),
    node_groups=(
        group("g1", 2, "r1"),
        group("g2", 1, "r2"),
        NodeGroup(name="g3", count=1, gpus_per_node=1, gpu_type="Z", rack="r3", partition="other"),
    ),
    racks=(
        Rack(name="row", power_cap_w=840),
        Rack(name="r1", parent="row", power_cap_w=530),
        Rack(name="r2", parent="row"),
        Rack(name="r3"),
    ),
    partitions=(Partition(name="other"),),
)
ELASTIC = Profile(
    name="elastic",
    throughput={"A": Parametric(alpha_c_s=0.1, beta_c_s=0.01, alpha_r_s=0.4, alpha_n_s=0.7)},
    power={"A": PowerCurve(a_w=40, b_w=160)},
    base_batch=40,
    batches=(40, 80),
)
RIGID = Profile(
    name="rigid", throughput={"A": Rigid(), "Z": Rigid()}, power={"A": PowerCurve(a_w=60)}
)
INSTANCE = Instance(
    name="hand",
    cluster=CLUSTER,
    profiles={"elastic": ELASTIC, "rigid": RIGID},
    curves={
        "noise": NoiseCurve(until=(500, 10_000), batches=(40, 80), scale=((40, 40), (120, 120)))
    },
    jobs=(
        Job(
            id="fixed",
            submit_s=0,
            profile="rigid",
            gpus=2,
            preemptible=False,
            truth=Truth(work=100),
        ),
        Job(
            id="moved",
            submit_s=10,
            profile="elastic",
            max_gpus=2,
            truth=Truth(work=900, curve="noise"),
        ),
        Job(id="short", submit_s=100, profile="rigid", truth=Truth(work=5)),
    ),
    costs=Costs(start_s=5, restart_s=7),
    budget=Budget(
        power_cap_w=StepSeries(times_s=(0, 57, 70), values=(535, 840, 460)),
        energy=EnergyBudget(joules=425_000, horizon_s=1000, credit_j=3505),
    ),
)


# fixed: two GPUs, 60 W each: 5 s to start, 100 s of work.
FIXED = Segment(
    start_s=0,
    resume_s=5,
    end_s=105,
    done=100,
    option=Option(pool=0, gpus=2, span="node", rate=1, power_w=120),
    placement=((0, 2),),
)


# moved, batch 40 on one GPU: T = 0.1 + 0.4 = 0.5 s, efficiency 1: 80/s for 5 s; 40 + 160 W.
FIRST = Segment(
    start_s=10,
    resume_s=15,
    end_s=20,
    done=400,
    option=Option(pool=0, gpus=1, batch=40, rate=80, power_w=200),
    placement=((1, 1),),
)


# Then batch 80 over two nodes: T = 0.1 + 0.4 + 0.7 = 1.2 s: 80/1.2 samples/s. Node 2 is woken at
# 30 and awake at 50, the restart takes 7 s. Up to 500 samples the efficiency is
# (40 + 40)/(40 + 80) = 2/3: 100/(80/1.2 * 2/3) = 2.25 s; then (120 + 40)/(120 + 80) = 0.8:
# 400/(80/1.2 * 0.8) = 7.5 s; ends at 57 + 9.75.
SECOND = Segment(
    start_s=30,
    resume_s=57,
    end_s=66.75,
    done=500,
    option=Option(pool=0, gpus=2, batch=80, rate=44, power_w=400),
    placement=((1, 1), (2, 1)),
)
SHORT = Segment(
    start_s=105,
    resume_s=110,
    end_s=115,
    done=5,
    option=Option(pool=0, gpus=1, rate=1, power_w=60),
    placement=((0, 1),),
)
SLEEPS = ((2, 0.0, 30.0), (1, 80.0, 115.0))


# Watts from each time on: 0 s 200 + 5 + 4 * 10 = 245; 5 s (fixed) 345; 15 s (moved) 535;
# 20 s 345; 30 s (node 2 wakes) 300 + 120 + 4 * 10 = 460; 57 s 840; 66.75 s 460;
# 80 s (node 1 asleep) 345; 105 s 245; 110 s (short) 295; together 48,830 J, and 37,505 J at 80 s,
# which is just what has accrued by then: 3,505 + 425 * 80.
ENERGY = Energy(
    busy_j=120 * 100 + 200 * 5 + 400 * 9.75 + 60 * 5,  # 17,200
    paused_j=20 * 5 + 10 * 5 + 20 * 27 + 10 * 5,  # 740
    # 690 GPU-seconds in all, 130 of them asleep, 210 + 10 + 73.5 + 10 held.
    idle_gpu_j=10 * (690 - 130 - 303.5),  # 2,565
    host_j=100 * (345 - 65),
    sleep_j=5 * 65,
)


SCHEDULE = Schedule(
    instance="hand",
    fingerprint="",
    policy="by hand",
    jobs=(
        JobOutcome(id="fixed", submit_s=0, end_s=105, segments=(FIXED,)),
        JobOutcome(id="moved", submit_s=10, end_s=66.75, segments=(FIRST, SECOND)),
        JobOutcome(id="short", submit_s=100, end_s=115, segments=(SHORT,)),
    ),
    rounds=tuple(record(t, waiting=1, started=1, solve_s=0.001) for t in (0, 10, 20, 30, 80, 105)),
    sleeps=SLEEPS,
    energy=ENERGY,
    end_s=115,
)


def of(job_id, *segments, end_s=None, **fields):
    """Return the schedule with the history of one job changed."""
    outcomes = {o.id: o for o in SCHEDULE.jobs}
    old = outcomes[job_id]
    end_s = segments[-1].end_s if segments and end_s is None else end_s
    changed = replace(
        old,
        segments=segments or old.segments,
        **({} if end_s is None else {"end_s": end_s}),
        **fields,
    )
    return replace(SCHEDULE, jobs=tuple((outcomes | {job_id: changed}).values()))


def metered(schedule, instance=INSTANCE, **fields):
    """Return a schedule that claims its true energy."""
    changed = replace(schedule, **fields)
    flat, _ = with_off_times(flatten(instance, changed), instance.faults, changed.end_s)
    exact = energy(flat, CLUSTER.topology, changed.end_s)
    return replace(changed, energy=exact)
