"""What a log that is cut off proves to be free, and what fits there."""

import random

import numpy as np
import pytest

from made_runs import ran, read_runs, scheduled
from ronda.questions.judge.orders import in_order, least_first
from ronda.questions.judge.queue import judged_jobs
from ronda.questions.judge.space import Holes, as_one_node, node_uses, proven_share


def space_of(runs, window, until=None, sizes=None):
    """Return the jobs of a log that are judged, and the space of their nodes."""
    instance, recorded = read_runs(runs, until)
    jobs = judged_jobs(instance, recorded, "p", window)
    return jobs, node_uses(jobs, window[0], recorded.until_s, sizes)


@pytest.mark.parametrize("seed", range(30))
def test_no_claim_of_a_log_that_is_cut_off_is_wrong(seed):
    """Jobs that end outside the log are hidden; what it proves is free beside them as well."""
    rng = random.Random(seed)
    sizes = {"n1": rng.randint(1, 4), "n2": rng.randint(1, 4)}
    most = max(sizes.values())
    jobs = [(rng.randint(0, 60), rng.randint(1, 40), rng.randint(1, most)) for _ in range(40)]
    runs = scheduled(jobs, sizes, rng)
    since, until = 15, rng.randint(40, 80)
    shown = [run for run in runs if since <= run.end_s <= until]
    if not any(run.start_s >= since for run in shown):
        return
    judged, space = space_of(shown, (since, until), until)
    _, recorded = read_runs(shown, until)
    names = {name: node for node, name in recorded.nodes.items()}
    claims = 0
    for name, node in names.items():
        if node not in space:
            continue
        for now in range(since, until):
            true = sum(r.gpus for r in runs if r.nodes == name and r.start_s <= now < r.end_s)
            own = sum(r.gpus for r in shown if r.nodes == name and r.start_s <= now < r.end_s)
            beside = sum(
                use.amounts[0]
                for use in judged.others
                if use.node == node and use.since_s <= now < use.until_s
            )
            use = space[node]
            at = int(np.searchsorted(use.times_s, now, side="right")) - 1
            for more in range(1, most + 1):
                if use.fits((float(more),))[at]:
                    claims += 1
                    assert true - own + beside + more <= sizes[name]
    assert claims or len(shown) < 5


def test_devices_and_memory_are_proven_by_the_same_moment():
    """Two devices were in use with little memory, and much memory with one device."""
    runs = [
        ran(0, 0, 0, 10, gpus=1, memory_gib=1.0),
        ran(1, 0, 10, 20, gpus=2, memory_gib=2.0),
        ran(2, 0, 20, 30, gpus=1, memory_gib=8.0),
    ]
    _, space = space_of(runs, (0, 30))
    (use,) = space.values()
    assert use.fits((2.0, 2.0)).tolist() == [True, True, False, False]
    assert use.fits((1.0, 8.0)).tolist() == [True, True, True, False]
    assert use.fits((2.0, 8.0)).tolist() == [False] * 4


def test_a_long_idle_stretch_is_not_taken_for_free():
    """A node without a job for 300 s may be free, and for 301 s it may be down."""
    for idle, fits in ((300, True), (301, False)):
        runs = [ran(0, 0, 0, 10), ran(1, 0, 10 + idle, 400)]
        _, space = space_of(runs, (0, 400))
        (use,) = space.values()
        at = int(np.searchsorted(use.times_s, 20, side="right")) - 1
        assert bool(use.fits((1.0,))[at]) == fits


def test_what_is_proven_falls_towards_the_end():
    """Two devices are proven while both are in use later, then one, then none."""
    runs = [ran(0, 0, 0, 50, gpus=1), ran(1, 0, 0, 100, gpus=1)]
    _, space = space_of(runs, (0, 100))
    assert proven_share(space, np.array([0.0, 49.0, 50.0, 99.0])).tolist() == [1, 1, 0.5, 0.5]


def test_a_job_on_two_nodes_needs_both_at_once():
    """It starts when the second node becomes free, and the one that is free later is left."""
    runs = [ran(0, 0, 5, 15, "n1"), ran(1, 0, 3, 12, "n2"), ran(2, 0, 20, 24, "n[1-2]", 2, count=2)]
    jobs, space = space_of(runs, (4, 24))
    assert jobs.ids == ("0", "2")
    room = Holes(space)
    assert room.earliest(jobs.shapes[1], 4.0, 4.0) == (12.0, (0, 1))
    room.place(jobs.shapes[0], (0,), 5.0, 10.0)
    assert room.earliest(jobs.shapes[1], 4.0, 4.0) == (15.0, (0, 1))
    room.place(jobs.shapes[0], (0,), 5.0, 10.0, -1)
    assert room.earliest(jobs.shapes[1], 4.0, 4.0) == (12.0, (0, 1))


def test_one_node_of_all_free_space_has_no_fragments():
    """One device is free on each of two nodes; only together do they hold a job of two."""
    runs = [
        *(ran(name, 0, 0, 50, name[:2]) for name in ("n1a", "n2a", "n1b", "n2b")),
        ran("x", 0, 50, 60, "n1", 2, partition="p"),
        ran("y", 0, 50, 60, "n2", 2, partition="q"),
        ran("z", 0, 60, 61, "n2", 2),
    ]
    short = [run for run in runs if run.job not in ("n1b", "n2b")]
    jobs, space = space_of(short, (10, 61))
    late = jobs.ids.index("x")
    assert in_order(jobs, space, [late])[late][0] == 50.0
    one = as_one_node(space)
    assert Holes(one).earliest(jobs.shapes[late].as_one(), 10.0, 10.0) == (10.0, (0,))


def test_shortest_first_never_starts_a_job_before_it_is_ready():
    """A short job that comes later does not hold up a long one that is there."""
    runs = [ran(0, 0, 0, 2), ran(1, 1, 12, 22), ran(2, 3, 22, 23), ran(3, 0, 2, 12)]
    jobs, space = space_of(runs, (0, 23))
    starts = least_first(jobs, space, jobs.lasts_s, {})
    assert {jobs.ids[k]: start for k, (start, _) in starts.items()} == {
        "0": 0.0,
        "3": 2.0,
        "2": 12.0,
        "1": 13.0,
    }
