"""What finds no room on nodes is chosen again, and nothing is stopped for it."""

from pathlib import Path

import pytest

import ronda
from ronda.instances.clock import Deadline
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.job import Allocation, Estimate, Job, JobState, Option
from ronda.instances.plan import Plan, SolutionStatus
from ronda.instances.profile import rigid_profile
from ronda.instances.round import Round
from ronda.solvers.decision.by_positions import again_on_nodes
from ronda.solvers.prices.dual import Search


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


AGGREGATE = ["prices(placement=aggregate)", "milp(placement=aggregate)"]


@pytest.mark.parametrize(
    "policy", ["prices", "milp", *AGGREGATE, "genetic", "evolve", "milp(placement=exact)"]
)
def test_nobody_makes_way_for_a_job_without_room(policy):
    """All four go on; the plan names the job that found no room, if it was looked for."""
    round_ = split_room()
    plan = ronda.solve(round_, policy)
    assert ronda.check(round_, plan) == []
    assert set(plan.allocations) == {"pinned0", "pinned1", "light0", "light1"}
    if "exact" not in policy:
        assert list(plan.details.unplaced) == ["heavy"]
        knows_nodes = policy not in AGGREGATE
        assert (plan.status is SolutionStatus.OPTIMAL) == knows_nodes
        assert (plan.bound > 1.001 * plan.objective) != knows_nodes  # of GPUs there are two


SHORT_OF_WATTS = Path(__file__).parents[2] / "data" / "rounds" / "short-of-watts.json"
"""Three jobs, nodes that sleep, and watts that jobs of these nodes leave too few of."""


STANDING = SHORT_OF_WATTS.with_name("standing-nodes.json")
"""A job of 1 to 4 GPUs, for whose 4 GPUs on two nodes there are too few watts."""


def test_nodes_that_stay_awake_do_not_bring_back_what_found_no_room():
    """Chosen again among nodes that stand by, the job has fewer GPUs and not the same four."""
    round_ = ronda.load(STANDING)
    plan = ronda.solve(round_, "milp-energy")
    assert ronda.check(round_, plan) == []
    assert plan.allocations["j1"].option.gpus < 4


@pytest.mark.parametrize("policy", AGGREGATE)
def test_a_job_short_of_watts_is_chosen_again_with_fewer(policy):
    """The first choices of two jobs would need more watts than the nodes awake leave.

    Chosen again, with all that is slower or smaller still allowed, one of them runs, in the best
    way that the watts left bear; of the jobs alone the one that must run would be worth 0.54.
    """
    round_ = ronda.load(SHORT_OF_WATTS)
    plan = ronda.solve(round_, policy)
    assert ronda.check(round_, plan) == []
    assert len(plan.allocations) == 2
    assert plan.objective == pytest.approx(1.9228, abs=1e-4)
    assert len(plan.details.unplaced) == 1


@pytest.mark.parametrize("policy", ["prices", "milp"])
def test_jobs_short_of_watts_run_where_the_nodes_are_in_the_model(policy):
    """All three run, on the nodes whose hosts draw less, and no plan is worth more."""
    round_ = ronda.load(SHORT_OF_WATTS)
    plan = ronda.solve(round_, policy)
    assert ronda.check(round_, plan) == []
    assert len(plan.allocations) == 3
    assert plan.objective == pytest.approx(2.1833, abs=1e-4)
    assert plan.details.unplaced == {}
    assert plan.status is SolutionStatus.OPTIMAL


@pytest.mark.parametrize("policy", ["prices", "milp"])
def test_no_more_jobs_move_than_a_better_plan_needs(policy):
    """On two nodes of 4, jobs of 1 hold three GPUs each: one of six moves for the job of 2."""
    jobs = [state(f"j{k}", 1, k // 3) for k in range(6)]
    round_ = Round(
        cluster=Cluster(
            gpu_types=(GpuType(name="A100", memory_gib=80.0),),
            node_groups=(NodeGroup(name="n", count=2, gpus_per_node=4, gpu_type="A100"),),
        ),
        profiles={"rigid": rigid_profile("A100")},
        running=tuple(jobs),
        waiting=(state("wide", 2),),
        now_s=700.0,
    )
    asked = ronda.policy(policy)
    question = asked.question(round_, Deadline(), 0)
    choice = asked.choose(question, Deadline(), None)
    again = again_on_nodes(question, choice, Plan(objective=1.0), Search())
    allocations = again.realised.allocations
    assert len(allocations) == 7
    stay = [s.job.id for s in jobs if s.allocation.placement == allocations[s.job.id].placement]
    assert len(stay) == 5
    assert again.closed(1e-4)
