"""Probes: instances that ask one question each, with the answer on paper in their description."""

from ronda.instances.budget import Budget, EnergyBudget, StepSeries
from ronda.instances.cluster import (
    Cluster,
    GpuType,
    NodeGroup,
    Partition,
    Rack,
    uniform_cluster,
)
from ronda.instances.instance import Instance
from ronda.instances.job import Costs, Estimate, Job, Truth
from ronda.instances.profile import Parametric, PowerCurve, Profile, Rigid
from tools.recipes.hand import LICENCE, SOURCE, rigid

CAPS = {
    "probe-cap": ((0.0,), (400.0,)),
    "probe-cap-rises": ((0.0, 50.0), (400.0, 600.0)),
    "probe-cap-falls": ((0.0, 50.0), (600.0, 400.0)),
}
"""Name, times and watts of the power caps."""

_CAP = """\
Two jobs of 100 s on one node of two GPUs under a power cap of {words}
Host 100 W, idle GPU 40 W, busy GPU 240 W: 180 W idle, 380 W with one job, 580 W with both. So one
runs below 400 W, and both below 600 W. {then}
Idle power is drawn to the end and each job adds 200 W for 100 s: {joules}. Stopping and starting
is free, and the node draws as much asleep, so nothing is gained by sleep."""

_CAP_WORDS = {
    "probe-cap": (
        "400 W",
        "They run one after the other: JCT 100 and 200 s, mean 150 s.",
        "180 W x 200 s + 40,000 J = 76,000 J",
    ),
    "probe-cap-rises": (
        "400 W, from 50 s on 600 W",
        "One runs 0-100, the other 50-150: mean 125 s.",
        "180 W x 150 s + 40,000 J = 67,000 J",
    ),
    "probe-cap-falls": (
        "600 W, from 50 s on 400 W",
        "Both run until 50 s, one of them goes on to 100 s, the other 100-150: mean 125 s.",
        "180 W x 150 s + 40,000 J = 67,000 J",
    ),
}

_WINDOW = """\
Two jobs of 100 W and 60 s each, 50 W that accrue, and 100 s in which nothing is spent
One node that draws nothing idle. A comes at 100 s, B at 160 s; the window is 60 s long. At 100 s
5,000 J are banked. A needs 6,000 J by 160 s, when 8,000 J will have accrued: it runs 100-160. Then
2,000 J are left, and B needs 6,000 J in 60 s, in which 3,000 J accrue: it starts once 3,000 J are
banked, at 180 s, and runs 180-240. JCT 60 and 80 s, mean 70 s. Nothing is faster: by 240 s 12,000 J
have accrued, which is what both need."""

_WAKE = """\
Two jobs on two nodes of which the power cap bears one awake: sleep, and the delay of waking
Each node stands in a partition of its own, with one job: A in p at 0 s, B in q at 100 s, 60 s each.
Host 100 W, idle GPU 20 W, busy GPU 200 W, asleep 10 W, cap 360 W. While A runs (300 W) the node of
q must sleep (10 W; idle it would draw 120 W): A runs 0-60. At 60 s no job is live and nothing is
decided. At 100 s node q is woken for B: 30 s at 120 + 40 W, then 300 W (a plan counts both, 340 W);
so the node of p must sleep. B runs 130-190. JCT 60 and 90 s, mean 75 s. Energy: p 300 W x 60 s +
120 W x 40 s + 10 W x 90 s = 23,700 J; q 10 W x 100 s + 160 W x 30 s + 300 W x 60 s = 23,800 J;
together 47,500 J."""

_RESTART = """\
A long job runs, a short one comes, and the one that stops pays for its restart
One node of two GPUs. A: at 0 s, 2 GPUs, 200 s. B: at 100 s, 2 GPUs, 2 s. A restart takes 200 s.
If B waits, A ends at 200 s and B at 202 s: JCT 200 and 102 s, mean 151 s. If A is stopped for B, B
ends at 102 s, and A goes on after 200 s of restart, 302-402: mean (402 + 2)/2 = 202 s. There is
nothing in between, so 151 s is best."""

_RACKS = """\
A job of two GPUs across racks: all that there is, at the speed that racks leave it
Two racks with a node of one GPU each. Training takes 1 s of computing a step on two GPUs (batch 2),
synchronisation 0.4 s more across racks, 0 within one. A: at 0 s, 200 samples on two GPUs, which are
100 steps of 1.4 s: it runs 0-140. B: at 0 s, 1 GPU, 10 samples at 1 s each, alone on a GPU. A needs
both racks, so one waits for the other: B first gives JCT 10 and 150 s, mean 80 s; A first 140 and
150 s, mean 145 s. Of those that B runs first none is faster: 80 s is best."""


def cap(name: str) -> Instance:
    """Return two jobs under a power cap of `CAPS`."""
    words, then, joules = _CAP_WORDS[name]
    gpu = GpuType(name="GPU", memory_gib=16.0, idle_w=40.0)
    times_s, watts = CAPS[name]
    cluster = uniform_cluster(gpu, 1, 2, host_idle_w=100.0, sleep_w=180.0)
    best = {"mean_jct_s": 150.0, "energy_j": 76_000.0}
    if name != "probe-cap":
        best = {"mean_jct_s": 125.0, "energy_j": 67_000.0}
    return _probe(
        name,
        _CAP.format(words=words, then=then, joules=joules),
        best,
        cluster,
        (rigid("A", 0.0, 1, 100.0), rigid("B", 0.0, 1, 100.0)),
        240.0,
        budget=Budget(power_cap_w=StepSeries(times_s=times_s, values=watts)),
    )


def window() -> Instance:
    """Return two jobs that need what has been saved."""
    gpu = GpuType(name="GPU", memory_gib=16.0)
    energy = EnergyBudget(joules=50_000.0, horizon_s=1000.0, window_s=60.0)
    return _probe(
        "probe-window",
        _WINDOW,
        {"mean_jct_s": 70.0, "energy_j": 12_000.0},
        uniform_cluster(gpu, 1, 1),
        (rigid("A", 100.0, 1, 60.0), rigid("B", 160.0, 1, 60.0)),
        100.0,
        budget=Budget(energy=energy),
    )


def wake() -> Instance:
    """Return two jobs whose nodes cannot be awake together."""
    gpu = GpuType(name="GPU", memory_gib=16.0, idle_w=20.0)
    nodes = tuple(
        NodeGroup(
            name=part,
            count=1,
            gpus_per_node=1,
            gpu_type="GPU",
            partition=part,
            host_idle_w=100.0,
            sleep_w=10.0,
            wake_s=30.0,
            wake_w=40.0,
        )
        for part in "pq"
    )
    partitions = tuple(Partition(name=part) for part in "pq")
    jobs = (rigid("A", 0.0, 1, 60.0, "p"), rigid("B", 100.0, 1, 60.0, "q"))
    return _probe(
        "probe-wake",
        _WAKE,
        {"mean_jct_s": 75.0, "energy_j": 47_500.0},
        Cluster(gpu_types=(gpu,), node_groups=nodes, partitions=partitions),
        jobs,
        200.0,
        budget=Budget(power_cap_w=StepSeries(times_s=(0.0,), values=(360.0,))),
    )


def restart() -> Instance:
    """Return a job that is better not stopped."""
    return _probe(
        "probe-restart",
        _RESTART,
        {"mean_jct_s": 151.0},
        uniform_cluster(GpuType(name="GPU", memory_gib=16.0), 1, 2),
        (rigid("A", 0.0, 2, 200.0), rigid("B", 100.0, 2, 2.0)),
        0.0,
        costs=Costs(restart_s=200.0),
    )


def racks() -> Instance:
    """Return a job that must cross racks."""
    gpu = GpuType(name="GPU", memory_gib=16.0)
    names = ("r0", "r1")
    nodes = tuple(
        NodeGroup(name=f"n{k}", count=1, gpus_per_node=1, gpu_type="GPU", rack=rack)
        for k, rack in enumerate(names)
    )
    model = Parametric(alpha_c_s=0.0, beta_c_s=1.0, alpha_r_s=0.0, alpha_n_s=0.0, alpha_x_s=0.4)
    jobs = tuple(
        Job(
            id=name,
            submit_s=0.0,
            profile=f"on-{gpus}",
            gpus=gpus,
            min_gpus=gpus,
            max_gpus=gpus,
            estimate=Estimate(work=work),
            truth=Truth(work=work),
        )
        for name, gpus, work in (("A", 2, 200.0), ("B", 1, 10.0))
    )
    return Instance(
        name="probe-racks",
        cluster=Cluster(
            gpu_types=(gpu,), node_groups=nodes, racks=tuple(Rack(name=r) for r in names)
        ),
        profiles={
            f"on-{n}": Profile(name=f"on-{n}", throughput={"GPU": model}, base_batch=float(n))
            for n in (1, 2)
        },
        jobs=jobs,
        description=_RACKS,
        source=SOURCE,
        licence=LICENCE,
        reference={"optimum": {"mean_jct_s": 80.0}},
    )


def _probe(
    name: str,
    description: str,
    best: dict[str, float],
    cluster: Cluster,
    jobs: tuple[Job, ...],
    busy_w: float,
    *,
    budget: Budget | None = None,
    costs: Costs | None = None,
) -> Instance:
    """Return an instance of rigid jobs whose GPUs draw `busy_w` each."""
    power = {"GPU": PowerCurve(a_w=busy_w)} if busy_w else {}
    return Instance(
        name=name,
        cluster=cluster,
        profiles={"rigid": Profile(name="rigid", throughput={"GPU": Rigid()}, power=power)},
        jobs=jobs,
        budget=budget or Budget(),
        costs=costs or Costs(),
        description=description,
        source=SOURCE,
        licence=LICENCE,
        reference={"optimum": best},
    )
