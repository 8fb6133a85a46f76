"""The face of Sia's policies: jobs go where their goodput is, and stay within clusters."""

from collections import Counter
from types import SimpleNamespace

import numpy as np

from ronda.hosts.adapters import Sia


def node(gpus):
    """Return a node in the simulator's words."""
    return SimpleNamespace(resources={"nvidia.com/gpu": gpus})


def job(slow=1.0, fast=3.0, most=8, **fields):
    """Return a job that is faster on one type than on the other; None: nothing is known."""

    def on(rate):
        return None if rate is None else lambda nodes, n: rate * np.asarray(n) ** 0.8

    limits = {"min_replicas": {"slow": 1, "fast": 1}, "max_replicas": {"slow": most, "fast": most}}
    return SimpleNamespace(speedup_fn={"slow": on(slow), "fast": on(fast)}, **limits, **fields)


NODES = {"slow": {k: node(4) for k in range(2)}, "fast": {k: node(8) for k in range(1)}}


def in_order(found, jobs):
    """Tell whether no node has more than it can hold, and every job is in one cluster."""
    used = Counter((cluster, place) for cluster, places in found.values() for place in places)
    assert all(n <= NODES[c][k].resources["nvidia.com/gpu"] for (c, k), n in used.items())
    assert set(found) == set(jobs)
    return sum(used.values())


def test_all_gpus_of_both_clusters_are_used_round_after_round():
    """The job that gains most from fast GPUs has them."""
    policy, held = Sia("prices"), {}
    policy.populate_valid_configs({"slow": 2, "fast": 1}, {"slow": 4, "fast": 8})
    jobs = {"mean": job(fast=1.0), "keen": job(fast=9.0), "small": job(most=2)}
    for _ in range(3):
        held = policy.optimize(jobs, NODES, held)
        assert in_order(held, jobs) >= 14
    assert held["keen"][0] == "fast"
    assert held["mean"][0] == "slow"


def test_jobs_come_and_go():
    """A job that is gone leaves its GPUs to the others; no job is no error."""
    policy = Sia("prices", restart_s=0.0)
    both = {1: job(), 2: job()}
    held = policy.optimize(both, NODES, {})
    assert len(held[1][1]) + len(held[2][1]) >= 8
    alone = policy.optimize({2: both[2]}, NODES, held)
    assert alone[2][0] == "fast"
    assert len(alone[2][1]) == 8
    assert policy.optimize({}, NODES, alone) == {}


def test_a_speed_that_is_not_known_gets_the_fewest_replicas():
    """Until the simulator has measured it."""
    policy = Sia("prices")
    held = policy.optimize({"new": job(slow=None, fast=None)}, NODES, {})
    assert len(held["new"][1]) == 1
    later = policy.optimize({"new": job(slow=1.0, fast=2.0)}, NODES, held)
    assert later["new"] == ("fast", [0] * 8)


def test_what_the_simulator_moved_counts():
    """A job scattered over two nodes by the host is known to run so."""
    policy = Sia("fifo")
    found = policy.optimize({"a": job(most=2)}, NODES, {"a": ("slow", (0, 1))})
    assert found["a"] == ("slow", [0, 1])


def test_ratios_say_how_fast_a_job_is_where_it_has_not_run():
    """Without them it may go only where it has run."""
    ratios = {"fast": {"slow": 5.0}}  # five times as fast as on slow GPUs
    known, told = job(fast=None), job(fast=None, cluster_throughput_ratios=ratios)
    assert Sia("prices").optimize({"one": known}, NODES, {})["one"][0] == "slow"
    assert Sia("prices").optimize({"one": told}, NODES, {})["one"][0] == "fast"
