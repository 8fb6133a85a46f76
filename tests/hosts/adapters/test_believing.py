"""What follows from the speed-up functions of a real host: rounds recorded in its simulator."""

import cProfile
from types import SimpleNamespace

import numpy as np
import pytest

import ronda
from ronda.hosts.adapters import Pollux, Sia
from ronda.hosts.adapters.believing import by_name
from ronda.hosts.adapters.goodput import goodput_of
from tests.hosts.adapters.recorded import Callable, info, rounds, speedup

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


RECORDED = "prices(horizon_s=600)"
"""The policy under which the rounds were recorded: any other would have placed jobs otherwise."""


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
    host = replayed(Pollux(RECORDED))._host.host
    last = rounds()[-1]["jobs"]
    found = {state.job.id: state.done_at(host.round().now_s) for state in host.round().jobs}
    assert set(found) == set(last)
    for name, seen in last.items():
        assert found[name] == pytest.approx(seen["progress"], rel=0.1)


def test_jobs_of_an_application_share_sizes_speeds_and_limits():
    """By the names of jobs; the later one begins on GPUs that the host lets no new job have."""
    host = replayed(Pollux(RECORDED))._host.host
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
        ("mnist-7gk2x", "mnist"),
        ("mnist-large", "mnist-large"),
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


def function(base=128, slower=1.0):
    """Return a speed-up function whose steps take so many times as long."""
    seen = {
        "perf_params": [0.12 * slower, 0.006 * slower, 0.02, 0.006, 0.01, 0.003, 2.0],
        "grad_params": [0.001, 0.0005],
        "init_batch_size": base,
        "max_batch_size": 40 * base,
        "atomic_bsz_range": [base // 4, base],
    }
    return Callable(speedup(seen))


def told(policy, functions, now_s, held=None):
    """Tell of jobs by name that all came at 0 s; return what they run on."""
    jobs = {}
    for name, each in functions.items():
        jobs[name] = info_of(each)
        jobs[name].age, jobs[name].creation_timestamp = now_s, 0.0
    return policy.optimize(jobs, NODES, held or {}, NODES[0])[0]


UNLIKE = {"another base batch": function(base=20), "other speeds": function(slower=10.0)}


@pytest.mark.parametrize("case", list(UNLIKE))
def test_jobs_named_alike_that_contradict_each_other_are_no_application(case):
    """Each kind has a model; a new job of that name is known by nothing, and then by its own."""
    policy, one, other = Pollux(), function(), UNLIKE[case]
    held = told(policy, {"job-1": one, "job-2": Callable(None)}, 60.0)
    known = {"job-1": one, "job-2": other, "job-3": one}
    held = told(policy, known, 120.0, held)
    told(policy, known | {"job-4": Callable(None)}, 180.0, held)
    seen = {state.job.id: state.job for state in policy._host.host.round().jobs}
    assert seen["job-1"].profile == seen["job-3"].profile == "job"
    assert seen["job-2"].profile == "job (2)"
    assert seen["job-4"].profile == "rates of job-4"
    told(policy, known | {"job-4": other}, 240.0)
    seen = {state.job.id: state.job for state in policy._host.host.round().jobs}
    assert seen["job-4"].profile == "job (2)"


def test_who_leaves_half_of_the_gpus_idle_beside_a_waiting_job_warns():
    """Once: a policy that starts one job has 16 GPUs, of which it uses one."""

    class First:
        def plan(self, round, *, deadline, seed, initial=None):
            plan = ronda.policy("fifo").plan(round, deadline=deadline, seed=seed)
            first = dict(list(plan.allocations.items())[:1])
            return ronda.Plan(policy="First", allocations=first)

    policy = Pollux(First())
    waiting = {f"net-{k}": Callable(None) for k in range(2)}
    with pytest.warns(UserWarning, match="of 16 GPUs idle"):
        told(policy, waiting, 60.0)


def test_a_decision_costs_what_its_live_jobs_cost():
    """Calls of functions, as a clock would be luck: three live jobs after 8 and after 24 names."""
    policy, calls, names = Pollux("fifo"), [], [f"net{k}x" for k in range(24)]
    for k in range(2, 24):
        live = {name: function(slower=1.0 + 0.01 * k) for name in names[k - 2 : k + 1]}
        seen = cProfile.Profile()
        seen.runcall(told, policy, live, 60.0 * k)
        calls.append(sum(each.callcount for each in seen.getstats()))
    assert sorted(calls[-7:])[3] < 1.2 * sorted(calls[3:10])[3]
    assert set(policy._host.host._settings.profiles) == set(names[-3:])
