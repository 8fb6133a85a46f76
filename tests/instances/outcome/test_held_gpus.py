"""Which GPUs a job holds: never two jobs on one at a time, and none moves without need."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.job import Option
from ronda.instances.outcome.held_gpus import seats
from ronda.instances.schedule import JobOutcome, Schedule, Segment

CLUSTER = uniform_cluster(GpuType(name="G", memory_gib=16), nodes=2, gpus_per_node=4)

times = st.lists(st.integers(0, 12), min_size=2, max_size=5, unique=True).map(sorted)
placements = st.dictionaries(st.integers(0, 1), st.integers(1, 4), min_size=1)
histories = st.tuples(times, st.lists(placements, min_size=4, max_size=4))


def segment(start_s, end_s, placement, **fields):
    """Return a segment on (node, GPUs) pairs."""
    own = {"option": Option(pool=0, gpus=sum(n for _, n in placement))} | fields
    times = {"start_s": start_s, "resume_s": start_s, "end_s": end_s, "done": 1.0}
    return Segment(**times, placement=placement, **own)


def schedule(histories):
    """Return a schedule of the segments of each job."""
    jobs = tuple(
        JobOutcome(id=f"j{k}", submit_s=0.0, end_s=own[-1].end_s, segments=tuple(own))
        for k, own in enumerate(histories)
    )
    return Schedule(instance="x", fingerprint="", policy="", jobs=jobs, end_s=20.0)


@given(st.lists(histories, min_size=1, max_size=8))
def test_no_gpu_has_two_jobs_and_all_that_fit_get_theirs(drawn):
    """Whatever the schedule, even one that holds too much."""
    made = schedule(
        [
            [
                segment(float(a), float(b), tuple(placement.items()))
                for a, b, placement in zip(ends, ends[1:], some, strict=False)
            ]
            for ends, some in drawn
        ]
    )
    found = seats(CLUSTER, made)
    assert found == seats(CLUSTER, made)
    for second in range(13):
        for node in (0, 1):
            now = [s for s in found if s.segment.start_s <= second < s.segment.end_s]
            held = [gpu for s in now if s.node == node for gpu in s.gpus]
            assert len(held) == len({*held})
            assert {*held} <= {0, 1, 2, 3}
    most = [
        sum(dict(s.placement).get(node, 0) for s in running)
        for node in (0, 1)
        for second in range(13)
        if (running := [s for o in made.jobs for s in o.segments if s.start_s <= second < s.end_s])
    ]
    if max(most) <= 4:
        asked = sum(s.option.gpus * (s.end_s - s.start_s) for o in made.jobs for s in o.segments)
        given = sum(len(s.gpus) * (s.segment.end_s - s.segment.start_s) for s in found)
        assert given == asked


def test_what_goes_on_keeps_its_gpus():
    """When j0 leaves GPU 0, j1 stays on 1 though it changes its clock, grows by the lowest free
    one, shrinks to its lowest, and starts elsewhere only after a break.
    """
    slow = {"option": Option(pool=0, gpus=1, clock=0.5)}
    made = schedule(
        [
            [segment(0.0, 5.0, ((0, 1),))],
            [
                segment(0.0, 5.0, ((0, 1),)),
                segment(5.0, 6.0, ((0, 1),), **slow),
                segment(6.0, 7.0, ((0, 2),)),
                segment(7.0, 8.0, ((0, 1),)),
            ],
            [segment(1.0, 9.0, ((0, 1),))],
        ]
    )
    found = {(s.jobs[0], s.segment.start_s): s.gpus for s in seats(CLUSTER, made)}
    assert [found["j1", t] for t in (0.0, 5.0, 6.0, 7.0)] == [(1,), (1,), (0, 1), (0,)]
    assert found["j2", 1.0] == (2,)


def test_an_array_has_one_seat_and_who_leaves_it_stays_where_it_is():
    """Two jobs share GPU 1; the second goes on alone there, with GPU 0 free."""
    shared = {"option": Option(pool=0, gpus=1, width=2, mode="fused"), "array": "a"}
    made = schedule(
        [
            [segment(0.0, 4.0, ((0, 1),))],
            [segment(1.0, 4.0, ((0, 1),), **shared)],
            [segment(1.0, 4.0, ((0, 1),), **shared), segment(4.0, 9.0, ((0, 1),))],
        ]
    )
    found = [(s.jobs, s.segment.start_s, s.gpus) for s in seats(CLUSTER, made)]
    assert found == [
        (("j0",), 0.0, (0,)),
        (("j1", "j2"), 1.0, (1,)),
        (("j2",), 4.0, (1,)),
    ]


def test_a_segment_without_length_takes_nothing():
    """Two on the same GPU at the same moment."""
    made = schedule([[segment(2.0, 2.0, ((0, 4),))], [segment(2.0, 3.0, ((0, 4),))]])
    assert [(s.jobs, s.gpus) for s in seats(CLUSTER, made)] == [(("j1",), (0, 1, 2, 3))]
    assert seats(CLUSTER, replace(made, jobs=made.jobs[:1])) == []
