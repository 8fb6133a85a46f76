"""A policy in a process of its own decides as in this one, and its crash costs one decision."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from msgspec.structs import replace

import ronda
from ronda.instances import generate
from ronda.solvers.registry import config_of
from tests.helpers.ends import is_gone, wait_until
from tests.helpers.moved import plain_elsewhere

FRAGILE = """
import os, re, signal, subprocess, time
import ronda

class Fragile:
    def plan(self, round, *, deadline, seed, initial=None):
        if seed == 1 or round.now_s == 80.0:
            os.kill(os.getpid(), signal.SIGSEGV)
        if seed == 2:
            time.sleep(600)
        if seed in (3, 4):
            started = subprocess.Popen(["sleep", "600"])
            with open(__file__ + ".pid", "w") as file:
                file.write(f"{started.pid}\\\\n")
            if seed == 3:
                os.kill(os.getpid(), signal.SIGSEGV)
            re.match("(a+)+$", 64 * "a" + "b")  # holds Python's lock for ever
        return ronda.policy("fifo").plan(round, deadline=deadline, seed=seed, initial=initial)
""".replace("\\\\", "\\")

ODD = """
from msgspec.structs import replace
import ronda

class Thing:
    pass

def fail(error):
    raise error

WAYS = {
    "raises": lambda plan: fail(ValueError("two\\nlines")),
    "raises nothing more": lambda plan: fail(MemoryError()),
    "refuses": lambda plan: fail(ronda.InputError("here", "this", "that")),
    "exits": lambda plan: fail(SystemExit(3)),
    "None": lambda plan: None,
    "a number": lambda plan: 42,
    "no allocations": lambda plan: replace(plan, allocations=None),
    "words for nodes": lambda plan: replace(plan, allocations=dict.fromkeys(plan.allocations, "x")),
    "a thing": lambda plan: replace(plan, memory={"me": Thing()}),
    "a function": lambda plan: replace(plan, memory={"me": lambda: 0}),
    "no number": lambda plan: replace(plan, objective=float("nan")),
    "elsewhere": lambda plan: replace(
        plan, allocations={i: replace(a, placement=((99, 1),)) for i, a in plan.allocations.items()}
    ),
}

class Odd:
    def __init__(self, way=""):
        self.way = way

    def plan(self, round, *, deadline, seed, initial=None):
        plan = ronda.policy("fifo").plan(round, deadline=deadline, seed=seed, initial=initial)
        return WAYS[self.way or list(WAYS)[seed]](plan)
"""
WAYS = [
    line.partition('"')[2].partition('"')[0] for line in ODD.splitlines() if '": lambda' in line
]


@pytest.fixture
def fragile(tmp_path):
    """Return the word for a policy whose process dies, sleeps or starts others, by the seed."""
    path = tmp_path / "fragile.py"
    path.write_text(FRAGILE)
    return f"{path}:Fragile"


ROUND = generate.round(12, severity="tight", seed=2)


@plain_elsewhere
@pytest.mark.parametrize("spec", ["prices", "milp(gap=1e-3)", "genetic(generations=5)", "tiresias"])
def test_plans_are_those_of_the_policy_itself(spec):
    """The same round, seed and plan before give the same plan."""
    round_ = generate.round(20, severity="tight", seed=1)
    isolated, before = ronda.Isolated(spec), None
    for seed in (3, 4):
        own = ronda.solve(round_, spec, seed=seed, initial=before)
        other = ronda.solve(round_, isolated, seed=seed, initial=before)
        assert (other.allocations, other.objective) == (own.allocations, own.objective)
        assert (other.policy, other.bound) == (own.policy, own.bound)
        before = own
    isolated.close()


def test_a_crash_costs_one_decision(fragile):
    """What runs keeps running, the reason names the signal, and the next round is decided."""
    policy = ronda.Isolated(fragile)
    plan = ronda.solve(ROUND, policy, seed=1)
    assert str(plan.status) == "fallback"
    assert "its process died of SIGSEGV" in plan.record.message
    assert plan.allocations.items() >= ROUND.held.items()
    assert str(ronda.solve(ROUND, policy).status) != "fallback"


def test_one_that_hangs_is_killed(fragile):
    """By half its limit and a second, well before the 600 s that it wants."""
    policy = ronda.Isolated(fragile)
    plan = ronda.solve(ROUND, policy, seed=2, deadline=0.2)
    assert str(plan.status) == "fallback"
    assert "no answer" in plan.record.message
    assert str(ronda.solve(ROUND, policy).status) != "fallback"


def test_one_that_has_not_started_yet_goes_on_starting(fragile):
    """Decisions with less time than a start takes do not kill it again and again."""
    before = psutil.Process().children()  # of tests before this one, which may be about to end

    def started():
        return [child for child in psutil.Process().children() if child not in before]

    policy = ronda.Isolated(fragile)
    ronda.solve(ROUND, policy, seed=1)
    (process,) = started()
    assert "has not started" in ronda.solve(ROUND, policy, deadline=0.001).record.message
    assert started() == [process]
    wait_until(lambda: str(ronda.solve(ROUND, policy, deadline=0.5).status) != "fallback")
    assert started() == [process]


@pytest.mark.parametrize("seed", [3, 4])
def test_what_a_policy_started_goes_with_it(fragile, seed):
    """Whether it crashes, or is killed since it comes too late."""
    policy = ronda.Isolated(fragile)
    plan = ronda.solve(ROUND, policy, seed=seed, deadline=0.5)
    assert str(plan.status) == "fallback"
    wait_until(lambda: is_gone(_started(fragile)))


def _started(fragile):
    """Return the id of the process that the policy started."""
    with open(fragile.partition(":")[0] + ".pid") as file:
        return int(file.read())


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """Return a policy that goes wrong in the way that its seed says, here and in a process."""
    path = tmp_path_factory.mktemp("odd") / "odd.py"
    path.write_text(ODD)
    isolated = ronda.Isolated(f"{path}:Odd")
    yield ronda.policy(f"{path}:Odd"), isolated
    isolated.close()


@pytest.mark.parametrize("way", WAYS)
def test_what_is_wrong_is_told_in_the_same_words(odd, way):
    """Those of the policy in this process, with the line of its code that raised."""
    seed = WAYS.index(way)
    messages = [ronda.solve(ROUND, policy, seed=seed).record.message for policy in odd]
    assert messages[0].startswith("refused: ")
    assert messages[1] == messages[0]


def test_only_what_has_a_name_can_be_isolated(tmp_path):
    """An object cannot be made again in another process, nor what cannot be sent there."""
    with pytest.raises(ronda.InputError, match="a Fifo object; expected the name of one"):
        ronda.Isolated(ronda.policy("fifo"))
    path = tmp_path / "odd.py"
    path.write_text(ODD)
    with pytest.raises(ronda.InputError, match="parameters that cannot be pickled"):
        ronda.Isolated(f"{path}:Odd", way=lambda: 0)


def test_a_run_goes_on_after_a_crash(fragile):
    """The second of two decisions, at 80 s, is refused with the reason; all jobs end."""
    instance = ronda.load("two-jobs")
    schedule = ronda.run(instance, ronda.Isolated(fragile))
    assert all(outcome.end_s is not None for outcome in schedule.jobs)
    assert ronda.check(instance, schedule) == []
    assert [(record.now_s, len(record.violations)) for record in schedule.rounds] == [
        (0.0, 0),
        (80.0, 1),
    ]
    assert "SIGSEGV" in schedule.rounds[1].violations[0]


@pytest.mark.parametrize("spec", ["prices(objective=density, gap=1e-3)", "own"])
@pytest.mark.parametrize("made", [(ronda.policy, ronda.Isolated), (ronda.Isolated, ronda.policy)])
def test_a_journal_of_one_is_gone_on_with_by_the_other(tmp_path, made, spec):
    """The parameters that identify a run, code included, are those of the policy itself."""
    if spec == "own":
        (tmp_path / "odd.py").write_text(ODD)
        spec = f"{tmp_path}/odd.py:Odd(way=a thing)"
    instance, journal = ronda.load("two-jobs"), tmp_path / "journal.jsonl"
    one, other = made[0](spec), made[1](spec)
    assert config_of(one) == config_of(other) != {}

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ronda.run(instance, one, journal=journal, progress=stop)
    assert journal.read_bytes().count(b"\n") == 2  # the header and one decision
    found, whole = ronda.run(instance, other, journal=journal), ronda.run(instance, one)
    times = {"solve_s": 0.0, "overhead_s": 0.0}
    assert [replace(r, **times) for r in found.rounds] == [
        replace(r, **times) for r in whole.rounds
    ]
    assert found.config == whole.config


def test_no_process_outlives_its_host(fragile, tmp_path):
    """A host that is killed while its policy holds Python's lock leaves nothing behind."""
    (tmp_path / "host.py").write_text(
        "import ronda, sys\n"
        "from ronda.instances import generate\n"
        "policy = ronda.Isolated(sys.argv[1])\n"
        "print('there', flush=True)\n"
        "ronda.solve(generate.round(12, severity='tight', seed=2), policy, seed=4)\n"
    )
    host = subprocess.Popen(
        [sys.executable, tmp_path / "host.py", fragile], stdout=subprocess.PIPE, text=True
    )
    assert host.stdout is not None
    assert host.stdout.readline() == "there\n"
    wait_until(lambda: os.path.exists(fragile.partition(":")[0] + ".pid"))
    time.sleep(0.1)
    pids = [each.pid for each in psutil.Process(host.pid).children(recursive=True)]
    assert len(pids) == 3  # the policy's, the one that waits for the host, and what it started
    os.kill(host.pid, signal.SIGKILL)
    host.wait()
    wait_until(lambda: all(map(is_gone, pids)))
