"""What finds no room on nodes is chosen again without, and nothing is stopped for it."""

from pathlib import Path

import pytest

import ronda
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.job import Allocation, Estimate, Job, JobState, Option
from ronda.instances.profile import rigid_profile
from ronda.instances.round import Round


def state(name, gpus, node=None, **fields):
    """Return a job that runs on a node, or waits."""
    job = Job(id=name, submit_s=0.0, profile="rigid", gpus=gpus, **fields)
    held = None
    if node is not None:
        held = Allocation(option=Option(pool=0, gpus=gpus), placement=((node, gpus),))
    return JobState(job=job, since_s=0.0, started=node is not None, allocation=held)


def split_room():
    """Return two nodes of 2 GPUs, on each a pinned job and a light one; a heavy job wants 2 GPUs.

    No node can be emptied for it, so whoever makes way for it makes way for nothing.
    """
    long = Estimate(work=36_000.0)
    pinned = [state(f"pinned{n}", 1, n, estimate=long, preemptible=False) for n in range(2)]
    light = [state(f"light{n}", 1, n, estimate=long) for n in range(2)]
    heavy = state("heavy", 2, weight=100.0, estimate=Estimate(work=600.0))
    return Round(
        cluster=Cluster(
            gpu_types=(GpuType(name="A100", memory_gib=80.0),),
            node_groups=(NodeGroup(name="n", count=2, gpus_per_node=2, gpu_type="A100"),),
        ),
        profiles={"rigid": rigid_profile("A100")},
        running=(*pinned, *light),
        waiting=(heavy,),
        now_s=700.0,
    )


@pytest.mark.parametrize("policy", ["prices", "milp", "genetic", "evolve", "milp(placement=exact)"])
def test_nobody_makes_way_for_a_job_without_room(policy):
    """All four go on; the plan names the job that found no room, if it was looked for."""
    round_ = split_room()
    plan = ronda.solve(round_, policy)
    assert ronda.check(round_, plan) == []
    assert set(plan.allocations) == {"pinned0", "pinned1", "light0", "light1"}
    if "exact" not in policy:
        assert list(plan.details["unplaced"]) == ["heavy"]
        assert plan.bound > plan.objective  # of GPUs there are two


SHORT_OF_WATTS = Path(__file__).parents[2] / "data" / "rounds" / "short-of-watts.json"
"""Three jobs, nodes that sleep, and watts that jobs of these nodes leave too few of."""


@pytest.mark.parametrize("policy", ["prices", "milp"])
def test_a_job_short_of_watts_is_chosen_again_with_fewer(policy):
    """The first choices of two jobs would need more watts than the nodes awake leave.

    Chosen again, with all that is slower or smaller still allowed, one of them runs; of the jobs
    alone the one that must run would be worth 0.54.
    """
    round_ = ronda.load(SHORT_OF_WATTS)
    plan = ronda.solve(round_, policy)
    assert ronda.check(round_, plan) == []
    assert len(plan.allocations) == 2
    assert plan.objective == pytest.approx(1.4474, abs=1e-4)
    assert len(plan.details["unplaced"]) == 1
