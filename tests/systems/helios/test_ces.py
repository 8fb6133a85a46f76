"""The published controller and what it achieves, to the digit."""

import numpy as np
import pytest

from ronda.instances.demand import Demand
from ronda.instances.errors import InputError
from ronda.instances.files.packaged import load_demand
from ronda.instances.models.power import NodeDraw
from ronda.systems.helios.ces import RULES, CesRule, ces, published
from ronda.systems.helios.controllers import Vanilla
from ronda.systems.helios.lot_sizing import least_cost
from ronda.systems.helios.outcome import outcome


@pytest.fixture(scope="module")
def earth():
    """Return Earth, 1-21 September 2020."""
    return load_demand("earth-2020-09")


def test_the_published_trajectory_in_every_step(earth):
    """3,024 of 3,024 steps of Fig. 14 of the artifact."""
    forecast = published(np.array(earth.forecast))
    found = ces(earth.needed_nodes, earth.total_nodes, forecast, RULES["earth"])
    assert found.tolist() == list(earth.active)
    other = ces(earth.needed_nodes, earth.total_nodes, forecast, RULES["venus"])
    assert other.tolist() != list(earth.active)


def test_the_published_figures(earth):
    """As the artifact prints them: 28 wake-ups in 21 days, 55 changes, 82.13 to 95.06 %."""
    made = outcome(earth, np.array(earth.active), NodeDraw())
    assert made.mean_sleeping_nodes == pytest.approx(20.49, abs=0.005)
    assert made.wakeups_per_day == pytest.approx(28 / 21)
    assert made.nodes_per_wakeup == pytest.approx(6.68, abs=0.005)
    assert made.changes_per_day == pytest.approx(55 / 21)
    assert made.mean_change_nodes == pytest.approx(6.64, abs=0.005)
    assert made.median_change_nodes == 6
    assert made.utilisation_before == pytest.approx(0.8213, abs=5e-5)
    assert made.utilisation_after == pytest.approx(0.9506, abs=5e-5)
    assert (made.lack_intervals, made.lack_node_intervals) == (28, 47)


def test_sleeping_at_once_wakes_all_the_time(earth):
    """29.2 wake-ups a day; 29.3 (615) if the first hour and its start from nothing count."""
    made = outcome(earth, Vanilla().control(earth).active, NodeDraw())
    assert made.wakeups_per_day == pytest.approx(613 / 21)
    steps = np.diff(earth.needed_nodes, prepend=0)
    assert (steps > 0).sum() / 21 == pytest.approx(29.3, abs=0.02)
    assert made.utilisation_after == 1


@pytest.mark.parametrize(
    ("price", "wakes", "nodes"),
    [(0, 29.2, 26.8), (20, 5.2, 26.1), (80, 2.05, 25.2), (150, 1.38, 24.7), (300, 0.95, 24.0)],
)
def test_the_bound_of_perfect_foresight(earth, price, wakes, nodes):
    """The known points of the trade-off."""
    plan = least_cost(earth.needed_nodes, earth.total_nodes, price)
    made = outcome(earth, plan, NodeDraw())
    assert made.wakeups_per_day == pytest.approx(wakes, abs=0.04)
    assert made.mean_sleeping_nodes == pytest.approx(nodes, abs=0.05)


RULE = CesRule(past=2, ahead=1, fall=1, falling=0, least=2, buffer=1, keep=3, calm=0)


def test_the_rule_step_by_step():
    """Six steps follow 4 + 1. Step 6 lacks 2: 8 awake, and no sleep before step 9.

    At step 9 the mean of steps 7 and 8 is 4, and 4 - 3 >= 1: 3 + 1 awake, 4 fewer. At step 10 the
    mean is 3.5, and 3.5 - 3 < 1: nothing.
    """
    needed = np.array([4] * 6 + [7, 4, 4, 3, 3])
    found = ces(needed, np.full(11, 9), published(needed), RULE)
    assert found.tolist() == [5] * 6 + [8, 8, 8, 4, 4]


def test_a_rising_forecast_keeps_nodes_awake():
    """At step 9 one step ahead shows 3, two show a mean of 4: it is not yet time."""
    needed = np.array([4] * 6 + [7, 4, 4, 3, 5])
    found = ces(needed, np.full(11, 9), published(needed), RULE)
    assert found.tolist() == [5] * 6 + [8] * 5


def test_nodes_that_are_gone_do_not_stay_awake():
    """The total limits what is awake."""
    needed, total = np.full(9, 4), np.array([9] * 7 + [4, 4])
    assert ces(needed, total, published(needed), RULE).tolist() == [5] * 7 + [4, 4]


def of(needed, total=9, step_s=600.0):
    """Return a series."""
    nodes = tuple(map(int, needed))
    return Demand(
        name="x", start="2024-01-01", step_s=step_s, needed=nodes, total=(total,) * len(nodes)
    )


@pytest.mark.parametrize(
    ("wake_s", "waiting_s"), [(0, 0), (300, 600), (600, 1200), (900, 1500), (1800, 1800)]
)
def test_waiting_for_nodes_that_wake(wake_s, waiting_s):
    """Needed 4, then 6, 5, 5, 4 ...; awake 4, then 6.

    Two nodes are missing in step 6 until they have woken, one in step 7: for 15 minutes that is
    2 x 600 + 300 s, for 30 minutes 2 x 600 + 600 s, as later steps need 4.
    """
    needed, active = [4] * 6 + [6, 5, 4, 4], [4] * 6 + [6] * 4
    made = outcome(of(needed), np.array(active), NodeDraw(wake_s=wake_s))
    assert made.waiting_node_s == waiting_s
    assert made.lack_intervals == 1
    assert made.lack_node_intervals == 2


def test_waking_a_step_ahead_saves_the_waiting():
    """Nodes that wake in the step before are ready."""
    needed, active = [4] * 6 + [4, 6, 4, 4], [4] * 6 + [6] * 4
    made = outcome(of(needed), np.array(active), NodeDraw())
    assert (made.waiting_node_s, made.waiting_intervals, made.lack_intervals) == (0, 0, 0)


def test_energy_by_addition():
    """Ten steps of 600 s, 9 nodes: 4 idle node-steps, 46 asleep, one wake-up of 2 nodes.

    Idle: 4 x 600 x 100 = 240,000 J; asleep: 46 x 600 x 10 = 276,000 J; waking: 2 x 300 x 50 =
    30,000 J. Without sleep 9 x 10 - 40 = 50 node-steps idle, less 2 = 48 as step 6 needs 6.
    """
    needed, active = [4] * 6 + [6, 4, 4, 4], [4] * 6 + [6] * 3 + [4]
    draw = NodeDraw(idle_w=100, sleep_w=10, wake_s=300, wake_w=50)
    made = outcome(of(needed), np.array(active), draw)
    assert made.idle_j == 4 * 600 * 100
    assert made.asleep_j == (90 - 46) * 600 * 10
    assert made.wake_j == 30_000
    assert made.saved_j == (90 - 42) * 600 * 100 - made.energy_j


def test_a_draw_below_zero_is_refused():
    """With the name of the option."""
    with pytest.raises(InputError, match="wake-s: found -1"):
        NodeDraw(wake_s=-1)
