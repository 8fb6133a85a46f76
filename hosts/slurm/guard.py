"""The last look at commands before they are given, from their words alone.

It reads each command again, refuses all that is not on a short list of forms, and judges it by the
cluster as Slurm shows it. Of those that are left it makes the plan that they come to, and asks the
independent checker whether that keeps every rule of the site.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ronda.hosts.slurm.commands import MOST_JOBS, SlurmCommand
from ronda.hosts.slurm.model import SlurmModel
from ronda.hosts.slurm.scope import Scope
from ronda.hosts.slurm.state import SlurmState
from ronda.instances.check.plan import check_plan
from ronda.instances.job import Allocation
from ronda.instances.plan import Plan
from ronda.instances.snapshots.snapshot import SeenJob

SAFE_S = 2.0
"""Seconds after a requeue in which a new start is fatal to a job (its credential is revoked)."""

REFUSED_S = 60.0
"""Seconds for which a job is left alone after Slurm has refused a command about it."""

_ID, _NAME = r"\d{1,10}(?:_\d{1,10})?", r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_FORMS = {
    "rank": rf"update JobId=(?P<jobs>{_ID}(?:,{_ID})*) Priority=(?P<value>[1-9]\d{{0,9}})",
    "lease": rf"update JobId=(?P<jobs>{_ID}) StartTime=now\+(?P<value>[1-9]\d{{0,5}})",
    "ready": (
        rf"update JobId=(?P<jobs>{_ID})(?P<gres> Gres=gpu(?::{_NAME})?:(?P<gpus>[1-9]\d{{0,3}}))?"
        r"(?P<limit> TimeLimit=[1-9]\d{0,6})?"
        rf"(?P<list> ReqNodeList=(?P<nodes>(?:{_NAME}(?:,{_NAME})*)?))?(?P<now> StartTime=now)?"
    ),
    "requeue": rf"requeue incomplete (?P<jobs>{_ID})",
    "power": rf"update NodeName=(?P<node>{_NAME}) State=POWER_(?P<to>UP|DOWN)",
}


class Refused(NamedTuple):
    """A command that is not given, and the reason."""

    command: SlurmCommand
    why: str


class _Read(NamedTuple):
    """A command as its words say: its form and their parts."""

    form: str
    parts: dict[str, str | None]

    @property
    def jobs(self) -> list[str]:
        return (self.parts.get("jobs") or "").split(",") if self.parts.get("jobs") else []


def refused(
    commands: Sequence[SlurmCommand], model: SlurmModel, plan: Plan, scope: Scope, state: SlurmState
) -> list[Refused]:
    """Return the commands that must not be given."""
    guard = _Guard(model, scope, state)
    read = {command.words: _read(command) for command in commands}
    found = {
        command.words: why
        for command in commands
        if (why := guard.refuses(read[command.words])) is not None
    }
    left = [each for words, each in read.items() if words not in found and each is not None]
    broken = guard.broken(left, plan)
    for words, each in read.items():
        if each is not None and each.form in ("ready", "requeue", "power") and broken:
            found.setdefault(words, broken)
    return [Refused(each, found[each.words]) for each in commands if each.words in found]


def _read(command: SlurmCommand) -> _Read | None:
    text = " ".join(command.words)
    for form, pattern in _FORMS.items():
        match = re.fullmatch(pattern, text, re.ASCII)
        if match is not None:
            return _Read(form, match.groupdict())
    return None


class _Guard:
    """A view of the cluster as Slurm shows it, by which commands are judged."""

    def __init__(self, model: SlurmModel, scope: Scope, state: SlurmState) -> None:
        self.model, self.scope, self.state = model, scope, state
        self.nodes = {node.name: node for node in model.found.nodes}
        self.now_s = model.found.now_s
        self.awake = sum(node.power == "on" for node in scope.powered(model.found))

    def refuses(self, read: _Read | None) -> str | None:
        """Return why a command must not be given; None if it may."""
        if read is None:
            return "it has none of the forms that ronda may give"
        if read.form == "power":
            return self._power(read)
        if len(read.jobs) > MOST_JOBS:
            return f"it names {len(read.jobs)} jobs, more than {MOST_JOBS}"
        for name in read.jobs:
            seen = self.model.jobs.get(name)
            why = "Slurm shows no such job" if seen is None else self._job(read, seen)
            if why is not None:
                return f"job {name}: {why}"
        return None

    def _job(self, read: _Read, seen: SeenJob) -> str | None:
        own, memory = self.scope.terms(seen), self.state.of(seen)
        if memory.refused_s is not None and self.now_s < memory.refused_s + REFUSED_S:
            return "Slurm has refused a command about it a short while ago"
        if read.form == "requeue":
            ran_s = self.now_s - (self.now_s if seen.start_s is None else seen.start_s)
            if not seen.on or not own.stop:
                return "it does not run, or may not be stopped"
            if ran_s < self.scope.min_run_s:
                return f"it has run for {ran_s:.0f} s, less than {self.scope.min_run_s:g} s"
            return None
        if seen.on or seen.blocked is not None:
            return "it runs, or it is held"
        if read.form == "rank":
            low, high = self.state.band or (0, -1)
            value = int(read.parts["value"] or 0)
            within = own.rank and low <= value <= high
            return None if within else f"priority {value} is not ronda's to give to it"
        if not own.place:
            return "its owner has not opted in"
        delayed = (seen.eligible_s or 0.0) > self.now_s
        if delayed and not memory.delays(seen) and (read.form == "lease" or read.parts["now"]):
            return "its begin time is its owner's"
        if read.form == "lease":
            too_long = int(read.parts["value"] or 0) > self.scope.lease_s
            return f"more than {self.scope.lease_s} s" if too_long else None
        return self._ready(read, seen)

    def _ready(self, read: _Read, seen: SeenJob) -> str | None:
        own, memory = self.scope.terms(seen), self.state.of(seen)
        nodes = [name for name in (read.parts["nodes"] or "").split(",") if name]
        since_s = self.now_s - (memory.requeued_s or -SAFE_S)
        if read.parts["now"] and since_s < SAFE_S:
            return f"it was requeued {since_s:.1f} s ago: a start within {SAFE_S:g} s is fatal"
        if read.parts["list"] and seen.nodes and not memory.chose(seen):
            return "its owner has named nodes"
        if nodes and len(nodes) != seen.count:
            return f"{len(nodes)} nodes for {seen.count} pieces: Slurm takes all of a list"
        for name in nodes:
            if name not in self.nodes or self.nodes[name].out is not None:
                return f"node {name} is not there, or takes no jobs"
        if read.parts["gpus"] and int(read.parts["gpus"]) not in own.speeds:
            return f"its owner has not agreed to {read.parts['gpus']} GPUs"
        return None

    def _power(self, read: _Read) -> str | None:
        name, up = read.parts["node"] or "", read.parts["to"] == "UP"
        node = self.nodes.get(name)
        if node is None or node not in self.scope.powered(self.model.found):
            return f"node {name} is not in ronda's scope"
        if up:
            return None if node.power == "down" else f"node {name} is not powered down"
        if node.power != "on" or any(name in job.on for job in self.model.found.jobs):
            return f"node {name} is not idle"
        if self.awake <= self.scope.awake:
            return f"{self.scope.awake} nodes are to stay awake"
        self.awake -= 1
        return None

    def broken(self, read: Iterable[_Read], plan: Plan) -> str | None:
        """Return the first rule that is broken by what commands come to; None if they keep all."""
        round, number = self.model.round, {name: k for k, name in enumerate(self.model.nodes)}
        allocations = dict(round.held)
        asleep, down = {*round.asleep}, set[int]()
        for each in read:
            if each.form == "requeue":
                allocations.pop(each.jobs[0], None)
            elif each.form == "power" and each.parts["to"] == "DOWN":
                down |= {number[each.parts["node"] or ""]}
            elif each.form == "power":
                asleep -= {number[each.parts["node"] or ""]}
        for each in read:
            if each.form == "ready" and each.parts["nodes"]:
                job = each.jobs[0]
                given = plan.allocations.get(job)
                if given is None:
                    return f"job {job} is told to start, which the plan does not say"
                allocations[job] = self._told(each, self.model.jobs[job], given, number)
        asleep -= {k for given in allocations.values() for k, _ in given.placement}
        asleep |= down
        found = check_plan(round, Plan(allocations=allocations, asleep=tuple(sorted(asleep))))
        return f"{found[0].where}: {found[0].message}" if found else None

    def _told(
        self, read: _Read, seen: SeenJob, given: Allocation, number: dict[str, int]
    ) -> Allocation:
        """Return the allocation that a command comes to: its nodes, and its GPUs on them."""
        names = (read.parts["nodes"] or "").split(",")
        gpus = int(read.parts["gpus"] or round(seen.count * seen.per.get("gpus", 0.0)))
        each = gpus // len(names)
        option = replace(given.option, gpus=gpus) if given.option.asked is None else given.option
        return replace(given, option=option, placement=tuple((number[n], each) for n in names))
