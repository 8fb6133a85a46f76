"""A job that is next to nothing across racks, or nodes, waits for one, under every policy."""

import msgspec
import pytest

import ronda
from ronda.formulations.options.gpu_ladders import own_batch_ladders
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


def round_of(*pinned, held=4, gpus=8, **across):
    """Return a round with two racks of two nodes of 4 GPUs, some of which are held for long.

    On each of the `pinned` nodes `held` GPUs are; `gpus` are those of the gang, and `across` adds
    to what its model says.
    """
    rigid = {"name": "rigid", "throughput": {"A": {"kind": "rigid"}}}
    running = [
        {
            "job": {
                "id": f"p{node}",
                "submit_s": 0,
                "profile": "rigid",
                "gpus": held,
                "estimate": {"work": 36000},
                "preemptible": False,
            },
            "since_s": 0,
            "started": True,
            "allocation": {"option": {"pool": 0, "gpus": held}, "placement": [[node, held]]},
        }
        for node in pinned
    ]
    net = NET | {"throughput": {"A": NET["throughput"]["A"] | across}}
    gang = {"id": "gang", "submit_s": 100, "profile": "net", "gpus": gpus}
    gang["estimate"] = {"work": 1e6}
    nodes = {"count": 2, "gpus_per_node": 4, "gpu_type": "A"}
    plain = {
        "now_s": 700,
        "cluster": {
            "gpu_types": [{"name": "A", "memory_gib": 80}],
            "node_groups": [{"name": f"g{r}", "rack": f"r{r}", **nodes} for r in (0, 1)],
            "racks": [{"name": "r0"}, {"name": "r1"}],
        },
        "profiles": {"rigid": rigid, "net": net},
        "running": running,
        "waiting": [{"job": gang, "since_s": 100}],
        "costs": {"restart_s": 60},
    }
    return msgspec.convert(plain, type=Round)


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_gang_waits_for_a_rack(name):
    """One node of each rack is free: it waits. One rack is free, first or last: it starts there.

    Beside the last rack a node of the first one is free, too: the lowest two free nodes are apart.
    """
    spec = name + SHORT.get(name, "")
    plan = ronda.solve(round_of(0, 2), spec)
    assert ronda.check(round_of(0, 2), plan) == []
    assert "gang" not in plan.allocations
    for pinned, rack in ((2, [0, 1]), (0, [2, 3])):
        plan = ronda.solve(round_of(pinned), spec)
        assert [node for node, _ in plan.allocations["gang"].placement] == rack


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_job_waits_for_a_node(name):
    """Each node has 2 of 4 GPUs free, and a step of 4 GPUs takes 30 years across nodes: it waits.

    With one node free it starts there.
    """
    spec = name + SHORT.get(name, "")
    for pinned, node in (((0, 1, 2, 3), None), ((0, 1, 2), ((3, 4),))):
        round_ = round_of(*pinned, held=2, gpus=4, alpha_n_s=1e9)
        given = ronda.solve(round_, spec).allocations.get("gang")
        assert (None if given is None else given.placement) == node


def test_ladders_promise_the_rate_within_a_rack():
    """256 samples in 0.114 s: the gang starts in one rack or not at all."""
    (ladder,) = own_batch_ladders(round_of(), every=False)
    assert (ladder.gpus, ladder.rate) == ((8,), (pytest.approx(256 / 0.114),))
