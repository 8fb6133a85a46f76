"""The figures of a run, from histories derived by hand."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from msgspec.structs import replace

from records import record
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.instance import Instance
from ronda.instances.job import Job, Option
from ronda.instances.outcome.metrics import job_figures, summarise
from ronda.instances.plan import SolutionStatus
from ronda.instances.schedule import Energy, JobOutcome, Schedule, Segment

CLUSTER = Cluster(
    gpu_types=(GpuType(name="A", memory_gib=16),),
    node_groups=(NodeGroup(name="g", count=2, gpus_per_node=4, gpu_type="A"),),
)
INSTANCE = Instance(name="hand", cluster=CLUSTER, profiles={}, jobs=())


def held(start_s, end_s, gpus=1, node=0, **option):
    """Return a segment in which a job holds GPUs of one node."""
    return Segment(
        start_s=start_s,
        resume_s=start_s,
        end_s=end_s,
        done=end_s - start_s,
        option=Option(pool=0, gpus=gpus, **option),
        placement=((node, gpus),),
    )


def outcome(job_id, submit_s, *segments, cut=False):
    """Return a history that ends with its last segment."""
    end_s = None if cut else segments[-1].end_s
    return JobOutcome(id=job_id, submit_s=submit_s, end_s=end_s, segments=segments)


SCHEDULE = Schedule(
    instance="hand",
    fingerprint="",
    policy="p",
    seed=7,
    jobs=(
        # At once, 10 s on 4 GPUs: JCT 10, queue 0, 40 GPU-s.
        outcome("a", 10, held(10, 20, gpus=4)),
        # Waits 5 s, is preempted for 10 s, then moves without a gap and gets a second GPU:
        # JCT 45, held 5 + 5 + 20 = 30 s, queue 15, 5 + 5 + 40 = 50 GPU-s, 1 preemption, 2 restarts.
        outcome("b", 10, held(15, 20), held(30, 35), held(35, 55, gpus=2, node=1)),
        # Waits for ever so little: not queued. JCT 40, 40 GPU-s; two pieces, no restart.
        outcome("c", 20, held(20 + 1e-7, 30), held(30, 60)),
    ),
    rounds=(
        record(solve_s=0.1),
        record(solve_s=0.3, overrun=True),
        record(solve_s=0.2, violations=("capacity node 0: 5", "gang job a: 3")),
    ),
    energy=Energy(busy_j=100, idle_gpu_j=20, host_j=3),
    end_s=60,
)


def test_figures_by_hand():
    """Every figure of a run of three jobs."""
    assert summarise(INSTANCE, SCHEDULE) == {
        "instance": "hand",
        "policy": "p",
        "seed": 7,
        "jobs": 3,
        "unfinished": 0,
        "mean_jct_s": pytest.approx(95 / 3),
        "median_jct_s": 40,
        # Ranks 0, 1, 2 hold 10, 40, 45: 95 % of the way is rank 1.9, 99 % is rank 1.98.
        "p95_jct_s": pytest.approx(44.5),
        "p99_jct_s": pytest.approx(44.9),
        # Held for 10, 30 and 40 s.
        "mean_run_s": pytest.approx(80 / 3),
        # 0, next to nothing, and 15 s, of which 98 and 99.8 %.
        "mean_queue_s": pytest.approx(5),
        "p99_queue_s": pytest.approx(14.7),
        "p999_queue_s": pytest.approx(14.97),
        "longest_queue_s": pytest.approx(15),
        "queued_jobs": 1,
        "makespan_s": 50,
        "preemptions": 1,
        "restarts": 2,
        "restart_share": 0,
        "pinned_jobs": 0,
        "energy_j": 123,
        "sleeping_nodes": 0,
        "wakeups_per_day": 0,
        "woken_per_day": 0,
        "gpu_s": pytest.approx(130),
        # 130 of 8 GPUs * 50 s.
        "gpu_utilisation": pytest.approx(0.325),
        "rounds": 3,
        "median_solve_s": 0.2,
        "p99_solve_s": pytest.approx(0.298),
        "overruns": 1,
        "fallbacks": 0,
        "violations": 2,
    }


def test_how_near_rounds_are_to_their_bounds():
    """Gaps of 20 %, 0 and 0 (of nothing to gain) have the mean 20/3 %; two of four are proven."""
    proven = SolutionStatus.OPTIMAL
    rounds = (
        record(objective=8.0, bound=10.0),
        record(objective=5.0, bound=5.0, status=proven),
        record(objective=0.0, bound=0.0, status=proven),
        record(),  # a fallback
    )
    found = summarise(INSTANCE, replace(SCHEDULE, rounds=rounds))
    assert found["mean_round_gap"] == pytest.approx(0.2 / 3)
    assert found["proven_rounds"] == 0.5


def test_nodes_asleep_until_the_last_submission():
    """Until 20 s: nodes 0 and 1 sleep for 10 s each, and wake once, together; one sleeps on."""
    sleeps = ((0, 5.0, 15.0), (1, 5.0, 15.0), (0, 18.0, 50.0))
    found = summarise(INSTANCE, replace(SCHEDULE, sleeps=sleeps))
    assert found["sleeping_nodes"] == pytest.approx((10 + 10 + 2) / 20)
    assert found["wakeups_per_day"] == pytest.approx(86_400 / 20)
    assert found["woken_per_day"] == pytest.approx(2 * 86_400 / 20)


def test_pinned_jobs_and_fallbacks_are_counted():
    """A job that is pinned twice counts once."""
    rounds = (
        record(pinned_jobs=("a",), status=SolutionStatus.FALLBACK),
        record(pinned_jobs=("a", "b")),
    )
    found = summarise(INSTANCE, replace(SCHEDULE, rounds=rounds))
    assert (found["pinned_jobs"], found["fallbacks"]) == (2, 1)


def test_above_what_can_be_reached():
    """A mean JCT of 95/3 s where 20 s are possible; of energy nothing is known."""
    found = summarise(replace(INSTANCE, reference={"optimum": {"mean_jct_s": 20.0}}), SCHEDULE)
    assert found["above_optimum"] == pytest.approx(95 / 60 - 1)
    assert "energy_above_optimum" not in found


def test_jobs_that_may_share_a_gpu_are_told_apart():
    """One of a sweep has a JCT of 10 s, the others of 45 and 40."""
    jobs = (
        Job(id="a", submit_s=10, profile="p", fusible="sweep"),
        Job(id="b", submit_s=10, profile="p"),
        Job(id="c", submit_s=20, profile="p"),
    )
    found = summarise(replace(INSTANCE, jobs=jobs), SCHEDULE)
    assert (found["mean_fusible_jct_s"], found["mean_lone_jct_s"]) == (10, 42.5)


def test_jobs_without_an_end_are_counted_apart():
    """A cut run averages what ended; a job that held nothing at the cut was preempted."""
    cut = replace(
        SCHEDULE,
        jobs=(
            SCHEDULE.jobs[0],
            outcome("b", 10, held(15, 20), cut=True),
            outcome("c", 20, held(30, 60), cut=True),
            outcome("d", 20, cut=True),
        ),
    )
    found = summarise(INSTANCE, cut)
    assert (found["jobs"], found["unfinished"], found["mean_jct_s"]) == (4, 3, 10)
    assert found["preemptions"] == 1
    # 40 + 5 + 30 GPU-seconds of 8 * 50.
    assert found["gpu_utilisation"] == pytest.approx(75 / 400)


def test_nothing_has_no_mean():
    """Figures of an empty run are not numbers, rather than a number that is not true."""
    found = summarise(INSTANCE, replace(SCHEDULE, jobs=(), rounds=(), end_s=0))
    for name in ("mean_jct_s", "p99_jct_s", "mean_queue_s", "gpu_utilisation", "median_solve_s"):
        assert math.isnan(found[name])
    assert (found["jobs"], found["queued_jobs"], found["rounds"]) == (0, 0, 0)


@given(
    times=st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(1, 50)), min_size=1
    )
)
def test_queue_and_service_make_up_the_completion_time(times):
    """For jobs that run in one piece: queue = wait, and nobody is preempted."""
    jobs = tuple(
        outcome(f"j{k}", submit, held(submit + wait, submit + wait + work))
        for k, (submit, wait, work) in enumerate(times)
    )
    figures = job_figures(replace(SCHEDULE, jobs=jobs))
    assert figures.queue_s.tolist() == [wait for _, wait, _ in times]
    assert figures.gpu_s.tolist() == [work for _, _, work in times]
    np.testing.assert_array_equal(figures.jct_s, figures.queue_s + figures.gpu_s)
    assert not figures.preemptions.any()
    assert not figures.restarts.any()


def test_time_in_pieces_leaves_no_rest_that_looks_like_a_wait():
    """In doubles (2.4 - 0.1) + (7 - 2.4) + (7.7 - 7) is 9e-16 below 7.7 - 0.1: no wait."""
    pieces = (held(0.1, 2.4), held(2.4, 7.0, gpus=2), held(7.0, 7.7))
    assert 7.7 - 0.1 - sum(piece.end_s - piece.start_s for piece in pieces) != 0
    figures = job_figures(replace(SCHEDULE, jobs=(outcome("d", 0.1, *pieces),)))
    assert figures.queue_s.tolist() == [0]


def test_the_share_of_restarts_is_what_later_segments_hold_in_vain():
    """A start of 10 s is none; 5 s of 25 on 2 GPUs are: 10 of 30 + 50 GPU-seconds."""
    first = replace(held(0, 30), resume_s=10)
    again = replace(held(40, 65, gpus=2), resume_s=45)
    schedule = replace(SCHEDULE, jobs=(outcome("a", 0, first, again),), rounds=())
    assert summarise(INSTANCE, schedule)["restart_share"] == 10 / 80
