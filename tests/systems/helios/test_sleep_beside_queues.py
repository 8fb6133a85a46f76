"""CES and wake-or-wait by hand: nodes that sleep while jobs really wait for them."""

import numpy as np
import pytest
from msgspec.structs import replace

from ronda.horizon.driver import run
from ronda.instances.check.checker import check
from ronda.instances.demand import Demand
from ronda.instances.errors import InputError
from ronda.instances.files.json import write
from ronda.instances.instance import Cadence
from ronda.instances.job import Estimate, Truth
from ronda.solvers.registry import policy
from ronda.systems.helios.trace import demand_of

TICKS = Cadence(period_s=600.0)
HOUR_S = 3600.0


def ends(schedule):
    """Return when each job ends."""
    return {job.id: job.end_s for job in schedule.jobs}


@pytest.fixture
def mornings(tmp_path):
    """Ten of twelve nodes are needed until noon, none after, for three days."""
    path = tmp_path / "mornings.json"
    day = (10,) * 72 + (0,) * 72
    write(
        Demand(
            name="mornings",
            start="2020-01-01T00:00:00",
            step_s=600.0,
            needed=day * 3,
            total=(12,) * 432,
        ),
        path,
    )
    return path


def test_ces_sleeps_when_the_need_falls_and_wakes_with_a_buffer(make_instance, mornings):
    """Ten jobs end at noon: of 14 nodes 3 and a buffer of 5 stay. At 13:30 eight are needed.

    That wakes all: 11 and the buffer are more than there are. The jobs wait for three nodes.
    """
    jobs = [(f"long{k}", 0.0, 4, 20 * HOUR_S) for k in range(3)]
    jobs += [(f"j{k}", 0.0, 4, 12 * HOUR_S) for k in range(10)]
    jobs += [(f"late{k}", 13.5 * HOUR_S, 4, HOUR_S) for k in range(8)]
    instance = make_instance(jobs, nodes=14)
    schedule = run(instance, f"ces-queue(history={mornings})", cadence=TICKS)
    slept = sorted(span for span in schedule.sleeps if span[1] < 13 * HOUR_S)
    assert len(slept) == 6
    assert {(start, end) for _, start, end in slept} == {(12 * HOUR_S + 600, 13.5 * HOUR_S)}
    late = sorted(end for job, end in ends(schedule).items() if job.startswith("late"))
    assert late == [14.5 * HOUR_S] * 5 + [14.5 * HOUR_S + 100.0] * 3
    assert check(instance, schedule) == []


def test_ces_stays_awake_without_a_forecast(make_instance):
    """If all is believed to stay as it is the need is not believed to fall."""
    jobs = [("long", 0.0, 4, 20 * HOUR_S), ("short", 0.0, 4, 8 * HOUR_S)]
    assert run(make_instance(jobs, nodes=9), "ces-queue", cadence=TICKS).sleeps == ()


def queue_of(make_instance, believed_s=6000.0):
    """Return a on one node, b on another until about 6,000 s, and c, which comes at 3,000 s."""
    instance = make_instance(
        [("a", 0.0, 4, 30000.0), ("b", 0.0, 4, 6000.0), ("c", 3000.0, 4, 100.0)], nodes=3
    )
    b = replace(instance.jobs[1], estimate=Estimate(work=believed_s))
    return replace(instance, jobs=(instance.jobs[0], b, instance.jobs[2]))


@pytest.mark.parametrize(
    ("delay", "end_s"),
    [
        (30, 3200.0),  # 30 x 3,000 s of waiting cost more than 600 x (100 + 1) for a wake-up
        (1, 6100.0),
    ],
)
def test_a_job_waits_where_that_costs_less_than_a_wake_up(make_instance, delay, end_s):
    """Node 2 sleeps, nobody needing it; c wakes it, or waits for b to end."""
    instance = queue_of(make_instance)
    schedule = run(instance, f"wake-or-wait(keep=1, delay={delay})", cadence=TICKS)
    assert ends(schedule)["c"] == end_s
    assert min(schedule.sleeps, key=lambda sleep: sleep[1])[:2] == (2, 0.0)
    assert check(instance, schedule) == []


def test_who_has_waited_is_expected_to_wait_on(make_instance):
    """B outlives what is believed of it: c does not wait for it until it ends."""
    instance = queue_of(make_instance, believed_s=3100.0)
    schedule = run(instance, "wake-or-wait(keep=1, price=50, delay=30)", cadence=TICKS)
    assert 4000.0 < ends(schedule)["c"] < 5000.0


def test_a_node_sleeps_only_once_that_has_paid(make_instance):
    """With `keep` of 9 steps node 2 goes to sleep in the ninth."""
    instance = make_instance([("a", 0.0, 4, 30000.0), ("b", 0.0, 4, 30000.0)], nodes=3)
    schedule = run(instance, "wake-or-wait", cadence=TICKS)
    assert min(schedule.sleeps, key=lambda sleep: sleep[1])[:2] == (2, 8 * 600.0)


def test_nodes_wake_with_those_that_will_be_needed(make_instance, tmp_path):
    """A past in which four more nodes were always needed an hour later keeps them awake."""
    path = tmp_path / "rising.json"
    saw = tuple(6 if step % 12 < 6 else 2 for step in range(432))
    series = {"start": "2020-01-01T00:00:00", "step_s": 600.0, "total": (8,) * 432}
    write(Demand(name="rising", needed=saw, **series), path)
    jobs = [("a", 0.0, 4, 30000.0), ("b", 0.0, 4, 30000.0)]
    instance = make_instance(jobs, nodes=8)
    alone = run(instance, "wake-or-wait(keep=1)", cadence=TICKS)
    foreseen = run(instance, f"wake-or-wait(keep=1, history={path})", cadence=TICKS)
    assert len({node for node, *_ in alone.sleeps}) == 6
    assert len({node for node, *_ in foreseen.sleeps}) == 2


def at_pace(instance, pace):
    """Return an instance in which everything takes `pace` times as long."""
    jobs = [
        replace(
            job,
            submit_s=pace * job.submit_s,
            estimate=Estimate(work=pace * job.estimate.work),
            truth=Truth(work=pace * job.truth.work),
        )
        for job in instance.jobs
    ]
    groups = [replace(g, wake_s=pace * g.wake_s) for g in instance.cluster.node_groups]
    cluster = replace(instance.cluster, node_groups=tuple(groups))
    return replace(instance, jobs=tuple(jobs), cluster=cluster)


@pytest.mark.parametrize("pace", [0.01, 3.0])
@pytest.mark.parametrize(
    "spec",
    ["wake-or-wait(keep=2", "wake-or-wait(delay=1", "ces-queue(cluster=philly"],
)
def test_steps_of_any_length_keep_pace(make_instance, spec, pace):
    """If all else is slower by a factor too, the same nodes sleep, for that many times as long."""
    jobs = [(f"a{k}", 0.0, 4, 9000.0 - 700 * k) for k in range(8)]
    jobs += [("long", 0.0, 4, 60000.0), *((f"b{k}", 20000.0, 4, 900.0) for k in range(5))]
    jobs += [("late", 30000.0, 4, 600.0)]
    instance = make_instance(jobs, nodes=30 if "ces" in spec else 9)
    plain = run(instance, f"{spec})", cadence=TICKS)
    paced = run(
        at_pace(instance, pace),
        f"{spec}, step_s={600 * pace:g})",
        cadence=Cadence(period_s=600.0 * pace),
    )
    assert len(plain.sleeps) > 5
    assert np.array(paced.sleeps) == pytest.approx(np.array(plain.sleeps) * [1, pace, pace])


@pytest.mark.parametrize(("base", "name"), [("prices", "ces"), ("milp", "lot-sizing")])
def test_others_start_the_jobs_while_nodes_sleep(make_instance, mornings, base, name):
    """As beside the queue: nodes sleep once their jobs end, and wake for those that come."""
    jobs = [(f"long{k}", 0.0, 4, 20 * HOUR_S) for k in range(3)]
    jobs += [(f"j{k}", 0.0, 4, 12 * HOUR_S) for k in range(10)]
    jobs += [("late", 16 * HOUR_S, 32, HOUR_S)]
    instance = make_instance(jobs, nodes=14)
    spec = f"{base}+{name}(history={mornings}, elastic=false)"
    schedule = run(instance, spec, cadence=TICKS)
    assert check(instance, schedule) == []
    slept = {node for node, start, end in schedule.sleeps if 12 * HOUR_S <= start < 16 * HOUR_S}
    assert len(slept) == {"ces": 6, "lot-sizing": 10}[name]
    assert ends(schedule)["late"] == 17 * HOUR_S + 100.0


@pytest.mark.parametrize("spec", ["ces-queue", "wake-or-wait", "prices+ces", "milp+lot-sizing"])
def test_the_length_of_a_step_is_that_of_the_history(mornings, spec):
    """Another one is refused in a line, as are steps of no length and what a base refuses."""
    policy(f"{spec}(history={mornings}, step_s=600)")
    with pytest.raises(InputError, match=r"found 432 steps of 600 s; expected .* of 60 s each"):
        policy(f"{spec}(history={mornings}, step_s=60)")
    with pytest.raises(InputError, match="step_s: found 0; expected a number >= 1"):
        policy(f"{spec}(step_s=0)")
    with pytest.raises(InputError, match="gap: found 0"):
        policy("prices+ces(gap=0)")


def test_histories_that_tell_nothing_are_refused(make_instance, tmp_path):
    """Two days of ten-minute steps are the least."""
    path = tmp_path / "short.json"
    write(
        Demand(name="x", start="2020-01-01T00:00:00", step_s=600.0, needed=(1,), total=(2,)), path
    )
    instance = make_instance([("a", 0.0, 4, 10.0)], nodes=2)
    with pytest.raises(InputError, match="two days"):
        run(instance, f"ces-queue(history={path})")


def test_the_controller_ces_is_no_policy():
    """With a queue its name is another, which the error tells."""
    with pytest.raises(InputError, match="found 'ces'; expected \"ces-queue\""):
        policy("ces")


def test_the_need_of_a_schedule_is_what_it_used(make_instance):
    """The most nodes at any time of a step, by hand: a until 700 s, b from 500 to 900 s."""
    instance = make_instance([("a", 0.0, 4, 700.0), ("b", 500.0, 4, 400.0)], nodes=2)
    series = demand_of(instance, run(instance, "fifo"), step_s=300.0)
    assert series.needed == (1, 2, 2)
    assert series.total == (2, 2, 2)
