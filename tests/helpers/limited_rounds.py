"""Random rounds of a few jobs that many limits couple: racks, nodes that sleep, banked energy."""

import msgspec
import numpy as np

from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.job import Allocation, Costs, Estimate, Job, JobState, Option
from ronda.instances.profile import NoiseScale, Parametric, PowerCurve, Profile, Rigid
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate

NOW_S = 1000.0
TYPES = ("X", "Y")


def limited_round(seed):
    """Return a random round of 3 to 5 jobs on 2 or 3 nodes, of one or two types of GPU.

    Two racks, one of them below a pod; often a cap on the cluster, a rack or the pod, an energy
    budget of which some is banked, nodes that sleep or still wake, GPUs out of service, and a job
    that must go on. What runs keeps the limits, mostly.
    """
    rng = np.random.default_rng([seed, 21])
    cluster, profiles = _cluster(rng), {name: _profile(rng, name) for name in ("e", "f", "rigid")}
    there = tuple({pool.gpu_type.name: None for pool in cluster.topology.pools})
    jobs = [_job(rng, k, profiles, there) for k in range(int(rng.integers(3, 6)))]
    states = _started(rng, jobs, cluster)
    used = {s.allocation.placement[0][0] for s in states if s.allocation is not None}
    idle = [n for n in range(len(cluster.topology.node_gpus)) if n not in used]
    sleeps, wakes = (0.5, 0.6) if rng.random() < 0.7 else (0.0, 0.0)
    drawn = rng.random(len(idle))
    asleep = tuple(n for n, u in zip(idle, drawn, strict=True) if u < sleeps)
    waking = tuple(n for n, u in zip(idle, drawn, strict=True) if sleeps <= u < wakes)
    round_ = Round(
        name=f"limited-{seed}",
        now_s=NOW_S,
        length_s=60.0,
        cluster=cluster,
        profiles=profiles,
        waiting=tuple(s for s in states if s.allocation is None),
        running=tuple(s for s in states if s.allocation is not None),
        costs=Costs(start_s=5.0, restart_s=float(rng.choice([0.0, 20.0, 60.0]))),
        window_s=float(rng.choice([1800.0, 3600.0])),
        asleep=asleep,
        waking=waking,
    )
    return _limited(rng, _measured(rng, validate(round_)))


def node_watts(round_):
    """Return (N,) what each node draws now, waking ones without what that takes."""
    topology = round_.cluster.topology
    watts = topology.host_idle_w + topology.node_gpus * topology.gpu_idle_w
    watts[list(round_.asleep)] = topology.sleep_w[list(round_.asleep)]
    for state in round_.running:
        option, ((node, gpus),) = state.allocation.option, state.allocation.placement
        watts[node] += option.power_w - gpus * topology.gpu_idle_w[node]
    return watts


def _between(rng, low, high):
    return float(np.round(rng.uniform(low, high), 4))


def _cluster(rng):
    """Return two or three nodes in two racks, one of them below a pod."""
    clocks = [(1.0,), (0.7, 1.0), (0.6, 0.8, 1.0)][rng.integers(3)]
    size, unequal = int(rng.choice([2, 3, 4])), rng.random() < 0.25
    count, mixed = int(rng.integers(2, 4)), rng.random() < 0.6
    wake_s, wake_w = float(rng.choice([0.0, 30.0, 600.0, 5000.0])), float(rng.choice([0, 60, 200]))
    idle_w = {name: float(rng.integers(20, 60)) for name in TYPES}
    groups = []
    for k in range(count):
        gpu_type = str(rng.choice(TYPES)) if mixed else "X"
        gpus = int(rng.choice([2, 4])) if unequal else size
        host_w = float(rng.integers(60, 200))
        sleep_w = host_w + gpus * idle_w[gpu_type] if rng.random() < 0.2 else 10.0
        groups.append(
            NodeGroup(
                name=f"g{k}",
                count=1,
                gpus_per_node=gpus,
                gpu_type=gpu_type,
                rack=f"r{k % 2}",
                host_idle_w=host_w,
                sleep_w=sleep_w,
                wake_s=wake_s,
                wake_w=wake_w,
            )
        )
    node = int(rng.integers(count))
    return Cluster(
        gpu_types=tuple(
            GpuType(name=n, memory_gib=40.0, idle_w=idle_w[n], clocks=clocks) for n in TYPES
        ),
        node_groups=tuple(groups),
        racks=(Rack(name="pod"), Rack(name="r0", parent="pod"), Rack(name="r1")),
        out=((node, 1),) if rng.random() < 0.15 else (),
    )


def _profile(rng, name):
    """Return a rigid application, or one with random constants on both types of GPU."""
    power = {
        t: PowerCurve(
            a_w=_between(rng, 60, 80),
            b_w=_between(rng, 30, 120),
            c_w=_between(rng, 0, 80),
            s0=_between(rng, 0.7, 0.9),
        )
        for t in TYPES
    }
    if name == "rigid":
        return Profile(name=name, throughput={t: Rigid() for t in TYPES}, power=power)
    models = {
        t: Parametric(
            alpha_c_s=_between(rng, 0.005, 0.05),
            beta_c_s=_between(rng, 0.001, 0.01),
            alpha_r_s=_between(rng, 0.005, 0.05),
            beta_r_s=_between(rng, 0.0, 0.005),
            alpha_n_s=_between(rng, 0.05, 0.1),
            beta_n_s=_between(rng, 0.0, 0.005),
            alpha_x_s=_between(rng, 0.1, 0.4),
            beta_x_s=_between(rng, 0.005, 0.01),
            gamma=_between(rng, 1.0, 3.0),
            phi=_between(rng, 0.3, 1.0),
        )
        for t in TYPES
    }
    batches = (32.0, 64.0) if name == "e" else (32.0,)
    return Profile(name=name, throughput=models, power=power, base_batch=32.0, batches=batches)


def _job(rng, k, profiles, there):
    """Return job k, with what it measured of its gradient noise."""
    profile = profiles[str(rng.choice(list(profiles)))]
    rigid, gpus = profile.name == "rigid", int(rng.choice([1, 2]))
    work = float(np.round(rng.lognormal(np.log(4e3 if rigid else 5e5), 1.2), 1))
    job = Job(
        id=f"j{k}",
        submit_s=100.0 * k,
        profile=profile.name,
        gpus=gpus,
        min_gpus=None if rigid else 1,
        max_gpus=None if rigid else int(rng.choice([gpus, 2 * gpus, 4 * gpus])),
        gpu_types=(str(rng.choice(there)),) if rng.random() < 0.3 else (),
        weight=float(rng.integers(1, 4)),
        estimate=None if rng.random() < 0.1 else Estimate(work=work),
    )
    noise = None if rigid else NoiseScale(batches=(32.0,), scale=(_between(rng, 50, 2000),))
    return JobState(job=job, since_s=job.submit_s, noise=noise)


def _started(rng, states, cluster):
    """Start some jobs at their request, each on one node; one of them may have to go on."""
    topology = cluster.topology
    kinds = [topology.pools[p].gpu_type.name for p in topology.node_pool]
    free, must, found = topology.node_gpus.copy(), rng.random() < 0.5, []
    for state in states:
        nodes = [
            n
            for n in range(len(free))
            if free[n] >= state.job.gpus and kinds[n] in (state.job.gpu_types or TYPES)
        ]
        if not nodes or rng.random() < 0.5:
            found.append(state)
            continue
        node = int(rng.choice(nodes))
        free[node] -= state.job.gpus
        pool = int(topology.node_pool[node])
        clocks = topology.pools[pool].gpu_type.clocks
        option = Option(
            pool=pool,
            gpus=state.job.gpus,
            span="node",
            clock=1.0 if state.job.profile == "rigid" else float(rng.choice(clocks)),
            batch=1.0 if state.job.profile == "rigid" else 32.0,
            teardown_s=float(rng.choice([0.0, 0.0, 120.0])),
        )
        found.append(
            msgspec.structs.replace(
                state,
                job=msgspec.structs.replace(state.job, preemptible=not must),
                since_s=NOW_S - 100.0,
                held_s=NOW_S - 100.0,
                started=True,
                allocation=Allocation(option=option, placement=((node, option.gpus),)),
            )
        )
        must = False
    return found


def _measured(rng, round_):
    """Return the round in which what runs was measured to be slower or faster than foreseen."""
    if rng.random() < 0.7:
        return round_
    running = []
    for state in round_.running:
        if state.job.profile != "rigid":
            held = state.allocation
            option = msgspec.structs.replace(
                held.option, rate=held.option.rate * _between(rng, 0.6, 1.5)
            )
            held = msgspec.structs.replace(held, option=option)
            state = msgspec.structs.replace(state, allocation=held)
        running.append(state)
    return msgspec.structs.replace(round_, running=tuple(running))


def _limited(rng, round_):
    """Return the round with limits between what is drawn now, or a little less, and all."""
    cluster, watts = round_.cluster, node_watts(round_)
    topology = cluster.topology

    def limit_w(nodes):
        """Return a limit on the power of some nodes."""
        more_w = 150.0 * float(topology.node_gpus[nodes].sum())
        limit_w = watts[nodes].sum() + rng.uniform(-0.05, 0.7) * more_w
        return float(np.round(max(limit_w, least_w[nodes].sum()), 1)) + 0.1

    every = np.ones(len(watts), dtype=bool)
    least_w = np.minimum(topology.awake_w, topology.sleep_w)
    if rng.random() < 0.6:
        below = {"pod": ("r0",), "r0": ("r0",), "r1": ("r1",)}
        capped = str(rng.choice(list(below)))
        inside = np.isin([topology.racks[r] for r in topology.node_rack], below[capped])
        still = [n for n in round_.waking if inside[n]]
        cap_w = limit_w(inside) + float(topology.waking_w[still].sum())
        racks = tuple(
            msgspec.structs.replace(r, power_cap_w=cap_w) if r.name == capped else r
            for r in cluster.racks
        )
        cluster = msgspec.structs.replace(cluster, racks=racks)
    limits = {"power_cap_w": limit_w(every)} if rng.random() < 0.5 else {}
    if rng.random() < 0.5:
        energy_j = limit_w(every) * round_.window_s
        banked = rng.choice([None, 0.0, 0.1, 0.4, 0.8])
        limits |= {"energy_j": energy_j, "banked_j": None if banked is None else banked * energy_j}
    return msgspec.structs.replace(round_, cluster=cluster, **limits)
