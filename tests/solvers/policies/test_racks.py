"""A gang that is next to nothing across racks waits for one rack, under every policy."""

import msgspec
import pytest

import ronda
from ronda.instances.round import Round
from ronda.solvers.registry import POLICIES

SHORT = dict.fromkeys(("evolve", "evolve+fused", "genetic"), "(generations=3)")

NET = {
    "name": "net",
    "base_batch": 256,
    "throughput": {
        "A": {"kind": "parametric", "alpha_c_s": 0.05, "beta_c_s": 0.002, "alpha_x_s": 1e9}
    },
}
"""A step takes 0.05 + 0.002 * 256 / 8 = 0.114 s in a rack, and 30 years across racks."""


def round_of(*pinned):
    """Return a round with two racks of two nodes of 4 GPUs, some of which are held for long."""
    rigid = {"name": "rigid", "throughput": {"A": {"kind": "rigid"}}}
    running = [
        {
            "job": {
                "id": f"p{node}",
                "submit_s": 0,
                "profile": "rigid",
                "gpus": 4,
                "estimate": {"work": 36000},
                "preemptible": False,
            },
            "since_s": 0,
            "started": True,
            "allocation": {"option": {"pool": 0, "gpus": 4}, "placement": [[node, 4]]},
        }
        for node in pinned
    ]
    gang = {"id": "gang", "submit_s": 100, "profile": "net", "gpus": 8, "estimate": {"work": 1e6}}
    nodes = {"count": 2, "gpus_per_node": 4, "gpu_type": "A"}
    plain = {
        "now_s": 700,
        "cluster": {
            "gpu_types": [{"name": "A", "memory_gib": 80}],
            "node_groups": [{"name": f"g{r}", "rack": f"r{r}", **nodes} for r in (0, 1)],
            "racks": [{"name": "r0"}, {"name": "r1"}],
        },
        "profiles": {"rigid": rigid, "net": NET},
        "running": running,
        "waiting": [{"job": gang, "since_s": 100}],
        "costs": {"restart_s": 60},
    }
    return msgspec.convert(plain, type=Round)


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_gang_waits_for_a_rack(name):
    """One node of each rack is free: it waits. One rack is free: it starts there."""
    spec = name + SHORT.get(name, "")
    plan = ronda.solve(round_of(0, 2), spec)
    assert ronda.check(round_of(0, 2), plan) == []
    assert "gang" not in plan.allocations
    plan = ronda.solve(round_of(2), spec)
    assert [node for node, _ in plan.allocations["gang"].placement] == [0, 1]
