"""Why jobs wait for a place, how much moves, and a long walk of arrivals and departures."""

import numpy as np
import pytest

from ronda.formulations.placement.reasons import why_unplaced
from ronda.formulations.placement.requests import place
from ronda.instances.check.checker import check
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.job import Allocation, Job, JobState, Option
from ronda.instances.plan import Plan
from ronda.instances.profile import rigid_profile
from ronda.instances.round import Round


def room(nodes, racks=1, size=8):
    """Return a cluster with as many nodes in each rack."""
    return Cluster(
        gpu_types=(GpuType(name="A100", memory_gib=80, idle_w=50),),
        racks=tuple(Rack(name=f"r{k}") for k in range(racks)),
        node_groups=tuple(
            NodeGroup(name=f"g{k}", count=nodes, gpus_per_node=size, gpu_type="A100", rack=f"r{k}")
            for k in range(racks)
        ),
    )


def option(count, span="cluster"):
    """Return an option of `count` GPUs."""
    return Option(pool=0, gpus=count, span=span, power_w=50.0 * count)


def snapshot(cluster, held, new=()):
    """Return a round in which jobs hold allocations (by id) and others wait (ids and GPUs)."""
    running = [
        JobState(
            job=Job(id=job, submit_s=0, profile="rigid", gpus=a.option.gpus),
            since_s=0,
            started=True,
            allocation=a,
        )
        for job, a in held.items()
    ]
    waiting = [
        JobState(job=Job(id=job, submit_s=0, profile="rigid", gpus=gpus), since_s=0)
        for job, gpus in dict(new).items()
    ]
    return Round(
        now_s=100,
        cluster=cluster,
        profiles={"rigid": rigid_profile("A100")},
        running=tuple(running),
        waiting=tuple(waiting),
    )


def on(*pieces):
    """Return an allocation with these pieces (node, GPUs)."""
    return Allocation(option=option(sum(gpus for _, gpus in pieces)), placement=pieces)


SPLIT = {"a": on((0, 4)), "b": on((1, 4))}
"""Two nodes of 8 GPUs, half used each."""


def test_with_migration_forbidden_the_reason_names_what_would_have_to_move():
    """8 GPUs are free, 4 on each node: one job of 4 GPUs would have to move."""
    round = snapshot(room(2), SPLIT, {"c": 8})
    chosen = {"a": option(4), "b": option(4), "c": option(8)}
    placed = place(round, chosen, migrate=False)
    assert placed.unplaced == ("c",)
    assert placed.allocations == SPLIT
    assert why_unplaced(round, chosen, placed, migrate=False) == {
        "c": "pool default/A100 has 8 GPUs free, at most 4 on one node and 0 nodes empty; the job "
        "needs 1 empty node; it would fit if 1 running jobs (4 GPUs) moved, which is forbidden"
    }


def test_with_migration_it_is_placed_and_the_moved_gpus_are_counted():
    """Either job of 4 GPUs moves to the other's node."""
    round = snapshot(room(2), SPLIT, {"c": 8})
    placed = place(round, {"a": option(4), "b": option(4), "c": option(8)})
    assert placed.unplaced == ()
    assert len(placed.moved) == 1
    assert placed.moved_gpus == 4


def test_too_few_gpus_are_named():
    """Of 16 GPUs 8 are free, and 16 are asked for; moving does not help."""
    round = snapshot(room(2), SPLIT, {"c": 16})
    chosen = {"a": option(4), "b": option(4), "c": option(16)}
    placed = place(round, chosen, migrate=False)
    assert why_unplaced(round, chosen, placed, migrate=False)["c"] == (
        "pool default/A100 has 8 GPUs free; the job needs 16; no moves would make room"
    )
    assert why_unplaced(round, chosen, placed)["c"].endswith("the job needs 16")


def test_a_span_that_leaves_no_room_is_named():
    """Two racks with one empty node each cannot hold two nodes within one; the first is named."""
    round = snapshot(room(2, racks=2), {"a": on((0, 8)), "b": on((2, 8))}, {"c": 16})
    chosen = {"a": option(8), "b": option(8), "c": option(16, span="rack")}
    placed = place(round, chosen, migrate=False)
    why = why_unplaced(round, chosen, placed)["c"]
    assert "no rack has 2 empty nodes" in why
    assert "rack r0" in why


def test_nothing_waits_nothing_is_said():
    """No reason without a job that waits."""
    round = snapshot(room(2), SPLIT)
    chosen = {"a": option(4), "b": option(4)}
    assert why_unplaced(round, chosen, place(round, chosen)) == {}


def test_a_repack_from_scratch_keeps_the_most_jobs_in_place():
    """Sizes 5 and 3 and a job of 3 more: all blocks are placed again, by size.

    Before: node 0 holds 3 + 3, node 1 holds 5; a job of 5 comes. Only (5, 3) twice works, so one
    job of 3 must move beside the 5; whatever order the packing found, the other three stay.
    """
    held = {"a": on((0, 3)), "b": on((0, 3)), "c": on((1, 5))}
    round = snapshot(room(2), held, {"d": 5})
    chosen = {"a": option(3), "b": option(3), "c": option(5), "d": option(5)}
    placed = place(round, chosen)
    assert placed.unplaced == ()
    assert len(placed.moved) == 1
    assert placed.moved_gpus == 3


@pytest.mark.parametrize(("seed", "racks"), [(0, 1), (1, 4)])
def test_thousands_of_arrivals_and_departures_never_leave_a_feasible_request(seed, racks):
    """Buddy placement with migration serves every power of two that the free GPUs suffice for.

    2,500 steps each on 16 nodes of 8 GPUs; the checker looks at every hundredth plan, which also
    is asked once more with migration forbidden: then what waits has a reason.
    """
    cluster = room(16 // racks, racks)
    rng = np.random.default_rng(seed)
    held, moved, told = {}, 0, 0
    for step in range(2500):
        for job in [job for job in held if rng.random() < 0.08]:
            del held[job]
        free = cluster.gpus - sum(a.option.gpus for a in held.values())
        new = {}
        for k in range(int(rng.integers(0, 4))):
            gpus = int(rng.choice([1, 2, 4, 8, 16, 32]))
            if gpus <= free:
                new[f"{step}.{k}"] = gpus
                free -= gpus
        if not new:
            continue
        round = snapshot(cluster, held, new)
        chosen = {job: a.option for job, a in held.items()}
        chosen |= {job: option(gpus) for job, gpus in new.items()}
        placed = place(round, chosen)
        assert placed.unplaced == ()
        assert (placed.moved_gpus > 0) is bool(placed.moved)
        moved += placed.moved_gpus
        if step % 100 == 0:
            assert check(round, Plan(policy="buddy", allocations=placed.allocations)) == []
        if placed.moved:
            still = place(round, chosen, migrate=False)
            assert still.moved == ()
            why = why_unplaced(round, chosen, still, migrate=False)
            assert set(why) == set(still.unplaced)
            assert all("moved, which is forbidden" in words for words in why.values())
            told += len(why)
        held = placed.allocations
    assert moved > 0
    assert told > 0
