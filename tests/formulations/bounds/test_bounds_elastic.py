"""Clairvoyant bounds: below every run of elastic jobs, whatever it does."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.formulations.bounds.clairvoyant import bounds
from ronda.instances.budget import Budget, StepSeries
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.instance import Instance
from ronda.instances.job import Job, Truth
from ronda.instances.profile import (
    NoiseCurve,
    Parametric,
    PowerCurve,
    Profile,
    Tabular,
)

SLACK = 1 + 1e-9


def elastic_profiles():
    """Return profiles that scale badly, well, and by a table, with a power curve."""
    power = {"v": PowerCurve(a_w=20, b_w=30, c_w=40, s0=0.6)}
    return {
        "bad": Profile(
            name="bad",
            throughput={"v": Parametric(alpha_c_s=0.1, beta_c_s=0.1, alpha_r_s=1.0, beta_r_s=0.5)},
            power=power,
            base_batch=8,
            batches=(8, 16),
        ),
        "good": Profile(
            name="good",
            throughput={"v": Parametric(alpha_c_s=0.01, beta_c_s=0.2, alpha_r_s=0.02)},
            power=power,
            base_batch=8,
            batches=(8, 16, 32),
        ),
        "table": Profile(
            name="table",
            throughput={
                "v": Tabular(
                    gpus=(1, 2, 4),
                    nodes=(1, 1, 1),
                    local_batch=(8.0, 4.0, 2.0),
                    step_s=(8.0, 5.0, 4.0),
                    sync_s=(0.0, 1.0, 2.0),
                )
            },
            base_batch=8,
        ),
    }


CURVE = NoiseCurve(until=(30, 60, 100), batches=(8, 32), scale=((1, 4), (8, 30), (100, 300)))


@st.composite
def elastic_instances(draw):
    """Draw up to five elastic jobs, some with a noise curve, perhaps a power cap, on 4-8 GPUs."""
    jobs = []
    for k in range(draw(st.integers(1, 5))):
        profile = draw(st.sampled_from(["bad", "good", "table"]))
        low = draw(st.integers(1, 2))
        jobs.append(
            Job(
                id=f"j{k}",
                submit_s=draw(st.integers(0, 60)),
                profile=profile,
                gpus=low,
                min_gpus=low,
                max_gpus=4,
                truth=Truth(
                    work=draw(st.integers(1, 200)),
                    curve="c" if profile != "table" and draw(st.booleans()) else None,
                ),
            )
        )
    gpu_type = GpuType(name="v", memory_gib=16, idle_w=10, clocks=(0.5, 1.0))
    nodes = draw(st.integers(1, 2))
    group = NodeGroup(name="n", count=nodes, gpus_per_node=4, gpu_type="v", host_idle_w=7)
    watts = draw(st.none() | st.integers(120, 400))  # beyond idling
    cap = None
    if watts is not None:
        cap = StepSeries(times_s=(0, 50), values=(nodes * 47 + watts, nodes * 47 + watts + 30))
    return Instance(
        name="elastic",
        cluster=Cluster(gpu_types=(gpu_type,), node_groups=(group,)),
        profiles=elastic_profiles(),
        curves={"c": CURVE},
        jobs=tuple(sorted(jobs, key=lambda job: job.submit_s)),
        budget=Budget(power_cap_w=cap),
    )


def random_run(instance, rng):
    """Run jobs with random allocations that change freely; return their ends and the joules.

    True rates and powers are worked out again from the profiles' docstrings: no code is shared
    with the bound. Nodes stay awake.
    """
    idle_w = instance.cluster.topology.idle_w
    cap = instance.budget.power_cap_w
    done = {job.id: 0.0 for job in instance.jobs}
    ends, joules = {}, 0.0
    now, tick = 0.0, float(rng.choice([1.0, 2.5, 10.0]))
    while len(ends) < len(done):
        free = instance.cluster.gpus
        watts = np.inf if cap is None else cap.at(now) - idle_w
        live = [j for j in instance.jobs if j.submit_s <= now and j.id not in ends]
        rng.shuffle(live)
        for job in live:
            profile = instance.profiles[job.profile]
            n, clock = int(rng.choice([1, 2, 4])), float(rng.choice([0.5, 1.0]))
            batch = float(rng.choice(profile.batches or (8.0,)))
            extra_w = n * (busy_w(profile, clock) - 10.0)
            if not job.min_gpus <= n <= free or extra_w > watts or rng.random() < 0.1:
                continue
            free, watts = free - n, watts - extra_w
            left = advance(job, profile, (n, batch, clock), done, tick)
            if left is not None:
                ends[job.id] = now + tick - left
            joules += extra_w * (tick - (left or 0.0))
        now += tick
    found = np.array([ends[job.id] for job in instance.jobs])
    return found, joules + idle_w * found.max()


def advance(job, profile, way, done, seconds):
    """Let a job progress, stage by stage; return the seconds left over if it completes."""
    samples_per_s = way[1] / step_s(profile.throughput["v"], *way)
    while seconds > 0:
        target, speed = job.truth.work, samples_per_s
        if job.truth.curve:
            stage = sum(done[job.id] >= until for until in CURVE.until[:-1])
            scale = np.interp(way[1], CURVE.batches, CURVE.scale[stage])
            speed *= (scale + 8) / (scale + way[1])
            target = min(target, (*CURVE.until[:-1], np.inf)[stage])
        needed = (target - done[job.id]) / speed
        if needed > seconds:
            done[job.id] += speed * seconds
            return None
        done[job.id] = target
        seconds -= needed
        if target == job.truth.work:
            return seconds
    return None


def step_s(model, n, batch, clock):
    """Return the seconds of a step on one node, without accumulation; phi is 1."""
    if isinstance(model, Tabular):
        step, sync = {1: (8.0, 0.0), 2: (5.0, 1.0), 4: (4.0, 2.0)}[n]
        return (step - sync) / clock + sync
    compute = (model.alpha_c_s + model.beta_c_s * batch / n) / clock
    return compute + (model.alpha_r_s + model.beta_r_s * (n - 2) if n > 1 else 0.0)


def busy_w(profile, clock):
    """Return the watts of a busy GPU: a + b min(s, s0) + c max(s^3 - s0^3, 0)."""
    if not profile.power:
        return 10.0
    return 20 + 30 * min(clock, 0.6) + 40 * max(clock**3 - 0.6**3, 0)


@given(elastic_instances(), st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_never_above_random_elastic_runs(instance, seed):
    """Mean JCT, end and energy of runs that change allocations freely are not below the bounds.

    Nor are they below the bounds for schedules that may put nodes to sleep, as they need not.
    """
    submitted = np.array([job.submit_s for job in instance.jobs])
    ends, joules = random_run(instance, np.random.default_rng(seed))
    for may_sleep in (False, True):
        found = bounds(instance, may_sleep=may_sleep)
        assert found.mean_jct_s <= (ends - submitted).mean() * SLACK
        assert found.end_s <= ends.max() * SLACK
        assert found.energy_j <= joules * SLACK


@given(elastic_instances())
@settings(max_examples=12, deadline=None)
def test_more_jobs_and_less_room_never_lower_the_end(instance):
    """Dropping the last job, or adding a node, never raises the bound on the end."""
    found = bounds(instance, priced=False)
    group = instance.cluster.node_groups[0]
    more = Cluster(
        gpu_types=instance.cluster.gpu_types,
        node_groups=(NodeGroup(name="n", count=group.count + 1, gpus_per_node=4, gpu_type="v"),),
    )
    wider = Instance(
        name="wider",
        cluster=more,
        profiles=instance.profiles,
        curves=instance.curves,
        jobs=instance.jobs,
    )
    assert bounds(wider, priced=False).end_s <= found.end_s * SLACK
    assert bounds(wider, priced=False).mean_jct_s <= found.mean_jct_s * SLACK
