"""What a public function cannot use it refuses by name, before any work begins."""

import math
from inspect import signature

import numpy as np
import pytest

import ronda
from ronda.hosts.adapters import Blox, Gavel, Pollux, Rubick, Sia
from ronda.instances import generate
from ronda.instances.arguments import checked
from ronda.instances.generate.tasks import blocks
from ronda.questions.whatif import Gpus

CLUSTER = ronda.uniform_cluster(ronda.GpuType(name="A100", memory_gib=40), 3, 8)
INSTANCE, ROUND = ronda.load("two-jobs"), generate.round(3, seed=0)
TASKS = blocks(8, 24)
TASK_PLAN = ronda.solve_tasks(TASKS)
PLAN, SCHEDULE = ronda.solve(ROUND, "fifo"), ronda.run(INSTANCE, "fifo")

NO_NUMBER = ("x", True, [], math.nan, math.inf, object())
NO_POSITIVE = (*NO_NUMBER, -1.0, 0)
NO_AMOUNT = (*NO_NUMBER, -1.0)
NO_SEED = (*NO_AMOUNT, 1.5, None)
NO_COUNT = (*NO_POSITIVE, 1.5)
NO_BOOL = ("x", 3, [])
NO_PATH = (3, [], object())
NO_TEXT = (3, None, [], object())
NO_POLICY = (3, None, "nobody", [], ronda.Embedded)
NO_RECORD = (3, "x", [], {}, object())
NO_NAMES = (3, "abc", [3], object())
NO_PROFILES = (3, "x", [], {"a": 3}, {3: "x"})


def host():
    """Return a façade with a job that runs."""
    made = ronda.Embedded("fifo", CLUSTER)
    made.update(added=[{"id": "a", "gpus": 2, "rates": {"gpus": [1, 2], "rate": [1.0, 2.0]}}])
    made.decide()
    return made


def update(**given):
    """Tell a façade news."""
    host().update(**given)


STEPS = tuple({"a": ronda.StepTime(compute_s=x, sync_s=y)} for x, y in [("x", 0), (0, 0), (1, -1)])
NO_DICT = (3, "x", [3], object())
NO_LOG = (3, "log.txt", object())
CASES = {
    ronda.solve: (
        {"round": ROUND, "policy": "fifo"},
        {
            "round": (*NO_RECORD, None, INSTANCE),
            "policy": NO_POLICY,
            "seed": NO_SEED,
            "deadline": NO_POSITIVE,
            "initial": (*NO_RECORD, ROUND),
            "log": NO_LOG,
            "extra": (3, [3], object(), "nowhere.py"),
        },
    ),
    ronda.option_table: ({}, {"round": NO_RECORD}),
    ronda.broken_rules: (
        {"extra": (), "round": ROUND, "plan": ronda.Plan()},
        {"extra": (3, [3], object()), "round": NO_RECORD, "plan": (*NO_RECORD, ROUND)},
    ),
    ronda.alternatives: (
        {"round": ROUND},
        {
            "round": (*NO_RECORD, None, INSTANCE),
            "policy": (*NO_POLICY, "fifo", "milp(placement=exact)"),
            "number": (0, -1, 1001, 0.5, None, "2", object()),
            "within": NO_AMOUNT,
            "seed": NO_SEED,
            "deadline": NO_POSITIVE,
            "log": NO_LOG,
        },
    ),
    ronda.certificate: (
        {"round": ROUND, "plan": ronda.Plan()},
        {
            "round": (*NO_RECORD, None, INSTANCE),
            "plan": (*NO_RECORD, None, ROUND),
            "policy": NO_POLICY,
        },
    ),
    ronda.consolidate: (
        {"round": ROUND},
        {
            "round": (*NO_RECORD, None, INSTANCE),
            "save": (3, None, "nobody", object()),
            "moves": NO_AMOUNT,
            "lost_gpu_s": NO_AMOUNT,
            "gap": NO_AMOUNT,
            "deadline": NO_POSITIVE,
            "seed": NO_SEED,
        },
    ),
    ronda.curtail: (
        {"round": ROUND},
        {
            "round": (*NO_RECORD, None, INSTANCE),
            "for_s": NO_POSITIVE,
            "points": NO_SEED,
            "less": (3, None, "x", [0.0], ["x"], object()),
            "within_s": NO_POSITIVE,
            "check_at": NO_SEED,
            "policy": NO_POLICY,
            "seed": NO_SEED,
            "time_limit_s": NO_POSITIVE,
            "initial": (*NO_RECORD, ROUND),
            "progress": (3, "x"),
        },
    ),
    ronda.whatif: (
        {"round": ROUND, "changes": [Gpus("A100", 8)]},
        {
            "round": (*NO_RECORD, None, INSTANCE),
            "changes": (3, None, [], [3], ["x"], "x", object()),
            "policy": NO_POLICY,
            "seed": NO_SEED,
            "time_limit_s": NO_POSITIVE,
            "initial": (*NO_RECORD, ROUND),
            "progress": (3, "x"),
        },
    ),
    ronda.run: (
        {"instance": INSTANCE, "policy": "fifo"},
        {
            "instance": (*NO_RECORD, None, ROUND),
            "policy": NO_POLICY,
            "seed": NO_SEED,
            "time_limit_s": NO_POSITIVE,
            "cadence": NO_RECORD,
            "knowledge": ("all", 3, None, ["oracle"]),
            "predictor": NO_RECORD,
            "journal": (*NO_PATH, "."),
            "progress": (3, "x"),
        },
    ),
    ronda.compare: (
        {"instances": INSTANCE, "policies": "fifo"},
        {
            "instances": (3, None, [], [3], "nothing", ROUND, object()),
            "policies": (3, None, [], "nobody", [3], object()),
            "seeds": (3, "x", [], [-1], [0.5], None),
            "knowledge": (3, [], ["all"], None),
            "time_limit_s": NO_POSITIVE,
            "timeout_s": NO_POSITIVE,
            "memory_mib": NO_POSITIVE,
            "jobs": NO_COUNT,
            "out": NO_PATH,
        },
    ),
    ronda.Embedded: (
        {"policy": "fifo", "cluster": CLUSTER},
        {
            "policy": NO_POLICY,
            "cluster": (*NO_RECORD, None),
            "profiles": NO_PROFILES,
            "costs": (*NO_RECORD, ronda.Costs(start_s="x"), ronda.Costs(start_s=-1.0)),
            "site": NO_RECORD,
            "length_s": NO_POSITIVE,
            "history": NO_BOOL,
            "speeds": ("x", 3, None),
            "node_names": (*NO_NAMES, ["a"], ["a", "a", "b"]),
            "seed": NO_SEED,
            "on_decision": (3, "print"),
        },
    ),
    update: (
        {},
        {
            "now_s": NO_AMOUNT,
            "added": (3, [3], [{"id": 3}], [{"id": "b", "gpus": "x"}]),
            "removed": (*NO_NAMES, ["b"]),
            "completed": (*NO_NAMES, ["b"], {"a": "x"}, {"a": math.nan}),
            "progress": (*NO_DICT, {"a": "x"}, {"a": -1}, {"a": math.inf}),
            "measured": (*NO_DICT, {"a": 3}, *STEPS),
            "running": (*NO_DICT, {"a": {"x": 1}}, {"a": [99]}),
            "noise": (*NO_DICT, {"a": "x"}, {"a": math.nan}),
            "changed": (3, [3], [{"id": "b"}], [{"id": "a", "gpus": -1}]),
            "profiles": NO_PROFILES,
            "cluster": NO_RECORD,
            "node_names": (*NO_NAMES, ["a"]),
            "power_cap_w": ("x", True, [], math.nan, -1.0),
            "nodes": (*NO_DICT, {"z": "lost"}, {"nodes-0": "gone"}, {"nodes-0": "back"}),
            "blocked": (*NO_DICT, {"b": "x"}, {"a": 3}),
            "nodes_added": (*NO_DICT, {"z": "none"}, {"nodes-0": "nodes"}, {3: "nodes"}),
            "errors": (3, None, "ignore", []),
        },
    ),
    host().decide: ({}, {"deadline_s": NO_POSITIVE}),
    host().save: ({}, {"path": NO_PATH}),
    ronda.Embedded.restore: (
        {"saved": host().save()},
        {
            "saved": (3, None, b"x", ".", "nowhere"),
            "policy": (3, "nobody"),
            "on_decision": (3, "print"),
        },
    ),
    ronda.Isolated: ({"spec": "fifo"}, {"spec": (*NO_TEXT, ronda.policy("fifo"), "nobody")}),
    ronda.warm_up: ({}, {"policy": NO_POLICY}),
    ronda.Deadline: (
        {},
        {"limit_s": NO_POSITIVE, "started": NO_NUMBER, "cancelled": (3, "x")},
    ),
    ronda.Deadline.of: ({}, {"limit_s": NO_POSITIVE}),
    ronda.check: (
        {"subject": ROUND, "answer": PLAN},
        {"subject": (*NO_RECORD, None, INSTANCE), "answer": (*NO_RECORD, None, SCHEDULE)},
    ),
    ronda.check_tasks: (
        {"round": TASKS, "plan": TASK_PLAN},
        {"round": (*NO_RECORD, None, ROUND), "plan": (*NO_RECORD, None, PLAN)},
    ),
    ronda.solve_tasks: (
        {"round": TASKS},
        {
            "round": (*NO_RECORD, None, ROUND),
            "gap": NO_POSITIVE,
            "deadline": NO_POSITIVE,
            "seed": NO_SEED,
        },
    ),
    ronda.read_tasks: ({"path": "r.npz"}, {"path": (*NO_PATH, None, ".", "nowhere.npz")}),
    ronda.read_task_plan: ({"path": "p.npz"}, {"path": (*NO_PATH, None, ".", "nowhere.npz")}),
    ronda.write_tasks: (
        {"round": TASKS, "path": "r.npz"},
        {"round": (*NO_RECORD, ROUND), "path": (*NO_PATH, None, "r.json")},
    ),
    ronda.write_task_plan: (
        {"plan": TASK_PLAN, "path": "p.npz"},
        {"plan": (*NO_RECORD, PLAN), "path": (*NO_PATH, None, "p.json")},
    ),
    ronda.load: ({"name_or_path": "two-jobs"}, {"name_or_path": (*NO_PATH, None, "nothing")}),
    ronda.read: ({"path": "-"}, {"path": (*NO_PATH, None, ".", "nowhere.json")}),
    ronda.write: ({"obj": PLAN, "path": "x.json"}, {"obj": NO_RECORD, "path": (*NO_PATH, None)}),
    ronda.make_round: (
        {"cluster": CLUSTER, "jobs": []},
        {
            "cluster": (*NO_RECORD, None),
            "jobs": (3, [3], [{"id": 3}]),
            "profiles": NO_PROFILES,
            "now_s": (*NO_AMOUNT, None),
            "length_s": (*NO_POSITIVE, None),
            "costs": NO_RECORD,
            "power_cap_w": NO_AMOUNT,
            "node_names": NO_NAMES,
            "site": NO_RECORD,
            "leaving": (*NO_DICT, {"z": 5.0}, {"nodes-0": "x"}),
        },
    ),
    ronda.rates_from: (
        {"speed": lambda *_: 1.0, "cluster": CLUSTER},
        {
            "speed": (3, None, "x"),
            "cluster": (*NO_RECORD, None),
            "counts": (3, "x", [0], [1.5], [True], ["x"]),
        },
    ),
    ronda.policy: ({"spec": "fifo"}, {"spec": (*NO_TEXT, "nobody")}),
    ronda.summarise: (
        {"instance": INSTANCE, "schedule": SCHEDULE},
        {"instance": (*NO_RECORD, None, ROUND), "schedule": (*NO_RECORD, None, PLAN)},
    ),
    ronda.uniform_cluster: (
        {"gpu": CLUSTER.gpu_types[0], "nodes": 1, "gpus_per_node": 2},
        {
            "gpu": (*NO_RECORD, None),
            "nodes": (*NO_COUNT, None),
            "gpus_per_node": (*NO_COUNT, None),
            "rack": (3,),
            "wake_s": NO_AMOUNT[:3],
        },
    ),
    ronda.unmeasured_profile: (
        {"name": "net", "cluster": CLUSTER},
        {
            "name": NO_TEXT,
            "cluster": (*NO_RECORD, None),
            "base_batch": (*NO_POSITIVE, None),
            "max_batch": NO_POSITIVE,
            "local_batch": (3, "x", (1,), (1, "x"), (2, 1), (0, 1), {"A100": 3}, {"A100": (2, 1)}),
            "max_gpus": NO_COUNT,
            "gpu_types": (*NO_NAMES, ["H100"]),
        },
    ),
    Pollux: (
        {},
        {
            "policy": NO_POLICY,
            "application": (3, "x"),
            "interval_s": NO_POSITIVE,
            "restart_s": NO_AMOUNT,
            "deadline_s": NO_POSITIVE,
            "beliefs": NO_BOOL,
        },
    ),
    Sia: (
        {},
        {
            "policy": NO_POLICY,
            "application": (3, "x"),
            "interval_s": NO_POSITIVE,
            "restart_s": (*NO_AMOUNT, {"bert": "x"}, {"bert": -1.0}, {3: 1.0}),
            "deadline_s": NO_POSITIVE,
            "beliefs": NO_BOOL,
        },
    ),
    Rubick: (
        {},
        {
            "policy": NO_POLICY,
            "interval_s": NO_POSITIVE,
            "restart_s": NO_AMOUNT,
            "guaranteed": NO_POSITIVE,
            "deadline_s": NO_POSITIVE,
        },
    ),
    Gavel: ({}, {"policy": NO_POLICY, "leases": NO_COUNT, "lease_s": NO_POSITIVE}),
    Blox: (
        {},
        {
            "policy": NO_POLICY,
            "restart_s": NO_AMOUNT,
            "round_s": NO_POSITIVE,
            "deadline_s": NO_POSITIVE,
        },
    ),
}
"""What works, and what does not, by public function and argument."""

BAD = [
    pytest.param(call, good | {name: value}, name, id=f"{call.__name__}-{name}-{k}")
    for call, (good, bad) in CASES.items()
    for name, values in bad.items()
    for k, value in enumerate(values)
]


@pytest.mark.parametrize(("call", "given", "name"), BAD)
def test_what_cannot_be_used_is_refused_by_name(call, given, name):
    """In one line that names argument, found and expected."""
    with pytest.raises(ronda.InputError) as caught:
        call(**given)
    assert all((caught.value.place, caught.value.found, caught.value.expected))
    if type(given[name]) in (int, float, object):
        assert name in caught.value.place
    assert "\n" not in str(caught.value)


def test_every_argument_of_every_public_function_is_looked_at():
    """But for rows and rates, which have tests of their own."""
    own = {update: ronda.Embedded.update}
    for call, (_, bad) in CASES.items():
        known = signature(own.get(call, call)).parameters.values()
        names = {each.name for each in known if each.kind is not each.VAR_KEYWORD} - {"self"}
        assert names - bad.keys() <= {"rates"}, call
    functions = {
        name
        for name in ronda.__all__
        if callable(getattr(ronda, name)) and not isinstance(getattr(ronda, name), type)
    }
    assert functions == {call.__name__ for call in CASES if call.__name__ in functions}


@checked
def known(a: float, *, b: int | None = None, c: object = None):
    """Return what has been handed over."""
    return a, b, c


def test_numbers_of_numpy_are_numbers():
    """They go on as plain ones; what is open stays as it is."""
    array = np.ones(2)
    found = known(np.float32(0.5), b=np.int64(3), c=array)
    assert found == (0.5, 3, array)
    assert [type(each) for each in found] == [float, int, np.ndarray]
    with pytest.raises(ronda.InputError, match=r"b: found 0\.5; expected an integer or None"):
        known(1, b=np.float64(0.5))
    with pytest.raises(TypeError, match="missing a required argument"):
        known(b=3)


@pytest.mark.parametrize("odd", [10**400, 10**5000, {(1, 2): 3}, [{(1,): 2}]], ids="abcd")
def test_no_value_is_too_odd_to_be_told(odd):
    """Numbers beyond all floats, and of more digits than Python writes; keys that JSON lacks."""
    round_ = ronda.load("round-tight-64")
    with pytest.raises(ronda.InputError, match=r"^deadline: found .*; expected") as caught:
        ronda.solve(round_, "fifo", deadline=odd)
    assert len(str(caught.value)) < 300
