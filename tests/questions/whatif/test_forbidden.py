"""A what-if of a round whose jobs may not all start keeps to that."""

from msgspec.structs import replace

import ronda
from ronda.instances.job import After
from ronda.questions.whatif.changes import Gpus


def test_jobs_that_wait_for_others_do_not_start():
    """A job behind another, and one that is blocked, start in no plan of a what-if."""
    gpu = ronda.GpuType(name="A100", memory_gib=80.0)
    rates = {"gpus": [1, 2], "rate": [1.0, 1.8]}
    jobs = [{"id": name, "gpus": 2, "work": 900, "rates": rates} for name in "abc"]
    made = ronda.make_round(ronda.uniform_cluster(gpu, 1, 4), jobs)
    first, second, third = made.waiting
    behind = replace(second, job=replace(second.job, after=(After(job="a"),)))
    held = replace(third, blocked="held by its user")
    round = replace(made, waiting=(first, behind, held))
    found = ronda.whatif(round, [Gpus("A100", 4)])
    plans = [found.base, *(each.plan for each in found.outcomes)]
    assert all(set(plan.allocations) == {"a"} for plan in plans)
    assert ronda.check(round, found.base) == []
