"""A new job at each of its sizes: where, at whose cost, and what forbids it."""

import pytest
from msgspec.structs import replace

import ronda
from ronda.instances import generate
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.questions.whatif import NewJob
from tests.helpers.valued_rounds import cluster, job, rigid, run, snapshot


def sizes(round_, new, **how):
    """Return the sizes of a new job by pool and GPUs, and the whole answer."""
    found = ronda.whatif(round_, [NewJob(new)], **how)
    return {(size.pool, size.gpus): size for size in found.sizes[new.id]}, found


def test_on_free_gpus_it_costs_nobody_anything():
    """Two of four GPUs are free: a job of two starts there."""
    round_ = snapshot(rigid("x", 100.0, gpus=2), on=cluster(4))
    found, _ = sizes(round_, rigid("new", 50.0, gpus=2).job)
    (size,) = found.values()
    assert (size.starts, size.cost, size.row, size.losers) == (True, 0.0, "", {})
    assert size.allocation.placement == ((0, 2),)


def test_a_longer_job_would_cost_more_than_it_is_worth():
    """One GPU: beside jobs of 100 and 200 s, ranked 2 and 1, one of 300 s is worth 1 of 3 ranks.

    With it there are three: 300 s is the largest, worth 1. It would take the GPU from the job of
    100 s, which is worth 2 as the round is.
    """
    round_ = snapshot(rigid("long", 200.0), rigid("short", 100.0), on=cluster(1))
    found, whole = sizes(round_, rigid("new", 300.0).job)
    (size,) = found.values()
    assert (size.worth, size.cost) == (pytest.approx(1.0), pytest.approx(2.0))
    assert not size.starts
    assert size.row == "gpus[default/V100]"
    assert size.losers == {"short": pytest.approx(2.0)}
    assert whole.outcomes[0].found == pytest.approx(0.0)


def test_what_may_not_be_stopped_forbids_it():
    """Three of four GPUs are held for good: 2 of the job's sizes are left out, 1 starts."""
    firm = run(rigid("firm", 500.0, gpus=3, preemptible=False), 3, 1.0)
    found, _ = sizes(snapshot(firm, on=cluster(4)), job("new", 50.0).job)
    assert found["default/V100", 1].starts
    for gpus in (2, 4):
        size = found["default/V100", gpus]
        assert (size.starts, size.cost, size.allocation) == (False, None, None)
        assert size.row == "gpus[default/V100]"
        assert "3 of 4 GPUs" in size.why


def test_a_cap_forbids_it():
    """Two GPUs of 300 W beside a node of 60 W idle: 400 W bear one of them at full clock."""
    round_ = ronda.load("clock-or-gpus")
    new = replace(round_.jobs[0].job, id="new", submit_s=round_.now_s)
    capped = replace(round_, power_cap_w=1.0 + round_.cluster.topology.idle_w)
    found, _ = sizes(capped, new)
    assert found
    for size in found.values():
        assert (size.starts, size.cost, size.row) == (False, None, "power_cap")


def test_pools_where_it_has_no_size():
    """A type that its profile does not know, one that it may not use, and too few GPUs."""
    types = tuple(GpuType(name=n, memory_gib=16, idle_w=30.0) for n in ("V100", "T4"))
    groups = tuple(
        NodeGroup(name=n, count=1, gpus_per_node=g, gpu_type=n) for n, g in (("V100", 4), ("T4", 8))
    )
    room = Cluster(gpu_types=types, node_groups=groups)
    found, _ = sizes(snapshot(rigid("x", 9.0), on=room), rigid("new", 50.0, gpus=2).job)
    assert found["default/T4", 2].row == "profile"
    assert found["default/V100", 2].starts
    only = rigid("new", 50.0, gpus=2, gpu_types=("V100",)).job
    found, _ = sizes(snapshot(rigid("x", 9.0), on=room), only)
    assert found["default/T4", 2].row == "gpu_types"


@pytest.mark.parametrize("seed", range(12))
def test_a_size_starts_if_the_round_is_worth_more_with_it(seed):
    """Of the best size, worth less cost is what the job adds to the plan, if it may choose freely.

    If none starts, the job adds nothing.
    """
    round_ = generate.tiny_round(seed)
    new = replace(round_.jobs[0].job, id="new", submit_s=round_.now_s)
    found, whole = sizes(round_, new, policy="milp")
    gains = [s.worth - s.cost for s in found.values() if s.starts]
    least = 1e-5 * max(1.0, whole.objective)
    assert whole.outcomes[0].found == pytest.approx(max(gains, default=0.0), abs=least)
