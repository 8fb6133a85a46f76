"""Least attained service by hand."""

import pytest
from msgspec.structs import replace
from odd_rounds import odd_round

from ronda.horizon.solve import solve
from ronda.testing import all_asleep


def test_who_has_had_least_goes_first(elastic_round, live_job):
    """On 8 GPUs since 0 a job has had 800 GPU-seconds after 100 s: less than b's 900, not a's 0."""
    old = live_job("old", "linear", 1e6, held=(8, 8.0), gpus=8)
    for had, runs in ((900.0, "old"), (0.0, "new")):
        new = live_job("new", "linear", 1e6, gpus=8, gpu_s=had, submit_s=10.0)
        plan = solve(elastic_round(old, new, now_s=100.0), "las")
        assert list(plan.allocations) == [runs]


def test_ties_go_to_who_came_first(elastic_round, live_job):
    """Neither has run: in order of submission, and one that does not fit blocks nobody."""
    sizes = {"a": 6, "b": 4, "c": 2}
    jobs = [
        live_job(name, "linear", 1e6, gpus=gpus, submit_s=float(k))
        for k, (name, gpus) in enumerate(sizes.items())
    ]
    assert list(solve(elastic_round(*jobs, now_s=9.0), "las").allocations) == ["a", "c"]


RULES = ("las", "srtf", "gittins", "tiresias", "gavel-like", "hermes")
CLIMBS = ("optimus", "elasticflow-like")


@pytest.mark.parametrize("spec", RULES)
def test_a_node_that_is_dear_to_wake_stops_nobody_elsewhere(spec):
    """Below 2,000 W: 40,000 W to wake node 1 are no matter of a job on node 0, which is awake."""
    round_ = all_asleep()
    (group,) = round_.cluster.node_groups
    groups = (
        replace(group, count=1, host_idle_w=100.0),
        replace(group, name="dear", count=1, host_idle_w=100.0, wake_s=60.0, wake_w=40_000.0),
    )
    cluster = replace(round_.cluster, node_groups=groups)
    capped = replace(round_, cluster=cluster, asleep=(1,), power_cap_w=2000.0)
    assert solve(capped, spec).allocations


@pytest.mark.parametrize("seed", [102613, 118960])
@pytest.mark.parametrize("spec", CLIMBS)
def test_somebody_runs_where_a_node_is_not_what_was_counted(spec, seed):
    """Two pools of one node below 670 and 671 W: one of them is too dear once it is awake."""
    assert solve(odd_round(seed), spec).allocations
