"""Controllers by name: what they know, what they decide, what they refuse."""

import numpy as np
import pytest
from msgspec import structs

from ronda.instances import generate
from ronda.instances.errors import InputError
from ronda.instances.files.json import write
from ronda.instances.files.packaged import load_demand
from ronda.instances.models.power import NodeDraw
from ronda.systems.helios.controllers import CONTROLLERS, controller
from ronda.systems.helios.lot_sizing import LotSizing
from ronda.systems.helios.outcome import outcome

SERIES = generate.demand(6, 40, 1, step_s=1800.0)
KEPT = 3 * 48 + 5
CAUSAL = (
    "vanilla",
    "ces(forecast=last)",
    "ces(forecast=seasonal)",
    "ces(forecast=boosted)",
    "lot-sizing(forecast=last)",
    "lot-sizing(forecast=seasonal)",
    "lot-sizing",
)
KNOWING = ("oracle", "ces(forecast=leaking)", "ces(forecast=published)")


@pytest.fixture(scope="module")
def earth():
    """Return Earth, 1-21 September 2020."""
    return load_demand("earth-2020-09")


def another_future():
    """Return the series with other needs after some steps."""
    needed = (*SERIES.needed[:KEPT], *(40 - n // 2 for n in SERIES.needed[KEPT:]))
    return structs.replace(SERIES, needed=needed)


@pytest.mark.parametrize("spec", CAUSAL)
def test_the_future_changes_no_decision(spec):
    """Whatever is needed later, what was decided until then is the same.

    (CES lets no node sleep where its forecast does not fall: there later decisions agree as well.)
    """
    plain = controller(spec).control(SERIES)
    other = controller(spec).control(another_future())
    assert plain.knowledge in ("history", "none")
    assert np.array_equal(plain.active[:KEPT], other.active[:KEPT])
    later = np.array_equal(plain.active[KEPT:], other.active[KEPT:])
    assert spec.startswith("ces") or not later


def test_who_knows_the_future_says_so(earth):
    """The bound, and controllers whose forecast has seen later needs."""
    for spec in KNOWING:
        assert controller(spec).control(earth).knowledge in ("oracle", "leaking")
    full = structs.replace(SERIES, needed=SERIES.needed[:KEPT] + SERIES.total[KEPT:])
    plain, other = (controller("oracle(lead=1)").control(s).active for s in (SERIES, full))
    assert plain[KEPT - 1] < other[KEPT - 1] == 40


@pytest.mark.parametrize("spec", [*CAUSAL, "oracle", "oracle(lead=2)", "ces(forecast=leaking)"])
def test_what_is_needed_is_awake(spec):
    """And no more than there is."""
    active = controller(spec).control(SERIES).active
    assert (active >= SERIES.needed_nodes).all()
    assert (active <= SERIES.total_nodes).all()


def test_no_controller_beats_the_bound():
    """In nodes awake and wake-ups at the price that both have."""
    for price in (5.0, 40.0):
        bound, own = (
            controller(f"{head}price={price})").control(SERIES).active
            for head in ("oracle(", "lot-sizing(forecast=seasonal, ")
        )
        cost = [a.sum() + price * (np.diff(a) > 0).sum() for a in (bound, own)]
        assert cost[0] <= cost[1]


def test_nodes_that_wake_a_step_ahead_leave_nobody_waiting(earth):
    """A lead of one step, ten minutes, covers a boot of five: it costs 0.12 of 24.7 nodes."""
    at_once, ahead = (
        outcome(earth, controller(spec).control(earth).active, NodeDraw())
        for spec in ("oracle", "oracle(lead=1)")
    )
    assert (at_once.lack_intervals, ahead.lack_intervals) == (29, 0)
    assert at_once.waiting_node_s == 300 * at_once.lack_node_intervals
    assert ahead.waiting_node_s == 0
    loss = at_once.mean_sleeping_nodes - ahead.mean_sleeping_nodes
    assert loss == pytest.approx(0.12, abs=0.01)


def test_a_dearer_wake_up_is_rarer():
    """On causal forecasts, too."""
    found = [
        outcome(
            SERIES, LotSizing(price=price, forecast="seasonal").control(SERIES).active, NodeDraw()
        )
        for price in (2.0, 100.0)
    ]
    assert found[0].wakeups_per_day > 2 * found[1].wakeups_per_day
    assert found[0].mean_sleeping_nodes > found[1].mean_sleeping_nodes


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("milp", "found 'milp'; expected lot-sizing"),
        ("cse", 'did you mean "ces"'),
        ("ces(buffer=3)", 'expected one of "cluster", "forecast", "history"'),
        ("ces(cluster=mars)", 'cluster: found "mars"; expected one of "venus"'),
        ("lot-sizing(price=-1)", "price"),
        ("lot-sizing(eps=0)", "eps"),
        ("vanilla(x=1)", "no parameter"),
    ],
)
def test_unknown_words_are_refused(spec, said):
    """In one line that says what is known."""
    with pytest.raises(InputError, match=said) as caught:
        controller(spec)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("ces", "no published forecast"),
        ("lot-sizing(history=earth-2020-09)", "steps of 600 s; expected steps of 1800 s"),
        ("lot-sizing(history=one-gpu)", "expected a demand series"),
        ("lot-sizing(forecast=last,history=earth-2020-09)", "forecast=boosted, which learns"),
    ],
)
def test_what_a_series_lacks_is_told(spec, said):
    """Before anything is trained."""
    with pytest.raises(InputError, match=said):
        controller(spec).control(SERIES)


def test_history_may_be_a_file(tmp_path):
    """It lets nodes sleep in the first two days."""
    write(generate.demand(5, 40, 2, step_s=1800.0), tmp_path / "past.json")
    with_it = LotSizing(history=str(tmp_path / "past.json")).control(SERIES)
    without = LotSizing().control(SERIES)
    assert (with_it.forecast.first, without.forecast.first) == (2, 96)
    assert with_it.active[:96].sum() < without.active[:96].sum()


def test_all_controllers_are_tested():
    """A new one belongs into the lists above."""
    assert {spec.partition("(")[0] for spec in (*CAUSAL, *KNOWING)} == set(CONTROLLERS)
