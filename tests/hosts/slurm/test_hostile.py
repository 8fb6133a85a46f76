"""All that a controller may find, and may not do: commands for clusters that hypothesis draws."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ronda.hosts.slurm.controller import SlurmController
from ronda.hosts.slurm.report import pass_report
from ronda.hosts.slurm.state import Diary
from ronda.hosts.slurm.tools import SlurmTools
from ronda.solvers.registry import policy
from tests.helpers.hostile_slurm import NOW_S, TERMS, clusters, memories, scopes
from tests.helpers.tiny_slurm import PlayedTools

FORM = re.compile(
    r"scontrol (?:update JobId=[0-9_,]+ (?:Priority=[1-9][0-9]*|StartTime=now\+[1-9][0-9]*|"
    r"(?:Gres=gpu(?::a100)?:[1248] ?)?(?:TimeLimit=[1-9][0-9]* ?)?(?:ReqNodeList=(?:n[1-4],?)* ?)?"
    r"(?:StartTime=now)?)|requeue incomplete [0-9_]+|"
    r"update NodeName=n[1-4] State=POWER_(?:UP|DOWN))"
)
PHASES = (Phase.reuse, Phase.generate)  # to make an example small takes minutes
SOON = ("Slurm has refused a command", "a start within 2 s is fatal")


def decided(found, scope, state, name):
    """Return the pass of a controller that remembers something."""
    return SlurmController(SlurmTools(), policy(name), scope, None, before=state).decided(found)


def in_scope(job, scope):
    """Return whether a job is one that the operator named, or whose owner let ronda."""
    if "+" in job.id:
        return False
    if scope.partitions and not set(job.partitions) <= set(scope.partitions):
        return False
    if scope.qos and job.priority not in scope.qos:
        return False
    if scope.accounts and job.tenant not in scope.accounts:
        return False
    return bool(scope.partitions or scope.qos or scope.accounts) or agreed(job)


def agreed(job):
    """Return whether the owner of a job let ronda do more than order it."""
    return job.told and job.comment.strip() in TERMS


@given(st.data())
@settings(max_examples=40, phases=PHASES)
@pytest.mark.parametrize("name", ["srtf", "wake-or-wait(keep=1)"])
def test_commands_keep_within_what_is_allowed(name, data):
    """Each has a form, and touches only what it may; all of them are what the last look lets by."""
    found, scope = data.draw(clusters()), data.draw(scopes)
    state = data.draw(memories(found))
    if not any(node.has.get("gpus") for node in found.nodes):
        return
    made = decided(found, scope, state, name)
    jobs, nodes = {job.id: job for job in found.jobs}, {n.name: n for n in found.nodes}
    assert all(any(why in each.why for why in SOON) for each in made.refused)
    assert len(made.due) <= scope.actions_per_minute
    for command in made.due:
        assert FORM.fullmatch(command.line), command.line
        for each in command.names:
            if "NodeName" in command.line:
                assert scope.power
                assert {*nodes[each].partitions} <= {*scope.partitions}
                assert not any(each in job.on for job in found.jobs)
                continue
            job = jobs[each]
            assert in_scope(job, scope)
            if "Priority" not in command.line:
                assert agreed(job)
            if command.words[0] == "requeue":
                assert job.on
                assert job.preemptible
                assert ":" in job.comment
                assert NOW_S - job.start_s >= scope.min_run_s
            else:
                freed = job.reason == "BadConstraints" and "ReqNodeList= " in command.line + " "
                assert not job.on
                assert job.blocked is None or freed
            if "ReqNodeList=n" in command.line:
                assert not job.nodes or each in state.jobs
            if re.search("Gres|TimeLimit", command.line):
                assert "gpus" in job.comment
                assert not job.per_gpu
    text = "".join(map(str, pass_report(made, act=False).parts))
    assert not re.search("[\x1b\u202e]", text)


@given(st.data())
@settings(max_examples=25, phases=PHASES)
@pytest.mark.parametrize("name", ["srtf", "fifo"])
def test_a_plan_that_is_carried_out_needs_nothing_more(name, data):
    """The second pass has no commands; once a job waits anew, the third or fourth has none."""
    found = data.draw(clusters())
    scope = replace(data.draw(scopes), actions_per_minute=1_000, power=False)
    if not any(node.has.get("gpus") for node in found.nodes):
        return
    with TemporaryDirectory() as folder:
        diary = Diary(Path(folder))
        diary.state = replace(data.draw(memories(found)), given_s=())
        drive = SlurmController(PlayedTools(found), policy(name), scope, diary)
        passes = [[c.line for c, _ in drive.once(act=True).answers] for _ in range(4)]
    assert passes[3] == []
    freed = any(job.reason == "BadConstraints" for job in found.jobs)
    assert freed or "requeue" in "".join(passes[0] + passes[1]) or passes[1] == []
    once = [line for made in passes for line in made if "requeue" in line]
    assert len(once) == len(set(once))
