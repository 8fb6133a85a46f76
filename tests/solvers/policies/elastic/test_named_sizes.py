"""Elastic jobs whose fewest GPUs are no power of two, with every policy that climbs sizes."""

import pytest
from msgspec.structs import replace

from ronda.horizon.driver import run
from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.instance import Cadence, Instance
from ronda.instances.job import Costs, Estimate, Job, Truth
from ronda.instances.profile import Parametric, Profile

LINEAR = Profile(
    name="linear", throughput={"A100": Parametric(alpha_c_s=0.0, beta_c_s=1.0)}, base_batch=10.0
)
"""n GPUs do n units of work a second."""


def instance(*limits: tuple[int, int]) -> Instance:
    """Return jobs of an hour on 10 GPUs, 600 s apart, with such limits, on one node of 10."""
    work = 36_000.0
    jobs = tuple(
        Job(
            id=f"j{k}",
            submit_s=600.0 * k,
            profile="linear",
            gpus=10,
            min_gpus=low,
            max_gpus=high,
            estimate=Estimate(work=work),
            truth=Truth(work=work),
        )
        for k, (low, high) in enumerate(limits)
    )
    return Instance(
        name="named",
        cluster=uniform_cluster(GpuType(name="A100", memory_gib=80), 1, 10),
        profiles={"linear": LINEAR},
        jobs=jobs,
        costs=Costs(restart_s=30.0),
        cadence=Cadence(period_s=60.0),
    )


@pytest.mark.parametrize(
    ("policy", "low"),
    [
        ("pollux-like", 5),
        ("pollux-like+zeus(eta=0)", 5),
        ("optimus", 5),
        ("elasticflow-like", 5),
        ("powerflow", 5),
        ("pollux-like", 1),
    ],
)
def test_two_jobs_share_a_node_of_ten(policy: str, low: int) -> None:
    """From 600 s on each has 5 GPUs, and the second all 10 once the first is complete.

    Of 1 to 10 GPUs 5 are half the node. What follows is the same.
    By 600 s the first has done 6,000 of 36,000; at 5 GPUs, after 30 s, 30,000 more take 6,000 s:
    6,630 s. The second starts at once: it has then done 5 x 6,030 = 30,150; 5,850 more on 10 GPUs
    take 30 + 585 s: 7,245 s.
    """
    schedule = run(instance((low, 10), (low, 10)), policy)
    held = [[s.option.gpus for s in job.segments] for job in schedule.jobs]
    assert held == [[10, 5], [5, 10]]
    assert [job.end_s for job in schedule.jobs] == pytest.approx([6630.0, 7245.0])


def test_a_job_of_fewer_gpus_than_it_asks_for_climbs_to_its_most() -> None:
    """3 to 7 GPUs of 10 beside one of 3: all seven, whichever of them is a power of two."""
    made = instance((3, 7), (3, 3))
    made = replace(made, jobs=(replace(made.jobs[0], gpus=4), replace(made.jobs[1], gpus=3)))
    for policy in ("pollux-like", "powerflow", "elasticflow-like"):
        first, second = run(made, policy).jobs
        assert (first.segments[0].option.gpus, second.segments[0].option.gpus) == (7, 3)
