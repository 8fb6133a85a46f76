"""The last look at commands before they are given, from their words alone.

It reads each command again, refuses all that is not on a short list of forms, and judges it by the
cluster as Slurm shows it and by the plan. Of those that are left it makes the plan that they come
to, and asks the independent checker whether that keeps every rule of the site.
"""

import re
from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from msgspec.structs import replace

from ronda.hosts.slurm.commands import MOST_JOBS, SlurmCommand
from ronda.hosts.slurm.model import SlurmModel
from ronda.hosts.slurm.scope import Scope
from ronda.hosts.slurm.state import SlurmState
from ronda.instances.check.plan import check_plan
from ronda.instances.job import Allocation
from ronda.instances.plan import Plan
from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import SeenJob

SAFE_S = 2.0
"""Seconds after a requeue in which a new start is fatal to a job (its credential is revoked)."""

SETTLES_S = 15.0
"""Seconds after slurmctld was started in which a job that is told to start, or to stop, may start
without GPUs: its nodes have not registered yet."""

REFUSED_S = 60.0
"""Seconds for which a job is left alone after Slurm has refused a command about it."""

MOST_PRIORITY = 2**32 - 3
"""The highest priority of Slurm: the numbers above it have other meanings, and so has 0."""

_ID, _NAME = r"\d{1,10}(?:_\d{1,10})?", r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_FORMS = {
    "rank": rf"update JobId=(?P<jobs>{_ID}(?:,{_ID})*) Priority=(?P<value>[1-9]\d{{0,9}})",
    "lease": rf"update JobId=(?P<jobs>{_ID}) StartTime=now\+(?P<value>[1-9]\d{{0,5}})",
    "ready": (
        rf"update JobId=(?P<jobs>{_ID})(?: Gres=gpu(?::{_NAME})?:(?P<gpus>[1-9]\d{{0,3}}))?"
        r"(?: TimeLimit=(?P<limit>[1-9]\d{0,6}))?"
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
        return _names(self.parts.get("jobs"))


def refused(
    commands: Sequence[SlurmCommand],
    model: SlurmModel,
    plan: Plan,
    scope: Scope,
    state: SlurmState,
    *,
    settles: bool = False,
) -> list[Refused]:
    """Return the commands that must not be given; `settles` if slurmctld has just started."""
    guard = _Guard(model, plan, scope, state)
    read = {command.words: _read(command) for command in commands}
    found = {words: why for words, each in read.items() if (why := guard.refuses(each))}
    for words in read if settles else ():
        found.setdefault(words, f"slurmctld was started in the last {SETTLES_S:g} s")
    left = [each for words, each in read.items() if words not in found and each is not None]
    broken = guard.broken(left)
    for words, each in read.items():
        if each is not None and each.form in ("ready", "requeue", "power") and broken:
            found.setdefault(words, broken)
    return [Refused(each, found[each.words]) for each in commands if each.words in found]


def _read(command: SlurmCommand) -> _Read | None:
    text = " ".join(command.words)
    for form, pattern in _FORMS.items():
        match = re.fullmatch(pattern, text, re.ASCII)
        if match is not None and text.count(" ") == len(command.words) - 1:
            return _Read(form, match.groupdict())
    return None


def _names(text: str | None) -> list[str]:
    return text.split(",") if text else []


class _Guard:
    """A view of the cluster as Slurm shows it, by which commands are judged."""

    def __init__(self, model: SlurmModel, plan: Plan, scope: Scope, state: SlurmState) -> None:
        self.model, self.plan, self.scope, self.state = model, plan, scope, state
        self.nodes = {node.name: node for node in model.found.nodes}
        self.number = {name: k for k, name in enumerate(model.nodes)}
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
        given = self.plan.allocations.get(seen.id)
        if read.form != "rank" and 0 <= self.now_s - (memory.refused_s or -REFUSED_S) < REFUSED_S:
            return "Slurm has refused a command about it a short while ago"
        if read.form == "requeue":
            ran_s, held = self.now_s - (seen.start_s or 0.0), self.model.round.held.get(seen.id)
            if held is None or not own.stop:
                return "it does not run, or may not be stopped"
            if ran_s < self.scope.min_run_s:
                return f"it has run for {ran_s:.0f} s, less than {self.scope.min_run_s:g} s"
            goes_on = given is not None and held.goes_on(given)
            return "the plan lets it go on" if goes_on else None
        freed = read.form == "ready" and memory.spoilt(seen)
        if seen.on or (seen.blocked is not None and not freed):
            return "it runs, or it is held"
        if read.form == "rank":
            low, high = self.state.band or (0, -1)
            value = int(read.parts["value"] or 0)
            within = own.rank and low <= value <= min(high, MOST_PRIORITY) and seen.rank
            return None if within else f"priority {value} is not ronda's to give to it"
        if not own.place:
            return "its owner has not opted in"
        delayed = (seen.eligible_s or 0.0) > self.now_s
        if delayed and not memory.delays(seen) and (read.form == "lease" or read.parts["now"]):
            return "its begin time is its owner's"
        if read.form == "lease":
            if given is not None:
                return "the plan starts it"
            too_long = int(read.parts["value"] or 0) > self.scope.lease_s
            return f"more than {self.scope.lease_s} s" if too_long else None
        return self._ready(read, seen, given)

    def _ready(self, read: _Read, seen: SeenJob, given: Allocation | None) -> str | None:
        parts, memory = read.parts, self.state.of(seen)
        nodes = _names(parts["nodes"])
        since_s = self.now_s - max(memory.requeued_s or 0.0, seen.submit_s)
        if parts["now"] and memory.requeued_s is not None and 0 <= since_s < SAFE_S:
            return f"it was requeued {since_s:.1f} s ago: a start within {SAFE_S:g} s is fatal"
        if parts["list"] and seen.nodes and not memory.chose(seen):
            return "its owner has named nodes"
        if not (nodes or parts["gpus"] or parts["limit"]):
            return None
        if given is None or seen.blocked is not None:
            return "it is told to start, which the plan does not say"
        if nodes and (
            len(nodes) != seen.count
            or {*nodes} != {self.model.nodes[k] for k, _ in given.placement}
        ):
            return f"{','.join(nodes)} is not where the plan starts its {seen.count} pieces"
        for name in nodes:
            if self.nodes[name].out is not None:
                return f"node {name} takes no jobs"
        return self._resized(parts, seen, given.option.computing)

    def _resized(self, parts: dict[str, str | None], seen: SeenJob, planned: int) -> str | None:
        """Return why a job must not have a number of GPUs, or a time limit, that a command names.

        A shorter limit would end it before it has done what its owner's limit allowed.
        """
        speeds, asked = self.scope.terms(seen).speeds, round(seen.gpus)
        gpus, limit = int(parts["gpus"] or asked), int(parts["limit"] or 0)
        if gpus != planned or (gpus != asked and gpus not in speeds):
            return f"its owner has not agreed to {gpus} GPUs, or the plan gives it {planned}"
        if limit:
            ratio = speeds[asked] / speeds[gpus] if gpus != asked else 1.0
            least = ceil((seen.limit_s or 0.0) * ratio / 60 - 1e-9)
            return None if limit == least else f"its time limit is {least} minutes, not {limit}"
        return None

    def _power(self, read: _Read) -> str | None:
        name, up = read.parts["node"] or "", read.parts["to"] == "UP"
        node, number = self.nodes.get(name), self.number.get(name)
        if node is None or number is None or node not in self.scope.powered(self.model.found):
            return f"node {name} is not in ronda's scope"
        if self.plan.asleep is None or (number in self.plan.asleep) == up:
            return f"the plan does not say so of node {name}"
        if up:
            return None if node.power == "down" else f"node {name} is not powered down"
        busy = any(name in job.on for job in self.model.found.jobs)
        if node.power != "on" or busy:
            return f"node {name} is not idle"
        if self.awake <= self.scope.awake:
            return f"{self.scope.awake} nodes are to stay awake"
        self.awake -= 1
        return None

    def broken(self, read: Sequence[_Read]) -> str | None:
        """Return the first rule that is broken by what commands come to; None if they keep all."""
        round, allocations = self.model.round, dict(self.model.round.held)
        asleep, down = {*round.asleep}, set[int]()
        for each in read:
            if each.form == "requeue":
                allocations.pop(each.jobs[0], None)
            elif each.form == "power" and each.parts["to"] == "DOWN":
                down |= {self.number[each.parts["node"] or ""]}
            elif each.form == "power":
                asleep -= {self.number[each.parts["node"] or ""]}
        for each in read:
            if each.form == "ready" and each.parts["nodes"]:
                job = self.model.jobs[each.jobs[0]]
                allocations[job.id] = self._told(each, job)
        asleep -= {k for given in allocations.values() for k, _ in given.placement}
        asleep |= down
        found = check_plan(round, Plan(allocations=allocations, asleep=tuple(sorted(asleep))))
        return f"{found[0].where}: {found[0].message}" if found else None

    def _told(self, read: _Read, seen: SeenJob) -> Allocation:
        """Return the allocation that a command comes to: its nodes, and the GPUs that it holds."""
        given, names = self.plan.allocations[seen.id], _names(read.parts["nodes"])
        gpus = int(read.parts["gpus"] or round(seen.gpus))
        each = [gpus // len(names)] * len(names)
        if seen.exclusive:
            each = [int(self.nodes[name].has[GPUS]) for name in names]
        asked = gpus if sum(each) > gpus else None
        placement = tuple((self.number[n], count) for n, count in zip(names, each, strict=True))
        option = replace(given.option, gpus=sum(each), asked=asked)
        return replace(given, option=option, placement=placement)
