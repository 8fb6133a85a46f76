"""GPUs and watts over time, and the lanes of the Gantt chart."""

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from arrays import Told, array, instance
from ronda.bench.figures.usage import bars, usage_of
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.instance import Instance
from ronda.instances.job import Option
from ronda.instances.schedule import JobOutcome, Schedule, Segment
from ronda.solvers.horizon.driver import run


def test_gpus_and_watts_by_hand(two_nodes, by_hand):
    """Idle: 2 x (100 + 4 x 10) = 280 W; each busy GPU adds 60 - 10 = 50 W."""
    found = usage_of(two_nodes, by_hand)
    assert found.time_s.tolist() == [0, 100, 150, 160]
    assert found.gpus.tolist() == [2, 8, 1, 0]
    assert found.watts.tolist() == [280 + 100, 280 + 400, 280 + 50, 280]


def test_a_pausing_job_draws_idle_power(two_nodes, by_hand):
    """Job a pauses until 20: its GPUs are held from 0 on, its watts count from 20 on."""
    (first, *others) = by_hand.jobs
    segment = msgspec.structs.replace(first.segments[0], resume_s=20.0)
    paused = msgspec.structs.replace(first, segments=(segment,))
    found = usage_of(two_nodes, msgspec.structs.replace(by_hand, jobs=(paused, *others)))
    assert found.time_s.tolist()[:3] == [0, 20, 100]
    assert found.gpus.tolist()[:2] == [2, 2]
    assert found.watts.tolist()[:2] == [280, 380]


def test_a_sleeping_node_draws_its_sleeping_power(two_nodes, by_hand):
    """Node 1 asleep from 0 to 90 saves 100 + 40 - 5 = 135 W."""
    asleep = msgspec.structs.replace(by_hand, sleeps=((1, 0.0, 90.0),))
    found = usage_of(two_nodes, asleep)
    assert found.watts[0] == 380 - 135
    assert found.watts[found.time_s.tolist().index(90.0)] == 380


def test_integral_of_the_watts_is_the_energy_of_the_driver(two_nodes):
    """The driver's own meter and the picture agree."""
    schedule = run(two_nodes, "srtf")
    found = usage_of(two_nodes, schedule)
    joules = float(np.sum(np.diff(found.time_s) * found.watts[:-1]))
    assert np.isclose(joules, schedule.energy.total_j, rtol=1e-12)


def test_lanes_by_hand(two_nodes, by_hand):
    """Every bar starts at the lowest free GPU of its node."""
    found = [(b.job, b.node, b.lane, b.lanes, b.gpus) for b in bars(two_nodes, by_hand)]
    assert found == [("a", 0, 0, 2, 2), ("b", 0, 0, 4, 8), ("b", 1, 0, 4, 8), ("c", 0, 0, 1, 1)]


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(1, 10), st.integers(1, 6)),
        min_size=1,
        max_size=25,
    )
)
def test_bars_never_overlap(pieces):
    """Whatever the schedule (even one that holds too much), no two bars share a GPU at a time."""
    gpu = GpuType(name="G", memory_gib=16.0)
    node = NodeGroup(name="n", count=1, gpus_per_node=8, gpu_type="G")
    instance = Instance(
        name="x", cluster=Cluster(gpu_types=(gpu,), node_groups=(node,)), profiles={}, jobs=()
    )
    jobs = []
    for k, (start, length, gpus) in enumerate(pieces):
        segment = Segment(
            start_s=start,
            resume_s=start,
            end_s=start + length,
            done=length,
            option=Option(pool=0, gpus=gpus),
            placement=((0, gpus),),
        )
        jobs.append(JobOutcome(id=str(k), submit_s=0, end_s=start + length, segments=(segment,)))
    schedule = Schedule(instance="x", fingerprint="", policy="", jobs=tuple(jobs), end_s=30.0)
    cells = set()
    for bar in bars(instance, schedule):
        assert bar.lane + bar.lanes <= 8
        for lane in range(bar.lane, bar.lane + bar.lanes):
            for second in range(int(bar.start_s), int(bar.end_s)):
                assert (lane, second) not in cells
                cells.add((lane, second))


def test_an_array_is_one_bar():
    """Two jobs share a GPU until one ends; the other goes on alone."""
    made = instance([4, 8], gpus=1)
    schedule = run(made, Told(lambda r: r.held or array(r, ["j0", "j1"], "fused", 0, "a")))
    assert [(b.jobs, b.lanes) for b in bars(made, schedule)] == [(2, 1), (1, 1)]
    assert usage_of(made, schedule).gpus.max() == 1.0
