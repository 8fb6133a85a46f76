"""The greedy fill and the dual bound against brute force, by hand and by invariants."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from scipy.optimize import linprog

from by_fill import allocate_by_fill, unit_prices
from ronda.formulations.objectives.by_name import values
from ronda.formulations.options.build import build
from ronda.formulations.options.table import OptionTable
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.job import Allocation, Estimate, Job, JobState, Option
from ronda.instances.profile import Parametric, PowerCurve, Profile, rigid_profile
from ronda.instances.round import Round

IDLE_W = 20.0
RIGID = {"rigid": rigid_profile("G0")}


def cluster(*pools, host_w=0.0, sleep_w=None):
    """Return a cluster with one pool for each (nodes, GPUs per node); nodes sleep at `sleep_w`."""
    types = tuple(
        GpuType(name=f"G{i}", memory_gib=16, idle_w=IDLE_W, clocks=(0.5, 1.0))
        for i in range(len(pools))
    )
    groups = tuple(
        NodeGroup(
            name=f"g{i}",
            count=nodes,
            gpus_per_node=gpus,
            gpu_type=f"G{i}",
            host_idle_w=host_w,
            sleep_w=host_w + gpus * IDLE_W if sleep_w is None else sleep_w,
        )
        for i, (nodes, gpus) in enumerate(pools)
    )
    return Cluster(gpu_types=types, node_groups=groups)


def case(on, jobs, **limits):
    """Return round, table and values of jobs given as lists of (pool, gpus, watts, value)."""
    states = tuple(
        JobState(job=Job(id=f"j{j}", submit_s=0.0, profile="rigid"), since_s=0.0)
        for j in range(len(jobs))
    )
    round = Round(cluster=on, profiles=RIGID, waiting=states, **limits)
    rows = [(j, *row) for j, own in enumerate(jobs) for row in own]
    owner, pool, gpus, watts, worth = (
        np.array(column) for column in (zip(*rows, strict=True) if rows else [[]] * 5)
    )
    ones = np.ones(len(rows))
    table = OptionTable(
        jobs=states,
        pools=on.topology.pools,
        start=np.concatenate([[0], np.cumsum([len(own) for own in jobs])]).astype(np.int64),
        job=owner.astype(np.int64),
        pool=pool.astype(np.int64),
        gpus=gpus.astype(np.int64),
        span=np.zeros(len(rows), dtype=np.int64),
        width=ones.astype(np.int64),
        clock=ones,
        batch=ones,
        rate=ones,
        power_w=watts.astype(float),
        current=np.zeros(len(rows), dtype=bool),
        must_run=np.zeros(len(jobs), dtype=bool),
    )
    return round, table, worth.astype(float)


def fill(round, table, worth):
    """Return the rows of the greedy choice."""
    return allocate_by_fill(round, table, worth).chosen


def dual_bound(round, table, worth):
    """Return the least dual bound, and the prices of GPUs and watts behind it."""
    choice = allocate_by_fill(round, table, worth)
    return choice.bound, unit_prices(round, choice.prices)


def plans(table):
    """Yield every choice of rows as a list without the jobs that wait."""
    own = [[-1, *range(table.start[j], table.start[j + 1])] for j in range(len(table.jobs))]
    for choice in itertools.product(*own):
        yield [k for k in choice if k >= 0]


def within(round, table, rows, *, awake_w=None):
    """Tell whether rows fit the GPUs and, with all nodes awake, the watts."""
    used = np.bincount(table.pool[rows], table.gpus[rows], len(table.pools))
    if (used > [pool.gpus for pool in table.pools]).any():
        return False
    base = round.cluster.topology.idle_w if awake_w is None else awake_w
    drawn = base + sum(table.power_w[k] - table.gpus[k] * IDLE_W for k in rows)
    return round.watts is None or drawn <= round.watts + 1e-6


def best_plan(round, table, worth):
    """Return the best value by enumeration, all nodes awake."""
    return max(float(worth[rows].sum()) for rows in plans(table) if within(round, table, rows))


# -- by hand -----------------------------------------------------------------------------------


def test_best_rows_that_fit_are_chosen():
    """4 GPUs, values 3 on 2, 5 on 4; 4 on 2: 3 + 4 on two each beats 5 on all."""
    round, table, worth = case(
        cluster((1, 4)), [[(0, 2, 0, 3.0), (0, 4, 0, 5.0)], [(0, 2, 0, 4.0)]]
    )
    assert fill(round, table, worth).tolist() == [0, 2]


def test_price_is_the_value_per_gpu_at_the_margin():
    """Three jobs of 2 GPUs worth 6, 4 and 2 on 4 GPUs: the bound is 10, a GPU is worth 1 to 2."""
    round, table, worth = case(
        cluster((1, 4)), [[(0, 2, 0, 6.0)], [(0, 2, 0, 4.0)], [(0, 2, 0, 2.0)]]
    )
    bound, price = dual_bound(round, table, worth)
    assert bound == pytest.approx(10.0)
    assert 1.0 - 1e-6 <= price["gpus[default/G0]"] <= 2.0 + 1e-6


def test_enough_of_everything_is_free():
    """With room for all, everybody gets the best row, at no price."""
    round, table, worth = case(
        cluster((2, 4)), [[(0, 1, 0, 1.0), (0, 4, 0, 2.0)], [(0, 2, 0, 3.0)]], power_cap_w=1e6
    )
    assert fill(round, table, worth).tolist() == [1, 2]
    free = {"gpus[default/G0]": 0.0, "watts": 0.0, "energy": 0.0}
    assert dual_bound(round, table, worth) == (5.0, free)


def test_watts_above_the_idle_cluster_are_limited():
    """4 GPUs idle at 20 W; 100 W of 180 are left: two jobs that add 40 W fit, not three."""
    rows = [[(0, 1, 60.0, 3.0)], [(0, 1, 60.0, 2.0)], [(0, 1, 60.0, 1.0)]]
    round, table, worth = case(cluster((1, 4)), rows, power_cap_w=180.0)
    assert fill(round, table, worth).tolist() == [0, 1, -1]
    bound, price = dual_bound(round, table, worth)
    # The relaxation runs half of the third job: 3 + 2 + 1/2, at 1/40 per watt.
    assert bound == pytest.approx(5.5)
    assert price["watts"] == pytest.approx(1 / 40)


def test_energy_limits_the_mean_power():
    """648 kJ in an hour are 180 W."""
    rows = [[(0, 1, 60.0, 3.0)], [(0, 1, 60.0, 2.0)], [(0, 1, 60.0, 1.0)]]
    round, table, worth = case(cluster((1, 4)), rows, energy_j=648e3, window_s=3600.0)
    assert fill(round, table, worth).tolist() == [0, 1, -1]


def test_no_watts_no_plan():
    """Below the power of the idle cluster nothing starts; the bound stays at least 0."""
    round, table, worth = case(cluster((1, 4)), [[(0, 1, 60.0, 3.0)]], power_cap_w=70.0)
    assert fill(round, table, worth).tolist() == [-1]
    assert dual_bound(round, table, worth)[0] == pytest.approx(0.0)


def test_sleeping_nodes_leave_watts_to_the_others():
    """Two nodes of 2 GPUs, 100 W hosts: awake 280 W. With one asleep a job of +40 W fits 180 W."""
    jobs = [[(0, 1, 60.0, 3.0)], [(0, 2, 120.0, 9.0)]]
    awake = case(cluster((2, 2), host_w=100.0), jobs, power_cap_w=180.0)
    assert fill(*awake).tolist() == [-1, -1]
    assert dual_bound(*awake)[0] == pytest.approx(0.0)
    round, table, worth = case(cluster((2, 2), host_w=100.0, sleep_w=0.0), jobs, power_cap_w=180.0)
    # One node awake and job 0: 100 + 2 20 + 40 = 180 W.
    assert fill(round, table, worth).tolist() == [0, -1]
    assert dual_bound(round, table, worth)[0] >= 3.0


def test_must_run_comes_first():
    """A job that cannot be stopped keeps its GPUs, whatever others are worth."""
    round, table, worth = case(cluster((1, 4)), [[(0, 3, 0, 0.1)], [(0, 2, 0, 50.0)]])
    held = Allocation(option=Option(pool=0, gpus=3), placement=((0, 3),))
    state = replace(table.jobs[0], allocation=held)
    fixed = replace(round, running=(state,), waiting=table.jobs[1:])
    must = np.array([True, False])
    table = replace(table, must_run=must)
    assert fill(fixed, table, worth).tolist() == [0, -1]
    # One GPU is left: half of the other job's row, at least.
    assert dual_bound(fixed, table, worth)[0] <= 25.1 * (1 + 1e-6)


def test_worthless_rows_are_not_chosen():
    """Values of 0 or less are never better than not to run."""
    round, table, worth = case(cluster((1, 4)), [[(0, 1, 0, 0.0)], [(0, 1, 0, -3.0)]])
    assert fill(round, table, worth).tolist() == [-1, -1]
    assert dual_bound(round, table, worth)[0] == 0.0


def test_empty_round():
    """Nothing to decide."""
    round, table, worth = case(cluster((1, 4)), [])
    assert fill(round, table, worth).tolist() == []
    assert dual_bound(round, table, worth)[0] == 0.0


def test_a_pair_of_steps_is_found():
    """Greedy by value per GPU takes 1 of 4 GPUs (5), then nothing fits; exchanged: 4 GPUs (12)."""
    round, table, worth = case(cluster((1, 4)), [[(0, 1, 0, 5.0)], [(0, 4, 0, 12.0)]])
    assert fill(round, table, worth).tolist() == [-1, 1]


def test_identical_jobs_fill_the_cluster():
    """500 equal jobs tie at every price; 256 of them run, the earlier ones."""
    round, table, worth = case(cluster((64, 4)), [[(0, 1, 0, 1.0)]] * 500)
    assert np.flatnonzero(fill(round, table, worth) >= 0).tolist() == list(range(256))
    assert dual_bound(round, table, worth)[0] == pytest.approx(256.0)


# -- against brute force and linear programming ------------------------------------------------

row = st.tuples(
    st.integers(0, 1), st.sampled_from([1, 2, 4]), st.floats(0, 200), st.floats(0.01, 10)
)
some_jobs = st.lists(st.lists(row, min_size=0, max_size=4), min_size=1, max_size=5)
caps = st.none() | st.floats(100, 1500)


def busy(jobs):
    """Return rows whose watts are at least those of their idle GPUs."""
    return [[(p, g, g * IDLE_W + w, v) for p, g, w, v in own] for own in jobs]


@settings(deadline=None, max_examples=60)
@given(jobs=some_jobs, cap=caps)
def test_fill_is_feasible_and_below_the_bound(jobs, cap):
    """Fill respects every limit; fill <= optimum <= bound, by enumeration."""
    round, table, worth = case(cluster((2, 4), (1, 3)), busy(jobs), power_cap_w=cap)
    chosen = fill(round, table, worth)
    rows = chosen[chosen >= 0].tolist()
    assert (table.job[rows] == np.flatnonzero(chosen >= 0)).all()
    if round.cluster.topology.idle_w > (round.watts or np.inf):
        # Not even the idle cluster is within the limit: nothing that adds to it may run.
        assert table.power_w[rows].sum() <= table.gpus[rows].sum() * IDLE_W + 1e-6
    else:
        assert within(round, table, rows)
        best = best_plan(round, table, worth)
        assert worth[rows].sum() <= best + 1e-9
        assert dual_bound(round, table, worth)[0] >= best - 1e-9


@settings(deadline=None, max_examples=80)
@given(jobs=some_jobs, cap=st.floats(50, 1500), sleep_w=st.floats(0, 30))
def test_the_bound_holds_when_nodes_sleep(jobs, cap, sleep_w):
    """In nodes of 4 GPUs all but ceil(GPUs / 4) nodes may sleep: still no plan beats the bound."""
    on = cluster((3, 4), host_w=90.0, sleep_w=sleep_w)
    rows_of = [[(0, g, w, v) for _, g, w, v in own] for own in busy(jobs)]
    round, table, worth = case(on, rows_of, power_cap_w=cap)
    bound, _ = dual_bound(round, table, worth)
    for rows in plans(table):
        nodes = -(-int(table.gpus[rows].sum()) // 4)
        if nodes <= 3:
            base = nodes * (90.0 + 4 * IDLE_W) + (3 - nodes) * sleep_w
            if within(round, table, rows, awake_w=base):
                assert worth[rows].sum() <= bound + 1e-9


def relaxation(round, table, worth):
    """Return the linear relaxation's value, all nodes awake."""
    jobs, k = len(table.jobs), len(table)
    limits = [(table.job == j).astype(float) for j in range(jobs)]
    limits += [np.where(table.pool == p, table.gpus, 0.0) for p in range(len(table.pools))]
    most = [1.0] * jobs + [float(pool.gpus) for pool in table.pools]
    if round.watts is not None:
        limits.append(table.power_w - table.gpus * IDLE_W)
        most.append(round.watts - round.cluster.topology.idle_w)
    solved = linprog(-worth, np.array(limits).reshape(-1, k), most, bounds=(0, 1))
    return -solved.fun


@settings(deadline=None, max_examples=30)
@given(
    jobs=st.lists(st.lists(row, min_size=1, max_size=6), min_size=1, max_size=12),
    cap=st.none() | st.floats(300, 1500),
)
def test_bound_is_at_most_the_linear_relaxation(jobs, cap):
    """By duality the least bound is the relaxation's value, or less where whole nodes count."""
    one = [[(0, g, w, v) for _, g, w, v in own] for own in busy(jobs)]
    round, table, worth = case(cluster((2, 4)), one, power_cap_w=cap)
    bound, _ = dual_bound(round, table, worth)
    assert bound <= relaxation(round, table, worth) * (1 + 1e-6) + 1e-7


def test_bound_of_several_pools_is_the_linear_relaxation():
    """Jobs that choose between three pools, watts limited: the same; the fill is within 3 %."""
    rng = np.random.default_rng(2)
    jobs = []
    for _ in range(80):
        speed, p, scale = rng.uniform(0.5, 2, 3), rng.uniform(0.3, 0.95), rng.lognormal()
        jobs.append(
            [
                (pool, n, n * (IDLE_W + 150 * speed[pool]), scale * speed[pool] * n**p)
                for pool in range(3)
                for n in (1, 2, 4, 8)
            ]
        )
    round, table, worth = case(cluster((8, 4), (4, 8), (8, 4)), jobs, power_cap_w=1.1e4)
    bound, price = dual_bound(round, table, worth)
    exact = relaxation(round, table, worth)
    assert exact * (1 - 1e-6) <= bound <= exact * (1 + 1e-6)
    assert price["watts"] > 0
    chosen = fill(round, table, worth)
    assert worth[chosen[chosen >= 0]].sum() >= 0.97 * exact


# -- invariants --------------------------------------------------------------------------------


@settings(deadline=None)
@given(jobs=some_jobs, nodes=st.integers(1, 4), more=st.integers(1, 3))
def test_more_gpus_never_hurt_the_bound(jobs, nodes, more):
    """More nodes only raise what is possible; the bound of one pool is exact and shows it."""
    one = [[(0, g, w, v) for _, g, w, v in own] for own in jobs]
    small, large = (dual_bound(*case(cluster((n, 2)), one))[0] for n in (nodes, nodes + more))
    assert large >= small - 1e-7
    best = best_plan(*case(cluster((nodes, 2), (1, 3)), jobs))
    assert dual_bound(*case(cluster((nodes + more, 2), (1, 3)), jobs))[0] >= best - 1e-9


@settings(deadline=None)
@given(jobs=some_jobs, cap=caps, order=st.randoms())
def test_permuting_jobs_changes_neither_bound_nor_value(jobs, cap, order):
    """Values are distinct, so that no tie is broken by position."""
    jobs = [
        [(p, g, w, v + 1e-3 * (j + 0.1 * k)) for k, (p, g, w, v) in enumerate(own)]
        for j, own in enumerate(busy(jobs))
    ]
    shuffled = list(jobs)
    order.shuffle(shuffled)
    found = []
    for some in (jobs, shuffled):
        one = [[(0, g, w, v) for _, g, w, v in own] for own in some]
        round, table, worth = case(cluster((2, 4)), one, power_cap_w=cap)
        chosen = fill(round, table, worth)
        found.append((dual_bound(round, table, worth)[0], worth[chosen[chosen >= 0]].sum()))
    np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-9)


def test_same_input_same_rows():
    """Two calls agree row by row."""
    rng = np.random.default_rng(4)
    jobs = [[(0, n, 0, rng.lognormal() * n**0.7) for n in (1, 2, 4)] for _ in range(40)]
    round, table, worth = case(cluster((8, 4)), jobs)
    np.testing.assert_array_equal(fill(round, table, worth), fill(round, table, worth))


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units_of_value_do_not_matter(unit):
    """Values in another unit: the same rows, and the bound in that unit."""
    rng = np.random.default_rng(6)
    jobs = [
        [(0, n, n * 100.0, rng.lognormal() * n ** rng.uniform(0.3, 0.9)) for n in (1, 2, 4)]
        for _ in range(30)
    ]
    round, table, worth = case(cluster((8, 4)), jobs, power_cap_w=2000.0)
    np.testing.assert_array_equal(fill(round, table, worth), fill(round, table, worth * unit))
    bound, _ = dual_bound(round, table, worth)
    assert dual_bound(round, table, worth * unit)[0] == pytest.approx(bound * unit)


PROFILES = {
    name: Profile(
        name=name,
        throughput={"G0": Parametric(alpha_c_s=0.01, beta_c_s=0.01, alpha_r_s=r, alpha_n_s=n)},
        power={"G0": PowerCurve(a_w=26, b_w=140, c_w=222, s0=0.88)},
        base_batch=64.0,
    )
    for name, r, n in (("fast", 0.01, 0.02), ("slow", 0.1, 0.5), ("flat", 0.3, 9.0))
}
real_job = st.builds(
    lambda work, profile, gpus, low, high: (work, profile, gpus, min(low, gpus), max(high, gpus)),
    st.floats(10, 1e5),
    st.sampled_from(sorted(PROFILES)),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 8),
)


@settings(deadline=None, max_examples=20)
@given(jobs=st.lists(real_job, min_size=1, max_size=3), cap=st.none() | st.floats(200, 1500))
@example(jobs=[(10.0, "fast", 1, 1, 1), (10.0, "flat", 1, 1, 8)], cap=None)
def test_pruning_keeps_the_optimum(jobs, cap):
    """The best plan of the pruned table is worth as much as that of the full one."""
    states = tuple(
        JobState(
            job=Job(
                id=f"{j}",
                submit_s=0.0,
                profile=profile,
                gpus=gpus,
                min_gpus=low,
                max_gpus=high,
                estimate=Estimate(work=work),
            ),
            since_s=0.0,
        )
        for j, (work, profile, gpus, low, high) in enumerate(jobs)
    )
    round = Round(cluster=cluster((2, 4)), profiles=PROFILES, waiting=states, power_cap_w=cap)
    best = []
    for prune in (True, False):
        table = build(round, prune=prune)
        worth = values(round, table)
        fits = (rows for rows in plans(table) if within(round, table, rows))
        best.append(max((float(worth[rows].sum()) for rows in fits), default=0.0))
    assert best[0] == pytest.approx(best[1], rel=1e-9)
