"""A log's own starts, ends and nodes as a schedule; every figure is derived beside it."""

from collections import Counter

import pytest
from msgspec.structs import replace

from ronda.instances.check.checker import check
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Partition
from ronda.instances.errors import InputError
from ronda.instances.instance import Instance
from ronda.instances.job import Costs, Job, Truth
from ronda.instances.outcome.metrics import summarise
from ronda.instances.profile import PowerCurve, Profile, Rigid
from ronda.instances.traces.happened import recorded_schedule
from ronda.instances.traces.recorded import Recorded, RecordedRun

CLUSTER = Cluster(
    gpu_types=(GpuType(name="A", memory_gib=16, idle_w=10), GpuType(name="B", memory_gib=16)),
    node_groups=(
        NodeGroup(name="a", count=2, gpus_per_node=4, gpu_type="A"),
        NodeGroup(name="b", count=1, gpus_per_node=2, gpu_type="B", partition="b"),
    ),
    partitions=(Partition(name="b"),),
)
RIGID = Profile(
    name="rigid", throughput={"A": Rigid(), "B": Rigid()}, power={"A": PowerCurve(a_w=60)}
)


def job(name, submit_s, gpus, work, **fields):
    """Return a rigid job."""
    return Job(
        id=name, submit_s=submit_s, gpus=gpus, profile="rigid", truth=Truth(work=work), **fields
    )


def of(*jobs, **fields):
    """Return the instance of some jobs."""
    return Instance(name="log", cluster=CLUSTER, profiles={"rigid": RIGID}, jobs=jobs, **fields)


def ran(start_s, end_s, held=(), state="COMPLETED", **fields):
    """Return a recorded run."""
    return RecordedRun(start_s, end_s, dict(held), state, **fields)


def test_a_record_keeps_times_and_nodes():
    """Waits 5 and 0 s; 4 GPUs for 10 s and 2 for 20 s; all of it is as our rules have it."""
    instance = of(job("x", 0.0, 4, 10.0), job("y", 2.0, 2, 20.0))
    runs = {"x": (ran(5.0, 15.0, {1: 4}),), "y": (ran(2.0, 22.0, {0: 2}),)}
    made = recorded_schedule(instance, Recorded(runs, 22.0))
    assert check(instance, made) == []
    assert [o.segments[0].placement for o in made.jobs] == [((1, 4),), ((0, 2),)]
    found = summarise(instance, made)
    assert (found["policy"], found["mean_queue_s"], found["mean_jct_s"]) == ("recorded", 2.5, 17.5)
    assert found["gpu_s"] == 80.0
    assert made.energy.busy_j == 60.0 * 80.0
    assert made.config["notes"] == ["runs on the nodes that the log names: 2"]


def test_runs_without_nodes_get_any_with_room():
    """X takes node 0, y the next, z what is left on both; the GPU of x at 10 s is free again."""
    jobs = [job(name, 0.0, gpus, 10.0) for name, gpus in (("x", 3), ("y", 3), ("z", 2), ("w", 3))]
    runs = {"x": (ran(0.0, 10.0),), "y": (ran(1.0, 11.0),), "z": (ran(2.0, 12.0),)}
    instance = of(*jobs, job("v", 0.0, 2, 10.0, partition="b"))
    runs |= {"w": (ran(10.0, 20.0),), "v": (ran(0.0, 10.0),)}
    made = recorded_schedule(instance, Recorded(runs, 20.0))
    assert check(instance, made) == []
    placed = [o.segments[0].placement for o in made.jobs]
    assert placed == [((0, 3),), ((1, 3),), ((0, 1), (1, 1)), ((0, 3),), ((2, 2),)]
    (note,) = made.config["notes"]
    assert note == "runs on any nodes with room, as the log names none: 5"


def test_the_first_node_with_room_is_taken():
    """It need not be the one with the most room, and may be full then."""
    instance = of(job("x", 0.0, 3, 10.0), job("y", 0.0, 1, 10.0))
    runs = {"x": (ran(0.0, 10.0),), "y": (ran(1.0, 11.0),)}
    made = recorded_schedule(instance, Recorded(runs, 11.0))
    assert made.jobs[1].segments[0].placement == ((0, 1),)
    alike = (ran(2.0, 9.0),)  # one record for two jobs of other sizes
    made = recorded_schedule(instance, Recorded({"x": alike, "y": alike}, 9.0))
    assert [o.segments[0].placement for o in made.jobs] == [((0, 3),), ((0, 1),)]


@pytest.mark.parametrize("held", [{}, {0: 4}])
def test_more_than_the_cluster_has_is_shown(held):
    """Three jobs of 4 GPUs at once are on 8 GPUs: counted, and a violation of the capacity."""
    jobs = [job(name, 0.0, 4, 10.0) for name in "xyz"]
    runs = {name: (ran(0.0, 10.0, held if name != "y" else {1: 4}),) for name in "xyz"}
    instance = of(*jobs)
    made = recorded_schedule(instance, Recorded(runs, 10.0))
    assert [v.code for v in check(instance, made)] == ["capacity"]
    assert made.config["notes"][-1].startswith(
        "runs that start when too few GPUs are free for them: 1,"
    )
    assert summarise(instance, made)["gpu_s"] == 120.0


def test_all_rules_are_checked_although_one_is_broken():
    """A job of another size and partition than it asked for breaks rules, and capacity as well."""
    instance = of(
        job("x", 0.0, 2, 10.0, partition="b"),
        job("y", 0.0, 4, 10.0, preemptible=False),
        job("z", 0.0, 1, 10.0, limit_s=5.0),
    )
    runs = {"x": (ran(0.0, 10.0, {0: 4}),), "y": (ran(0.0, 4.0, {0: 4}), ran(6.0, 12.0, {0: 4}))}
    made = recorded_schedule(instance, Recorded(runs | {"z": (ran(0.0, 10.0, {1: 1}),)}, 12.0))
    found = Counter(v.code for v in check(instance, made))
    assert found == {"partition": 1, "must-run": 1, "limit": 1, "capacity": 1}


def test_pauses_requeues_and_ends_of_the_log():
    """The last of the work is done last: suspensions and lost work are pauses."""
    instance = of(
        job("x", 0.0, 1, 10.0),
        job("y", 0.0, 1, 10.0),
        job("z", 0.0, 1, 50.0),
        job("u", 0.0, 1, 5.0),
        job("cut", 0.0, 1, 99.0, limit_s=10.0),
        costs=Costs(restart_s=0.0),
    )
    runs = {
        "x": (ran(0.0, 14.0, {0: 1}, suspended_s=4.0),),
        "y": (ran(0.0, 6.0, {0: 1}, state="REQUEUED"), ran(8.0, 16.0, {1: 1})),
        "z": (ran(1.0, None, {0: 1}, state="RUNNING"),),
        "cut": (ran(0.0, 10.0, {0: 1}, state="TIMEOUT"),),
    }
    made = recorded_schedule(instance, Recorded(runs, 20.0))
    assert check(instance, made) == []
    x, y, z, u, cut = made.jobs
    assert [(s.resume_s, s.done) for s in x.segments] == [(4.0, 10.0)]
    assert [(s.resume_s, s.done) for s in y.segments] == [(4.0, 2.0), (8.0, 8.0)]
    assert (z.end_s, z.segments[0].end_s, z.segments[0].done) == (None, 20.0, 19.0)
    assert (u.end_s, u.segments, cut.state) == (None, (), "time limit")
    assert made.config["notes"][-2:] == [
        "jobs without a run in the log, which count as unfinished: 1",
        "jobs that run when the log ends, which count as unfinished: 1",
    ]
    assert summarise(instance, made)["unfinished"] == 2


def test_work_that_its_time_cannot_do_breaks_a_rule():
    """Nothing is bent: 10 s of work in 6 s are told as they are."""
    instance = of(job("x", 0.0, 1, 10.0))
    made = recorded_schedule(instance, Recorded({"x": (ran(0.0, 6.0, {0: 1}),)}, 6.0))
    assert [v.code for v in check(instance, made)] == ["work"]


@pytest.mark.parametrize(
    ("runs", "said"),
    [
        ({"q": (ran(0.0, 1.0),)}, 'job "q": found no such job'),
        ({"x": (ran(0.0, 6.0), ran(5.0, 9.0))}, "one from 0 s on has not ended"),
        ({"x": (ran(0.0, None), ran(5.0, 9.0))}, "one run after the other"),
        ({"x": (ran(4.0, 3.0),)}, "an end at 3 s, before the start"),
        ({"x": (ran(0.0, 6.0, {3: 1}),)}, "found node 3; expected one of the 3 nodes"),
    ],
)
def test_a_record_that_cannot_be_is_refused(runs, said):
    """With the job, and the found and expected content."""
    with pytest.raises(InputError, match=said):
        recorded_schedule(of(job("x", 0.0, 1, 10.0)), Recorded(runs, 9.0))


def test_the_other_schedules_are_checked_as_before():
    """The rules for all jobs together need valid jobs where a policy decided."""
    instance = of(job("x", 0.0, 4, 10.0, partition="b"), job("y", 0.0, 4, 10.0))
    runs = {name: (ran(0.0, 10.0, {0: 4}),) for name in "xy"}
    made = recorded_schedule(instance, Recorded(runs, 10.0))
    assert {v.code for v in check(instance, made)} == {"partition", "capacity"}
    decided = replace(made, policy="fifo")
    assert {v.code for v in check(instance, decided)} == {"partition"}
