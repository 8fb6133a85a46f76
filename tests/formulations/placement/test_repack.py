"""Which lists of jobs are tried, and that a list is not tried in vain."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from ronda.formulations.placement.nodes import PoolNodes, PoolRequest
from ronda.formulations.placement.packing import Packing, pack
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack


def pool(*racks, size=8):
    """Return an empty pool of nodes; `racks` says how many in each rack."""
    groups = (
        NodeGroup(name=f"g{k}", count=count, gpus_per_node=size, gpu_type="v", rack=f"r{k}")
        for k, count in enumerate(racks)
    )
    cluster = Cluster(
        gpu_types=(GpuType(name="v", memory_gib=16),),
        racks=tuple(Rack(name=f"r{k}") for k in range(len(racks))),
        node_groups=tuple(groups),
    )
    return PoolNodes(cluster, 0)


@pytest.fixture
def tried(monkeypatch):
    """Return a list to which every attempt adds how many jobs it tries to place."""
    numbers, run = [], Packing.run

    def noted(self, requests, **kwargs):
        numbers.append(len(requests))
        return run(self, requests, **kwargs)

    monkeypatch.setattr(Packing, "run", noted)
    return numbers


def test_lists_beyond_the_bound_are_not_tried(tried):
    """Twelve jobs of 5 GPUs, 60 of 64 GPUs, but each needs a node of its own: eight at most.

    Of the bisection 6, 9, 7, 8 only 6, 7 and 8 are tried; all 12, and 9, would be in vain.
    """
    packing = pack(pool(8), [PoolRequest(order=k, gpus=5) for k in range(12)])
    assert tried == [6, 7, 8]
    assert sorted(packing.at) == list(range(8))


def test_sizes_that_divide_each_other_are_tried_at_once(tried):
    """1 | 2 | 4 | 8: whatever GPUs suffice for is placed by the first attempt."""
    gpus = [8, 4, 2, 1, 1, 16]
    packing = pack(pool(4), [PoolRequest(order=k, gpus=n) for k, n in enumerate(gpus)])
    assert tried == [6]
    assert len(packing.at) == 6


@st.composite
def asked(draw):
    """Draw jobs for four nodes of 8 GPUs, of which some run, and few of those are pinned."""
    free, requests = [8] * 4, []
    for order in range(draw(st.integers(1, 14))):
        gpus, node = draw(st.integers(1, 12)), draw(st.integers(0, 5))
        held = ()
        if node < 4 and gpus <= free[node]:
            free[node] -= gpus
            held = ((node, gpus),)
        pinned = bool(held) and draw(st.integers(0, 3)) == 0
        requests.append(PoolRequest(order=order, gpus=gpus, held=held, pinned=pinned))
    return requests


@given(asked())
def test_the_bound_changes_no_plan(requests):
    """The plan is the same as if every list of the bisection had been tried."""
    quick = pack(pool(4), requests)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "ronda.formulations.placement.packing.at_most",
            lambda requests, nodes, whole: len(requests),
        )
        assert pack(pool(4), requests).at == quick.at


@st.composite
def fragmented(draw):
    """Draw blocks of 1, 2 and 4 GPUs, most of which run somewhere, for five nodes of 8."""
    free, requests = [8] * 5, []
    for order in range(draw(st.integers(1, 20))):
        gpus, node = draw(st.sampled_from((1, 2, 4))), draw(st.integers(0, 5))
        if node < 5 and gpus <= free[node]:
            free[node] -= gpus
            requests.append(PoolRequest(order=order, gpus=gpus, held=((node, gpus),)))
        elif sum(r.gpus for r in requests) + gpus <= 40:
            requests.append(PoolRequest(order=order, gpus=gpus))
    return [r for r in requests if r.held] + [r for r in requests if not r.held][:1]


def from_scratch(nodes, requests):
    """Pack as if nothing could ever be placed with everything that runs kept in place."""
    run = Packing.run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Packing,
            "run",
            lambda self, asked, scratch=False: scratch and run(self, asked, scratch=1),
        )
        return pack(nodes, requests)


@given(fragmented())
def test_no_exchange_of_equal_nodes_keeps_more_gpus(requests):
    """A repack from scratch leaves as many GPUs where they were as a dense assignment finds.

    Racks without a cap are no reason to move.
    """
    at = from_scratch(pool(2, 3), requests).at
    same = np.zeros((5, 5), dtype=int)
    for request in requests:
        for node, gpus in request.held:
            same[at[request.order][0][0], node] += gpus
    assert same.trace() == same[linear_sum_assignment(same, maximize=True)].sum()
    used = np.bincount([pieces[0][0] for pieces in at.values()], [p[0][1] for p in at.values()])
    assert used.max() <= 8


@given(asked())
def test_the_free_gpus_are_those_that_no_job_has(requests):
    """After an exchange of nodes, too: jobs that come later count on them."""
    packing = from_scratch(pool(2, 2), requests)
    used = np.zeros(4, dtype=int)
    for pieces in packing.at.values():
        for node, gpus in pieces:
            used[node] += gpus
    assert packing.nodes.free == (8 - used).tolist()
