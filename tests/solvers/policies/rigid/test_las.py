"""Least attained service by hand."""

from ronda.solvers.solve import solve


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
