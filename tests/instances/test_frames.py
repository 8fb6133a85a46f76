"""Documents as data frames, and a plan in one line."""

import pytest

import ronda
from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.questions.whatif import Gpus, WithoutJob

CLUSTER = uniform_cluster(GpuType(name="A100", memory_gib=40), 2, 4)
RATES = {"gpus": [4], "rate": [2.0]}
ROUND = ronda.make_round(CLUSTER, [{"id": name, "gpus": 4, "rates": RATES} for name in "abc"])


def test_a_plan_is_a_line_and_a_frame():
    """A row a job: two of three jobs of a node each run; an empty plan has columns."""
    plan = ronda.solve(ROUND, "fifo")
    assert str(plan) == "<Plan of 'fifo': 2 jobs run, feasible>"
    seen = plan.to_frame()
    assert seen[["job", "gpus", "rate"]].values.tolist() == [["a", 4, 2.0], ["b", 4, 2.0]]
    assert seen.nodes.tolist() == [{0: 4}, {1: 4}]
    assert list(ronda.Plan().to_frame().columns) == list(seen.columns)
    best = ronda.solve(ROUND, "prices")
    told = f"optimal, objective {best.objective:.6g}, gap 0>"
    assert repr(best) == f"<Plan of 'prices': 2 jobs run, {told}"


def test_a_schedule_is_a_frame():
    """A row a job, in its order; means are those of the summary."""
    instance = ronda.load("one-gpu")
    schedule = ronda.run(instance, "fifo")
    seen = schedule.to_frame()
    assert seen.job.tolist() == [job.id for job in schedule.jobs]
    assert seen.jct_s.mean() == pytest.approx(ronda.summarise(instance, schedule)["mean_jct_s"])


def test_outcomes_of_changes_are_a_frame():
    """A row each, and one of all together; a node more runs the third job."""
    found = ronda.whatif(ROUND, [Gpus("default/A100", 4), WithoutJob("a")])
    seen = found.to_frame()
    assert seen.change.tolist() == [each.change for each in found.outcomes]
    assert len(seen) == 3
    assert seen.found.iloc[0] > 0
