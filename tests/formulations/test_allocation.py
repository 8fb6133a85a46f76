"""The allocation model: what each constraint family says, and that its optimum is the optimum."""

from itertools import product

import msgspec
import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronda.formulations.allocation import build
from ronda.formulations.allocation_case import make_case
from ronda.formulations.allocation_reading import (
    awake_for,
    chosen_rows,
    prices,
    shortages,
    warm_start,
    within,
)
from ronda.formulations.awake import may_sleep, node_classes
from ronda.formulations.candidates import option_losses, undominated
from ronda.formulations.dual_functions import node_shares, tightening
from ronda.formulations.greedy_fill import dual_bound
from ronda.formulations.options import build as build_options
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.generate import tiny_round
from ronda.instances.instance import Round
from ronda.instances.job import Allocation, Job, JobState, Option
from ronda.instances.profile import PowerCurve, Profile, Rigid
from ronda.solvers.exact import solve
from ronda.solvers.linear_form import linear_form

IDLE_W, BUSY_W, HOST_W, SLEEP_W = 50.0, 250.0, 200.0, 10.0


def make_round(sizes, *, nodes=2, per_node=8, sleep_w=None, racks=(), must=(), **fields):
    """Return a round of rigid jobs of these sizes; `must` are pairs (index, node) that run."""
    groups = [
        NodeGroup(
            name=f"g{k}",
            count=nodes if not racks else 1,
            gpus_per_node=per_node,
            gpu_type="V100",
            host_idle_w=HOST_W,
            sleep_w=HOST_W + per_node * IDLE_W if sleep_w is None else sleep_w,
            rack=racks[k].name if racks else None,
        )
        for k in range(max(1, len(racks)))
    ]
    power = {"V100": PowerCurve(a_w=BUSY_W)}
    states = [
        JobState(
            job=Job(
                id=f"j{k}", submit_s=0, profile="rigid", gpus=n, preemptible=k not in dict(must)
            ),
            since_s=0,
        )
        for k, n in enumerate(sizes)
    ]
    for k, node in must:
        option = Option(pool=0, gpus=sizes[k], span="node", rate=1.0, power_w=sizes[k] * BUSY_W)
        held = Allocation(option=option, placement=((node, sizes[k]),))
        states[k] = msgspec.structs.replace(states[k], allocation=held, started=True)
    return Round(
        cluster=Cluster(
            gpu_types=(GpuType(name="V100", memory_gib=32, idle_w=IDLE_W),),
            node_groups=tuple(groups),
            racks=tuple(racks),
        ),
        profiles={"rigid": Profile(name="rigid", throughput={"V100": Rigid()}, power=power)},
        waiting=tuple(s for s in states if s.allocation is None),
        running=tuple(s for s in states if s.allocation is not None),
        **fields,
    )


def best(round_, worth):
    """Return the value of the model's optimum and the indices of the jobs that run."""
    table = build_options(round_)
    model = build(round_, table, np.asarray(worth, dtype=float))
    outcome = solve(model, gap=0)
    assert outcome.x is not None, outcome.message
    rows = chosen_rows(model)
    return sum(worth[k] for k in rows if k >= 0), [j for j, k in enumerate(rows) if k >= 0]


def random_values(table, seed):
    """Return values of every sign; equal ones occur."""
    rng = np.random.default_rng([seed, 99])
    drawn = np.round(rng.lognormal(0, 1, len(table)), 3)
    return np.where(rng.random(len(table)) < 0.1, -drawn, drawn)


def rows_by_job(table):
    """Return what each job may choose: its rows, or -1 unless it must run."""
    return [
        [*range(table.start[j], table.start[j + 1]), *([] if table.must_run[j] else [-1])]
        for j in range(len(table.jobs))
    ]


def least_power(round_, gpus):
    """Return the least idle power in watts of nodes that hold so many GPUs in each pool.

    By trying every set of nodes that stay awake.
    """
    t = round_.cluster.topology
    n = len(t.node_gpus)
    sleeps = round_.watts is not None
    least = np.inf
    for awake in product((True, False), repeat=n) if sleeps else [(True,) * n]:
        room = [0] * len(gpus)
        watts = 0.0
        for node in range(n):
            idle = t.host_idle_w[node] + t.node_gpus[node] * t.gpu_idle_w[node]
            watts += idle if awake[node] else t.sleep_w[node]
            room[t.node_pool[node]] += t.node_gpus[node] * awake[node]
        if all(a <= b for a, b in zip(gpus, room, strict=True)):
            least = min(least, watts)
    return least


def brute_force(round_, table, worth):
    """Return the best value over all combinations of rows that break no limit."""
    idle = [p.gpu_type.idle_w for p in table.pools]
    choices = rows_by_job(table)
    powers = {}
    top = -np.inf
    for rows in product(*choices):
        rows = [k for k in rows if k >= 0]
        gpus = [0] * len(table.pools)
        extra = value = 0.0
        for k in rows:
            p = table.pool[k]
            gpus[p] += int(table.gpus[k])
            extra += table.power_w[k] - table.gpus[k] * idle[p]
            value += worth[k]
        if value <= top or any(g > p.gpus for g, p in zip(gpus, table.pools, strict=True)):
            continue
        if round_.watts is not None:
            key = tuple(gpus)
            if key not in powers:
                powers[key] = least_power(round_, gpus)
            drawn = powers[key] + extra
            if round_.power_cap_w is not None and drawn > round_.power_cap_w * (1 + 1e-12):
                continue
            joules = drawn * round_.window_s
            if round_.energy_j is not None and joules > round_.energy_j * (1 + 1e-12):
                continue
        top = value
    return top


def dynamic_programme(table, worth):
    """Return the best value where only GPUs are limited: job by job, by GPUs used in each pool."""
    states = {(0,) * len(table.pools): 0.0}
    for choices in rows_by_job(table):
        after = {}
        for used, value in states.items():
            for k in choices:
                new, gain = list(used), 0.0
                if k >= 0:
                    new[table.pool[k]] += int(table.gpus[k])
                    gain = worth[k]
                    if new[table.pool[k]] > table.pools[table.pool[k]].gpus:
                        continue
                after[tuple(new)] = max(after.get(tuple(new), -np.inf), value + gain)
        states = after
    return max(states.values())


@pytest.mark.parametrize("block", range(10))
def test_milp_equals_brute_force_and_dynamic_programming(block):
    """On 200 random tiny rounds the MILP's optimum is that of two independent methods, to 1e-9."""
    separable = 0
    for seed in range(20 * block, 20 * block + 20):
        round_ = tiny_round(seed)
        table = build_options(round_)
        worth = random_values(table, seed)
        model = build(round_, table, worth)
        outcome = solve(model, gap=0)
        rows = chosen_rows(model)
        found = float(worth[rows[rows >= 0]].sum())
        expected = brute_force(round_, table, worth)
        assert outcome.x is not None
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9), seed
        if round_.watts is None:
            separable += 1
            assert found == pytest.approx(dynamic_programme(table, worth), rel=1e-9, abs=1e-9)
    assert separable > 0


def test_names_are_those_of_the_documentation():
    """Every constraint family is in the model under its name, with its index."""
    racks = (Rack(name="r0", power_cap_w=5000), Rack(name="r1"))
    round_ = make_round(
        [5, 3], racks=racks, sleep_w=SLEEP_W, power_cap_w=6000, energy_j=3.6e6 * 6, must=[(1, 0)]
    )
    table = build_options(round_)
    names = {
        c.name
        for c in build(round_, table, np.ones(len(table))).component_data_objects(pyo.Constraint)
    }
    pool = table.pools[0].name
    assert {
        "one_option[j1]",
        f"gpus[{pool}]",
        f"whole_nodes[{pool},1]",
        "power_cap",
        "energy_window",
        f"rack_share[{pool}]",
        "rack_power[r0]",
    } <= names


def test_options_that_cannot_matter_get_no_variable():
    """Worthless options, and those that another one of the job beats, are left out."""
    round_ = tiny_round(3)
    table = build_options(round_)
    worth = np.where(np.arange(len(table)) % 2 == 0, -1.0, 1.0)
    worth[table.must_run[table.job]] = -5.0
    rows = make_case(round_, table, worth).rows
    must = table.must_run[table.job]
    assert (worth[rows[~must[rows]]] > 0).all()
    assert set(np.flatnonzero(must)) <= set(rows)


def test_gpus_of_a_pool_are_shared():
    """Of jobs of 8, 4 and 4 GPUs on 8 the two small ones run if they are worth more together."""
    assert best(make_round([8, 4, 4], nodes=1), [5, 2, 4])[1] == [1, 2]
    assert best(make_round([8, 4, 4], nodes=1), [7, 2, 4])[1] == [0]


def test_jobs_of_more_than_half_a_node_need_a_node_each():
    """Two nodes of 8 hold 16 GPUs, but of three jobs of 5 GPUs only two."""
    round_ = make_round([5, 5, 5])
    assert best(round_, [1.0, 1.0, 1.0])[0] == 2
    # 15 <= 16: without whole nodes all three would run
    assert best(make_round([5, 5, 5], per_node=16, nodes=1), [1.0, 1.0, 1.0])[0] == 3


def test_remainders_of_wide_jobs_count_as_well():
    """Jobs of 12 take a node and half of another, which jobs of 5 do not fit into."""
    # 12 + 12 = 24 GPUs fill three nodes of 8; a job of 5 more would need a fourth.
    assert best(make_round([12, 12, 5], nodes=3), [2.0, 2.0, 1.0])[0] == 4
    assert best(make_round([12, 5, 5], nodes=3), [2.0, 1.0, 1.0])[0] == 3


@given(st.lists(st.integers(1, 8), max_size=8), st.integers(1, 7))
def test_dual_functions_are_feasible(sizes, k):
    """Jobs that fit in a node together take shares of it that sum to at most 1."""
    packed = [n for i, n in enumerate(sizes) if sum(sizes[: i + 1]) <= 8]
    assert node_shares(np.array(packed, dtype=int), 8, k).sum() <= 1 + 1e-12


def test_powers_of_two_need_no_whole_node_constraints():
    """Counting GPUs is exact for sizes that divide each other and the node."""
    assert tightening(np.array([1, 2, 4]), 8) == ()
    assert tightening(np.array([1, 2, 4]), 12) == ()
    assert 1 in tightening(np.array([5]), 8)


def test_power_cap_counts_idle_gpus_once():
    """A busy GPU replaces an idle one: 8 of 16 GPUs busy draw 1200 + 8 x 200 W."""
    # idle cluster: 2 hosts x 200 + 16 GPUs x 50 = 1200 W; a job of 8 adds 8 x (250 - 50) = 1600 W
    assert best(make_round([8, 8], power_cap_w=2800.0), [1.0, 2.0])[1] == [1]
    assert best(make_round([8, 8], power_cap_w=2799.0), [1.0, 2.0])[1] == []
    assert best(make_round([8, 8], power_cap_w=4400.0), [1.0, 2.0])[1] == [0, 1]


def test_energy_window_is_a_power_limit_over_its_length():
    """2800 W for half an hour are 5.04 MJ."""
    fields = {"window_s": 1800.0}
    assert best(make_round([8, 8], energy_j=5.04e6, **fields), [1.0, 2.0])[1] == [1]
    assert best(make_round([8, 8], energy_j=5.03e6, **fields), [1.0, 2.0])[1] == []


def test_sleeping_nodes_make_room_for_jobs():
    """With one of two nodes asleep the cluster draws 600 + 10 W without jobs, not 1200 W."""
    # 2210 W = 600 + 10 + 8 x 200: enough for one job of 8 on one node if the other one sleeps
    asleep = make_round([8, 8], power_cap_w=2210.0, sleep_w=SLEEP_W)
    assert may_sleep(asleep)
    assert best(asleep, [1.0, 2.0])[1] == [1]
    assert best(make_round([8, 8], power_cap_w=2209.0, sleep_w=SLEEP_W), [1.0, 2.0])[1] == []
    # nodes that draw as much asleep stay awake
    assert best(make_round([8, 8], power_cap_w=2210.0), [1.0, 2.0])[1] == []


def test_without_a_power_limit_no_node_sleeps():
    """Sleeping is a variable only where it can help."""
    round_ = make_round([8], sleep_w=SLEEP_W)
    table = build_options(round_)
    assert not hasattr(build(round_, table, np.ones(len(table))), "awake")


def test_racks_limit_their_subtree():
    """A row that holds both racks and allows 2800 W lets one job of 8 run, 4400 W both."""
    for cap, expected in ((2800.0, [1]), (4400.0, [0, 1])):
        racks = (Rack(name="r0", parent="row"), Rack(name="r1", parent="row"))
        round_ = make_round([8, 8], racks=racks)
        cluster = msgspec.structs.replace(
            round_.cluster, racks=(*racks, Rack(name="row", power_cap_w=cap))
        )
        assert best(msgspec.structs.replace(round_, cluster=cluster), [1.0, 2.0])[1] == expected


def test_power_that_a_capped_rack_refuses_goes_to_another():
    """A rack at its idle power takes no job, the other one does."""
    racks = (Rack(name="r0", power_cap_w=600.0), Rack(name="r1"))
    assert best(make_round([8, 8], racks=racks), [1.0, 2.0])[1] == [1]


def test_jobs_that_must_run_do_even_at_a_loss():
    """A job that may not be preempted runs whatever it is worth."""
    round_ = make_round([8, 8, 8], must=[(2, 0)])
    table = build_options(round_)
    worth = np.array([-3.0, 1.0, 2.0])  # the running job comes first
    assert table.must_run.tolist() == [True, False, False]
    assert best(round_, worth)[1] == [0, 2]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
def test_the_order_of_jobs_changes_nothing(seed, random):
    """Permuting the waiting jobs leaves the optimum where it is."""
    round_ = tiny_round(seed)
    table = build_options(round_)
    worth = dict(zip(_keys(table), random_values(table, seed), strict=True))
    waiting = list(round_.waiting)
    random.shuffle(waiting)
    other = msgspec.structs.replace(round_, waiting=tuple(waiting))
    mixed = build_options(other)
    values = [np.array([worth[k] for k in _keys(t)]) for t in (table, mixed)]
    found = [
        solve(build(r, t, v), gap=0).objective * make_case(r, t, v).scale
        for r, t, v in zip((round_, other), (table, mixed), values, strict=True)
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-9, abs=1e-9)


def _keys(table):
    """Return what identifies each row, whatever the order of jobs."""
    columns = (table.pool, table.gpus, table.span, table.clock, table.batch)
    ids = [table.jobs[j].job.id for j in table.job]
    return list(zip(ids, *(c.tolist() for c in columns), strict=True))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(1.0, 2.0))
def test_more_of_a_resource_never_hurts(seed, factor):
    """Raising the limits never lowers the optimum."""
    round_ = tiny_round(seed)
    table = build_options(round_)
    worth = random_values(table, seed)
    more = msgspec.structs.replace(
        round_,
        power_cap_w=None if round_.power_cap_w is None else factor * round_.power_cap_w,
        energy_j=None if round_.energy_j is None else factor * round_.energy_j,
    )
    objectives = []
    for r in (round_, more):
        model = build(r, table, worth)
        solve(model, gap=0)
        rows = chosen_rows(model)
        objectives.append(worth[rows[rows >= 0]].sum())
    assert objectives[1] >= objectives[0] - 1e-9


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000))
def test_losses_bound_every_plan(seed):
    """No combination of options is worth more than the bound less the losses of its options."""
    round_ = tiny_round(seed)
    table = build_options(round_)
    worth = random_values(table, seed)
    _, named = dual_bound(round_, table, worth)
    losses, bound = option_losses(round_, table, worth, named, sleeping=may_sleep(round_))
    model = build(round_, table, worth)
    assert solve(model, gap=0).x is not None
    rows = chosen_rows(model)
    rows = rows[rows >= 0]
    assert worth[rows].sum() <= bound - losses[rows].sum() + 1e-9 * abs(bound)


def test_undominated_keeps_one_of_equal_options():
    """An option goes if another of its group is worth as much and costs no more of anything."""
    group = np.array([0, 0, 0, 1, 1])
    value = np.array([3.0, 3.0, 2.0, 1.0, 2.0])
    costs = np.array([[2.0, 2.0, 3.0, 1.0, 1.0], [5.0, 5.0, 1.0, 1.0, 2.0]])
    # 1 equals 0; 2 costs less of the second resource; 3 costs less of the second than 4
    assert undominated(group, value, costs).tolist() == [True, False, True, True, True]
    assert undominated(group, value, costs[:1]).tolist() == [True, False, False, False, True]


@given(
    options=st.lists(st.tuples(*[st.integers(0, 4)] * 3), max_size=30),
)
def test_undominated_at_one_cost_is_as_at_two_equal_ones(options):
    """The way for one resource finds what the way for several does."""
    group, value, cost = np.array(options, dtype=np.int64).reshape(-1, 3).T
    one = undominated(group, value.astype(float), cost[None].astype(float))
    two = undominated(group, value.astype(float), np.array([cost, cost], dtype=float))
    assert one.tolist() == two.tolist()


def test_warm_start_is_read_back_and_feasible():
    """A choice put into the model comes out again, and meets every constraint."""
    for seed in range(30):
        round_ = tiny_round(seed)
        table = build_options(round_)
        worth = np.ones(len(table))
        current = np.full(len(table.jobs), -1)
        current[table.job[table.current]] = np.flatnonzero(table.current)
        model = build(round_, table, worth)
        known = np.isin(current, model.case.rows)
        if not within(model.case, current) or not known[current >= 0].all():
            continue
        warm_start(model, current)
        assert chosen_rows(model).tolist() == current.tolist()
        form = linear_form(model)
        x = np.array([v.value for v in form.columns], dtype=float)
        lhs = np.add.reduceat(np.append(form.value * x[form.index], 0.0), form.start[:-1])
        assert (lhs <= form.row_upper + 1e-9).all()
        assert (lhs >= form.row_lower - 1e-9).all()


def test_nodes_that_gpus_keep_awake():
    """Nine GPUs keep two nodes of 8 awake; frugal nodes come first."""
    classes = node_classes(make_round([8], nodes=3, sleep_w=SLEEP_W).cluster)
    assert awake_for(classes, [9]) == [2]
    assert awake_for(classes, [0]) == [0]


def test_prices_are_in_users_units():
    """Duals of rows in kW and kWh become values per watt and joule."""
    round_ = make_round([8], power_cap_w=5000.0, energy_j=1e8)
    table = build_options(round_)
    case = make_case(round_, table, np.full(len(table), 4.0))
    found = prices(case, {"power_cap": 3.0, "energy_window": 3.6, "one_option[j0]": 1.0})
    assert found == pytest.approx({"power_cap": 4 * 3.0 / 1e3, "energy_window": 4e-6})


def test_shortages_are_said_in_words_with_numbers():
    """Limits that must-run jobs break by themselves are named, with need and limit."""
    # one node of 8 with a job of 8: 200 + 8 x 250 = 2200 W, and the other node idle 600 W
    round_ = make_round([8], must=[(0, 0)], power_cap_w=2799.0)
    (found,) = shortages(make_case(round_, table := build_options(round_), np.ones(len(table))))
    assert found.constraints == ("one_option[j0]", "power_cap")
    assert "2800 W" in found.message
    assert "2799 W" in found.message
    idle = make_round([8], energy_j=1199.0 * 3600)
    (found,) = shortages(make_case(idle, table := build_options(idle), np.ones(len(table))))
    assert found.constraints == ("energy_window",)
    assert "without any job" in found.message
