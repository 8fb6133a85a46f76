"""Clairvoyant bounds: equal to the optimum where paper says so, and below every schedule tried."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ronda.formulations.bounds.clairvoyant import bounds
from ronda.horizon.driver import run
from ronda.instances.budget import Budget, EnergyBudget, StepSeries
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Partition
from ronda.instances.errors import InputError
from ronda.instances.files.packaged import load
from ronda.instances.instance import Instance
from ronda.instances.job import After, Costs, Job, Truth
from ronda.instances.outcome.metrics import summarise
from ronda.instances.profile import (
    NoiseCurve,
    Parametric,
    PowerCurve,
    Profile,
    Rigid,
    Tabular,
)
from ronda.instances.site import Site

SLACK = 1 + 1e-9


def room(gpus=4, nodes=1, **kwargs):
    """Return a cluster of equal nodes in one pool."""
    group = NodeGroup(name="n", count=nodes, gpus_per_node=gpus, gpu_type="v", **kwargs)
    return Cluster(gpu_types=(GpuType(name="v", memory_gib=16, idle_w=10),), node_groups=(group,))


def rigid_instance(jobs, cluster=None, watts=0.0, **kwargs):
    """Return an instance of rigid jobs given as (submit, GPUs, seconds)."""
    power = {"v": PowerCurve(a_w=watts)} if watts else {}
    return Instance(
        name="tiny",
        cluster=cluster or room(),
        profiles={"rigid": Profile(name="rigid", throughput={"v": Rigid()}, power=power)},
        jobs=tuple(
            Job(id=f"j{k}", submit_s=submit, profile="rigid", gpus=g, truth=Truth(work=seconds))
            for k, (submit, g, seconds) in enumerate(jobs)
        ),
        **kwargs,
    )


# -- time limits and order ------------------------------------------------------------------------


def limited(instance, *limits, **fields):
    """Return the instance with time limits, and other fields of its last job."""
    jobs = [replace(j, limit_s=s) for j, s in zip(instance.jobs, limits, strict=True)]
    return replace(instance, jobs=(*jobs[:-1], replace(jobs[-1], **fields)))


def test_work_beyond_a_limit_is_not_owed():
    """On 4 GPUs: 4 for 100 s, and 2 for 60 of 500 s; without an end at the limit all of it."""
    whole = rigid_instance([(0, 4, 100), (0, 2, 500)])
    found = bounds(limited(whole, None, 60.0))
    # The machine does 120 GPU-seconds, and then 400: it ends them after 30 s and 130 s.
    assert found.alone_jct_s == 80.0
    assert found.counting_jct_s == pytest.approx((60 + 130) / 2)
    lenient = replace(limited(whole, None, 60.0), site=Site(kills_at_limit=False))
    assert bounds(lenient) == bounds(whole)


def test_a_first_pause_counts_towards_a_limit():
    """A job of 100 s that pauses for 50 s first is ended at its limit of 60 s, after 60 s."""
    paused = rigid_instance([(0, 4, 100)], costs=Costs(start_s=50.0))
    found = bounds(limited(paused, 60.0))
    assert found.mean_jct_s == pytest.approx(60.0)


@pytest.mark.parametrize("watts", [0.0, 60.0])
def test_no_schedule_with_limits_and_order_is_below_the_bounds(watts):
    """Jobs that their limits end, one that pauses until then, and two of which one never runs."""
    jobs = [(0, 2, 100), (0, 1, 40), (5, 4, 300), (9, 1, 20), (9, 1, 20)]
    whole = rigid_instance(jobs, watts=watts, costs=Costs(start_s=50.0))
    after = (After(job="j2", when="ok"),)
    given = limited(whole, 120.0, 45.0, 100.0, None, None, after=after)
    for policy in ("fifo", "srtf", "prices"):
        schedule = run(given, policy)
        figures, found = summarise(given, schedule), bounds(given)
        assert schedule.jobs[-1].state == "dependency failed"
        assert found.mean_jct_s <= figures["mean_jct_s"] * SLACK
        assert found.energy_j <= figures["energy_j"] * SLACK
        assert found.end_s <= schedule.end_s * SLACK
    assert found.priced_jct_s > 0


# -- by hand --------------------------------------------------------------------------------------


def test_one_gpu_is_srpt():
    """On one GPU the bound is the optimum: JCT 13, 2 and 2 s (see the instance's description)."""
    found = bounds(load("one-gpu"))
    assert found.mean_jct_s == pytest.approx(17 / 3)
    assert found.alone_jct_s == pytest.approx(13 / 3)
    assert found.makespan_s == pytest.approx(13)


def test_two_elastic_jobs_cannot_be_fast_and_frugal():
    """The priced bound finds the optimum, 160 s, where the others see 140 s (80 and 200 alone)."""
    found = bounds(load("two-jobs"))
    assert found.alone_jct_s == pytest.approx(140)
    assert found.counting_jct_s == pytest.approx(140)
    assert 159 < found.priced_jct_s <= 160 * SLACK


def test_two_elastic_jobs_of_any_kind_come_close_to_their_optimum():
    """Optimum of two jobs on 4 GPUs: the best pair of GPU counts until one ends, then all GPUs.

    With a first and b beside it the sum of JCTs is 2 t + (w_b - r_b t) / r_max, t = w_a / r_a:
    linear in how a's work is split over pairs, so one pair for all of it is best.
    """
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(15):
        two, four = np.sort(rng.uniform(1, 6, 2))  # speed on 2 and on 4 GPUs, 1 on one
        table = Tabular(
            gpus=(1, 2, 4),
            nodes=(1, 1, 1),
            local_batch=(8.0, 4.0, 2.0),
            step_s=(8.0, 8 / two, 8 / four),
            sync_s=(0.0, 0.0, 0.0),
        )
        work = rng.integers(20, 500, 2)
        instance = Instance(
            name="two",
            cluster=room(),
            profiles={"p": Profile(name="p", throughput={"v": table}, base_batch=8)},
            jobs=tuple(
                Job(id=f"j{k}", submit_s=0, profile="p", max_gpus=4, truth=Truth(work=int(w)))
                for k, w in enumerate(work)
            ),
        )
        speed, sums = {0: 0.0, 1: 1.0, 2: two, 4: four}, []
        for a, b in ((0, 1), (1, 0)):
            for n, m in ((1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2), (4, 0)):
                t = work[a] / speed[n]
                if speed[m] * t <= work[b]:
                    sums.append(2 * t + (work[b] - speed[m] * t) / four)
        ratios.append(2 * bounds(instance).mean_jct_s / min(sums))
    assert max(ratios) <= SLACK
    assert np.median(ratios) > 0.98


def test_energy_without_sleep_is_exact():
    """With all nodes awake the instance's 102,800 J are also the least possible."""
    instance = load("energy-hand")
    assert bounds(instance, may_sleep=False).energy_j == pytest.approx(102_800)


def test_energy_with_sleep_counts_hosts_only_while_they_are_needed():
    """Both nodes asleep but for the GPU-seconds that jobs hold.

    Floor 2 × 10 W × 260 s = 5,200 J. A GPU in use adds (140 − 10)/2 = 65 W of its node beside
    being idle, a busy one 100 W more: (100 + 50) s × 2 × 165 W = 49,500 J; two pauses of 10 s on
    2 GPUs at 65 W: 2,600 J. Together 57,300 J, below the 69,000 J of a schedule on one node.
    """
    assert bounds(load("energy-hand")).energy_j == pytest.approx(57_300)


def test_partitions_are_separate_machines():
    """Two jobs of 10 s in a partition of one GPU take 10 and 20 s, whatever is free elsewhere."""
    groups = tuple(
        NodeGroup(name=p, count=1, gpus_per_node=g, gpu_type="v", partition=p)
        for p, g in (("small", 1), ("large", 9))
    )
    cluster = Cluster(
        gpu_types=(GpuType(name="v", memory_gib=16),),
        node_groups=groups,
        partitions=(Partition(name="small"), Partition(name="large")),
    )
    instance = Instance(
        name="two",
        cluster=cluster,
        profiles={"rigid": Profile(name="rigid", throughput={"v": Rigid()})},
        jobs=tuple(
            Job(id=j, submit_s=0, profile="rigid", partition="small", truth=Truth(work=10))
            for j in "ab"
        ),
    )
    assert bounds(instance).mean_jct_s == pytest.approx(15)
    assert bounds(instance).end_s == pytest.approx(20)


def test_first_pauses_count_and_hold_gpus():
    """Two jobs of 4 GPUs and 10 s with a start of 5 s on 4 GPUs end at 15 and 30 s."""
    instance = rigid_instance([(0, 4, 10), (0, 4, 10)], costs=Costs(start_s=5))
    assert bounds(instance).mean_jct_s == pytest.approx((15 + 30) / 2)


def test_power_cap_delays():
    """Each job adds 100 W to a cluster that idles at 40 W; under 140 W they run one by one.

    A GPU idles at 10 W (four: 40 W); a busy one draws 60 W, so 2 GPUs add 100 W. Asleep the node
    draws nothing, so it can do better if it may sleep: 140 W less a host of 0 W.
    """
    cap = Budget(power_cap_w=StepSeries(times_s=(0,), values=(140,)))
    instance = rigid_instance([(0, 2, 10), (0, 2, 10)], watts=60.0, budget=cap)
    awake = bounds(instance, may_sleep=False)
    assert awake.mean_jct_s == pytest.approx(15)
    assert bounds(instance).mean_jct_s < awake.mean_jct_s
    assert bounds(rigid_instance([(0, 2, 10), (0, 2, 10)])).mean_jct_s == pytest.approx(10)


def test_energy_budget_delays():
    """A job needs 2 × 50 W × 10 s = 1,000 J beside idling; 10 W of them accrue: 100 and 200 s."""
    energy = EnergyBudget(joules=5000, horizon_s=100)  # 50 W, 40 W of them for idling
    instance = rigid_instance([(0, 2, 10), (0, 2, 10)], watts=60.0, budget=Budget(energy=energy))
    assert bounds(instance, may_sleep=False).mean_jct_s == pytest.approx(150)


def test_too_little_power_is_refused():
    """A cap at the idle power lets no job run: a one-line error instead of an infinite bound."""
    cap = Budget(power_cap_w=StepSeries(times_s=(0,), values=(40,)))
    with pytest.raises(InputError, match="budget"):
        bounds(rigid_instance([(0, 2, 10)], watts=60.0, budget=cap), may_sleep=False)


def test_a_job_that_nothing_can_run_is_refused():
    """A rigid job of 9 GPUs on a cluster of 4."""
    with pytest.raises(InputError, match="j0"):
        bounds(rigid_instance([(0, 9, 10)]))


def test_stages_take_the_best_configuration_each():
    """Two stages: batch 8 is worth all its samples only in the second, where the scale is large.

    A step takes 1 s + 0.5 s per sample: batch 4 does 4/3 samples/s, batch 8 does 8/5. With the
    base batch 4 and noise scale 0 a sample in a batch of 8 is worth 4/8: 0.8 against 4/3. With an
    endless scale it is worth 1: 1.6. 40 units at 4/3 and 80 at 1.6: 30 + 50 = 80 s.
    """
    profile = Profile(
        name="p",
        throughput={"v": Parametric(alpha_c_s=1.0, beta_c_s=0.5)},
        base_batch=4,
        batches=(4, 8),
    )
    curve = NoiseCurve(until=(40, 100), batches=(4, 8), scale=((0, 0), (1e15, 1e15)))
    instance = Instance(
        name="stages",
        cluster=room(1),
        profiles={"p": profile},
        curves={"c": curve},
        jobs=(Job(id="a", submit_s=0, profile="p", truth=Truth(work=120, curve="c")),),
    )
    assert bounds(instance).mean_jct_s == pytest.approx(80)


# -- below every schedule -------------------------------------------------------------------------


RIGID_JOBS = st.lists(
    st.tuples(st.integers(0, 20), st.sampled_from([1, 1, 2, 3, 4]), st.integers(1, 20)),
    min_size=1,
    max_size=5,
)


def list_schedule(jobs, order, gpus, fits):
    """Start jobs at the first moment when GPUs and `fits` allow, in a strict order of starts."""
    starts, ends = {}, {}
    now = 0.0
    for j in order:
        now = max(now, jobs[j][0])
        moments = sorted({now, *(end for end in ends.values() if end > now)})
        for moment in moments:
            running = [k for k in starts if starts[k] <= moment < ends[k]]
            free = gpus - sum(jobs[k][1] for k in running)
            if free >= jobs[j][1] and fits([*running, j]):
                now = moment
                break
        starts[j], ends[j] = now, now + jobs[j][2]
    return np.array([ends[j] for j in range(len(jobs))])


@given(RIGID_JOBS, st.booleans())
@settings(max_examples=20)
def test_never_above_any_list_schedule_of_rigid_jobs(jobs, capped):
    """All orders of up to five jobs, with or without a cap of power for three busy GPUs.

    Nodes stay awake: 4 × 10 W idle; a busy GPU draws 60 W, 50 W more; three of them 190 W in all.
    """
    jobs = sorted((s, min(g, 3) if capped else g, w) for s, g, w in jobs)
    budget = Budget(power_cap_w=StepSeries(times_s=(0,), values=(190,))) if capped else Budget()
    instance = rigid_instance(jobs, watts=60.0, budget=budget)
    found = bounds(instance, may_sleep=False)
    submitted = np.array([j[0] for j in jobs])
    for order in permutations(range(len(jobs))):
        ends = list_schedule(
            jobs, order, 4, lambda some: not capped or sum(jobs[k][1] for k in some) <= 3
        )
        assert found.mean_jct_s <= (ends - submitted).mean() * SLACK
        assert found.end_s <= ends.max() * SLACK
        busy = sum(g * w for _, g, w in jobs) * 50.0
        assert found.energy_j <= (40 * ends.max() + busy) * SLACK


@given(
    RIGID_JOBS,
    st.floats(41, 300),
    st.floats(0, 3000),
)
@settings(max_examples=20)
def test_never_above_schedules_within_an_energy_budget(jobs, sustained_w, credit_j):
    """One job at a time, each delayed until its energy will have accrued when it ends."""
    jobs = sorted(jobs)
    energy = EnergyBudget(joules=sustained_w * 100, horizon_s=100, credit_j=credit_j)
    instance = rigid_instance(jobs, watts=60.0, budget=Budget(energy=energy))
    found = bounds(instance, may_sleep=False)
    for order in permutations(range(len(jobs))):
        now, used, total = 0.0, 0.0, 0.0
        for j in order:
            submit, gpus, seconds = jobs[j]
            used += gpus * 50.0 * seconds
            # credit + (sustained − idle) × end >= used, with the cluster idling at 40 W
            funded = (used - credit_j) / (sustained_w - 40.0)
            now = max(now + seconds, submit + seconds, funded)
            total += now - submit
        assert found.mean_jct_s <= total / len(jobs) * SLACK


@pytest.mark.parametrize("name", ["venus-vcvgl", "venus-vcvly"])
def test_below_the_published_simulator(name):
    """Packaged reference results (Helios artifact, SC'21) are all above the bound."""
    instance = load(name)
    found = bounds(instance)
    results = [figures["mean_jct_s"] for figures in instance.reference.values()]
    assert results
    assert found.alone_jct_s <= found.mean_jct_s <= min(results)
