"""What follows from the speed-up functions of a real host: rounds recorded in its simulator."""

from types import SimpleNamespace

import numpy as np
import pytest

from ronda.solvers.adapters import Pollux, Sia
from ronda.solvers.adapters.believing import by_name
from ronda.solvers.adapters.goodput import goodput_of
from tests.solvers.adapters.recorded import info, rounds, speedup

NODES = {k: SimpleNamespace(resources={"nvidia.com/gpu": 4}, preemptible=False) for k in range(4)}


def test_a_goodput_is_that_of_the_host():
    """What AdaptDL's `GoodputFunction.optimize` said in each round of what each job held."""
    asked = [seen for each in rounds() for seen in each["jobs"].values() if "optimize" in seen]
    assert len(asked) > 50
    for seen in asked:
        nodes, gpus, goodput, local, _ = seen["optimize"]
        found = goodput_of(speedup(seen)).tuned(nodes, gpus)
        assert found == pytest.approx((goodput, local), rel=1e-5)
    assert goodput_of(lambda nodes, replicas: replicas) is None


def test_a_goodput_is_that_of_the_classes_of_the_host():
    """Where adaptdl and adaptdl-sched are installed: on random parameters, to the last digits."""
    goodput = pytest.importorskip("adaptdl.goodput")
    speedups = pytest.importorskip("adaptdl_sched.policy.speedup")
    rng = np.random.default_rng(0)
    for _ in range(50):
        perf = np.array([0.121, 0.00568, 0.0236, 0.00634, 0.0118, 0.00317]) * rng.lognormal(
            0, 0.5, 6
        )
        grad = 0.00136 * rng.lognormal(), 0.0005 * rng.lognormal()
        of = goodput.GoodputFunction((*perf, rng.uniform(1, 3)), grad, 128)
        accumulates = bool(rng.integers(2))
        speedup = speedups.SpeedupFunction(of, 5120, (32, 256), accumulates)
        for gpus in (1, 2, 4, 8):
            nodes, known = -(-gpus // 4), goodput_of(speedup)
            asked = np.array([nodes]), np.array([gpus]), 5120, (32, 256), accumulates
            rate, local, _ = of.optimize(*asked)
            assert known.tuned(nodes, gpus) == pytest.approx((rate[0], local[0]), rel=1e-6)
        found, _ = Pollux("fifo").optimize({"a-1": info_of(speedup)}, NODES, {}, NODES[0])
        assert found["a-1"]


def info_of(speedup):
    """Return a job that has a speed-up function."""
    job = info(rounds()[0]["jobs"]["cifar10-0"])
    job.speedup_fn = speedup
    return job


def replayed(policy):
    """Tell a face of the recorded rounds, in which the host did what it said; return it."""
    for each in rounds():
        jobs = {name: info(seen) for name, seen in each["jobs"].items()}
        policy.optimize(jobs, NODES, each["base_allocations"], NODES[0])
    return policy


def test_work_done_is_what_the_host_saw_but_did_not_tell():
    """The recorded progress of each job, in samples at its base batch, within a tenth.

    What a round before its first measurement did, and one that the host placed otherwise, is not
    seen.
    """
    host = replayed(Pollux())._host.host
    last = rounds()[-1]["jobs"]
    found = {state.job.id: state.done_at(host.round().now_s) for state in host.round().jobs}
    assert set(found) == set(last)
    for name, seen in last.items():
        assert found[name] == pytest.approx(seen["progress"], rel=0.1)


def test_jobs_of_an_application_share_sizes_speeds_and_limits():
    """By the names of jobs; the later one begins on GPUs that the host lets no new job have."""
    host = replayed(Pollux())._host.host
    seen = {state.job.id: state for state in host.round().jobs}
    assert seen["cifar10-4"].job.profile == "cifar10"
    assert seen["cifar10-4"].noise is not None
    assert seen["cifar10-4"].job.estimate.work > 2 * seen["cifar10-0"].done / 3
    starts = [
        each["base_allocations"]["cifar10-4"]
        for each in rounds()
        if "cifar10-4" in each["base_allocations"]
    ]
    assert len(starts[0]) == 4
    first = next(each["jobs"]["cifar10-4"] for each in rounds() if "cifar10-4" in each["jobs"])
    assert first["max_replicas"] == 1


def test_new_nodes_are_nodes_that_models_know():
    """Jobs of the recording may have up to 16 replicas; it began on one node of four."""
    policy = Pollux()
    for count, each in ((1, rounds()[4]), (4, rounds()[5])):
        jobs = {name: info(seen) for name, seen in each["jobs"].items()}
        policy.optimize(jobs, {k: NODES[k] for k in range(count)}, {}, NODES[0])
    model = policy._host.host.round().profiles["cifar10"].throughput["gpu"]
    assert max(model.gpus) == 16


def test_without_beliefs_each_job_is_for_itself():
    """Each has rates, of its own functions."""
    host = replayed(Pollux(beliefs=False))._host.host
    assert {s.job.profile for s in host.round().jobs} == {f"rates of {job}" for job in host.jobs}


@pytest.mark.parametrize(
    ("key", "application"),
    [
        ("cifar10-0", "cifar10"),
        (("ns", "bert_12"), "bert"),
        ("net-3f2a9c01", "net"),
        ("resnet50", "resnet50"),
        ("train", "train"),
    ],
)
def test_an_application_is_a_name_without_its_number(key, application):
    """Of keys with a namespace, too."""
    assert by_name(key) == application


def test_sia_is_told_what_its_interface_holds():
    """Sizes by name, restarts as its policy has them, and a second type by what the first says."""
    each = rounds()[10]["jobs"]
    nodes = {"aws": dict.fromkeys(range(2), NODES[0]), "rtx": {0: NODES[0]}}
    jobs = {}
    for name, seen in each.items():
        job = info(seen)
        job.speedup_fn = {"aws": speedup(seen), "rtx": None}
        job.min_replicas = {"aws": 0, "rtx": 0}
        job.max_replicas = {"aws": job.max_replicas, "rtx": 1}
        jobs[name] = job
    policy = Sia()
    first = policy.optimize(jobs, nodes, {})
    seen = {state.job.id: state.job for state in policy._host.host.round().jobs}
    assert seen["cifar10-0"].costs.restart_s == 30.0
    assert seen["deepspeech2-1"].costs.restart_s == 25.0
    assert {cluster for cluster, places in first.values() if places} <= {"aws", "rtx"}
    for job in jobs.values():
        job.age += 60
    again = policy.optimize(jobs, nodes, first)
    assert set(again) == set(jobs)
    done = [state.done_at(policy._now_s) for state in policy._host.host.round().running]
    assert max(done) > 0
