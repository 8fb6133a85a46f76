"""The indexes of a pool's nodes answer as a look at every single node would."""

from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.placement.nodes import PoolRequest, bits, bits_of, fewest, pool_nodes
from ronda.formulations.placement.packing import easiest_to_empty, mixed_nodes, pack
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack


def pool(*racks, asleep=()):
    """Return an empty pool whose racks have nodes of these GPUs."""
    cluster = Cluster(
        gpu_types=(GpuType(name="v", memory_gib=16),),
        racks=tuple(Rack(name=f"r{k}") for k in range(len(racks))),
        node_groups=tuple(
            NodeGroup(name=f"g{k}-{n}", count=1, gpus_per_node=size, gpu_type="v", rack=f"r{k}")
            for k, sizes in enumerate(racks)
            for n, size in enumerate(sizes)
        ),
    )
    return pool_nodes(cluster, 0, sorted(asleep)).copy()


@st.composite
def pools(draw, sizes=(8, 8, 8, 4)):
    """Draw a pool in which blocks have come, gone, and stayed for good, in any order."""
    racks = draw(
        st.lists(st.lists(st.sampled_from(sizes), min_size=1, max_size=5), min_size=1, max_size=3)
    )
    count = sum(map(len, racks))
    nodes = pool(*racks, asleep=draw(st.sets(st.integers(0, count - 1))))
    soft = []
    for job in range(draw(st.integers(0, 25))):
        node, kind = draw(st.integers(0, count - 1)), draw(st.integers(0, 4))
        if kind == 0 and soft:
            other = soft.pop(draw(st.integers(0, len(soft) - 1)))
            draw(st.sampled_from((nodes.push_out, nodes.soft.remove)))(*other)
        elif nodes.free[node]:
            gpus = draw(st.integers(1, nodes.free[node]))
            if kind > 1 and gpus < nodes.whole:
                nodes.put_soft(job, node, gpus)
                soft.append((job, node))
            else:
                nodes.put(node, gpus)
        if kind == 4:
            nodes.soft.kinds()  # looked at in between: what follows changes it
    return nodes


def some(draw, nodes):
    """Draw a set of nodes."""
    return bits_of(draw(st.sets(st.integers(0, len(nodes.nodes) - 1)))) | draw(
        st.sampled_from((0, nodes.usable))
    )


def firm_room(nodes, node):
    """Return the GPUs that a node has free once its soft blocks are gone."""
    return nodes.free[node] + sum(nodes.soft.on.get(node, {}).values())


# -- soft blocks ----------------------------------------------------------------------------------


def cheapest_by_scan(nodes, gpus, among):
    """Return what `SoftBlocks.cheapest` should, node by node."""
    costs = []
    for node in bits(among):
        blocks = sorted((size, job) for job, size in nodes.soft.on.get(node, {}).items())
        sizes = [size for size, _ in blocks]
        if nodes.free[node] + sum(sizes) >= gpus:
            picks = fewest(sizes, gpus - nodes.free[node])
            moved = sum(sizes[pick] for pick in picks)
            costs.append((len(picks), moved, node, [blocks[pick][1] for pick in picks]))
    return min(costs)[2:] if costs else None


@given(pools(), st.data())
def test_the_cheapest_push_is_that_of_a_scan(nodes, data):
    """Among any nodes without the free GPUs, for any number of GPUs."""
    among = some(data.draw, nodes)
    for gpus in range(1, nodes.whole):
        short = bits_of(node for node in bits(among) if nodes.free[node] < gpus)
        assert nodes.soft.cheapest(gpus, short) == cheapest_by_scan(nodes, gpus, short)


@given(pools())
def test_the_sets_follow_the_nodes(nodes):
    """`levels`, `busy` and kinds follow from the free GPUs and the soft blocks of each node."""
    assert nodes.total == sum(nodes.free)
    for node, free in enumerate(nodes.free):
        assert [level for level, mask in enumerate(nodes.levels) if mask >> node & 1] == [free]
        assert nodes.busy >> node & 1 == (free < nodes.size[node])
    seen = [(node, kind) for kind, mask in nodes.soft.kinds() for node in bits(mask)]
    assert sorted(seen) == sorted(
        (node, (nodes.free[node], tuple(sorted(blocks.values()))))
        for node, blocks in nodes.soft.on.items()
    )


def test_few_blocks_are_chosen():
    """Need 2 of 1|1|2|4: the 2 alone. Need 5: the largest, 4, then the smallest for the rest, 1."""
    assert fewest((1, 1, 2, 4), 2) == [2]
    assert fewest((1, 1, 2, 4), 5) == [3, 0]


def test_a_copy_is_independent():
    """What happens in the copy of a pool with a soft block leaves the pool as it was."""
    nodes = pool([8, 8])
    nodes.put_soft(7, 0, 4)
    assert dict(nodes.soft.kinds()) == {(4, (4,)): 0b01}
    twin = nodes.copy()
    twin.put(0, 1)
    twin.put_soft(8, 1, 2)
    assert dict(twin.soft.kinds()) == {(3, (4,)): 0b01, (6, (2,)): 0b10}
    assert dict(nodes.soft.kinds()) == {(4, (4,)): 0b01}
    assert nodes.free == [4, 8]


@given(pools(), st.data())
def test_putting_on_all_is_putting_on_each(nodes, data):
    """On some nodes with equally many GPUs free: the same counts, levels and kinds."""
    level = data.draw(st.integers(1, nodes.whole))
    gpus = data.draw(st.integers(1, level))
    among = nodes.levels[level] & some(data.draw, nodes)
    twin = nodes.copy()
    assert nodes.put_all(among, level, gpus) == list(bits(among))
    for node in bits(among):
        twin.put(node, gpus)
    assert (nodes.free, nodes.total, nodes.levels) == (twin.free, twin.total, twin.levels)
    assert dict(nodes.soft.kinds()) == dict(twin.soft.kinds())


# -- best fit -------------------------------------------------------------------------------------


@given(pools(), st.data())
def test_filling_is_best_fit_again_and_again(nodes, data):
    """On any usable nodes: those in use first, then those awake, then those asleep."""
    nodes.usable &= some(data.draw, nodes)
    gpus, count = data.draw(st.integers(1, nodes.whole - 1)), data.draw(st.integers(0, 20))
    twin, expected = nodes.copy(), []
    for _ in range(count):
        for group in (twin.busy, twin.awake, twin.usable):
            node = twin.best_fit(gpus, group & twin.usable)
            if node is not None:
                twin.put(node, gpus)
                expected.append(node)
                break
    assert nodes.put_best_fit(gpus, count) == expected
    assert (nodes.free, nodes.total, nodes.levels) == (twin.free, twin.total, twin.levels)
    assert dict(nodes.soft.kinds()) == dict(twin.soft.kinds())


# -- whole nodes ----------------------------------------------------------------------------------


@given(pools(), st.data())
def test_the_easiest_to_empty_are_those_of_a_sort(nodes, data):
    """Within one rack of any nodes: the fewest blocks, then the fewest GPUs, then the lowest."""
    among, count = some(data.draw, nodes), data.draw(st.integers(1, 4))
    best = None
    for rack in nodes.racks.values():
        able = [n for n in bits(among & rack) if firm_room(nodes, n) == nodes.whole]
        able.sort(key=lambda n: (len(nodes.soft.on.get(n, ())), nodes.size[n] - nodes.free[n], n))
        moves = sum(len(nodes.soft.on.get(n, ())) for n in able[:count])
        if len(able) >= count and (best is None or moves < best[0]):
            best = (moves, able[:count])
    groups = [among & rack for rack in nodes.racks.values()]
    assert easiest_to_empty(nodes, count, groups) == (None if best is None else best[1])


@given(pools(sizes=(8, 4, 4, 2)), st.booleans(), st.sampled_from(("rack", "cluster")), st.data())
def test_mixed_nodes_are_those_of_a_sort(nodes, push, span, data):
    """The largest nodes that are empty, or soon emptied, in the first rack that suffices."""
    gpus, allowed = data.draw(st.integers(9, 40)), some(data.draw, nodes)
    count = nodes.fewest_nodes(gpus)
    room = [firm_room(nodes, n) if push else free for n, free in enumerate(nodes.free)]
    expected = None
    for group in nodes.racks.values() if span == "rack" else (nodes.usable,):
        able = [n for n in bits(allowed & group) if room[n] == nodes.size[n]]
        able.sort(key=lambda n: (-nodes.size[n], len(nodes.soft.on.get(n, ())), n))
        if sum(nodes.size[n] for n in able[:count]) >= gpus:
            expected = able[:count]
            break
    request = PoolRequest(order=0, gpus=gpus, span=span)
    assert mixed_nodes(nodes, request, count, allowed, push=push) == expected


def test_the_fewest_nodes_hold_the_most_gpus():
    """Nodes of 8, 4, 4 and 2: 8 GPUs need one, 9 to 12 two, 18 all four, as does any more."""
    nodes = pool([4, 8], [2, 4])
    assert [nodes.fewest_nodes(gpus) for gpus in (8, 9, 12, 18, 30)] == [1, 2, 2, 4, 4]


@given(pools(), st.data())
def test_spreading_remembers_nothing_that_has_changed(nodes, data):
    """One pool that is asked again and again answers as a fresh copy does each time."""
    for _ in range(6):
        among = nodes.levels[nodes.whole]
        if data.draw(st.booleans()):
            among &= some(data.draw, nodes)
        count, one_rack = data.draw(st.integers(1, 6)), data.draw(st.booleans())
        chosen = nodes.spread(among, count, one_rack=one_rack)
        assert chosen == nodes.copy().spread(among, count, one_rack=one_rack)
        if chosen is not None:
            assert chosen & among == chosen
            assert chosen.bit_count() == count
            if data.draw(st.booleans()):
                for node in bits(chosen):
                    nodes.put(node, nodes.whole)


def test_nodes_are_indexed_once_for_each_cluster():
    """Three nodes, of which the last sleeps now: the index of the pool does not know that."""
    cluster = Cluster(
        gpu_types=(GpuType(name="v", memory_gib=16), GpuType(name="w", memory_gib=16)),
        node_groups=tuple(
            NodeGroup(name=f"g{k}", count=1, gpus_per_node=8, gpu_type=kind)
            for k, kind in enumerate("vwv")
        ),
    )
    empty = pool_nodes(cluster, 0, ())
    drowsy = pool_nodes(cluster, 0, (1, 2))  # node 1 is of the other pool
    assert (empty.position, empty.awake, drowsy.awake) == ({0: 0, 2: 1}, 0b11, 0b01)
    packing = pack(empty, [PoolRequest(order=0, gpus=8), PoolRequest(order=1, gpus=3)])
    assert packing.at == {0: [(0, 8)], 1: [(1, 3)]}
    assert pool_nodes(cluster, 0, ()) is empty
    assert (empty.free, empty.busy, empty.usable, empty.awake) == ([8, 8], 0, 0b11, 0b11)
