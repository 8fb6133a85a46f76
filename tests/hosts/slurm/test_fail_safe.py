"""What is left of a controller on a real Slurm that is killed, stopped, or overtaken by others."""

import json
import shutil
import signal
import subprocess
import sys
import time

import pytest

POLICY = '''
import os
import subprocess

import ronda
from ronda.hosts.slurm import controller
from ronda.solvers.greedy import Room, start_in_order

controller.SETTLES_S = 0.0  # nothing starts by itself on clusters that are younger


class Played:
    """Whatever fits starts but jobs named keep, and jobs named stop end; BEFORE comes first."""

    def plan(self, round, *, deadline, seed, initial=None):
        subprocess.run(os.environ.pop("BEFORE", "true"), shell=True, check=True)
        order = [state for state in round.waiting if state.job.name != "keep"]
        runs = [state for state in round.running if state.job.name != "stop"]
        started = start_in_order(Room(round, runs), order)
        held = {state.job.id: state.allocation for state in runs}
        return ronda.Plan(policy="played", allocations=held | started)
'''


@pytest.fixture
def started(tmp_path):
    """A function that starts ``ronda slurm`` on a cluster; what still runs at the end is killed."""
    (tmp_path / "own.py").write_text(POLICY)
    running = []

    def start(toy, *words, before="true", policy="./own.py:Played"):
        words = ("--act", "--state", "drive", "--policy", policy, *words)
        found = subprocess.Popen(
            [sys.executable, "-m", "ronda", "slurm", *words],
            env=toy.env | {"BEFORE": before},
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(found)
        return found

    yield start
    for each in running:
        each.kill()
        each.communicate()


def audit(folder):
    """Return the lines of the audit log."""
    path = folder / "drive" / "audit.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def given(folder):
    """Return the commands that were given, with Slurm's status; each was asked just before."""
    told = [each for each in audit(folder) if "command" in each]
    asked, answered = told[::2], told[1::2]
    assert all(each["reason"] for each in asked)
    lines = [each["command"] for each in asked]
    assert [each["command"] for each in answered] == lines[: len(answered)]
    return {each["command"]: each["status"] for each in answered}


def state(toy, job):
    """Return a job's state."""
    return toy.job(job)["job_state"]


def lazy(fresh_toy, seconds, **more):
    """Return a cluster whose Slurm looks for jobs to start so seldom, and has just done so."""
    often = f"sched_interval={seconds},bf_interval=600,batch_sched_delay=0"
    often = f"defer,sched_min_interval={seconds}000000,{often}"
    toy = fresh_toy(SchedulerParameters=often, **more)
    first = toy.submit("--mem=1", command="true")
    toy.wait(lambda: state(toy, first) == "COMPLETED", 20)
    return toy


def test_a_lease_ends_by_itself(fresh_toy, started, tmp_path):
    """It is renewed while ronda lives; after a kill the job starts, even if all is forgotten."""
    toy = lazy(fresh_toy, 5, nodes=1)
    drive = started(toy, "--lease-s", "4", "--interval", "1")
    drive.stdout.readline()
    first = toy.submit("--mem=1", command="true")
    toy.wait(lambda: state(toy, first) != "PENDING", 20)
    job = toy.submit("--gres=gpu:a100:2", "--comment=ronda", "--job-name=keep")
    time.sleep(8)
    assert state(toy, job) == "PENDING"
    drive.kill()
    drive.wait()
    shutil.rmtree(tmp_path / "drive")
    assert toy.wait(lambda: state(toy, job) == "RUNNING", 20) < 12


@pytest.mark.parametrize("kind", ["basic", "multifactor"])
def test_a_stop_takes_all_back(fresh_toy, started, tmp_path, kind):
    """Nodes, begin times and priorities are as before, and may age where they aged."""
    more = {} if kind == "basic" else {"PriorityWeightJobSize": 9999}
    toy = lazy(fresh_toy, 600, nodes=2, PriorityType=f"priority/{kind}", **more)
    sizes = {"a": 8, "b": 4, "keep": 2, "c": 8}
    jobs = [
        toy.submit(f"--gres=gpu:a100:{n}", "--comment=ronda", f"--job-name={name}")
        for name, n in sizes.items()
    ]

    def shown():
        found = [toy.job(job) for job in jobs]
        late = [max(0, job["eligible_time"] - time.time()) for job in found]
        return [
            (j["priority"], j["required_nodes"], s > 0) for j, s in zip(found, late, strict=True)
        ]

    before = shown()
    drive = started(toy, "--partition", "main")
    toy.wait(lambda: any("StartTime=now+" in line for line in given(tmp_path)), 20)
    time.sleep(0.5)
    during = shown()
    assert [nodes for _, nodes, _ in during] == ["n1", "n2", "", ""]
    assert [late for *_, late in during] == [False, False, True, False]
    assert [priority for priority, *_ in during] != [priority for priority, *_ in before]
    drive.send_signal(signal.SIGTERM)
    assert drive.wait(20) == 0
    assert shown() == before
    assert any("release" in line for line in given(tmp_path)) is (kind == "multifactor")
    assert set(given(tmp_path).values()) == {0}
    assert '"band"' not in (tmp_path / "drive" / "state.json").read_text()


def test_jobs_that_end_meanwhile_are_left_alone(settled_toy, started, tmp_path):
    """A refused command is written down and the rest goes on; what has ended does not run anew."""
    toy = settled_toy
    full = "--gres=gpu:a100:8"
    runs = [
        toy.submit(full, "--comment=ronda:requeue", f"--job-name={name}")
        for name in ("stop", "x", "y", "z")
    ]
    toy.wait(lambda: all(state(toy, job) == "RUNNING" for job in runs))
    last = toy.submit("--gres=gpu:a100:2", "--job-name=keep")
    gone = toy.submit(full, "--comment=ronda")
    words = ("--once", "--partition", "main", "--min-run-s", "0")
    drive = started(toy, *words, before=f"scancel {runs[0]} {gone}; sleep 1.5")
    _, errors = drive.communicate(timeout=30)
    assert (drive.returncode, "Traceback" in errors) == (0, False)
    found = given(tmp_path)
    place = f"scontrol update JobId={gone} ReqNodeList="
    (chosen,) = (line for line in found if line.startswith(place))
    assert found[chosen] == 1
    told = [each for each in audit(tmp_path) if each.get("command") == chosen]
    assert "already" in told[1]["said"]
    assert [*found][-1] == f"scontrol requeue incomplete {runs[0]}"
    assert any(f"{last}" in line and "Priority" in line for line in found), found
    time.sleep(1)
    assert state(toy, runs[0]) == "CANCELLED"


def test_another_controller_goes_on_after_a_kill(settled_toy, started, tmp_path):
    """A job that was stopped goes on by itself, is not stopped again, and is as old as it was."""
    toy = settled_toy
    words = ("--gres=gpu:a100:8", "--comment=ronda:requeue", "--time=60")
    runs = [toy.submit(*words) for _ in range(4)]
    toy.wait(lambda: all(state(toy, job) == "RUNNING" for job in runs))
    first_s = {str(job): toy.job(job)["submit_time"] for job in runs}
    short = toy.submit("--gres=gpu:a100:8", "--comment=ronda", "--time=1", command="sleep 3")
    srtf = ("--interval", "1", "--min-run-s", "0", "--restart-s", "1")

    def stops():
        return [line for line in given(tmp_path) if "requeue" in line]

    drive = started(toy, *srtf, policy="srtf")
    toy.wait(stops, 20)
    drive.kill()
    drive.wait()
    (stop,) = stops()
    job = stop.split()[-1]
    drive = started(toy, *srtf, policy="srtf")
    toy.wait(lambda: state(toy, short) == "COMPLETED", 20)
    toy.wait(lambda: state(toy, int(job)) == "RUNNING", 20)
    time.sleep(1.5)
    drive.kill()
    assert stops() == [stop]
    assert toy.job(int(job))["restart_cnt"] == 1
    saved = json.loads((tmp_path / "drive" / "state.json").read_text())
    assert saved["jobs"][job]["submit_s"] == first_s[job]


def test_an_absent_slurmctld_changes_nothing(fresh_toy, started, tmp_path):
    """It is asked again later, and a single pass fails with one line."""
    toy = lazy(fresh_toy, 600, nodes=1, MessageTimeout=2)
    toy.submit("--gres=gpu:a100:2", "--comment=ronda", "--job-name=keep")
    drive = started(toy, "--interval", "1", "--lease-s", "3")
    toy.wait(lambda: given(tmp_path), 20)
    toy.stop_controller()
    once = started(toy, "--once", "--state", "other")
    out, errors = once.communicate(timeout=30)
    assert (once.returncode, out, errors.count("\n")) == (1, "", 1)
    assert "Unable to contact slurm controller" in errors
    events = lambda: [each["event"] for each in audit(tmp_path) if "event" in each]  # noqa: E731
    toy.wait(events, 20)
    assert events()[0].startswith("nothing done, again in 1 s: scontrol show config")
    toy.start_controller()
    toy.wait(lambda: toy.nodes()["n1"]["state"] in ("idle", "mixed"), 20)
    drive.send_signal(signal.SIGTERM)
    _, errors = drive.communicate(timeout=20)
    assert drive.returncode == 0
    assert "nothing done" in errors
    assert "nothing taken back" not in errors
