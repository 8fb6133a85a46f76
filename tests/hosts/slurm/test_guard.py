"""The last look at commands: what a controller whose steps are wrong would still not do."""

from dataclasses import replace as with_

import pytest
from msgspec.structs import replace

from ronda.hosts.slurm import controller
from ronda.hosts.slurm.actions import SlurmStep
from ronda.hosts.slurm.commands import SlurmCommand
from ronda.hosts.slurm.controller import SlurmController
from ronda.hosts.slurm.scope import Scope
from ronda.hosts.slurm.state import SlurmState, TouchedJob
from ronda.hosts.slurm.tools import SlurmTools
from ronda.instances.snapshots.snapshot import SeenJob, SeenNode, Snapshot
from ronda.solvers.registry import policy

NOW_S = 1e6
SCOPE = Scope(partitions=("gpu",), power=True, min_run_s=600.0)
HELD = {"blocked": "it is held by its user (scontrol release)", "reason": "JobHeldUser"}
SPOILT = {"blocked": "Slurm says BadConstraints", "reason": "BadConstraints", "rank": 0.0}


def node(name, **more):
    """Return a node of 8 GPUs."""
    has = {"gpus": 8.0, "cpu": 64.0}
    return SeenNode(**{"name": name, "has": has, "gpu_type": "a100", "partitions": ("gpu",)} | more)


def job(number, gpus=2.0, comment="ronda", **more):
    """Return a job that waits for GPUs of one node."""
    fields = {"comment": comment, "partitions": ("gpu",), "rank": 500.0, "submit_s": NOW_S - 9_000}
    fields |= {"limit_s": 3_600.0, "own_nodes": True, "per": {"gpus": gpus, "cpu": 1.0}}
    return SeenJob(id=str(number), **fields | more)


def runs(number, on, since_s, comment="ronda:requeue"):
    """Return a job that runs on all GPUs of a node."""
    return job(number, 8.0, comment, on={on: 1}, start_s=NOW_S - since_s)


JOBS = (
    runs(1, "n1", 5_000),
    runs(2, "n2", 5_000, "ronda"),
    runs(3, "n3", 30),
    job(10, 4.0),
    job(11, 4.0, exclusive=True),
    job(12, 2.0, "ronda:gpus=1:1/2:1.9/4:3.5/8:6"),
    job(13, 8.0),
    job(14, 8.0),
    job(15, 8.0),
    job(20, comment=""),
    job(21, **HELD | {"rank": 0.0}),
    job(22, partitions=("other",)),
    job(23, nodes=("n4", "n5")),
    job(24, eligible_s=NOW_S + 9_000),
    job(25, **SPOILT, nodes=("n4",)),
    job("7+0"),
)
NODES = (
    *(node(f"n{k}") for k in range(1, 6)),
    node("n6", power="down"),
    node("n7", out="drained"),
    node("n8", partitions=("gpu", "other")),
    node("c1", has={"cpu": 64.0}, gpu_type=None),
)
FOUND = Snapshot(source="test", system="slurm", now_s=NOW_S, nodes=NODES, jobs=JOBS)


def looked_at(monkeypatch, *lines, found=FOUND, state=None, scope=SCOPE, name="fifo"):
    """Return the pass of a controller whose only steps are some lines of scontrol."""
    made = [SlurmCommand(words=(*line.split(" "),), names=(), reason="") for line in lines]
    step = SlurmStep("broken", (), None, (), "", tuple(made))
    monkeypatch.setattr(controller, "steps", lambda *_: [step])
    drive = SlurmController(SlurmTools(), policy(name), scope, None, before=state)
    return drive.decided(found)


def test_what_is_right_is_let_by(monkeypatch):
    """Jobs 10 to 12 start on idle nodes, of which job 11 has one to itself; n8 is not ronda's."""
    lines = ("update JobId=10 ReqNodeList=n4", "update JobId=11 ReqNodeList=n5")
    made = looked_at(monkeypatch, *lines, "update JobId=10,11,12,20 Priority=501")
    started = {
        job: [(made.model.nodes[k], n) for k, n in a.placement]
        for job, a in made.plan.allocations.items()
    }
    assert started["10"] == [("n4", 4)]
    assert started["11"] == [("n5", 8)]
    assert made.refused == []
    assert len(made.due) == 3


@pytest.mark.parametrize(
    ("line", "why"),
    [
        # No form of ronda's.
        ("update JobId=10 Priority=0", "none of the forms"),
        ("update JobId=10 StartTime=now+0", "none of the forms"),
        ("update JobId=10 StartTime=tomorrow", "none of the forms"),
        ("hold 10", "none of the forms"),
        ("requeuehold 1", "none of the forms"),
        ("requeue 1", "none of the forms"),
        ("release 21", "none of the forms"),
        ("cancel 1", "none of the forms"),
        ("update JobId=7+0 Priority=500", "none of the forms"),
        ("update JobId=10 Priority=500\nJobId=1", "none of the forms"),
        ("update JobId=10 ReqNodeList=n4;reboot", "none of the forms"),
        ("update NodeName=n4 State=DOWN", "none of the forms"),
        ("update NodeName=n[1-9] State=POWER_DOWN", "none of the forms"),
        ("update JobId=10  Priority=500", "none of the forms"),
        # Priorities.
        ("update JobId=10,99 Priority=500", "job 99: Slurm shows no such job"),
        ("update JobId=10,22 Priority=500", "job 22: priority 500 is not ronda's"),
        ("update JobId=10,21 Priority=500", "job 21: it runs, or it is held"),
        ("update JobId=10,1 Priority=500", "job 1: it runs, or it is held"),
        ("update JobId=10 Priority=499", "priority 499 is not ronda's"),
        ("update JobId=10 Priority=4294967295", "is not ronda's"),
        # Starts.
        ("update JobId=10 ReqNodeList=n5", "not where the plan starts"),
        ("update JobId=10 ReqNodeList=n4,n5", "not where the plan starts"),
        ("update JobId=10 ReqNodeList=n1", "not where the plan starts"),
        ("update JobId=10 ReqNodeList=n7", "not where the plan starts"),
        ("update JobId=10 ReqNodeList=c1", "not where the plan starts"),
        ("update JobId=10 ReqNodeList=n99", "not where the plan starts"),
        ("update JobId=10 Gres=gpu:5 ReqNodeList=n4", "not agreed to 5 GPUs"),
        ("update JobId=12 Gres=gpu:3", "not agreed to 3 GPUs"),
        ("update JobId=12 Gres=gpu:4", "or the plan gives it 2"),
        ("update JobId=12 TimeLimit=1", "its time limit is 60 minutes, not 1"),
        ("update JobId=15 ReqNodeList=n4", "which the plan does not say"),
        ("update JobId=1 ReqNodeList=n4", "it runs, or it is held"),
        ("update JobId=20 ReqNodeList=n4", "has not opted in"),
        ("update JobId=22 ReqNodeList=n4", "has not opted in"),
        ("update JobId=21 ReqNodeList=n4", "it runs, or it is held"),
        ("update JobId=23 ReqNodeList=n5", "has named nodes"),
        ("update JobId=23 ReqNodeList=", "has named nodes"),
        ("update JobId=24 StartTime=now", "its begin time is its owner's"),
        ("update JobId=25 ReqNodeList=", "it runs, or it is held"),
        # Waits.
        ("update JobId=10 StartTime=now+300", "the plan starts it"),
        ("update JobId=15 StartTime=now+301", "more than 300 s"),
        ("update JobId=24 StartTime=now+300", "its begin time is its owner's"),
        ("update JobId=20 StartTime=now+300", "has not opted in"),
        # Stops.
        ("requeue incomplete 1", "the plan lets it go on"),
        ("requeue incomplete 2", "may not be stopped"),
        ("requeue incomplete 3", "it has run for 30 s, less than 600 s"),
        ("requeue incomplete 10", "it does not run"),
        # Power.
        ("update NodeName=n4 State=POWER_DOWN", "the plan does not say so"),
        ("update NodeName=n8 State=POWER_DOWN", "not in ronda's scope"),
        ("update NodeName=c1 State=POWER_DOWN", "not in ronda's scope"),
    ],
)
def test_what_is_wrong_is_not_given(monkeypatch, line, why):
    """Whatever the steps are, each command is judged by its words."""
    made = looked_at(monkeypatch, line)
    assert made.due == []
    assert why in made.refused[0].why


def test_a_word_of_two_is_none_of_the_forms(monkeypatch):
    """A line may read well whose words do not: Slurm is given the words."""
    made = looked_at(monkeypatch, "update JobId=10 Priority=501").due[0]
    step = SlurmStep(
        "x", (), None, (), "", (replace(made, words=("update", " ".join(made.words[1:]))),)
    )
    monkeypatch.setattr(controller, "steps", lambda *_: [step])
    drive = SlurmController(SlurmTools(), policy("fifo"), SCOPE, None)
    assert drive.decided(FOUND).due == []


@pytest.mark.parametrize("line", ["update JobId=13 ReqNodeList=n1", "requeue incomplete 1"])
def test_a_stop_and_a_start_hold_together(monkeypatch, line):
    """A start on GPUs that are not free breaks a rule, unless the job on them is stopped."""
    short = replace(JOBS[6], limit_s=60.0)
    found = with_(FOUND, jobs=(*JOBS[:3], short), nodes=NODES[:3])
    both = ("update JobId=13 ReqNodeList=n1", "requeue incomplete 1")
    assert looked_at(monkeypatch, *both, found=found, name="srtf").refused == []
    made = looked_at(monkeypatch, line, found=found, name="srtf")
    if "requeue" in line:
        assert made.refused == []
    else:
        assert "16 GPUs placed, but it has 8" in made.refused[0].why


def test_rules_of_the_site_are_looked_at_again(monkeypatch):
    """A node that leaves now takes no job, whoever has made the plan."""
    made = looked_at(monkeypatch, "update JobId=10 ReqNodeList=n4")
    tight = replace(made.model.round, leaving=((made.model.nodes.index("n4"), NOW_S),))
    model = made.model._replace(round=tight)
    found = controller.refused(made.due, model, made.plan, SCOPE, SlurmState())
    assert "node" in found[0].why


@pytest.mark.parametrize(
    ("memory", "line", "why"),
    [
        ({"refused_s": NOW_S - 59}, "update JobId=10 ReqNodeList=n4", "has refused a command"),
        ({"refused_s": NOW_S - 61}, "update JobId=10 ReqNodeList=n4", None),
        ({"refused_s": NOW_S + 1e5}, "update JobId=10 ReqNodeList=n4", None),
        ({"refused_s": NOW_S - 59}, "update JobId=10,11 Priority=501", None),
        ({"requeued_s": NOW_S - 1}, "update JobId=10 StartTime=now", "is fatal"),
        ({"requeued_s": NOW_S - 3}, "update JobId=10 StartTime=now", None),
        ({"requeued_s": NOW_S + 1e5}, "update JobId=10 StartTime=now", None),
    ],
)
def test_what_is_remembered_counts_for_a_while(monkeypatch, memory, line, why):
    """A time ahead, of a clock that has jumped back, blocks nothing."""
    state = SlurmState(jobs={"10": TouchedJob(submit_s=NOW_S - 9_000, **memory)})
    made = looked_at(monkeypatch, line, state=state)
    assert [each.why for each in made.refused] == [] if why is None else why in made.refused[0].why


def test_a_requeued_job_is_counted_from_its_end(monkeypatch):
    """A job may take long to end: Slurm's new submit time says when it had."""
    again = replace(JOBS[3], submit_s=NOW_S - 1, restarts=1)
    memory = TouchedJob(submit_s=NOW_S - 9_000, requeued_s=NOW_S - 40)
    found, state = with_(FOUND, jobs=(*JOBS[:3], again)), SlurmState(jobs={"10": memory})
    made = looked_at(monkeypatch, "update JobId=10 StartTime=now", found=found, state=state)
    assert "1.0 s ago: a start within 2 s is fatal" in made.refused[0].why


def test_nodes_that_spoil_a_job_are_taken_back(monkeypatch):
    """Slurm holds a job that can never run where ronda put it; nothing else is done to it."""
    state = SlurmState(jobs={"25": TouchedJob(submit_s=NOW_S - 9_000, nodes=("n4",))})
    assert looked_at(monkeypatch, "update JobId=25 ReqNodeList=", state=state).refused == []
    for line in ("update JobId=25 ReqNodeList=n5", "update JobId=25 StartTime=now+9"):
        assert looked_at(monkeypatch, line, state=state).due == []
    monkeypatch.undo()
    made = SlurmController(SlurmTools(), policy("fifo"), SCOPE, None, before=state).decided(FOUND)
    assert "scontrol update JobId=25 ReqNodeList=" in [c.line for c in made.due]


@pytest.mark.parametrize(("ago_s", "given"), [(14.0, 0), (16.0, 1), (-1e6, 0)])
def test_nothing_is_given_while_slurmctld_settles(monkeypatch, ago_s, given):
    """Its nodes have not registered yet: a job would start without its GPUs."""
    monkeypatch.setattr(SlurmTools, "began_s", NOW_S - ago_s)
    made = looked_at(monkeypatch, "update JobId=10 ReqNodeList=n4")
    assert len(made.due) == given
