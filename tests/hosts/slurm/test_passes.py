"""Passes of a controller one after another: what is given, left, remembered and taken back."""

import json
import os

import pytest
from msgspec.structs import replace

from ronda.hosts.slurm import controller
from ronda.hosts.slurm.controller import SlurmController
from ronda.hosts.slurm.scope import Scope
from ronda.hosts.slurm.state import Diary
from ronda.hosts.slurm.tools import SlurmAwayError
from ronda.instances.errors import InputError
from ronda.instances.snapshots.snapshot import SeenJob, SeenNode, Snapshot
from ronda.solvers.registry import policy
from tests.helpers.tiny_slurm import PlayedTools

NOW_S = 1e6
PLAIN = {"partitions": ("gpu",), "own_nodes": True, "limit_s": 3_600.0, "submit_s": NOW_S - 9_000}


def job(number, gpus=2.0, **more):
    """Return a waiting job whose owner lets it be placed."""
    fields = {"id": str(number), "per": {"gpus": gpus, "cpu": 1.0}, "comment": "ronda"}
    return SeenJob(**PLAIN | fields | {"rank": 500.0 - number} | more)


def cluster(*jobs):
    """Return a cluster of two nodes of 8 GPUs."""
    has = {"gpus": 8.0, "cpu": 64.0}
    nodes = (SeenNode(name=f"n{k}", has=has, gpu_type="a100") for k in (1, 2))
    fields = {"source": "test", "system": "slurm", "now_s": NOW_S}
    return Snapshot(nodes=tuple(nodes), jobs=jobs, **fields)


def drive(found, folder, scope=None, refuses=lambda line: False):
    """Return a controller by FIFO."""
    tools = PlayedTools(found, refuses)
    return SlurmController(tools, policy("fifo"), scope or Scope(), Diary(folder), interval_s=0.01)


def events(folder):
    """Return what the audit log says beside commands."""
    told = [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]
    return [each["event"] for each in told if "event" in each]


def test_commands_are_few_in_a_minute(tmp_path):
    """What is left comes in the next minute."""
    scope = Scope(actions_per_minute=2)
    made = drive(cluster(*(job(k) for k in range(1, 6))), tmp_path, scope)
    assert [len(made.once(act=True).answers) for _ in range(3)] == [2, 0, 0]
    made.tools.found = replace_now(made, NOW_S + 70)
    assert len(made.once(act=True).answers) == 2


def replace_now(made, now_s):
    """Return the cluster of a controller at another time."""
    return Snapshot(**vars(made.tools.found) | {"now_s": now_s})


def test_a_pass_ends_after_three_refusals(tmp_path):
    """The jobs are left alone for a minute, and the others' turn comes."""
    made = drive(cluster(*(job(k) for k in range(1, 9))), tmp_path, refuses=lambda line: True)
    assert [len(made.once(act=True).answers) for _ in range(3)] == [3, 3, 2]
    assert "3 failed" in events(tmp_path)[0]
    assert made.state.jobs["1"].refused_s is not None


def test_a_refused_stop_is_not_remembered_as_one(tmp_path):
    """What a job has done counts once, and its begin time is its owner's."""
    runs = job(1, 8.0, on={"n1": 1}, start_s=NOW_S - 5_000, comment="ronda:requeue", limit_s=9_000)
    firm = job(3, 8.0, on={"n2": 1}, start_s=NOW_S - 5_000)
    made = drive(
        cluster(runs, firm, job(2, 8.0, limit_s=60.0)),
        tmp_path,
        refuses=lambda line: "requeue" in line,
    )
    made.policy = policy("srtf")
    made.once(act=True)
    assert "scontrol requeue incomplete 1" in made.tools.lines
    memory = made.state.jobs["1"]
    assert (memory.done_s, memory.requeued_s) == (0.0, None)


def test_a_stale_cluster_is_read_again(tmp_path, monkeypatch):
    """Commands that come too long after the reading are left."""
    clock = iter([0.0, 1.0, 61.0, *[62.0] * 9])
    monkeypatch.setattr(controller.time, "monotonic", lambda: next(clock))
    made = drive(cluster(*(job(k) for k in range(1, 6))), tmp_path).once(act=True)
    assert len(made.answers) < 4
    assert "the cluster was read over 60 s ago" in events(tmp_path)[0]


def test_a_stop_in_the_middle_of_a_pass(tmp_path):
    """The rest of the pass is left, and what was done is taken back."""
    made = drive(cluster(*(job(k) for k in range(1, 6))), tmp_path)
    give = made.tools.give

    def stopped(command):
        made.stopping.set()
        return give(command)

    made.tools.give = stopped
    made.run(lambda _: None, pytest.fail, act=True)
    assert made.tools.lines == [
        "scontrol update JobId=1 ReqNodeList=n1",
        "scontrol update JobId=1 ReqNodeList=",
    ]
    assert "commands of this pass are left: it stops" in events(tmp_path)[0]


@pytest.mark.parametrize("ages", [True, False])
def test_all_is_taken_back_at_the_end(tmp_path, ages):
    """Nodes, begin times and priorities; where priorities age, Slurm sees to them by itself."""
    found = cluster(*(job(k, 8.0, rank=100.0 * k) for k in (1, 2, 3)))
    made = drive(found, tmp_path, Scope(partitions=("gpu",)))
    made.tools.ages = ages
    made.once(act=True)
    assert made.tools.found.jobs[0].nodes
    assert made.tools.found != found
    other = {each.id for each in made.tools.found.jobs if each.rank != 100.0 * int(each.id)}
    given = len(made.tools.lines)
    made.stopping.set()
    made.run(pytest.fail, pytest.fail, act=True)
    back = " ".join(line for line in made.tools.lines[given:] if "ReqNodeList" not in line)
    assert {
        number for number in "123" if f"JobId={number} " in back or f"release {number}" in back
    } == other
    assert {memory.submit_s for memory in made.state.jobs.values()} == {NOW_S - 9_000}
    jobs = made.tools.found.jobs
    assert [each.nodes for each in jobs] == [()] * 3
    changed = {line.split()[-1] for line in made.tools.lines if "release" in line}
    assert [each.rank for each in jobs if each.id not in changed] == [
        100.0 * k for k in (1, 2, 3) if str(k) not in changed
    ]
    assert bool(changed) is ages
    before = list(made.tools.lines)
    made.run(pytest.fail, pytest.fail, act=True)
    assert made.tools.lines == before


def test_what_could_not_be_taken_back_is_remembered(tmp_path):
    """Another run, or its end, takes it back."""
    made = drive(cluster(job(1)), tmp_path)
    made.once(act=True)
    made.tools.refuses = lambda line: line.endswith("ReqNodeList=")
    made.stopping.set()
    for refuses, nodes in ((made.tools.refuses, ("n1",)), (lambda line: False, ())):
        made.tools.refuses = refuses
        made.run(pytest.fail, pytest.fail, act=True)
        assert made.tools.found.jobs[0].nodes == nodes


def test_held_jobs_lose_the_nodes_that_were_chosen(tmp_path):
    """Their owner's hold stays, and so does their priority."""
    made = drive(cluster(job(1)), tmp_path)
    made.once(act=True)
    (seen,) = made.tools.found.jobs
    held = replace(seen, rank=0.0, blocked="it is held by its user (scontrol release)")
    made.tools.found = cluster(held)
    made.stopping.set()
    made.run(pytest.fail, pytest.fail, act=True)
    assert made.tools.lines[1:] == ["scontrol update JobId=1 ReqNodeList="]


def test_an_error_takes_back_as_well(tmp_path):
    """A closed terminal, say, ends the controller, not what it would have taken back."""
    made = drive(cluster(job(1)), tmp_path)

    def broken(_):
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        made.run(broken, pytest.fail, act=True)
    assert made.tools.found.jobs[0].nodes == ()


def test_a_full_disk_ends_it(tmp_path):
    """No command is given that could not be written down."""
    (tmp_path / "audit.jsonl").symlink_to("/dev/full")
    made = drive(cluster(job(1)), tmp_path)
    with pytest.raises(InputError, match="No space left on device"):
        made.run(pytest.fail, pytest.fail, act=True)
    assert made.tools.lines == []


def test_an_absent_slurm_is_asked_again_later(tmp_path):
    """Each time after twice as long, up to ten times the interval; nothing is done meanwhile."""
    made = drive(cluster(job(1)), tmp_path)
    read, warned, waits = made.tools.read, [], []

    def away():
        if len(warned) < 5:
            raise SlurmAwayError("squeue: no answer in 60 s")
        made.stopping.set()
        return read()

    made.tools.read = away
    wait = made.stopping.wait
    made.stopping.wait = lambda wait_s: waits.append(wait_s) or wait(0)
    made.run(lambda _: None, warned.append, act=True)
    assert waits[:5] == pytest.approx([0.01, 0.02, 0.04, 0.08, 0.1])
    assert events(tmp_path)[:5] == warned
    assert warned[0].startswith("nothing done, again in 0 s: squeue")
    made.tools.read = lambda: (_ for _ in ()).throw(SlurmAwayError("gone"))
    made.run(pytest.fail, warned.append, act=True)
    assert warned[-1] == "nothing taken back: gone"


def test_a_clock_that_jumps_costs_a_pass(tmp_path, monkeypatch):
    """Whichever way it jumps; leases are by the clock of Slurm."""
    made = drive(cluster(job(1)), tmp_path)
    clock = iter([NOW_S, NOW_S - 3_600])
    monkeypatch.setattr(controller.time, "time", lambda: next(clock))
    warned, waits = [], []

    def waited(wait_s):
        waits.append(wait_s)
        if len(waits) == 2:
            made.stopping.set()

    made.stopping.wait = waited
    made.run(lambda _: None, warned.append, act=False)
    assert warned == ["the clock has jumped by -3600 s: a pass is left out"]
    assert len(waits) == 2


@pytest.mark.parametrize("at", ["ask", "give"])
def test_a_kill_before_a_command_is_given(tmp_path, at):
    """It is remembered as given, which does no harm: the next controller gives it."""
    first = drive(cluster(job(1)), tmp_path)

    class KilledError(BaseException):
        pass

    def killed(*_):
        raise KilledError

    setattr(first.diary if at == "ask" else first.tools, at, killed)
    with pytest.raises(KilledError):
        first.once(act=True)
    assert first.state.jobs["1"].nodes == ("n1",)
    os.close(first.diary._lock)
    then = drive(first.tools.found, tmp_path)
    then.tools.found = replace_now(then, NOW_S + 130)
    assert [c.line for c, _ in then.once(act=True).answers] == [
        "scontrol update JobId=1 ReqNodeList=n1"
    ]
