"""What jobs hold, kept from round to round, is what reading all of it gives."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from ronda.formulations import holdings as module
from ronda.formulations.holdings import Holdings, holdings, read
from ronda.formulations.watts import extra_w, seconds_left
from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.job import Allocation, Estimate, Job, JobState, Option
from ronda.instances.round import Round
from ronda.instances.site import Site

GPU = GpuType(name="A", memory_gib=40.0, idle_w=50.0)


def cluster(nodes=6):
    """Return nodes of four GPUs."""
    return uniform_cluster(GPU, nodes, 4, host_idle_w=100.0, sleep_w=10.0)


def job(name, work, **fields):
    """Return a waiting job, whose size is known or not."""
    estimate = None if work is None else Estimate(work=work)
    made = Job(id=name, submit_s=0.0, profile="p", gpus=1, estimate=estimate, **fields)
    return JobState(job=made, since_s=0.0)


def allocation(placement, rate=1.5):
    """Return GPUs of some nodes."""
    gpus = sum(count for _, count in placement)
    option = Option(pool=0, gpus=gpus, rate=rate, power_w=210.0 * gpus, teardown_s=2.0)
    return Allocation(option=option, placement=placement)


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["start", "stop", "end", "measure", "move"]),
        st.integers(0, 9),
        st.lists(st.integers(1, 4), min_size=1, max_size=3),
        st.sampled_from([None, 1.0, 50.0, 1e4]),
    ),
    max_size=25,
)


@settings(max_examples=100, deadline=None)
@given(CHANGES)
def test_what_is_kept_is_what_is_read(changes):
    """Whatever starts, stops, ends, moves or is measured: columns, free GPUs, watts and ends."""
    room, live, now_s = cluster(), {}, 0.0
    kept = Holdings(room, (), *read(room, ()))
    for kind, number, counts, work in changes:
        now_s += 7.0
        state, name = live.get(number), f"j{number}"
        free = [4 - gpus for gpus in kept.gpus_on.tolist()]
        placement = tuple((node, n) for node, n in enumerate(counts) if free[node] >= n)
        if kind == "start" and state is None and placement:
            limit_s = [None, 20.0, 60.0][number % 3]
            begins = {"allocation": allocation(placement), "held_s": now_s, "ran_s": 0.1 * number}
            live[number] = replace(job(name, work, limit_s=limit_s), **begins)
        elif kind in ("stop", "end"):
            live.pop(number, None)
        elif kind == "measure" and state is not None:
            live[number] = replace(state, done=state.done_at(now_s), since_s=now_s)
        elif kind == "move" and state is not None and placement:
            live[number] = replace(state, allocation=allocation(placement, 2.5), since_s=now_s + 1)
        pairs = [(each, each.allocation) for each in live.values()]
        kept = kept.of(pairs)
        anew = Holdings(room, (), *read(room, ())).of(pairs)
        for name in ("nodes", "gpus", "spread", "watts", "gpus_on"):
            np.testing.assert_array_equal(getattr(kept, name), getattr(anew, name))
        assert [f.free for f in kept.free()] == [f.free for f in anew.free()]
        assert [f.levels for f in kept.free()] == [f.levels for f in anew.free()]
        site = Site(kills_at_limit=now_s % 2 > 0)
        round_ = Round(cluster=room, profiles={}, now_s=now_s, site=site)
        seconds = kept.seconds_left(round_)
        for (state, held), watts, left_s in zip(pairs, kept.watts, seconds, strict=True):
            assert watts == extra_w(round_, held.option)
            assert left_s == seconds_left(round_, state, held.option)
        until = kept.until(seconds)
        for node in range(6):
            own = [s for (_, a), s in zip(pairs, seconds, strict=True) if node in dict(a.placement)]
            assert until[node] == max(own, default=0.0)


def test_a_decision_reads_what_changed(monkeypatch):
    """Of 5,000 jobs that run only those are read that start, are measured, or move."""
    room = cluster(1250)
    states = [
        replace(job(f"j{k}", 100.0), allocation=allocation(((k // 4, 1),))) for k in range(5000)
    ]
    seen = []

    def spy(cluster, pairs):
        seen.extend(pairs)
        return read(cluster, pairs)

    monkeypatch.setattr(module, "read", spy)
    first = holdings(room, [(s, s.allocation) for s in states])
    assert len(seen) == 5000
    states[7] = replace(states[7], done=3.0)
    left = [*states[:100], *states[101:]]
    seen.clear()
    second = holdings(room, [(s, s.allocation) for s in left])
    assert seen == [(states[7], states[7].allocation)]
    assert holdings(room, second.pairs) is second
    assert (first.gpus_on.sum(), second.gpus_on.sum()) == (5000, 4999)


def test_a_node_that_holds_more_than_it_has_is_an_error():
    """Free GPUs below zero are refused where they are asked for."""
    room = cluster()
    pairs = [(job("a", None), allocation(((0, 4),))), (job("b", None), allocation(((0, 1),)))]
    with pytest.raises(ValueError, match="node 0 has"):
        holdings(room, pairs).free()
