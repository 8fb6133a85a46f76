"""The face of Rubick's policy: GPUs, the plan that the host has for them, and its guarantees."""

import json
import math
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from ronda.hosts.adapters import Rubick
from ronda.hosts.adapters.rubick import ways_of

ROUNDS = Path(__file__).parents[2] / "data" / "rubick" / "rounds.json"
NODES = {k: SimpleNamespace(resources={"gpu": 8, "cpu": 96, "mem": 1600}) for k in range(8)}
ZERO, ACCUMULATE = ("DP", "ga", "zero-dp"), ("DP", "ga", "")


def table(rates):
    """Return predictions for a node: (samples per second, plan, GPUs) by the GPUs offered."""
    cells = {n: [rate, plan, {"gpu": gpus}] for n, (rate, plan, gpus) in rates.items()}
    return {n: {1: {0: cells.get(n, [-1, None, None])}} for n in range(1, 9)}


SMALL = table(
    {1: (10.0, ZERO, 1), 2: (18.0, ZERO, 2), 3: (18.0, ZERO, 2), 4: (30.0, ACCUMULATE, 4)}
)
"""10, 18 and 30 samples a second on one, two and four GPUs; three are no faster than two."""


def job(**fields):
    """Return a small model's job in the simulator's words."""
    usual = {
        "model_name": "bert",
        "local_bsz": 4,
        "steps": 0,
        "throughput": 0,
        "age": 0,
        "gpu_demand": 4,
        "is_sla": 0,
        "sla_perf": 0,
        "gpu_to_placements": None,
        "placements_to_plan": None,
        "max_throughput_config": [4, 1, 0, 30.0, ACCUMULATE],
        "res_matrix": SMALL,
    }
    return SimpleNamespace(**usual | fields)


def large(**fields):
    """Return a job of a large model: 2 GPUs with offload, 16 on two or four nodes, 32 on four."""
    layouts = {2: [2], 16: [4444, 88], 32: [8888], 24: [444444]}
    plans = {4444: "242", 88: "182", 8888: "244", 2: "zero-offload", 444444: "641"}
    usual = {
        "model_name": "llama",
        "gpu_demand": 16,
        "gpu_to_placements": layouts,
        "placements_to_plan": plans,
        "max_throughput_config": [4, 1, 0, 32.0, ZERO],
    }
    return job(**usual | fields)


def asked(policy, jobs, held=None, plans=None, nodes=NODES):
    """Return what is decided after it was seen to be in order."""
    before = {"gpu": held or {}, "cpu": {}, "mem": {}, "exec_plan": plans or {}}
    decided, more = policy.optimize(jobs, nodes, before)
    assert more is None
    assert all(set(each) == set(jobs) for each in decided.values())
    assert decided["gpu"] == decided["cpu"] == decided["mem"]
    used = Counter(node for places in decided["gpu"].values() for node in places)
    assert all(n <= nodes[node].resources["gpu"] for node, n in used.items())
    assert all(bool(decided["gpu"][name]) == bool(decided["exec_plan"][name]) for name in jobs)
    return decided


def test_a_job_has_the_plan_that_the_host_has_for_its_gpus():
    """Three GPUs are no way to run: the host would use two. More than four are none either."""
    assert ways_of(job(), [8]) == {
        (1, 1): (ZERO, 10.0),
        (2, 1): (ZERO, 18.0),
        (4, 1): (ACCUMULATE, 30.0),
    }
    decided = asked(Rubick(), {"a": job()})
    assert (len(decided["gpu"]["a"]), decided["exec_plan"]["a"]) == (4, ACCUMULATE)


def test_large_models_have_their_layouts_on_the_fewest_nodes():
    """16 GPUs on four nodes, and 24 on six, are not offered; nor 32 where there are 16."""
    assert ways_of(large(), [8] * 8) == {
        (2, 1): (("DDP", "ga", "zero-offload"), None),
        (16, 2): (("182", "182", 88), None),
        (32, 4): (("244", "244", 8888), None),
    }
    assert set(ways_of(large(), [8] * 2)) == {(2, 1), (16, 2)}
    assert set(ways_of(large(), [4] * 4)) == {(2, 1), (16, 4)}
    decided = asked(Rubick(), {"a": large()})
    assert sorted(Counter(decided["gpu"]["a"]).values()) == [8, 8, 8, 8]
    assert decided["exec_plan"]["a"] == ("244", "244", 8888)


def test_a_job_that_no_machine_can_hold_waits():
    """Its like that ran is stopped when nodes leave, and is not taken for complete."""
    policy, whole = Rubick(), large(gpu_to_placements={16: [88]}, steps=500)
    held = asked(policy, {"a": whole})["gpu"]
    believed = policy._host.host.round().jobs[0].job.estimate
    two = {k: NODES[k] for k in range(2)}
    assert len(asked(policy, {"a": whole}, held, nodes=two)["gpu"]["a"]) == 16
    small = {name: job() for name in "bcd"}
    decided = asked(policy, {"a": whole} | small, held | {"b": [5] * 4}, nodes={0: NODES[0]})
    assert decided["gpu"]["a"] == []
    assert sum(len(decided["gpu"][name]) for name in small) == 8
    asked(policy, {"a": whole} | small, decided["gpu"], nodes=two)
    seen = {state.job.id: state.job.estimate for state in policy._host.host.round().jobs}
    assert seen["a"] == believed


def rates(policy, name):
    """Return samples per second by GPUs as believed of a job."""
    seen = policy._host.host.round()
    (of,) = seen.profiles[
        next(s.job.profile for s in seen.jobs if s.job.id == name)
    ].throughput.values()
    return dict(zip(of.gpus, of.rate, strict=True))


def test_measured_speeds_are_those_of_all_jobs_of_the_model():
    """On four GPUs it does 20 and not 30; on fewer nobody has tried."""
    policy, jobs = Rubick("fifo"), {"a": job(), "other": job(model_name="vit")}
    held = {"a": [0] * 4, "other": [1] * 4}
    asked(policy, jobs, held)
    assert rates(policy, "a") == {1: 10.0, 2: 18.0, 4: 30.0}
    jobs["a"].throughput = 20.0
    asked(policy, jobs | {"b": job()}, held)
    assert rates(policy, "a") == rates(policy, "b") == {1: 10.0, 2: 18.0, 4: 20.0}
    assert rates(policy, "other") == {1: 10.0, 2: 18.0, 4: 30.0}


def test_layouts_that_nobody_tried_are_believed_by_the_nearest_that_somebody_did():
    """At first the most GPUs have the 32 samples a second of the host; 16 measured ones do 10."""
    policy, jobs = Rubick("fifo"), {"a": large()}
    held = {"a": [0] * 8 + [1] * 8}
    asked(policy, jobs, held)
    first = {2: 32.0 * (2 / 32) ** 0.7, 16: 32.0 * 0.5**0.7, 32: 32.0}
    assert rates(policy, "a") == pytest.approx(first)
    jobs["a"].throughput = 10.0
    asked(policy, jobs, held)
    tried = {2: 10.0 * (2 / 16) ** 0.7, 16: 10.0, 32: 10.0 * 2**0.7}
    assert rates(policy, "a") == pytest.approx(tried)
    asked(policy, jobs | {"b": large(throughput=1.0)}, held | {"b": [2] * 2})
    assert rates(policy, "a") == pytest.approx(tried | {2: 1.0})


def test_a_guarantee_is_as_many_gpus_as_are_fast_enough():
    """18 samples a second take two GPUs; 19 four; 40 what was asked for; unknown ones too."""
    for promised, demand, least in (
        (0.0, 1, 1),
        (18.0, 4, 2),
        (19.0, 4, 4),
        (40.0, 2, 2),
        (math.nan, 3, 4),
        (40.0, 8, 4),
    ):
        policy = Rubick()
        asked(policy, {"a": job(is_sla=1, sla_perf=promised, gpu_demand=demand)})
        (state,) = policy._host.host.round().jobs
        assert (state.job.min_gpus, state.job.weight) == (least, 4.0)
    policy = Rubick()
    asked(policy, {"a": job(sla_perf=40.0)})
    (state,) = policy._host.host.round().jobs
    assert (state.job.min_gpus, state.job.weight) == (1, 1.0)


def test_a_guarantee_is_kept_where_the_host_left_a_job_less():
    """Two GPUs are not the four that it takes; on nodes of two there is no more than two."""
    policy, jobs = Rubick(), {"a": job(is_sla=1, sla_perf=30.0), "b": job()}
    asked(policy, jobs)
    decided = asked(policy, jobs, {"a": [3] * 2})
    assert len(decided["gpu"]["a"]) == 4
    smaller = {k: SimpleNamespace(resources={"gpu": 2}) for k in range(8)}
    decided = asked(policy, jobs, nodes=smaller)
    assert len(decided["gpu"]["a"]) == 2


def test_time_goes_by_the_ages_of_jobs():
    """One that was there before is 90 s older; where none was, an interval has passed."""
    policy = Rubick("fifo", interval_s=60.0)
    asked(policy, {"a": job(age=20)})
    assert policy._host.host.round().now_s == 60.0
    asked(policy, {"a": job(age=110), "b": job(age=30)})
    seen = policy._host.host.round()
    assert seen.now_s == 150.0
    assert {s.job.id: s.job.submit_s for s in seen.jobs} == {"a": 40.0, "b": 120.0}
    asked(policy, {"c": job(age=0)})
    assert policy._host.host.round().now_s == 210.0


def jobs_of(data, seen):
    """Return the jobs of a recorded round as the host's objects."""

    def numbered(found):
        return {int(key): value for key, value in (found or {}).items()}

    jobs = {}
    for name, fields in seen.items():
        model = data["models"][fields["model_name"]]
        jobs[name] = SimpleNamespace(
            **fields | {"sla_perf": math.nan if fields["sla_perf"] is None else fields["sla_perf"]},
            local_bsz=model["local_bsz"],
            gpu_to_placements=numbered(model["gpu_to_placements"]),
            placements_to_plan=numbered(model["placements_to_plan"]),
            max_throughput_config=model["max_throughput_config"],
            res_matrix={n: {1: {0: row}} for n, row in numbered(model["res_matrix"]).items()},
        )
    return jobs


def test_rounds_of_the_host_are_answered():
    """Recorded in its simulator, under this face: each round it did what had been said."""
    data, policy, models = json.loads(ROUNDS.read_text()), Rubick(), set()
    for each in data["rounds"]:
        jobs, held = jobs_of(data, each["jobs"]), each["gpu"]
        models |= {of.model_name for of in jobs.values()}
        decided = asked(policy, jobs, held, each["exec_plan"])
        for name, places in held.items():
            way = len(places), len(set(places))
            assert list(ways_of(jobs[name], [8] * 8)[way].plan) == each["exec_plan"][name]
        for name, places in decided["gpu"].items():
            if places:
                own = ways_of(jobs[name], [8] * 8)[len(places), len(set(places))]
                assert own.plan == decided["exec_plan"][name]
                assert len(set(Counter(places).values())) == 1
    assert models == set(data["models"]) >= {"bert", "gpt2", "llama7", "llama30"}
    seen = policy._host.host.round()
    for state in seen.jobs:
        own = jobs[state.job.id]
        assert state.done_at(seen.now_s) == pytest.approx(own.steps * own.local_bsz)
        if own.throughput and held.get(state.job.id):
            assert rates(policy, state.job.id)[len(held[state.job.id])] == own.throughput
