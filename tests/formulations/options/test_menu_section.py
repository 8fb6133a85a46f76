"""What a menu remembers: blocks are the same however many, and whatever else, is computed."""

import numpy as np
import pytest

from ronda.formulations.options.grid import BATCH, CLOCK, GPUS, RATE, WATTS
from ronda.formulations.options.menu import MOST_REMEMBERED, Menu
from ronda.formulations.options.menu_section import AT_ONCE, Request, Section, Terms
from ronda.formulations.options.pools import pool_shapes
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.profile import NoiseScale, Parametric, PowerCurve, Profile

CLOCKS, BATCHES = (0.5, 0.75, 1.0), (32.0, 64.0, 128.0, 256.0)
PROFILE = Profile(
    name="elastic",
    throughput={
        "V100": Parametric(
            alpha_c_s=0.01, beta_c_s=0.01, alpha_r_s=0.01, alpha_n_s=0.05, beta_n_s=0.001
        )
    },
    power={"V100": PowerCurve(a_w=26, b_w=140, c_w=222, s0=0.88)},
    base_batch=32.0,
    batches=BATCHES,
)
SHAPE = pool_shapes(
    Cluster(
        gpu_types=(GpuType(name="V100", memory_gib=16, idle_w=30.0, clocks=CLOCKS),),
        node_groups=(NodeGroup(name="g", count=4, gpus_per_node=4, gpu_type="V100"),),
    )
)[0]
KINDS = [(True, False), (True, True), (False, False)]


def section(prune, mind_power):
    """Return an empty section."""
    return Section(PROFILE, SHAPE, Terms(CLOCKS, BATCHES, prune, mind_power))


def noise(scale):
    """Return a noise scale that is the same for all batches."""
    return NoiseScale(batches=BATCHES, scale=(scale,) * len(BATCHES))


def alone(kind, request):
    """Return the block of a request that is the first one of its section."""
    own = section(*kind)
    own.prepare([request])
    return own.block(request)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_do_not_depend_on_what_was_asked_for_before(kind):
    """Counts beside the ladder (1, 2, 4, 8, 16) come one by one, at three noise scales in turn."""
    requests = [Request(2, 8, n, noise(s)) for n in (2, 5, 3, 12, 99) for s in (50.0, 500.0, 50.0)]
    requests.append(Request(1, 16, 6, None))
    grown = section(*kind)
    for request in dict.fromkeys(requests):
        assert not grown.knows(request)
        grown.prepare([request])
    for request in requests:
        np.testing.assert_array_equal(grown.block(request), alone(kind, request))
    assert len(grown) == len(set(requests))


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_do_not_depend_on_how_many_are_computed_at_once(kind):
    """More noise scales than at once: the first ones are forgotten, their blocks are not."""
    requests = [Request(1, 16, 3, noise(float(s))) for s in range(10, 11 + 2 * AT_ONCE)]
    many = section(*kind)
    many.prepare(requests)
    for request in requests[:: AT_ONCE // 2]:
        np.testing.assert_array_equal(many.block(request), alone(kind, request))


def test_counts_offered_by_hand():
    """Of the ladder 1, 2, 4, 8, 16 those in [2, 8], and 5, which was asked for; not 99 of 16."""
    block = alone((False, False), Request(2, 8, 5, None))
    assert sorted(set(block[GPUS].tolist())) == [2, 4, 5, 8]
    assert sorted(set(alone((False, False), Request(2, 8, 99, None))[GPUS].tolist())) == [2, 4, 8]
    assert block[CLOCK].tolist() == list(CLOCKS) * 4


def test_without_watts_every_count_has_its_fastest_clock_and_batch():
    """The best of all rows that are there when nothing is dropped, count by count."""
    request = Request(1, 16, 1, noise(300.0))
    fast, every = alone((True, False), request), alone((False, False), request)
    assert fast[GPUS].tolist() == sorted(set(every[GPUS].tolist()))
    for column in fast.T:
        rivals = every[:, every[GPUS] == column[GPUS]]
        best = rivals[:, rivals[RATE].argmax()]
        np.testing.assert_array_equal(
            column[[CLOCK, BATCH, RATE, WATTS]], best[[CLOCK, BATCH, RATE, WATTS]]
        )


def test_a_menu_forgets_when_it_is_a_lot():
    """Not before, and never a part of what one table needs."""
    menu, terms = Menu(PROFILE, SHAPE), Terms(CLOCKS, BATCHES, True, False)
    kept = menu.section(terms)
    kept.prepare([Request(1, n, 1, None) for n in range(1, MOST_REMEMBERED + 1)])
    menu.trim()
    assert menu.section(terms) is kept
    kept.prepare([Request(1, 1, 2, None)])
    menu.trim()
    assert len(menu.section(terms)) == 0
