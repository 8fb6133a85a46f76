"""The controller of a real Slurm: read, decide, look again, act; and begin anew.

Slurm goes on by itself whenever the controller does not act: it orders the queue, starts and ends
jobs, and takes nodes out. The controller only says what is to come first, where, and when.
"""

import time
from collections.abc import Callable, Sequence
from threading import Event
from typing import NamedTuple

from msgspec.structs import replace

from ronda.horizon.gate import answer
from ronda.hosts.clusters.order import start_tiers
from ronda.hosts.slurm.actions import PATIENCE_S, TIERS, SlurmStep, band, steps
from ronda.hosts.slurm.commands import SlurmCommand, ranks, ready, release
from ronda.hosts.slurm.guard import SAFE_S, SETTLES_S, Refused, refused
from ronda.hosts.slurm.model import SlurmModel, modelled
from ronda.hosts.slurm.scope import Scope
from ronda.hosts.slurm.state import Diary, SlurmState, TouchedJob
from ronda.hosts.slurm.tools import SlurmAnswer, SlurmAwayError, SlurmTools
from ronda.instances.check.incremental import Ledger
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError
from ronda.instances.plan import Plan
from ronda.instances.snapshots.snapshot import Snapshot
from ronda.solvers.contract import Policy

STALE_S = 60.0
"""Seconds after which a cluster that was read is read again, before anything more is done."""


class Pass(NamedTuple):
    """One decision about a cluster, and what became of it.

    Attributes
    ----------
    model, plan
        The cluster, and the plan for it.
    state
        What was known when it was made.
    steps
        The steps to the plan.
    refused
        The commands that the last look refused.
    late
        The commands that are left for later: there were enough in this minute.
    answers
        What Slurm answered to each command that was given.
    """

    model: SlurmModel
    plan: Plan
    state: SlurmState
    steps: list[SlurmStep]
    refused: list[Refused]
    late: list[SlurmCommand]
    answers: list[tuple[SlurmCommand, SlurmAnswer]]

    @property
    def due(self) -> list[SlurmCommand]:
        """The commands that are to be given now."""
        away = {each.command.words for each in self.refused} | {c.words for c in self.late}
        return [c for step in self.steps for c in step.commands if c.words not in away]


class SlurmController:
    """A controller of the Slurm of this machine.

    Parameters
    ----------
    tools
        The programs of Slurm.
    policy
        Who decides.
    scope
        What it may touch.
    diary
        What it remembers, and its audit log; None for a dry run.
    interval_s, limit_s
        Seconds between decisions, and for each of them.
    seed
        The seed of the policy's random choices.
    learns
        Whether sizes are believed from jobs that have ended; else from time limits.
    before
        What is remembered, for a dry run.
    """

    def __init__(
        self,
        tools: SlurmTools,
        policy: Policy,
        scope: Scope,
        diary: Diary | None,
        *,
        interval_s: float = 30.0,
        limit_s: float = 10.0,
        seed: int = 0,
        learns: bool = True,
        before: SlurmState | None = None,
    ) -> None:
        self.tools, self.policy, self.scope, self.diary = tools, policy, scope, diary
        self.interval_s, self.limit_s, self.seed = interval_s, limit_s, seed
        self.learns = learns
        self.stopping, self._before = Event(), before or SlurmState()

    @property
    def state(self) -> SlurmState:
        """What is remembered."""
        return self._before if self.diary is None else self.diary.state

    def once(self, *, act: bool) -> Pass:
        """Read the cluster, decide, and carry the decision out if it is to `act`.

        Raises
        ------
        SlurmAwayError
            If Slurm does not answer, or shows nothing that can be decided about.
        """
        read_s = time.monotonic()
        made = self.decided(self.tools.read())
        if not act or self.diary is None:  # a policy remembers in a dry run as well
            self._before = replace(self._before, plan=made.plan.memory)
            return made
        return self._carried_out(made, self.diary, read_s)

    def decided(self, found: Snapshot) -> Pass:
        """Return the decision about a cluster, of which nothing is carried out yet."""
        state = self.state
        if self.learns:
            state = replace(state, sizes=state.sizes.told(found.ended))
        try:
            model = modelled(found, self.scope, state, self.interval_s)
        except InputError as error:
            raise SlurmAwayError(str(error)) from None
        state = replace(state, band=band(model, state))
        deadline = Deadline(self.limit_s)
        before = Plan(memory=state.plan) if state.plan else None
        plan = answer(
            self.policy,
            model.round,
            Ledger(model.round.cluster),
            deadline=deadline.sooner(self.limit_s / 2),
            seed=self.seed,
            initial=before,
        ).plan
        tiers = start_tiers(
            self.policy,
            model.round,
            plan,
            deadline=deadline,
            seed=self.seed,
            most=TIERS,
            ends=TIERS - 4,
        )
        made = steps(model, plan, tiers, self.scope, state)
        commands = [command for step in made for command in step.commands]
        settles = found.now_s < self.tools.began_s + SETTLES_S
        looked = refused(commands, model, plan, self.scope, state, settles=settles)
        away = {each.command.words for each in looked}
        left = max(0, self.scope.actions_per_minute - len(state.recent(found.now_s)))
        late = [command for command in commands if command.words not in away][left:]
        return Pass(model, plan, state, made, looked, late, [])

    def _carried_out(self, made: Pass, diary: Diary, read_s: float) -> Pass:
        """Give the commands of a decision, each written down before and after."""
        due = made.due
        diary.keep(self._noted(made, due))
        for each in made.refused:
            diary.say(f"not given: {each.command.line}: {each.why}")
        answers = list[tuple[SlurmCommand, SlurmAnswer]]()
        for command in due:
            failed = sum(answer.status != 0 for _, answer in answers)
            stale = time.monotonic() - read_s > STALE_S
            if failed >= 3 or stale or self.stopping.is_set():
                why = f"it stops, {failed} failed, or the cluster was read over {STALE_S:g} s ago"
                diary.say(f"{len(due) - len(answers)} commands of this pass are left: {why}")
                break
            answers.append((command, self._given(command, diary)))
        after, blamed = self._noted(made, [c for c, _ in answers]), dict[str, TouchedJob]()
        for command, said in answers:
            name = command.names[0]
            if said.status and len(command.names) == 1 and name in after.jobs:
                old = made.state.of(made.model.jobs[name])
                blamed[name] = replace(
                    old,
                    priority=after.jobs[name].priority,
                    nodes=after.jobs[name].nodes,
                    refused_s=made.model.found.now_s,
                )
        diary.keep(replace(after, jobs=after.jobs | blamed))
        return made._replace(answers=answers)

    def _given(self, command: SlurmCommand, diary: Diary) -> SlurmAnswer:
        diary.ask(command)
        said = self.tools.give(command)
        diary.answer(command, said)
        return said

    def _noted(self, made: Pass, due: Sequence[SlurmCommand]) -> SlurmState:
        """Return the state of a pass with some of its commands noted."""
        model, state = made.model, made.state
        live = {name: state.of(seen) for name, seen in model.jobs.items() if name in state.jobs}
        for command in due:
            for name in command.names:
                if name in model.jobs:
                    live[name] = self._after(command, model, live.get(name), name)
        now_s = model.found.now_s
        given_s = (*state.recent(now_s), *[now_s] * len(due))
        return replace(state, jobs=live, plan=made.plan.memory, given_s=given_s)

    def _after(
        self, command: SlurmCommand, model: SlurmModel, memory: TouchedJob | None, name: str
    ) -> TouchedJob:
        seen, now_s = model.jobs[name], model.found.now_s
        memory = memory or TouchedJob(submit_s=seen.submit_s)
        for word in command.words:
            key, _, value = word.partition("=")
            if key == "Priority" and memory.priority is None:
                memory = replace(memory, priority=seen.rank)
            elif key == "StartTime":
                _, _, later = value.partition("+")
                memory = replace(memory, begins_s=now_s + float(later) if later else None)
            elif key == "TimeLimit" and memory.work_s is None:
                state = model.state(name)
                memory = replace(memory, work_s=state.job.estimate and state.job.estimate.work)
            elif key == "ReqNodeList":
                nodes = tuple(filter(None, value.split(",")))
                given_up = seen.blocked is not None or now_s > memory.chosen_s + PATIENCE_S
                chosen_s = now_s if nodes or given_up else 0.0
                nodes = tuple(dict.fromkeys((*memory.nodes, *nodes)))
                memory = replace(memory, nodes=nodes, chosen_s=chosen_s)
            elif key == "requeue":
                state = model.state(name)
                done_s = max(0.0, state.done_at(now_s))
                memory = replace(memory, requeued_s=now_s, done_s=done_s, begins_s=None)
        return memory

    def run(
        self,
        tell: Callable[[Pass], object],
        warn: Callable[[str], object],
        *,
        act: bool,
    ) -> None:
        """Decide again and again until `stopping` is set; then take back what would stay.

        A pass in which Slurm does not answer changes nothing, and the next one is later: up to ten
        times the interval. So it is after a jump of this machine's clock.
        """
        fails = 0
        try:
            while not self.stopping.is_set():
                wall_s, steady_s = time.time(), time.monotonic()
                wait_s = self.interval_s
                try:
                    made = self.once(act=act)
                    fails = 0
                    tell(made)
                    if any(c.words[0] == "requeue" for c, _ in made.answers):
                        wait_s = min(wait_s, SAFE_S + 1.0)
                except SlurmAwayError as error:
                    fails += 1
                    wait_s *= min(10, 2 ** (fails - 1))
                    self._say(warn, f"nothing done, again in {wait_s:.0f} s: {error}")
                self.stopping.wait(wait_s)
                jump_s = (time.time() - wall_s) - (time.monotonic() - steady_s)
                if abs(jump_s) > 5.0:
                    self._say(warn, f"the clock has jumped by {jump_s:.0f} s: a pass is left out")
                    self.stopping.wait(self.interval_s)
        finally:
            if act and self.diary is not None:
                self._taken_back(self.diary, warn)

    def _say(self, warn: Callable[[str], object], words: str) -> None:
        warn(words)
        if self.diary is not None:
            self.diary.say(words)

    def _taken_back(self, diary: Diary, warn: Callable[[str], object]) -> None:
        """Take back what would stay: chosen nodes, begin times and priorities of waiting jobs.

        Of a job that Slurm refuses to change, everything is remembered for the next time.
        """
        try:
            found = self.tools.read()
        except SlurmAwayError as error:
            self._say(warn, f"nothing taken back: {error}")
            return
        state, why = diary.state, "ronda stops."
        jobs = {seen.id: (seen, state.of(seen)) for seen in found.jobs if seen.id in state.jobs}
        kept = {name: memory for name, (_, memory) in jobs.items()}
        for name, (seen, memory) in jobs.items():
            chose, delays = memory.chose(seen), memory.begins_s is not None and memory.delays(seen)
            commands = list[SlurmCommand]()
            if not seen.on and (chose or delays):
                commands.append(ready(name, why, nodes=[] if chose else None, now=delays))
            first = memory.priority
            if not seen.on and seen.blocked is None and first and first != seen.rank:
                commands += (
                    [release(name, why)] if self.tools.ages else ranks([name], round(first), why)
                )
            if not any(self._given(command, diary).status for command in commands):
                kept[name] = replace(memory, priority=None, begins_s=None)
        diary.keep(replace(state, jobs=kept, band=None))
