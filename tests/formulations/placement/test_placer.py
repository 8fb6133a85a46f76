"""From options to nodes: nothing moves without need, nothing is used twice, everything fits."""

from collections import Counter

import pytest

from placing import gpus, room, snapshot, state
from ronda.formulations.placement.requests import place
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Partition, Rack
from ronda.instances.job import Option

# -- by hand --------------------------------------------------------------------------------------


def test_running_jobs_keep_their_very_allocations():
    """The same option (but for its rate) on the same nodes is the identical object."""
    runs = [state("a", ((0, 4),)), state("b", ((1, 8),))]
    placed = place(
        snapshot(room(3), runs, [state("c")]), {"c": gpus(4), "a": gpus(4, rate=7.0), "b": gpus(8)}
    )
    assert placed.allocations["a"] is runs[0].allocation
    assert placed.allocations["b"] is runs[1].allocation
    assert placed.allocations["c"].placement == ((0, 4),)  # the fullest node that fits
    assert list(placed.allocations) == ["c", "a", "b"]
    assert placed.moved == placed.unplaced == ()
    assert placed.asleep is None


def test_a_job_that_is_not_chosen_gives_its_gpus_back():
    """The only node changes hands."""
    placed = place(snapshot(room(1), [state("a", ((0, 8),))], [state("b")]), {"b": gpus(8)})
    assert placed.allocations["b"].placement == ((0, 8),)


def test_wide_jobs_take_whole_nodes_in_one_rack():
    """20 GPUs on racks of 2 and 4 nodes: two whole nodes and the remainder, all in the second."""
    placed = place(snapshot(room(2, 4), waiting=[state("a")]), {"a": gpus(20)})
    assert placed.allocations["a"].placement == ((2, 8), (3, 8), (4, 4))


def test_wide_jobs_take_the_fewest_racks():
    """Five nodes of racks with 2, 3 and 2: the full second rack and one of the others."""
    placed = place(snapshot(room(2, 3, 2), waiting=[state("a")]), {"a": gpus(40)})
    racks = [0, 0, 1, 1, 1, 2, 2]
    nodes = [node for node, _ in placed.allocations["a"].placement]
    assert sorted(Counter(racks[node] for node in nodes).values()) == [2, 3]


def capped_room(cap_w, types):
    """Return a node of two GPUs of each type, 200 W idle, in racks of one type each, but for r0."""
    racks = list(dict.fromkeys(rack for _, rack in types))
    return Cluster(
        gpu_types=tuple(
            GpuType(name=t, memory_gib=16, idle_w=50) for t in dict.fromkeys(t for t, _ in types)
        ),
        racks=tuple(Rack(name=r, power_cap_w=cap_w if r == "r0" else None) for r in racks),
        node_groups=tuple(
            NodeGroup(
                name=f"g{k}", count=1, gpus_per_node=2, gpu_type=t, rack=rack, host_idle_w=100
            )
            for k, (t, rack) in enumerate(types)
        ),
    )


@pytest.mark.parametrize(("cap_w", "unplaced"), [(800, ()), (799, ("a",))])
def test_what_must_run_has_its_watts_before_all_pools(cap_w, unplaced):
    """Two nodes, 400 W idle, of two pools in one rack; each job adds 2 x (150 - 50) W."""
    cluster = capped_room(cap_w, [("v", "r0"), ("w", "r0")])
    held = Option(pool=1, gpus=2, power_w=300.0)
    runs = state("b", ((1, 2),), held, preemptible=False)
    placed = place(
        snapshot(cluster, [runs], [state("a")]), {"a": gpus(2, power_w=300.0), "b": held}
    )
    assert placed.unplaced == unplaced
    assert placed.allocations["b"] is runs.allocation


@pytest.mark.parametrize(("cap_w", "node"), [(400, 0), (399, 1)])
def test_a_job_leaves_a_rack_whose_cap_has_fallen(cap_w, node):
    """200 W idle and 200 W for the job: below the cap it moves to the other rack."""
    cluster = capped_room(cap_w, [("v", "r0"), ("v", "r1")])
    held = gpus(2, power_w=300.0)
    placed = place(snapshot(cluster, [state("a", ((0, 2),), held)]), {"a": held})
    assert placed.allocations["a"].placement == ((node, 2),)


def test_span_limits_the_reach():
    """16 GPUs within a node, or within a rack of one node, cannot be placed; two racks can."""
    cluster = room(1, 1)
    for span, fits in (("node", False), ("rack", False), ("cluster", True)):
        placed = place(snapshot(cluster, waiting=[state("a")]), {"a": gpus(16, span=span)})
        assert bool(placed.allocations) is fits
        assert placed.unplaced == (() if fits else ("a",))


def test_a_rack_that_is_meant_comes_first():
    """A job of two nodes goes where it is meant to go: even if others ask for more or must move.

    By itself it takes the rack of two nodes, as the tightest; meant for the one of three nodes it
    is placed before `b`, which is wider, and pushes `c` out. A rack without room is only a wish.
    """
    cluster = room(2, 3)
    states = [state(job) for job in "ab"]
    option = gpus(16, span="rack")
    alone = place(snapshot(cluster, waiting=states), {"a": option})
    assert [n for n, _ in alone.allocations["a"].placement] == [0, 1]
    runs = [state("c", ((3, 2),)), state("d", ((4, 2),))]
    held = {s.job.id: s.allocation.option for s in runs}
    chosen = {"b": gpus(16), "a": option, **held}
    placed = place(snapshot(cluster, runs, states), chosen, racks={"a": 1})
    assert len(placed.moved) == 1
    assert {2} < {n for n, _ in placed.allocations["a"].placement} < {2, 3, 4}
    assert [n for n, _ in placed.allocations["b"].placement] == [0, 1]
    wished = place(snapshot(room(1, 2), waiting=states), {"a": option}, racks={"a": 0})
    assert [n for n, _ in wished.allocations["a"].placement] == [1, 2]


def test_one_small_job_moves_for_a_whole_node():
    """Free: 6 + 8 - 2 = two nodes with 6 and 4 free; a job of 8 needs the 2 GPUs of `a` to move."""
    runs = [state("a", ((0, 2),)), state("b", ((1, 4),))]
    placed = place(
        snapshot(room(2), runs, [state("c")]), {"a": gpus(2), "b": gpus(4), "c": gpus(8)}
    )
    assert placed.allocations["c"].placement == ((0, 8),)
    assert placed.allocations["a"].placement == ((1, 2),)
    assert placed.allocations["b"] is runs[1].allocation
    assert placed.moved == ("a",)


def test_the_smallest_sufficient_job_moves():
    """A block of 4 pushes out the one job of 2, not the two jobs of 1 nor the job of 4."""
    # node 0: 4 + 2 used (2 free); node 1: 4 + 1 + 1 used (2 free); node 2: full but for 2.
    runs = [
        state("big0", ((0, 4),)),
        state("two", ((0, 2),)),
        state("big1", ((1, 4),)),
        state("one0", ((1, 1),)),
        state("one1", ((1, 1),)),
        state("six", ((2, 4),)),
        state("six2", ((2, 2),)),
    ]
    chosen = {s.job.id: s.allocation.option for s in runs} | {"new": gpus(4)}
    placed = place(snapshot(room(3), runs, [state("new")]), chosen)
    assert placed.moved == ("two",)
    assert placed.allocations["new"].placement == ((0, 4),)
    assert placed.allocations["two"].placement in (((1, 2),), ((2, 2),))


def test_jobs_that_may_not_be_preempted_never_move():
    """With `a` pinned to node 0 the job `b` moves although it is larger."""
    runs = [state("a", ((0, 2),), preemptible=False), state("b", ((1, 4),))]
    placed = place(
        snapshot(room(2), runs, [state("c")]), {"c": gpus(8), "a": gpus(2), "b": gpus(4)}
    )
    assert placed.moved == ("b",)
    assert placed.allocations["a"] is runs[0].allocation


def test_the_least_important_jobs_are_left_out():
    """Twelve GPUs wanted, eight there: the first two jobs get them, and the small last one not."""
    waiting = [state(j) for j in "abc"]
    placed = place(snapshot(room(1), waiting=waiting), {"a": gpus(4), "b": gpus(4), "c": gpus(4)})
    assert placed.unplaced == ("c",)
    assert list(placed.allocations) == ["a", "b"]


def test_a_less_important_job_fills_what_a_large_one_leaves():
    """After 4 of 8 GPUs a job of 8 has no room, but the job of 2 after it has."""
    waiting = [state(j) for j in "abc"]
    placed = place(snapshot(room(1), waiting=waiting), {"a": gpus(4), "b": gpus(8), "c": gpus(2)})
    assert placed.unplaced == ("b",)
    assert list(placed.allocations) == ["a", "c"]


def test_sizes_that_do_not_divide_are_repacked_from_scratch():
    """On nodes of 6, 3|3 must join so that 2+2+2 fit: in place there is no way."""
    runs = [state("a", ((0, 3),)), state("b", ((1, 3),))]
    waiting = [state(j) for j in "cde"]
    chosen = {"a": gpus(3), "b": gpus(3)} | {j: gpus(2) for j in "cde"}
    placed = place(snapshot(room(2, size=6), runs, waiting), chosen)
    assert placed.unplaced == ()
    assert len(placed.moved) == 1  # a and b share a node: one of them need not move


def test_pools_do_not_mix():
    """A job goes to nodes of its option's pool only."""
    cluster = Cluster(
        gpu_types=(GpuType(name="v", memory_gib=16),),
        partitions=(Partition(name="x"), Partition(name="y")),
        node_groups=(
            NodeGroup(name="x", count=1, gpus_per_node=8, gpu_type="v", partition="x"),
            NodeGroup(name="y", count=1, gpus_per_node=8, gpu_type="v", partition="y"),
        ),
    )
    waiting = [state("a"), state("b")]
    placed = place(
        snapshot(cluster, waiting=waiting),
        {"a": Option(pool=1, gpus=8), "b": Option(pool=1, gpus=1)},
    )
    assert placed.allocations["a"].placement == ((1, 8),)
    assert placed.unplaced == ("b",)


def test_nodes_of_several_sizes_hold_a_job_together_if_they_must():
    """16 GPUs on nodes of 8, 4 and 4: all three; 12 GPUs: the 8 and one 4; 20: no room."""
    cluster = Cluster(
        gpu_types=(GpuType(name="v", memory_gib=16),),
        node_groups=(
            NodeGroup(name="small", count=2, gpus_per_node=4, gpu_type="v"),
            NodeGroup(name="large", count=1, gpus_per_node=8, gpu_type="v"),
        ),
    )
    for count, nodes in ((16, ((0, 4), (1, 4), (2, 8))), (12, ((0, 4), (2, 8)))):
        placed = place(snapshot(cluster, waiting=[state("a")]), {"a": gpus(count)})
        assert placed.allocations["a"].placement == nodes
    assert place(snapshot(cluster, waiting=[state("a")]), {"a": gpus(20)}).unplaced == ("a",)
    runs = [state("b", ((0, 1),))]
    placed = place(snapshot(cluster, runs, [state("a")]), {"a": gpus(16), "b": gpus(1)})
    assert placed.unplaced == ("b",)
    assert list(placed.allocations) == ["a"]


# -- sleep ----------------------------------------------------------------------------------------


def test_awake_nodes_are_used_before_sleeping_ones():
    """A job of a whole node takes the awake node 1; a second one wakes node 0."""
    asleep = snapshot(room(2), waiting=[state("a"), state("b")], asleep=(0,))
    assert place(asleep, {"a": gpus(8)}).allocations["a"].placement == ((1, 8),)
    assert place(asleep, {"a": gpus(8)}).asleep is None
    both = place(asleep, {"a": gpus(8), "b": gpus(8)})
    assert both.asleep == ()


def test_idle_nodes_sleep_when_they_may():
    """Two nodes without jobs go to sleep, the one in use stays awake."""
    runs = [state("a", ((1, 2),))]
    placed = place(
        snapshot(room(3), runs, [state("b")]), {"a": gpus(2), "b": gpus(1)}, may_sleep=True
    )
    assert placed.allocations["b"].placement == ((1, 1),)
    assert placed.asleep == (0, 2)


def test_a_number_of_awake_nodes_squeezes_jobs_together():
    """Three nodes with one small job each fit on one: two move, and the busiest node stays."""
    runs = [state("a", ((0, 1),)), state("b", ((1, 4),)), state("c", ((2, 2),))]
    chosen = {"a": gpus(1), "b": gpus(4), "c": gpus(2)}
    placed = place(snapshot(room(3), runs), chosen, may_sleep=True, awake={0: 1})
    assert set(placed.moved) == {"a", "c"}
    assert placed.allocations["b"] is runs[1].allocation
    assert placed.asleep == (0, 2)


def test_a_number_of_awake_nodes_keeps_idle_ones_awake():
    """Two nodes must be awake and one is needed: the other idles, the third sleeps."""
    runs = [state("a", ((0, 1),))]
    placed = place(
        snapshot(room(3), runs, asleep=(1,)), {"a": gpus(1)}, may_sleep=True, awake={0: 2}
    )
    assert placed.asleep == (1,)


# -- rack power -----------------------------------------------------------------------------------


def test_rack_power_caps_are_respected():
    """A rack of two nodes (each 100 + 8 × 50 = 500 W idle) capped at 1,400 W takes one busy node.

    A busy GPU draws 100 W, that is 50 W beyond idle: a node adds 400 W, two would need 1,800 W.
    """
    cluster = room(2, 2)
    capped = Cluster(
        gpu_types=cluster.gpu_types,
        node_groups=cluster.node_groups,
        racks=(Rack(name="r0", parent="row"), Rack(name="r1"), Rack(name="row", power_cap_w=1400)),
    )
    waiting = [state(j) for j in "abcd"]
    chosen = {j: gpus(8, power_w=800.0) for j in "abcd"}
    placed = place(snapshot(capped, waiting=waiting), chosen)
    nodes = sorted(a.placement[0][0] for a in placed.allocations.values())
    assert nodes == [0, 2, 3]
    assert placed.unplaced == ("d",)


def test_sleeping_nodes_leave_power_to_their_rack():
    """If node 1 may sleep, the rack of the last test has 900 W for the first: more than 500 W."""
    cluster = room(2)
    capped = Cluster(
        gpu_types=cluster.gpu_types,
        node_groups=cluster.node_groups,
        racks=(Rack(name="r0", power_cap_w=900),),
    )
    round = snapshot(capped, waiting=[state("a")])
    assert place(round, {"a": gpus(8, power_w=800.0)}).unplaced == ("a",)
    placed = place(round, {"a": gpus(8, power_w=800.0)}, may_sleep=True)
    assert placed.unplaced == ()
    assert placed.asleep == (1,)


def test_misuse_is_refused():
    """An unknown job, or awake nodes where none may sleep, raise ValueError."""
    with pytest.raises(ValueError, match="ghost"):
        place(snapshot(room(1)), {"ghost": gpus(1)})
    with pytest.raises(ValueError, match="may_sleep"):
        place(snapshot(room(1)), {}, awake={0: 1})
