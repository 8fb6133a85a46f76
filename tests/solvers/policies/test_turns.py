"""Jobs that take turns: their restarts take no more than a tenth of the time on GPUs."""

import pytest
from msgspec.structs import replace

from ronda.horizon.driver import run
from ronda.horizon.solve import solve
from ronda.instances.instance import Cadence
from ronda.instances.job import Costs
from ronda.instances.outcome.metrics import summarise

TURNS = ("las", "gittins", "tiresias(threshold_gpu_s=60)", "gavel-like(lease_s=60)")
JOBS = [("a", 0, 4, 720), ("b", 0, 4, 720), ("c", 10, 4, 720), ("d", 20, 8, 720)]


@pytest.mark.parametrize("restart_s", [10.0, 100.0, 1000.0])
@pytest.mark.parametrize("policy", TURNS)
def test_restarts_eat_no_more_than_a_tenth_whatever_they_cost(make_instance, policy, restart_s):
    """Two, one and the wide one side by side take 3 * 720 = 2,160 s without any turn.

    With turns three jobs of 4 GPUs and one of 8 fill 8 GPUs for (3 * 4 + 8) * 720 / 8 = 1,800 s,
    and a tenth more is below 2,160 s.
    """
    costs, cadence = Costs(restart_s=restart_s), Cadence(period_s=10.0)
    instance = make_instance(JOBS, gpus_per_node=8, costs=costs, cadence=cadence)
    found = summarise(instance, run(instance, policy))
    assert found["restart_share"] <= 0.1
    assert found["makespan_s"] <= 2160.0 + 60.0  # the first turns may not come out even


@pytest.mark.parametrize(("now_s", "runs"), [(1000.0, "old"), (1100.0, "new")])
def test_a_turn_is_as_long_as_its_restart_is_worth(elastic_round, live_job, now_s, runs):
    """Ten times its restart of 100 s, counted from 100 s, when it began to progress.

    The restart that it had and the next one take 200 of its 1,000 or 1,100 s: more than a tenth.
    """
    costs = Costs(restart_s=100.0)
    old = live_job("old", "linear", 1e6, held=(8, 8.0), gpus=8, restarts=1, since_s=100.0)
    new = live_job("new", "linear", 1e6, gpus=8, submit_s=10.0)
    plan = solve(replace(elastic_round(old, new, now_s=now_s), costs=costs), "las")
    assert list(plan.allocations) == [runs]
