"""Whatever a policy does, a run goes on with valid plans, and the record says what was wrong."""

import re
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
import pytest
from msgspec.structs import replace

from ronda.formulations.watts import may_sleep
from ronda.horizon import gate
from ronda.horizon.driver import run
from ronda.horizon.gate import answer
from ronda.horizon.solve import solve
from ronda.instances import generate
from ronda.instances.check.checker import Ledger, check
from ronda.instances.clock import Deadline
from ronda.instances.files.json import write
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.instances.violation import Violation
from ronda.solvers.contract import Capability
from ronda.solvers.policies.rigid.queues import Fifo
from ronda.solvers.registry import POLICIES, policy


def raising(error):
    """Return a way to misbehave: to raise."""

    def misbehave(plan):
        raise error

    return misbehave


def endless():
    """Return a memory that contains itself."""
    memory = {}
    memory["again"] = memory
    return memory


def elsewhere(plan):
    """Return a plan that has every job on a node that does not exist."""
    there = {i: replace(a, placement=((99, 1),)) for i, a in plan.allocations.items()}
    return replace(plan, allocations=there)


WAYS = {
    "raised: ValueError": raising(ValueError("two\nlines")),
    "raised: RecursionError": raising(RecursionError()),
    "raised: MemoryError": raising(MemoryError()),
    "raised: SystemExit": raising(SystemExit(3)),
    "answer: None, not a plan": lambda plan: None,
    "answer: int": lambda plan: 42,
    "answer: dict": lambda plan: {"allocations": {}},
    "malformed: allocations: found null, expected an object": lambda plan: replace(
        plan, allocations=None
    ),
    'malformed: allocations.JOB: found "node 0", expected an object': lambda plan: replace(
        plan, allocations=dict.fromkeys(plan.allocations, "node 0")
    ),
    'malformed: asleep[0]: found "x", expected an integer': lambda plan: replace(
        plan, asleep=("x",)
    ),
    'malformed: stop: found "tired", expected one of "complete"': lambda plan: replace(
        plan, stop="tired"
    ),
    "malformed: memory.me: found an object of type object": lambda plan: replace(
        plan, memory={"me": object()}
    ),
    "malformed: allocations.JOB.option.gpus: found np.int64(": lambda plan: replace(
        plan,
        allocations={
            job: replace(given, option=replace(given.option, gpus=np.int64(given.option.gpus)))
            for job, given in plan.allocations.items()
        },
    ),
    "malformed: found maximum recursion depth": lambda plan: replace(plan, memory=endless()),
    "number: objective is nan": lambda plan: replace(plan, objective=float("nan")),
    "number: bound is inf": lambda plan: replace(plan, objective=1.0, bound=float("inf")),
    "number: gpus is nan": lambda plan: replace(plan, prices={"gpus": float("nan")}),
    "node ": elsewhere,
}
"""Ways to misbehave, by the beginning of what the record says."""


@dataclass(frozen=True)
class Misbehaving:
    """FIFO, whose answer is spoilt in one of the `WAYS`."""

    way: str
    name: ClassVar[str] = "misbehaving"
    capabilities: ClassVar[Capability] = Capability.SLEEPS

    def plan(self, round, *, deadline, seed, initial=None):
        """Decide, and spoil it."""
        plan = Fifo().plan(round, deadline=deadline, seed=seed, initial=initial)
        return WAYS[self.way](plan) if plan.allocations else plan


def begins(fault, way):
    """Return whether a fault is one of a way, whatever the job."""
    return re.sub(r"allocations\.\w+", "allocations.JOB", fault).startswith(way)


@cache
def tight():
    """Return a round in which jobs run, and more could start."""
    return generate.round(24, None, "tight", 3)


@pytest.mark.parametrize("way", WAYS)
def test_a_run_goes_on_and_the_record_says_why(make_instance, tmp_path, way):
    """All jobs complete, the journal and the schedule can be written, no plan breaks a rule."""
    instance = make_instance([("a", 0, 4, 100), ("b", 10, 2, 50), ("c", 20, 2, 50)])
    schedule = run(instance, Misbehaving(way), journal=tmp_path / "journal.jsonl")
    write(schedule, tmp_path / "schedule.json")
    assert check(instance, schedule) == []
    assert all(job.end_s is not None for job in schedule.jobs)
    found = [fault for record in schedule.rounds for fault in record.violations]
    assert found
    assert all(begins(fault, way) and "\n" not in fault for fault in found)
    refused = [record for record in schedule.rounds if record.violations]
    assert {r.status for r in refused} == {SolutionStatus.FALLBACK}
    assert {r.stop for r in refused} == {StopReason.ERROR}


@pytest.mark.parametrize("way", WAYS)
def test_one_round_keeps_what_runs_and_starts_what_fits(tmp_path, way):
    """`solve` is guarded as a run is; the plan's record names the fault."""
    plan = solve(tight(), Misbehaving(way))
    write(plan, tmp_path / "plan.json")
    assert check(tight(), plan) == []
    assert plan.allocations.items() > tight().held.items()
    assert (plan.status, plan.stop) == (SolutionStatus.FALLBACK, StopReason.ERROR)
    assert begins(plan.record.message, f"refused: {way}")


class OneMore(Ledger):
    """A ledger with a rule of its own: not more than one job starts at a time."""

    def check(self, round, plan):
        """Return what is broken."""
        started = plan.allocations.keys() - round.held.keys()
        found = [Violation("starts", "cluster", f"{len(started)} jobs start")]
        return super().check(round, plan) + (found if len(started) > 1 else [])


def test_what_fits_starts_only_if_the_fuller_plan_keeps_every_rule():
    """Several jobs fit beside what runs in `tight`; the ledger lets one start: none does."""
    round_ = tight()
    for ledger, fills in ((Ledger(round_.cluster), True), (OneMore(round_.cluster), False)):
        policy = Misbehaving("answer: int")
        plan = answer(policy, round_, ledger, deadline=Deadline(), seed=0).plan
        started = plan.allocations.keys() - round_.held.keys()
        assert (len(started) > 1) is fills
        assert ledger.check(round_, plan) == []


def test_what_the_policy_remembers_is_kept_if_it_can_be():
    """So it is if the policy raises, or answers with a plan that cannot be written."""
    first = replace(solve(tight(), "fifo"), memory={"mine": 1})
    plan = solve(tight(), Misbehaving("raised: ValueError"), initial=first)
    assert plan.memory == first.memory
    plan = solve(tight(), Misbehaving("malformed: found maximum recursion depth"), initial=first)
    assert plan.memory == first.memory


def test_a_plan_that_comes_much_too_late_is_not_used(monkeypatch):
    """Later than three times the limit and a second; a little late it is."""
    used_up = Deadline(1.0, started=Deadline().started - 1e3)  # by start-up, not by the policy
    assert solve(tight(), Fifo(), deadline=used_up).stop is StopReason.TIME_LIMIT
    monkeypatch.setattr(gate, "LATE_S", -4.0)
    plan = solve(tight(), Fifo(), deadline=Deadline(1.0))
    assert plan.record.message.startswith("refused: late: came after ")
    assert plan.stop is StopReason.ERROR
    assert plan.allocations.items() >= tight().held.items()


def test_the_users_own_interrupt_is_no_fault():
    """Ctrl-C ends the process, not the decision."""

    class Interrupted(Fifo):
        def plan(self, round, **given):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve(tight(), Interrupted())


BLIND = [name for name in sorted(POLICIES) if Capability.ENERGY not in policy(name).capabilities]
"""Policies that do not see limits on power among options."""


@pytest.mark.parametrize("name", [*BLIND, "prices"])
def test_status_is_true_where_only_sleep_keeps_the_cap(name):
    """A cap between all asleep and all awake: a valid plan, or none, but never a false claim."""
    round_ = generate.round(8, None, "tight", 3)
    waiting = (replace(state, allocation=None) for state in round_.jobs)
    waiting = tuple(sorted(waiting, key=lambda state: state.job.submit_s))
    topology = round_.cluster.topology
    cap_w = float(topology.sleep_w.sum() + topology.awake_w.sum()) / 2
    round_ = replace(round_, running=(), waiting=waiting, power_cap_w=cap_w, energy_j=None)
    assert may_sleep(round_)
    plan = solve(round_, policy(name))
    if check(round_, plan):
        assert (plan.status, plan.stop) == (SolutionStatus.NONE, StopReason.INFEASIBLE)
        assert "W of" in plan.record.message
