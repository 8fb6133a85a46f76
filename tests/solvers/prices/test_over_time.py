"""Tight bounds over time: never above what can be done, met where paper says so, and certified."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from exact_horizon import least_mean_jct_s
from ronda.formulations.bounds.certificate import (
    check_bound,
    evaluated,
    read_bound,
    write_bound,
)
from ronda.formulations.bounds.clairvoyant import bounds
from ronda.formulations.bounds.least_needs import needs
from ronda.formulations.bounds.resources import shared
from ronda.formulations.bounds.trajectories import Trajectories
from ronda.horizon.driver import run
from ronda.instances.budget import Budget, EnergyBudget, StepSeries
from ronda.instances.check.checker import check
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.errors import InputError
from ronda.instances.files.packaged import load
from ronda.instances.generate import Structure, horizon
from ronda.instances.instance import Instance
from ronda.instances.job import Costs, Job, Truth
from ronda.instances.outcome.metrics import summarise
from ronda.instances.profile import PowerCurve, Profile, Rigid, Tabular
from ronda.solvers.prices.over_time import tighten

SLACK = 1 + 1e-9


def table(two, four):
    """Return the speed of a job that does 1, `two` and `four` units a second on 1, 2 and 4 GPUs."""
    return Tabular(
        gpus=(1, 2, 4),
        nodes=(1, 1, 1),
        local_batch=(8.0, 4.0, 2.0),
        step_s=(8.0, 8 / two, 8 / four),
        sync_s=(0.0, 0.0, 0.0),
    )


def tiny(seed):
    """Return some rigid jobs, or two elastic ones, with pauses, two pools or a power cap."""
    rng = np.random.default_rng(seed)
    elastic, pools, capped = seed % 2 == 0, 1 + seed % 3 // 2, seed % 5 == 0
    types = tuple(GpuType(name=name, memory_gib=16) for name in "vw"[:pools])
    cluster = Cluster(
        gpu_types=types,
        node_groups=tuple(
            NodeGroup(name=t.name, count=1, gpus_per_node=4 // pools, gpu_type=t.name)
            for t in types
        ),
    )
    speeds = {t.name: table(1 + rng.random(), 2 + rng.random()) for t in types}
    power = {t.name: PowerCurve(a_w=100) for t in types}
    rigid = {t.name: Rigid() for t in types}
    costs = Costs(
        start_s=float(rng.integers(0, 3)),
        restart_s=float(rng.choice([0, 0, 1, 2, 4])),
        scale_s=1.0 if seed % 7 == 0 else None,
    )
    count = 2 if elastic else 4 if costs.restart_s + costs.start_s == 0 else 3
    jobs = [
        Job(
            id=f"j{k}",
            submit_s=float(rng.integers(0, 4)),
            profile="elastic" if elastic else "rigid",
            gpus=1 if elastic else min(4 - capped, int(rng.integers(1, 4 // pools + 1))),
            max_gpus=4 // pools if elastic else None,
            truth=Truth(work=float(rng.integers(2, 7))),
            costs=replace(costs, restart_s=costs.restart_s + k) if seed % 4 == 3 else None,
        )
        for k in range(count)
    ]
    cap = StepSeries(times_s=(0,), values=(310,)) if capped else None
    return Instance(
        name="tiny",
        cluster=cluster,
        profiles={
            "elastic": Profile(name="elastic", throughput=speeds, power=power, base_batch=8),
            "rigid": Profile(name="rigid", throughput=rigid, power=power),
        },
        jobs=tuple(sorted(jobs, key=lambda job: job.submit_s)),
        costs=costs,
        budget=Budget(power_cap_w=cap),
    )


@pytest.mark.parametrize("seed", range(6))
def test_never_above_the_best_of_all_schedules(seed):
    """Tiny instances, of which every schedule on whole seconds is tried.

    Quick prices may be better than a search, and the better of both counts.
    """
    instance = tiny(seed)
    least_s, tight_s = least_mean_jct_s(instance), tighten(instance, count=64).mean_jct_s
    found_s = bounds(instance, tight_s=tight_s).mean_jct_s
    assert max(tight_s, bounds(instance).mean_jct_s) == found_s <= least_s * SLACK


@pytest.mark.soak
def test_never_above_the_best_of_all_schedules_of_sixty():
    """The same for sixty, and in half of them the bound is within a tenth of the best."""
    ratios = []
    for seed in range(60):
        instance = tiny(seed)
        ratios.append(tighten(instance, count=64).mean_jct_s / least_mean_jct_s(instance))
        assert ratios[-1] <= SLACK, seed
    assert np.median(ratios) > 0.9


@given(st.integers(0, 10_000), st.booleans())
@settings(max_examples=2, deadline=None)
def test_never_above_checked_runs(seed, pauses):
    """Generated instances with budgets and pauses, under policies whose runs keep all rules."""
    instance = horizon(5, 8, "balanced", seed, Structure(restart_s=200.0 if pauses else 0.0))
    bound_s = tighten(instance, count=48).mean_jct_s
    for policy in ("prices", "milp"):  # with others, jobs may not fit into the budget
        schedule = run(instance, policy, knowledge="oracle")
        assert check(instance, schedule) == []
        assert bound_s <= summarise(instance, schedule)["mean_jct_s"] * SLACK


@pytest.mark.parametrize(
    ("name", "mean_jct_s"), [("one-gpu", 17 / 3), ("two-jobs", 160.0), ("energy-hand", 85.0)]
)
def test_the_optimum_where_it_is_known(name, mean_jct_s):
    """The optima by hand (see the instances' descriptions) are met within 2 %, from below."""
    found_s = tighten(load(name), count=200).mean_jct_s
    assert 0.98 * mean_jct_s <= found_s <= mean_jct_s * SLACK


def test_dearer_restarts_never_lower_the_bound():
    """On the same prices: two jobs on 4 GPUs, each better off on fewer after a while."""
    base, proven = tiny(2), []
    made = tighten(base, count=64)
    for restart_s in (0.0, 1.0, 3.0, 9.0):
        costs = replace(base.costs, start_s=0.0, restart_s=restart_s)
        proven.append(evaluated(replace(base, costs=costs), made))
    assert proven == sorted(proven)
    assert proven[0] < proven[-1]


def test_other_prices_prove_a_bound_as_well():
    """Any prices are valid: they only prove less, and a claim above that is refused."""
    instance, rng = tiny(2), np.random.default_rng(0)
    made, most_s = tighten(instance, count=64), least_mean_jct_s(instance)
    assert check_bound(instance, made) == pytest.approx(made.mean_jct_s)
    for size in (0.1, 1.0, 10.0):
        prices, nu = (
            tuple(tuple(v * size ** rng.normal() for v in row) for row in rows)
            for rows in (made.prices, made.nu)
        )
        other = replace(made, prices=prices, nu=nu)
        proven_s = evaluated(instance, other)
        assert proven_s <= most_s * SLACK
        check_bound(instance, replace(other, mean_jct_s=proven_s))
        with pytest.raises(InputError, match="which it proves"):
            check_bound(instance, replace(other, mean_jct_s=proven_s + 1e-6))


def test_a_certificate_is_of_its_instance_alone(tmp_path):
    """Files keep all; another instance, another shape, and no grid are refused by name."""
    made = tighten(load("two-jobs"), count=32)
    write_bound(made, tmp_path / "b.json.zst")
    assert read_bound(tmp_path / "b.json.zst") == made
    with pytest.raises(InputError, match="one of one-gpu"):
        check_bound(load("one-gpu"), made)
    for wrong, words in (
        ({"nu": made.nu[:1]}, "nu: found another shape"),
        ({"prices": made.prices * 2}, "prices: found another shape"),
        ({"times_s": made.times_s[::-1]}, "times_s: found no grid"),
        ({"times_s": (0.0,)}, "times_s: found no grid"),
    ):
        with pytest.raises(InputError, match=words):
            check_bound(load("two-jobs"), replace(made, **wrong))


def test_energy_that_accrues_keeps_its_price_or_falls():
    """Under an energy budget, prices that rise prove nothing and are refused."""
    energy = EnergyBudget(joules=400.0, horizon_s=1.0)
    instance = replace(tiny(2), budget=Budget(energy=energy))
    made = tighten(instance, count=32)
    check_bound(instance, made)
    rising = tuple(float(k) for k in range(len(made.times_s) - 1))
    with pytest.raises(InputError, match="energy that rises"):
        check_bound(instance, replace(made, prices=(*made.prices[:-1], rising)))


def test_jobs_that_can_share_a_gpu_or_end_at_a_limit_pause_for_free():
    """A restart that costs 50 s changes nothing for arrays, nor for jobs with time limits."""
    for base in (load("sweep-hydro"), replace(tiny(2), jobs=limited(tiny(2).jobs))):
        few = replace(base, jobs=base.jobs[:6])
        made = tighten(few, count=32)
        dear = replace(few, costs=replace(few.costs, restart_s=50.0))
        assert evaluated(dear, made) == evaluated(few, made)


def limited(jobs):
    """Return jobs with a time limit."""
    return tuple(replace(job, limit_s=30.0) for job in jobs)


@pytest.mark.parametrize(("restart_s", "least_s"), [(0.0, 11.0), (1.0, 12.0)])
def test_a_stop_costs_its_restart_and_no_more(restart_s, least_s):
    """A job of 10 s, for which the second from 5 s on costs 4, stops for it.

    It ends after 11 s and its restart; if it ran on, 10 s and a cost of 4 would be more.
    """
    job = Job(id="a", submit_s=0.0, profile="rigid", truth=Truth(work=10.0))
    instance = replace(tiny(1), jobs=(job,), costs=Costs(restart_s=restart_s))
    need = needs(instance)
    times, prices = np.array([0.0, 5.0, 6.0, 12.0, 20.0]), np.array([[0.0, 4.0, 0.0, 0.0]])
    ways = Trajectories(instance, need, shared(instance, need), times)
    found = ways.cheapest(prices, None, np.array([np.inf]))
    assert found.least_s[0] == pytest.approx(least_s, rel=1e-3)
    assert found.end_s[0] + (found.use @ prices.ravel())[0] == pytest.approx(least_s, rel=1e-3)
