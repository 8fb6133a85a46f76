"""Nodes that ronda powers down and up: what it may do, and what a real Slurm makes of it."""

import json
import subprocess
import sys
import time
from dataclasses import replace as with_

import pytest
from msgspec.structs import replace

from ronda.hosts.slurm.actions import steps
from ronda.hosts.slurm.commands import power, ready
from ronda.hosts.slurm.controller import SlurmController
from ronda.hosts.slurm.guard import refused
from ronda.hosts.slurm.model import modelled
from ronda.hosts.slurm.scope import Scope
from ronda.hosts.slurm.state import SlurmState
from ronda.hosts.slurm.tools import SlurmTools
from ronda.instances.job import Allocation, Option
from ronda.instances.plan import Plan
from ronda.instances.snapshots.snapshot import SeenJob, SeenNode, Snapshot
from ronda.solvers.registry import policy

SCOPE = Scope(partitions=("gpu",), power=True, awake=2, wake_s=60.0)
POWERS = {"n1": "on", "n2": "on", "n3": "on", "n4": "on", "n5": "down", "n6": "going down"}


def cluster():
    """Return a model: a job on n1, one without GPUs on n2, n7 drained, n8 in two partitions."""
    has = {"gpus": 8.0, "cpu": 64.0}
    nodes = [
        SeenNode(name=name, has=has, gpu_type="a100", partitions=("gpu",), power=state)
        for name, state in POWERS.items()
    ]
    nodes += [replace(nodes[0], name="n7", out="drained")]
    nodes += [replace(nodes[0], name="n8", partitions=("gpu", "other"))]
    nodes += [replace(nodes[0], name="n9")]
    plain = {"limit_s": 3600.0, "partitions": ("gpu",), "own_nodes": True, "gpu_types": ("a100",)}
    jobs = [
        SeenJob(id="1", per={"gpus": 8.0}, on={"n1": 1}, start_s=0.0, **plain),
        SeenJob(id="2", per={"cpu": 1.0}, on={"n2": 1}, start_s=0.0, **plain),
        SeenJob(id="3", per={"gpus": 8.0}, comment="ronda", rank=5.0, **plain),
    ]
    fields = {"source": "test", "system": "slurm", "now_s": 1e4}
    found = Snapshot(nodes=tuple(nodes), jobs=tuple(jobs), **fields)
    return modelled(found, SCOPE, SlurmState(), 30.0)


def planned(model, asleep, on="n3"):
    """Return a plan in which job 3 starts on a node, and others sleep."""
    number = {name: k for k, name in enumerate(model.nodes)}
    start = Allocation(option=Option(pool=0, gpus=8), placement=((number[on], 8),))
    return Plan(
        policy="test",
        allocations=model.round.held | {"3": start},
        asleep=tuple(sorted(number[name] for name in asleep)),
    )


def test_only_idle_nodes_of_the_scope_are_powered():
    """Neither a node with any job on it, nor the last ones; up only what is down."""
    model = cluster()
    assert {g.wake_s for g in model.round.cluster.node_groups} == {60.0}
    unused = planned(model, ["n2", "n4", "n5", "n6", "n7", "n8", "n9"])
    made = steps(model, unused, [], SCOPE, SlurmState())
    assert [c.line for step in made for c in step.commands if "NodeName" in c.line] == [
        "scontrol update NodeName=n4 State=POWER_DOWN",
        "scontrol update NodeName=n9 State=POWER_DOWN",
    ]
    few = replace(SCOPE, awake=4)
    made = steps(model, planned(model, ["n4", "n5", "n6", "n9"]), [], few, SlurmState())
    assert sum(step.what == "power down" for step in made) == 1
    made = steps(model, planned(model, []), [], SCOPE, SlurmState())
    assert [step.names for step in made if step.what == "power up"] == [("n5",)]


@pytest.mark.parametrize(
    ("node", "on", "why"),
    [
        ("n1", False, "not idle"),
        ("n2", False, "not idle"),
        ("n3", False, "placed on it, but it sleeps"),
        ("n4", False, None),
        ("n4", True, "not powered down"),
        ("n5", True, None),
        ("n5", False, "not idle"),
        ("n6", True, "not powered down"),
        ("n7", False, "not in ronda's scope"),
        ("n8", False, "not in ronda's scope"),
        ("n0", False, "not in ronda's scope"),
    ],
)
def test_the_last_look_at_power(node, on, why):
    """A node that a job is told to start on in the same pass is refused as well."""
    model = cluster()
    commands = [ready("3", "", nodes=["n3"]), power(node, on=on, reason="")]
    sleeps = [] if on or node not in model.nodes else [node]
    found = refused(commands, model, planned(model, sleeps), SCOPE, SlurmState())
    told = [each.why for each in found if each.command is commands[1]]
    assert (told == []) if why is None else (why in told[0])


def test_the_last_look_counts_nodes_that_stay_awake():
    """Of the five nodes of the scope that are on, three may go down."""
    model = cluster()
    nodes = ("n3", "n4", "n9")
    commands = [power(name, on=False, reason="") for name in nodes]
    plan = planned(model, nodes)
    for awake, refuses in ((2, 0), (3, 1), (5, 3)):
        scope = replace(SCOPE, awake=awake)
        found = refused(commands, model, plan, scope, SlurmState())
        assert [each.why for each in found] == [f"{awake} nodes are to stay awake"] * refuses
    found = refused(commands, model, planned(model, nodes[1:]), SCOPE, SlurmState())
    assert [each.why for each in found] == ["the plan does not say so of node n3"]


def test_a_dry_run_knows_for_how_long_nodes_have_been_idle():
    """They would go down once sleep has paid for `keep` steps, and in each pass from then on."""
    passes = iter(range(5))

    class Tools(SlurmTools):
        def read(self):
            return with_(cluster().found, now_s=10_000.0 + 30.0 * next(passes))

    spec = "wake-or-wait(step_s=30, keep=3)"
    drive = SlurmController(Tools(), policy(spec), SCOPE, None, interval_s=30.0)
    downs = [drive.once(act=False).due for _ in range(5)]
    assert [sum("POWER_DOWN" in c.line for c in due) for due in downs] == [0, 0, 3, 3, 3]


def test_nodes_sleep_and_wake_for_a_job(fresh_toy, tmp_path):
    """Of four nodes two go down; the job that finds the others busy has a woken one in seconds."""
    toy = fresh_toy(SuspendTimeout=2)

    def states():
        return dict(line.split() for line in toy.run("sinfo", "-hNo", "%N %T").stdout.splitlines())

    first = toy.submit("--gres=gpu:a100:8", "--time=60")
    toy.wait(lambda: toy.job(first)["job_state"] == "RUNNING")
    words = ["--act", "--state", "drive", "--interval", "1", "--partition", "main", "--power"]
    words += ["--awake", "2", "--wake-s", "2", "--policy", "prices+lot-sizing(step_s=1,keep=2)"]
    with open(tmp_path / "told", "w") as told:
        program = [sys.executable, "-m", "ronda", "slurm", *words]
        drive = subprocess.Popen(program, env=toy.env, cwd=tmp_path, stdout=told)
    try:
        toy.wait(lambda: sum(state == "idle~" for state in states().values()) == 2)
        assert sorted(states().values()) == ["idle", "idle~", "idle~", "mixed"]
        second = toy.submit("--gres=gpu:a100:8", "--time=60")
        toy.wait(lambda: toy.job(second)["job_state"] == "RUNNING")
        asked = time.monotonic()
        third = toy.submit("--gres=gpu:a100:8", "--time=60")
        toy.wait(lambda: sorted(states().values())[1:] == ["mixed"] * 3)
        assert time.monotonic() - asked < 6.0
        assert toy.job(third)["job_state"] in ("CONFIGURING", "RUNNING")
    finally:
        drive.terminate()
        assert drive.wait(30) == 0
    log = [json.loads(line) for line in (tmp_path / "drive" / "audit.jsonl").open()]
    assert [line for line in log if line.get("status")] == []
    downs = [line["command"] for line in log if "POWER_DOWN" in line.get("command", "")]
    assert len({*downs}) == 2
