"""The face of AdaptDL's policy: what its own tests ask of it, and its objective by brute force."""

from collections import Counter
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from ronda.hosts.adapters import Pollux
from ronda.hosts.adapters.speedups import SumOfSpeedups


def speedup(nodes, replicas):
    """Return n^0.8, less a fifth across nodes; of arrays."""
    return np.asarray(replicas) ** 0.8 * np.where(np.asarray(nodes) > 1, 0.8, 1.0)


def job(**fields):
    """Return a job in AdaptDL's words."""
    usual = {"resources": {"gpu": 1, "pods": 1}, "speedup_fn": speedup, "creation_timestamp": 0}
    limits = {"min_replicas": 0, "max_replicas": 8, "preemptible": True}
    return SimpleNamespace(**usual | limits | fields)


def node(preemptible=False, **resources):
    """Return a node in AdaptDL's words."""
    return SimpleNamespace(resources={"gpu": 4, "pods": 32} | resources, preemptible=preemptible)


def used(allocations):
    """Return the replicas on each node."""
    return Counter(place for places in allocations.values() for place in places)


@pytest.mark.parametrize("nodes", [1, 2, 4, 8, 16])
def test_limits_of_jobs_and_nodes_hold_round_after_round(nodes):
    """Sixteen jobs on sixteen GPUs; what ran goes on."""
    policy, held = Pollux(), {}
    machines = {k: node(gpu=16 // nodes) for k in range(nodes)}
    for _ in range(3):
        held, wanted = policy.optimize({k: job() for k in range(16)}, machines, held, node())
        assert max(used(held).values()) <= 16 // nodes
        assert sum(used(held).values()) == 16
        assert wanted >= 1
        spread = [places for places in held.values() if len(set(places)) > 1]
        assert max(Counter(n for places in spread for n in set(places)).values(), default=0) <= 1


def test_jobs_that_may_not_be_stopped_keep_their_replicas():
    """Others come and go around them, and what has a minimum gets it or nothing."""
    policy, machines, held = Pollux(), {k: node() for k in range(4)}, {}
    firm = {k: job(preemptible=False, min_replicas=2, max_replicas=4) for k in range(3)}
    for others in (range(10, 12), range(11, 16), range(20, 30)):
        before = held
        jobs = firm | {k: job() for k in others}
        held, _ = policy.optimize(jobs, machines, before, node())
        for k in firm:
            assert len(held[k]) in (0, 2, 3, 4)
            assert not before.get(k) or sorted(held[k]) == sorted(before[k])


def test_a_job_that_may_not_be_stopped_keeps_more_than_a_node_has_slots():
    """A node of 4 GPUs has two slots for the other job's replicas, and this one holds 3 on it."""
    need = {"gpu": 2, "pods": 1}
    jobs = {"a": job(preemptible=False, max_replicas=4), "b": job(resources=need)}
    held = {"a": ["n"] * 3}
    assert Pollux().optimize(jobs, {"n": node()}, held, node(gpu=0))[0] == held | {"b": []}
    room = {"n": node(), "m": node()}
    found, _ = Pollux().optimize(jobs, room, held, node(gpu=0))
    assert found == held | {"b": ["m", "m"]}


@pytest.mark.parametrize("seed", range(12))
def test_random_rounds_keep_jobs_that_may_not_be_stopped(seed):
    """Whatever comes and goes: they keep their replicas, and no node has too many of anything."""
    rng, held, jobs = np.random.default_rng(seed), {}, {}
    machines = {k: node(gpu=int(rng.choice([4, 8])), cpu=8) for k in range(4)}
    policy = Pollux()
    for turn in range(6):
        jobs = {k: each for k, each in jobs.items() if rng.random() < 0.8}
        for k in range(3):
            need = {"gpu": int(rng.integers(1, 3)), "cpu": int(rng.integers(1, 3)), "pods": 1}
            firm, least = rng.random() < 0.4, int(rng.integers(0, 3))
            limits = {"min_replicas": least, "max_replicas": max(least, int(rng.integers(1, 9)))}
            jobs[f"{turn}-{k}"] = job(resources=need, preemptible=not firm, **limits)
        before = {k: places for k, places in held.items() if k in jobs and places}
        held, _ = policy.optimize(jobs, machines, before, node())
        for k, places in before.items():
            assert jobs[k].preemptible or sorted(held[k]) == sorted(places)
        for k, machine in machines.items():
            here = [jobs[j].resources for j, places in held.items() for p in places if p == k]
            for name in ("gpu", "cpu"):
                assert sum(need[name] for need in here) <= machine.resources[name]


def test_a_job_that_nothing_can_hold_any_more_is_not_complete():
    """It needs eight replicas, four are left, and then eight again: no size was learnt."""
    policy, wide, wants = Pollux(), {k: node() for k in range(2)}, {"min_replicas": 8}
    held, _ = policy.optimize({"net-1": job(age=60, **wants)}, wide, {}, node())
    assert len(held["net-1"]) == 8
    policy.optimize({"net-1": job(age=300, **wants)}, wide, held, node())
    late, few = {"net-1": job(age=600, **wants)}, {0: node()}
    assert policy.optimize(late, few, {}, node())[0] == {"net-1": []}
    assert policy._host.host.jobs == ()
    assert not policy._host.host._beliefs._complete
    assert len(policy.optimize(late, wide, {}, node())[0]["net-1"]) == 8


def test_a_host_that_tests_for_its_own_class_is_content():
    """One that inherits from both is of either, and is set up as ours."""

    class PolluxPolicy:
        def __init__(self, *needed):
            raise AssertionError("the host's own search is not set up")

    class Ronda(Pollux, PolluxPolicy):
        pass

    policy = Ronda(policy="fifo")
    assert isinstance(policy, PolluxPolicy)
    found, _ = policy.optimize({"a": job()}, {0: node()}, {}, node())
    assert found["a"]


def test_a_node_that_lacks_one_resource_is_not_used_and_more_are_asked_for():
    """Two of three jobs fit; all nodes in use are full, so there should be more."""
    need = {"gpu": 1, "cpu": 1000, "pods": 1}
    jobs = {k: job(resources=need, max_replicas=1) for k in range(3)}
    machines = {0: node(gpu=1, cpu=500)} | {k: node(gpu=1, cpu=8000) for k in (1, 2)}
    held, wanted = Pollux().optimize(jobs, machines, {}, node(gpu=1, cpu=8000))
    assert used(held) == {1: 1, 2: 1}
    assert wanted > 3


def test_fewer_nodes_are_asked_for_where_speedup_is_poor():
    """One job of one replica uses a quarter of a node, whatever there is."""
    machines = {k: node() for k in range(4)}
    held, wanted = Pollux().optimize({"a": job(max_replicas=1)}, machines, {}, node())
    assert used(held).total() == 1
    assert wanted == 1


def test_the_first_node_that_holds_a_new_job_takes_it():
    """Preemptible nodes come last, and a node must hold all of the fewest replicas."""
    machines = {
        "a": node(True, gpu=4, cpu=4),
        "b": node(gpu=1, cpu=9),
        "c": node(gpu=2, cpu=2),
    }
    need = {"gpu": 1, "cpu": 1}
    assert Pollux().allocate_job(job(resources=need), machines) == ["b"]
    assert Pollux().allocate_job(job(resources=need, min_replicas=2), machines) == ["c", "c"]
    assert Pollux().allocate_job(job(resources=need, min_replicas=4), machines) == ["a"] * 4
    assert Pollux().allocate_job(job(resources=need, min_replicas=5), machines) == []


def test_its_objective_is_greatest_by_brute_force():
    """Three jobs of other speeds and two nodes: all numbers of replicas, less 10 % of a change."""
    speeds = [0.4, 0.7, 0.95]
    jobs = {
        k: job(speedup_fn=lambda n, r, p=p: 2 * np.asarray(r) ** p) for k, p in enumerate(speeds)
    }
    held = {0: [0, 0], 2: [1, 1, 1]}

    def value(k, n):
        return 2 * n ** speeds[k] * (1.0 if n == len(held.get(k, ())) else 0.9)

    choices = [n for n in product((0, 1, 2, 3, 4, 8), repeat=3) if sum(n) <= 8]
    best = max(sum(value(k, n) for k, n in enumerate(each) if n) for each in choices)
    found, _ = Pollux(SumOfSpeedups(gap=1e-9)).optimize(
        jobs, {k: node() for k in range(2)}, held, node()
    )
    assert sum(value(k, len(v)) for k, v in found.items() if v) == pytest.approx(best)


def test_no_job_and_no_node_is_no_error():
    """There is nothing to decide."""
    assert Pollux().optimize({}, {0: node()}, {}, node()) == ({}, 1)
    held, _ = Pollux().optimize({"a": job()}, {0: node(gpu=0)}, {}, node())
    assert held == {"a": []}
