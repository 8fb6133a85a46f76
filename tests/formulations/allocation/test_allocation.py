"""The allocation model: what each constraint family says."""

import msgspec
import numpy as np
import pyomo.environ as pyo
import pytest
from msgspec.structs import replace

import ronda
from ronda.formulations.allocation.model_data import charged_w, lasts_s, make_case
from ronda.formulations.allocation.non_preemptible import bearing
from ronda.formulations.allocation.pyomo_model import build, chosen_rows
from ronda.formulations.allocation.rows import separable, shortages
from ronda.formulations.options.build import build as build_options
from ronda.formulations.watts import awake_for, may_sleep, node_classes
from ronda.instances.check.plan import ending
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.job import Allocation, Estimate, Job, JobState, Option
from ronda.instances.plan import Plan
from ronda.instances.profile import PowerCurve, Profile, Rigid
from ronda.instances.round import Round
from ronda.solvers.exact.from_pyomo import solve
from ronda.solvers.exact.highs import solve_form
from ronda.solvers.exact.linear_form import Effort, form_of

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
    outcome = solve(model, Effort(gap=0))
    assert outcome.x is not None, outcome.message
    rows = chosen_rows(model)
    return sum(worth[k] for k in rows if k >= 0), [j for j, k in enumerate(rows) if k >= 0]


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


@pytest.mark.parametrize(("nodes", "worth"), [(None, 9.0), ((2,), 9.0), ((1,), 5.0), ((0,), 0.0)])
def test_so_many_nodes_may_be_awake(nodes, worth):
    """Three jobs of a node each, worth 5, 4 and 1, have two nodes, or as many as are said."""
    round_ = make_round([8, 8, 8], sleep_w=SLEEP_W, power_cap_w=1e5)
    table = build_options(round_)
    values = np.array([5.0, 4.0, 1.0])
    case = make_case(round_, table, values, awake=nodes)
    problem = separable(case)
    chosen, _ = problem.answer(solve_form(form_of(problem), Effort(gap=0.0)).x)
    assert values[case.rows[chosen[chosen >= 0]]].sum() == worth


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


def test_what_no_rack_could_bear_alone_is_no_option():
    """Racks of 600 W idle have 400 and 900 W left: 800 W fit the second, 1,200 W only both."""
    racks = (Rack(name="r0", power_cap_w=1000.0), Rack(name="r1", power_cap_w=1500.0))
    round_ = make_round([6, 4], racks=racks)
    table = build_options(round_)
    case = make_case(round_, table, np.ones(len(table)))
    assert table.gpus[case.rows].tolist() == [4]
    assert best(round_, [5.0, 1.0]) == (1.0, [1])


def test_bounds_of_rack_power_leave_some_slack():
    """Eight GPUs add 8 x 200 W at most: a choice that does is not cut off by the last bit."""
    round_ = make_round([8], racks=(Rack(name="r0", power_cap_w=3000.0),))
    table = build_options(round_)
    (most_kw,) = make_case(round_, table, np.ones(len(table))).most_rack_kw.values()
    assert 1.6 * (1 + 1e-7) < most_kw < 1.6 * (1 + 1e-5)


def test_jobs_that_must_run_do_even_at_a_loss():
    """A job that may not be preempted runs whatever it is worth."""
    round_ = make_round([8, 8, 8], must=[(2, 0)])
    table = build_options(round_)
    worth = np.array([-3.0, 1.0, 2.0])  # the running job comes first
    assert table.must_run.tolist() == [True, False, False]
    assert best(round_, worth)[1] == [0, 2]


def test_nodes_that_gpus_keep_awake():
    """Nine GPUs keep two nodes of 8 awake; frugal nodes come first."""
    classes = node_classes(make_round([8], nodes=3, sleep_w=SLEEP_W))
    assert awake_for(classes, [9]) == [2]
    assert awake_for(classes, [0]) == [0]


def test_shortages_are_said_in_words_with_numbers():
    """Limits that the idle cluster breaks by itself are named, with need and limit."""
    idle = make_round([8], energy_j=1199.0 * 3600)
    (found,) = shortages(make_case(idle, table := build_options(idle), np.ones(len(table))))
    assert found.constraints == ("energy_window",)
    assert "without any job" in found.message


def test_the_cap_of_a_rack_gives_way_to_jobs_that_may_not_be_stopped():
    """One node of 8 with a job of 8 draws 2,200 W: 2,199 are too few, whatever the other rack."""
    for cap, many in ((2199.0, 1), (2200.0, 0)):
        racks = (Rack(name="r0", power_cap_w=cap), Rack(name="r1"))
        raised, found = bearing(make_round([8, 8], racks=racks, must=[(0, 0)]))
        assert [c.constraints for c in found] == [("one_option[j0]", "rack_power[r0]")] * many
        assert all("2199 W in rack r0" in c.message and ": 2200 W" in c.message for c in found)
        assert [rack.power_cap_w for rack in raised.cluster.racks] == [2200.0, None]
        table = build_options(raised)
        assert shortages(make_case(raised, table, np.ones(len(table)))) == []


def test_limits_give_way_to_jobs_that_may_not_be_stopped_and_no_further():
    """A job of 8 on a node of 8 draws 200 + 8 x 250 = 2,200 W, and the other node idle 600 W.

    By the second they are 2,800 J. The checker has the same limits: more than that is avoidable.
    """
    for limit in (
        {"power_cap_w": 2799.0},
        {"energy_j": 2799.0 * 3600},
        {"energy_j": 2799.0 * 3600, "banked_j": 0.0},
    ):
        round_ = make_round([8, 1], must=[(0, 0)], **limit)
        raised, (found,) = bearing(round_)
        need = 2800.0 if raised.energy_j is None else 2800.0 * 3600
        assert (raised.power_cap_w or raised.energy_j) == pytest.approx(need)
        assert found.constraints[0] == "one_option[j0]"
        alone = Plan(allocations=round_.held)
        assert ronda.check(round_, alone) == []
        other = Option(pool=0, gpus=1, span="node", rate=1.0, power_w=250.0)
        both = alone.allocations | {"j1": Allocation(option=other, placement=((1, 1),))}
        assert {v.code for v in ronda.check(round_, Plan(allocations=both))} & {"power", "energy"}
        soft = replace(round_.running[0].job, preemptible=True)
        soft = replace(round_, running=(replace(round_.running[0], job=soft),))
        assert bearing(soft) == (soft, ())
        assert ronda.check(soft, alone) != []


def test_a_job_measured_to_be_slow_is_charged_for_as_long_as_it_will_run():
    """At half its rate, 100 s of work take 200 s of power: what the checker counts as well."""
    round_ = make_round([4, 1], nodes=1, must=[(0, 0)], window_s=400.0, energy_j=1e6)
    (state,) = round_.running
    job = msgspec.structs.replace(state.job, estimate=Estimate(work=100.0))
    option = msgspec.structs.replace(state.allocation.option, rate=0.5)
    held = msgspec.structs.replace(state.allocation, option=option)
    slow = msgspec.structs.replace(state, job=job, allocation=held)
    round_ = msgspec.structs.replace(round_, running=(slow,))
    table = build_options(round_)
    assert lasts_s(round_, table)[table.current].tolist() == [200.0]
    # 4 x 200 W above idle for half of the window
    assert charged_w(round_, table)[table.current].tolist() == [pytest.approx(400.0)]
    idle_w = [IDLE_W]
    plan = Plan(allocations=round_.held)
    assert ending(round_, round_.running, plan, idle_w).tolist() == [[200.0, 800.0]]
