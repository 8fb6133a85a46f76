"""From options to nodes, whatever comes: sound plans, no fragments, no needless moves, caps."""

from collections import Counter

from hypothesis import example, given
from hypothesis import strategies as st

from placing import gpus, room, snapshot, state
from ronda.formulations.placement.requests import place
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.job import Job, JobState

POWERS = [1, 2, 4, 8, 16, 32]


def used(placed):
    """Return the GPUs used on each node."""
    total = Counter()
    for allocation in placed.allocations.values():
        for node, number in allocation.placement:
            total[node] += number
    return total


@st.composite
def histories(draw, sizes, size=8):
    """Draw a cluster, and job sizes with whether each arrives, leaves or stays, round by round."""
    racks = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    steps = draw(
        st.lists(
            st.lists(st.tuples(st.sampled_from(sizes), st.booleans()), max_size=12), max_size=4
        )
    )
    return room(*racks, size=size), steps


def play(cluster, steps):
    """Play rounds in which some jobs leave and others come; yield each round with its answer."""
    held = {}
    serial = 0
    for step in steps:
        for (_, leaves), job in zip(step, list(held), strict=False):
            if leaves:
                del held[job]
        running = [
            JobState(job=Job(id=job, submit_s=0, profile="rigid"), since_s=0, allocation=allocation)
            for job, allocation in held.items()
        ]
        new = {f"j{serial + k}": gpus(count) for k, (count, _) in enumerate(step)}
        serial += len(step)
        chosen = {job: a.option for job, a in held.items()} | new
        round = snapshot(cluster, running, [state(job) for job in new])
        placed = place(round, chosen)
        yield round, chosen, placed
        held = placed.allocations


@given(histories([*POWERS, 3, 5, 12, 20]))
def test_plans_are_sound_whatever_the_sizes(history):
    """No node is overfull, every job gets what it asked for on the fewest nodes, or nothing."""
    cluster, steps = history
    sizes = cluster.topology.node_gpus
    for round, chosen, placed in play(cluster, steps):
        assert all(number <= sizes[node] for node, number in used(placed).items())
        assert [*placed.allocations, *placed.unplaced] == sorted(
            chosen, key=lambda job: (job in placed.unplaced, list(chosen).index(job))
        )
        before = {s.job.id: s.allocation for s in round.running}
        for job, allocation in placed.allocations.items():
            assert allocation.option.gpus == chosen[job].gpus
            assert sum(number for _, number in allocation.placement) == chosen[job].gpus
            assert len({node for node, _ in allocation.placement}) == -(-chosen[job].gpus // 8)
            same = before.get(job) is allocation
            assert same or job not in before or job in placed.moved


@given(st.one_of(histories(POWERS), histories([1, 3, 6, 12, 24], size=12)))
def test_powers_of_two_never_fragment(history):
    """The buddy theorem: a job is left out only if the GPUs do not suffice for it.

    It holds for all sizes that divide each other and the node, as 1 | 3 | 6 | 12 do.
    """
    cluster, steps = history
    for _, chosen, placed in play(cluster, steps):
        free = cluster.gpus
        for job, option in chosen.items():  # most important first, as long as GPUs last
            assert (job in placed.allocations) is (option.gpus <= free)
            free -= option.gpus if option.gpus <= free else 0


@given(histories(POWERS))
def test_nothing_moves_when_all_fit_in_place(history):
    """If the arrivals fit beside what runs, no running job changes nodes."""
    cluster, steps = history
    for round, chosen, placed in play(cluster, steps):
        free = list(map(int, cluster.topology.node_gpus))
        for s in round.running:
            for node, number in s.allocation.placement:
                free[node] -= number
        new = sorted((chosen[s.job.id].gpus for s in round.waiting), reverse=True)
        # First fit in descending order decides for powers of two (see the module docstring).
        fits = True
        for count in new:
            if count >= 8:
                empty = [n for n, f in enumerate(free) if f == 8][: count // 8]
                fits = fits and len(empty) == count // 8
                for n in empty:
                    free[n] = 0
            else:
                able = [n for n, f in enumerate(free) if f >= count]
                fits = fits and bool(able)
                if able:
                    free[able[0]] -= count
        if fits:
            assert placed.moved == placed.unplaced == ()


@example(jobs=[(1, 0.0), (16, 9.0)], caps=[800, 800, 800], asleep=set(), may_sleep=True)
@given(
    st.lists(st.tuples(st.sampled_from([1, 2, 4, 8, 16]), st.floats(0, 200)), max_size=8),
    st.lists(st.integers(800, 4000), min_size=3, max_size=3),
    st.sets(st.integers(0, 3)),
    st.booleans(),
)
def test_caps_of_nested_racks_hold_whatever_comes(jobs, caps, asleep, may_sleep):
    """The power of a rack and of the row above, summed node by node, stays below its cap.

    Racks of two nodes; a node draws 100 W and 50 W per idle GPU if awake, 10 W if asleep.
    """
    cluster = Cluster(
        gpu_types=(GpuType(name="v", memory_gib=16, idle_w=50),),
        racks=(
            Rack(name="r0", parent="row", power_cap_w=caps[0]),
            Rack(name="r1", parent="row", power_cap_w=caps[1]),
            Rack(name="row", power_cap_w=caps[2]),
        ),
        node_groups=tuple(
            NodeGroup(
                name=r, count=2, gpus_per_node=8, gpu_type="v", rack=r, host_idle_w=100, sleep_w=10
            )
            for r in ("r0", "r1")
        ),
    )
    chosen = {f"j{k}": gpus(count, power_w=count * watts) for k, (count, watts) in enumerate(jobs)}
    round = snapshot(cluster, waiting=[state(j) for j in chosen], asleep=tuple(sorted(asleep)))
    placed = place(round, chosen, may_sleep=may_sleep)
    sleeping = round.asleep if placed.asleep is None else placed.asleep
    watts = [10.0 if node in sleeping else 500.0 for node in range(4)]
    before = [10.0 if node in asleep or may_sleep else 500.0 for node in range(4)]
    for allocation in placed.allocations.values():
        option = allocation.option
        for node, count in allocation.placement:
            watts[node] += count * (option.power_w / option.gpus - 50)
    for members, cap in (((0, 1), caps[0]), ((2, 3), caps[1]), ((0, 1, 2, 3), caps[2])):
        idle = sum(before[node] for node in members)
        assert sum(watts[node] for node in members) <= max(cap, idle) * (1 + 1e-6)
