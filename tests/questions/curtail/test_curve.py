"""The supply curve of flexible power: by hand, against every plan of tiny rounds, and on racks."""

from itertools import pairwise

import numpy as np
import pytest
from msgspec.structs import replace

import ronda
from ronda.formulations.watts import drawn_w
from ronda.instances import generate
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.job import Costs
from ronda.instances.profile import PowerCurve, Profile, Rigid
from ronda.questions.curtail.answer import curtail
from ronda.questions.whatif.frozen import freeze
from tests.helpers.every_choice import best_choice
from tests.helpers.valued_rounds import COSTS, cluster, job, power_law, rigid, run, snapshot

HOUR_S = 3600.0


def hot(gpus=2, racks=(), clocks=(1.0,)):
    """Return nodes of one GPU each, and the profile of a job that draws 230 W at full clock.

    A GPU idles at 30 W, and a node without a job may be asleep at as much.
    """
    gpu = GpuType(name="V100", memory_gib=16, idle_w=30.0, clocks=clocks)
    names = [rack.name for rack in racks if rack.level == "rack"] or [None] * gpus
    nodes = tuple(
        NodeGroup(name=f"n{k}", count=1, gpus_per_node=1, gpu_type="V100", rack=name, sleep_w=30.0)
        for k, name in enumerate(names)
    )
    power = {"V100": PowerCurve(a_w=30.0, b_w=200.0)}
    profile = Profile(name="rigid", throughput={"V100": Rigid()}, power=power)
    on = Cluster(gpu_types=(gpu,), node_groups=nodes, racks=tuple(racks))
    return {"on": on, "profiles": {"rigid": profile}}


def two_jobs(**fields):
    """Return a round of two waiting jobs, of 7,200 and of 14,400 s, of tenants a and b."""
    short, long = rigid("short", 2 * HOUR_S, user="a"), rigid("long", 4 * HOUR_S, user="b")
    return snapshot(short, long, **(hot() | fields))


def test_two_jobs_by_hand():
    """Both run at 2 x 230 W. `rank` values the short one at 1.25 here, and the long one at 0.75.

    So a GPU is worth 1. 200 W less stop the long one, which loses its hour of the window: 0.75
    GPU-hours of worth for 0.2 kWh. 400 W less stop both: 1.25 for the other 0.2 kWh.
    """
    found = curtail(two_jobs(), for_s=HOUR_S, points=2)
    assert (found.drawn_w, found.floor_w) == (460.0, 60.0)
    assert found.worth == pytest.approx(2.0)
    one, both = found.sheds
    assert (one.less_w, both.less_w) == (200.0, 400.0)
    assert one.worth == pytest.approx(1.25)
    assert one.most_worth == pytest.approx(1.25)
    assert (both.worth, both.most_worth) == (0.0, pytest.approx(0.0, abs=1e-9))
    assert found.each_kwh(one) == pytest.approx(0.75 / 0.2)
    assert found.last_kwh(both) == pytest.approx(1.25 / 0.2)
    by = {each.name: each for each in one.bearers}
    assert found.borne_by == "user"
    assert (by["b"].jobs, by["b"].delay_s, by["b"].gpu_s) == (1, HOUR_S, HOUR_S)
    assert (by["a"].jobs, by["a"].delay_s, by["a"].gpu_s) == (0, 0.0, 0.0)
    assert [found.pays(price) for price in (1.0, found.last_kwh(one), 9.0)] == [0.0, 200.0, 400.0]


def test_work_counts_as_the_fewest_gpu_seconds_that_it_takes():
    """A job on 4 GPUs is twice as fast as on one: an hour of it is 2 GPU-hours of work, not 4."""
    profile = replace(power_law(0.5, gpus=(1, 4)), power=hot()["profiles"]["rigid"].power)
    fields = {"on": cluster(4), "profiles": {profile.name: profile}}
    waits = job("j", 100 * HOUR_S, profile.name, max_gpus=4)
    found = curtail(snapshot(waits, **fields), for_s=HOUR_S, points=1)
    assert found.plan.allocations["j"].option.gpus == 4
    (bearer,) = found.sheds[-1].bearers
    assert (bearer.gpu_s, bearer.delay_s) == (2 * HOUR_S, HOUR_S)


def test_a_stopped_job_pays_for_its_restart_and_ends_no_later_than_it_would():
    """Of a window of an hour a job of half an hour loses what it has left, and restarts in 60 s."""
    held = run(rigid("j", HOUR_S / 2), 1, 1.0)
    held = replace(
        held,
        allocation=replace(held.allocation, option=replace(held.allocation.option, power_w=230.0)),
    )
    found = curtail(snapshot(held, costs=COSTS, **hot(gpus=1)), for_s=HOUR_S, points=1)
    (all_,) = found.sheds
    (bearer,) = all_.bearers
    assert bearer.delay_s == pytest.approx(HOUR_S + 60.0)
    assert bearer.gpu_s == pytest.approx(HOUR_S / 2)


@pytest.mark.parametrize("seed", range(16))
def test_every_plan_of_a_tiny_round_is_below_the_bound(seed):
    """The best of all choices lies between the pass and the bound at every cap.

    The curve falls, the bound is concave, and each plan passes the checker under its cap.
    """
    round_ = generate.tiny_round(seed)
    found = curtail(round_, points=4)
    made = freeze(ronda.policy("prices"), round_, 0, None, None)
    asked = made.question(replace(round_, power_cap_w=found.drawn_w))
    for shed in found.sheds:
        under = replace(asked.round, power_cap_w=shed.cap_w)
        best = best_choice(under, asked.table, asked.values)
        assert shed.worth <= best + 1e-9 * abs(best)
        assert best <= shed.most_worth + 1e-9 * abs(best)
        capped = replace(round_, power_cap_w=shed.cap_w)
        assert ronda.check(capped, shed.plan) == []
        assert drawn_w(capped, shed.plan.allocations, shed.plan.asleep) <= shed.cap_w * (1 + 1e-6)
    for one, less in pairwise(found.sheds):
        assert less.worth <= one.worth
        assert less.most_worth <= one.most_worth + 1e-9
        assert less.price_w >= one.price_w - 1e-12
    if found.sheds:
        first = found.sheds[0]
        most = found.worth + found.slack
        assert first.price_w * first.less_w <= most - first.most_worth + 1e-6
        assert found.sheds[-1].cap_w == pytest.approx(found.floor_w, abs=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "round-tight-64",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("round-power", "round-pods")),
    ],
)
def test_ten_points_solved_anew_are_within_the_bound(name):
    """Packaged rounds: with a gap of 1e-3, none is above, and the pass is near them."""
    found = curtail(ronda.load(name), check_at=10, policy="prices(gap=1e-3)")
    solved = [shed for shed in found.sheds if shed.solved is not None]
    assert len(solved) == min(10, len(found.sheds)) >= 7
    assert found.outside() <= 1e-9
    for shed in solved:
        assert shed.worth >= shed.solved - 0.01 * found.worth


def test_nested_caps_are_rows_of_the_bound():
    """Four racks in two rows in a hall, of 230 W each: one row may have one job, by its cap.

    So the hall's 3 jobs are the most as it is, though 4 would fit below the cap of the hall.
    """
    racks = (
        Rack(name="hall", level="hall", power_cap_w=1000.0),
        Rack(name="east", level="row", parent="hall", power_cap_w=300.0),
        Rack(name="west", level="row", parent="hall"),
        *(Rack(name=f"r{k}", parent="east" if k < 2 else "west") for k in range(4)),
    )
    jobs = [rigid(f"j{k}", 4 * HOUR_S) for k in range(4)]
    found = curtail(snapshot(*jobs, **hot(racks=racks)), points=4, check_at=4)
    assert len(found.plan.allocations) == 3
    assert found.drawn_w == pytest.approx(3 * 230.0 + 30.0)
    for shed in found.sheds:
        jobs_left = int((shed.cap_w - 4 * 30.0) // 200.0)
        assert len(shed.plan.allocations) == jobs_left
        assert shed.most_worth >= shed.solved - 1e-9


def hot_and_running(restart_s):
    """Return a round of two running jobs, of which one is slow to stop, on GPUs with two clocks."""
    parts = hot(clocks=(0.5, 1.0))
    power = parts["profiles"]["rigid"].power
    parts["profiles"]["one"] = replace(power_law(0.5, gpus=(1,)), name="one", power=power)
    states = []
    for k, name in enumerate(("quick", "slow")):
        fields = {"costs": Costs(restart_s=10.0), "weight": 10.0} if name == "quick" else {}
        own = job(name, 4 * HOUR_S, "one", gpus=1, max_gpus=1, **fields)
        state = run(own, 1, 1.0)
        option = replace(state.allocation.option, power_w=230.0)
        held = replace(state.allocation, option=option, placement=((k, 1),))
        states.append(replace(state, allocation=held))
    return snapshot(*states, rigid("waits", HOUR_S), costs=Costs(restart_s=restart_s), **parts)


def test_within_seconds_slow_jobs_lower_their_clock_and_nobody_starts():
    """Within 30 s the quick job can stop; the slow one goes on at half its clock: 30 + 100 W.

    The quick one is worth ten times as much, and would go on in its place.
    """
    round_ = hot_and_running(restart_s=60.0)
    found = curtail(round_, points=6, within_s=30.0)
    assert found.drawn_w == 460.0
    assert found.floor_w == 160.0
    for shed in found.sheds:
        assert set(shed.plan.allocations) <= {"quick", "slow"}
        held = shed.plan.allocations["slow"]
        assert held.placement == ((1, 1),)
    last = found.sheds[-1].plan.allocations
    assert (set(last), last["slow"].option.clock) == ({"slow"}, 0.5)
    assert curtail(round_, points=6, within_s=5.0).floor_w == 260.0  # neither can stop
    assert curtail(round_, points=6, within_s=60.0).floor_w == 60.0  # both can


def test_shares_and_watts_are_points_besides():
    """A quarter of what is drawn, and 150 W; more than all is refused."""
    found = curtail(two_jobs(), points=1, less=[0.25, 150.0])
    assert [shed.less_w for shed in found.sheds] == [115.0, 150.0, 400.0]
    assert found.sheds[0].worth == found.sheds[1].worth == pytest.approx(1.25)
    with pytest.raises(ronda.InputError, match="--less"):
        curtail(two_jobs(), less=[0.9])


def test_what_may_not_be_stopped_leaves_nothing():
    """One firm job on one GPU: no watt can be shed."""
    held = run(rigid("j", HOUR_S, preemptible=False), 1, 1.0)
    option = replace(held.allocation.option, power_w=230.0)
    held = replace(held, allocation=replace(held.allocation, option=option))
    found = curtail(snapshot(held, **hot(gpus=1)), points=3)
    assert (found.drawn_w, found.floor_w, found.sheds) == (230.0, 230.0, ())


@pytest.mark.parametrize(
    ("given", "word"), [({"within_s": 30.0}, "no job runs"), ({"policy": "fifo"}, "by values")]
)
def test_impossible_questions_are_refused(given, word):
    """Nobody runs who could be fast; a policy without values."""
    with pytest.raises(ronda.InputError, match=word):
        curtail(two_jobs(), **given)


def test_the_round_is_not_touched_and_the_answer_is_the_same():
    """The same question twice, with the same seed."""
    round_ = generate.tiny_round(3)
    one, other = curtail(round_, points=3), curtail(round_, points=3)
    assert [s.worth for s in one.sheds] == [s.worth for s in other.sheds]
    assert np.allclose([s.most_worth for s in one.sheds], [s.most_worth for s in other.sheds])
