"""What a switch costs over the time that an allocation lasts."""

import msgspec
import numpy as np
import pytest

from ronda.formulations.objectives.by_name import density
from ronda.formulations.objectives.outlook import outlook
from ronda.formulations.objectives.remaining_work import expected_left
from ronda.formulations.objectives.switching_cost import (
    horizon_s,
    loss_of_moves,
    loss_of_stops,
    pause_share,
)
from ronda.formulations.options.build import build
from ronda.instances.job import Costs
from valued_rounds import COSTS, job, rigid, run, snapshot, value_of


def outlook_values(state, horizon_s=600.0):
    """Return the table of one job and its densities, without what a stop would lose."""
    round = snapshot(state, costs=COSTS)
    table = build(round)
    return table, density(outlook(round, table, horizon_s), patience=3.0, alone_s=None)


def test_a_pause_takes_its_share_of_the_time_that_an_option_lasts():
    """60 s of pause and 540 of work: a tenth; of at most 300 s a fifth; alone it is all of it."""
    run_s, longest_s = np.array([540.0, 540.0, 0.0, np.inf]), np.array([1e9, 300.0, 300.0, 600.0])
    assert pause_share(np.full(4, 60.0), run_s, longest_s).tolist() == [0.1, 0.2, 1.0, 0.1]
    assert pause_share(np.zeros(2), np.array([0.0, 1.0]), 600.0).tolist() == [0.0, 0.0]


def test_as_much_is_left_of_an_unknown_size_as_is_done():
    """Of 100 units 70 are left, after 30 s at 1 unit/s; of an unknown size 30 are.

    One that has done nothing counts as a round of 60 s at its rate of 2; of rate 0 as nothing.
    """
    one, other = (
        run(job(name, work), 4, 1.0, since_s=-30.0) for name, work in (("a", 100.0), ("b", None))
    )
    round_ = snapshot(one, other, job("c", None), job("d", None), length_s=60.0)
    rate = np.array([0.1, 0.1, 2.0, np.nan])
    assert expected_left(round_, rate).tolist() == [70.0, 30.0, 120.0, 0.0]


def test_a_switch_costs_its_pause_over_the_horizon():
    """Long job, horizon 600 s, restart 60 s: other options lose a tenth, the current none."""
    table, v = outlook_values(run(job("a", 1e6), 4, 2.0))
    lost = v / (table.rate / 1e6)
    np.testing.assert_allclose(lost[table.current], 1.0)
    np.testing.assert_allclose(lost[~table.current], 0.9)


def test_the_horizon_ends_with_the_job():
    """80 s of work left at rate 2 on 4 GPUs: on 16, at rate 4, 20 s + 60 s pause, 1 unit/s."""
    table, v = outlook_values(run(job("a", 80.0), 4, 2.0), 1e9)
    rate = dict(zip(table.gpus.tolist(), (v * 80).tolist(), strict=True))
    assert rate[4] == pytest.approx(2.0)
    assert rate[16] == pytest.approx(80 / (20 + 60))


def test_horizon_parameter():
    """With a horizon of 120 s a restart of 60 s costs half."""
    table, v = outlook_values(run(job("a", 1e6), 4, 2.0), 120.0)
    np.testing.assert_allclose(v[~table.current] / (table.rate[~table.current] / 1e6), 0.5)


def test_starting_costs_a_waiting_job_nothing():
    """It must start some time; even a job shorter than its start delay keeps its full value."""
    free, costly = (
        value_of(snapshot(job("a", 5.0), costs=c))[1] for c in (Costs(), Costs(start_s=300.0))
    )
    np.testing.assert_allclose(costly, free)
    assert (free > 0).all()


def test_only_what_a_restart_costs_beyond_the_cheapest_counts():
    """A stopped job restarts in 10 s on one GPU and 70 s on more: wide options lose 60 s."""
    costs = Costs(restart_by_gpus=((1, 10.0), (64, 70.0)))
    stopped = msgspec.structs.replace(job("a", 1e6), started=True)
    table, v = value_of(snapshot(stopped, costs=costs), "density")
    lost = v / (table.rate / 1e6)
    np.testing.assert_allclose(lost, np.where(table.gpus == 1, 1.0, 0.9))


def test_a_pause_cut_short_is_owed_beside_the_next():
    """A job that is still starting (30 s left) loses the whole 60 s of another restart."""
    starting = run(job("a", 1e6), 4, 2.0, since_s=30.0)
    table, v = outlook_values(starting)
    lost = v / (table.rate / 1e6)
    np.testing.assert_allclose(lost, np.where(table.current, 1.0, 0.9))


def test_waiting_for_nodes_to_wake_is_not_owed():
    """Of 50 s until it progresses 20 are its pause: elsewhere it pauses for 60 + 20 s."""
    waking = msgspec.structs.replace(run(job("a", 1e6), 4, 2.0, since_s=50.0), pause_s=20.0)
    table, v = outlook_values(waking)
    lost = v / (table.rate / 1e6)
    np.testing.assert_allclose(lost, np.where(table.current, 1.0, 0.95))


def stops_lose(o, values):
    """Return the losses of stops in an outlook."""
    return loss_of_stops(o.round, o.table, values, o.remaining, o.horizon_s)


def test_a_stop_costs_the_restart_that_it_will_owe():
    """With 600 s to go at rate 2 a stop loses 60 s, a tenth of the option's value; all rows more.

    A waiting job loses nothing by not running; one that is nearly done no more than tenfold.
    """
    round = snapshot(run(job("a", 1200.0), 4, 2.0), job("b", 1200.0), costs=COSTS)
    table = build(round)
    o = outlook(round, table, 600.0)
    v = np.arange(1.0, len(table) + 1)
    lost = stops_lose(o, v)
    assert lost.tolist() == pytest.approx([0.1 * v[table.current][0], 0.0])
    worth = value_of(round, "density")[1]
    bare = o.by_row(o.weight / o.remaining) * o.rate
    np.testing.assert_allclose(worth, bare + o.by_row(stops_lose(o, bare)))
    nearly = snapshot(run(job("a", 1.0), 4, 2.0), costs=COSTS)
    table = build(nearly)
    lost = stops_lose(outlook(nearly, table, 600.0), np.ones(len(table)))
    assert lost.tolist() == [10.0]


def test_a_stop_in_a_pause_owes_the_rest_of_it():
    """With 30 s of its pause left it would restart with 60 + 30 s, of 600 s that it lasts."""
    round = snapshot(run(job("a", 1200.0), 4, 2.0, since_s=30.0), costs=COSTS)
    table = build(round)
    lost = stops_lose(outlook(round, table, 600.0), np.ones(len(table)))
    assert lost.tolist() == pytest.approx([0.15])


@pytest.mark.parametrize("since_s", [0.0, 30.0])
def test_a_move_in_a_pause_costs_what_it_adds(since_s):
    """Elsewhere it pauses for 60 s more than it does anyhow, a tenth of 600 s.

    Its option is worth 1 and what a stop loses: 60 s, and what is left of its pause, of 600 s.
    """
    round = snapshot(run(job("a", 1200.0), 4, 2.0, since_s=since_s), costs=COSTS)
    table = build(round)
    rows = np.flatnonzero(table.current)
    worth = np.full(len(table), 1.0 + (60.0 + since_s) / 600.0)
    assert loss_of_moves(round, table, worth, rows, {"a"}) == pytest.approx(0.1)
    assert loss_of_moves(round, table, worth, rows, set()) == 0.0


def test_snapshot_counts_the_restart_of_a_stopped_job_in_seconds():
    """All its options save 60 s more than those of a job that waits and will restart anyway."""
    runs = run(job("a", 80.0), 4, 2.0)
    waits = msgspec.structs.replace(runs, allocation=None)
    table, v = value_of(snapshot(runs, costs=COSTS), "snapshot")
    _, other = value_of(snapshot(waits, costs=COSTS), "snapshot")
    np.testing.assert_allclose(v - other, np.where(table.current, 60.0, 0.0))


def test_outlook_counts_the_pause_until_completion():
    """left_s: pause and remaining work; nothing for the running option."""
    round = snapshot(run(job("a", 80.0), 4, 2.0), job("b", 80.0), costs=COSTS)
    table = build(round)
    left = outlook(round, table, 600.0).left_s
    expected = 80 / table.rate + np.where(table.job == 1, 20.0, np.where(table.current, 0.0, 60.0))
    np.testing.assert_allclose(left, expected)


def test_outlook_counts_the_work_left():
    """100 - 60 units; a job that outlived its 100 needs 1 more; of unknown size: what it did."""
    known, outlived = job("a", done=60.0), job("b", done=130.0)
    round = snapshot(known, outlived)
    assert outlook(round, build(round), 600.0).remaining.tolist() == [40.0, 1.0]
    round = snapshot(known, job("c", None, done=7.0), job("d", None), length_s=30.0)
    # d has done nothing yet: a round of 30 s at its rate on one GPU, 1 unit a second
    assert outlook(round, build(round), 600.0).remaining.tolist() == [40.0, 30.0, 30.0]
    assert outlook(snapshot(known), build(snapshot(known)), 600.0).remaining.tolist() == [40.0]


def test_outlook_knows_the_span_of_options():
    """Of several options with the fewest GPUs the best rate counts, one by one over the rows."""
    states = (
        run(job("a", 500.0), 2, 1.0),
        rigid("too wide", 7.0, gpus=1000),
        job("b"),
        rigid("c", 9.0, gpus=3),
    )
    round = snapshot(*states)
    several = 0
    for prune in (True, False):  # without pruning several options have the same GPUs
        table = build(round, prune=prune)
        o = outlook(round, table, 600.0)
        for j in range(len(states)):
            own = slice(table.start[j], table.start[j + 1])
            rows = list(zip(table.gpus[own].tolist(), table.rate[own].tolist(), strict=True))
            found = [a[j] for a in (o.least_gpus, o.least_rate, o.most_gpus, o.most_rate)]
            if not rows:
                assert np.isnan(found).all()
                continue
            fewest, best = min(n for n, _ in rows), max(rate for _, rate in rows)
            several += sum(n == fewest for n, _ in rows) > 1
            slow = max(rate for n, rate in rows if n == fewest)
            assert found == [fewest, slow, min(n for n, rate in rows if rate == best), best]
    assert several


def test_outlook_agrees_with_the_states():
    """Work done and left are those of `JobState`, whether a job runs, pauses or waits."""
    states = (
        run(job("runs", 500.0, done=10.0), 2, 1.5),
        run(job("pauses", 500.0, done=20.0), 4, 2.0, since_s=90.0),
        run(job("outlived", 30.0, done=10.0), 2, 1.5),
        job("waits", 80.0, done=5.0),
    )
    round = snapshot(*states, now_s=50.0)
    o = outlook(round, build(round), 600.0)
    assert o.done.tolist() == [state.done_at(50.0) for state in o.table.jobs]
    assert o.remaining.tolist() == [state.remaining_at(50.0) for state in o.table.jobs]
    assert o.done.tolist() == [85.0, 20.0, 85.0, 5.0]
    assert o.remaining.tolist() == pytest.approx([415.0, 480.0, 0.3, 75.0])


def test_allocations_last_longer_where_restarts_do():
    """Ten rounds of 60 s, 600 s, or twice the longest restart."""
    waits = job("a")
    assert horizon_s(snapshot(waits, length_s=30.0)) == 600.0
    assert horizon_s(snapshot(waits, length_s=90.0)) == 900.0
    assert horizon_s(snapshot(waits, costs=Costs(restart_s=700.0))) == 1400.0
    by_gpus = Costs(restart_s=5.0, restart_by_gpus=((1, 400.0), (8, 500.0)))
    assert horizon_s(snapshot(waits, costs=by_gpus)) == 1000.0


def test_allocations_last_as_long_as_the_live_jobs_show():
    """Two jobs began 2,000 and 1,000 s ago and changed nine times: (1500 + 600) / 10 = 210 s.

    With fewer changes it is 600 s, and with more twice the restart. A job that has not started
    shows nothing.
    """

    def seen(*changes):
        begun = [
            msgspec.structs.replace(job(f"j{k}", submit_s=1000.0 * k), started=True, restarts=n)
            for k, n in enumerate(changes)
        ]
        waits = msgspec.structs.replace(job("waits"), restarts=50)
        return horizon_s(snapshot(*begun, waits, now_s=2000.0, costs=Costs(restart_s=30.0)))

    assert seen(4, 5) == 210.0
    assert seen(0, 2) == 600.0
    assert seen(0, 0) == 600.0
    assert seen(40, 50) == 60.0
