"""The rolling horizon: an event-driven driver that calls a policy round after round.

Time moves from event to event. At each event, finished jobs complete first, then submitted jobs are
admitted, then the policy decides once. The independent ledger checks every plan before it is
carried out; a plan with a violation never runs.
"""

import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from ronda.formulations.site.nodes import closed_to
from ronda.horizon.gate import Passed, answer
from ronda.horizon.journal import FORMAT, Change, Decision, Header, Journal
from ronda.horizon.load_shedding import restore
from ronda.horizon.state import ClusterState
from ronda.instances.arguments import checked
from ronda.instances.base import Index, Positive
from ronda.instances.check.parts import crowded
from ronda.instances.clock import Deadline
from ronda.instances.errors import InputError, RondaError
from ronda.instances.files.json import fingerprint
from ronda.instances.instance import DECLARED, Cadence, Instance, Knowledge
from ronda.instances.job import Allocation, Option, used_nodes
from ronda.instances.models.fits import Predictor
from ronda.instances.models.sharing import narrowed
from ronda.instances.plan import Plan, SolutionStatus
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate
from ronda.instances.schedule import RoundRecord, Schedule
from ronda.instances.violation import LONGEST_S
from ronda.solvers.contract import Capability, Policy
from ronda.solvers.registry import as_policy, config_of
from ronda.solvers.rules import rules_of
from ronda.solvers.versions import versions

Progress = Callable[[int, int, float], None]

LOOKS = 60
"""Rounds per energy window while jobs wait, if there is no period, because joules accrue."""

PATIENCE = 1000
"""Consecutive rounds without a start, while no job will ever end, before a run is given up."""


@checked
def run(
    instance: Instance,
    policy: Policy | str,
    *,
    seed: Index = 0,
    time_limit_s: Positive | None = 10.0,
    cadence: Cadence | None = None,
    knowledge: Knowledge = DECLARED,
    predictor: Predictor | None = None,
    journal: str | Path | None = None,
    progress: Progress | None = None,
) -> Schedule:
    """Drive a policy over a whole instance.

    Parameters
    ----------
    policy
        A policy, or its name with parameters as in ``"milp(objective=rank)"``.
    seed
        The seed from which, with the round's number, each round's seed follows.
    time_limit_s
        The limit for each decision, in seconds; a slower decision is recorded as an overrun.
    cadence
        The times of decisions; None means the instance's own.
    knowledge
        The policies' knowledge of jobs: ``oracle``, the true sizes; ``declared``, the estimates of
        the instance; ``history``, sizes and speeds learnt from jobs that ran; ``none``, speeds, and
        the progress of live jobs. See `ronda.horizon.beliefs`.
    predictor
        A predictor of sizes for the knowledge ``history``; it also learns from jobs that end in the
        run.
    journal
        The file in which decisions are recorded as they are made. If it holds the decisions of an
        earlier, unfinished run of the same kind, they are replayed and the run resumes there.
    progress
        A callback after every round with (completed jobs, jobs, time in the horizon).

    Raises
    ------
    InputError
        If the instance is not valid or the journal belongs to another run.
    RondaError
        If jobs are left that the policy never starts.
    """
    made = as_policy(policy)
    validate(instance)
    when = cadence or instance.cadence
    driver = Driver(instance, made, seed, time_limit_s, when, knowledge, predictor)
    if journal is None:
        return driver.drive(None, progress)
    with closing(Journal(Path(journal), driver.header())) as kept:
        return driver.drive(kept, progress)


class Driver:
    """One run of a policy over an instance."""

    def __init__(
        self,
        instance: Instance,
        policy: Policy,
        seed: int,
        time_limit_s: float | None,
        cadence: Cadence,
        knowledge: Knowledge = DECLARED,
        predictor: Predictor | None = None,
    ) -> None:
        if not (cadence.on_event or cadence.period_s):
            raise InputError("cadence", "neither events nor a period", "at least one of them")
        self.instance, self.policy, self.seed = instance, policy, seed
        self.time_limit_s, self.cadence = Deadline(time_limit_s).limit_s, cadence
        self.predictor = predictor
        self.state = ClusterState(instance, knowledge, predictor)
        self.records: list[RoundRecord] = []
        self.previous: Plan | None = None
        self.fingerprint = fingerprint(instance)
        energy = instance.budget.energy
        self._window_s = energy.window_s if energy is not None else None
        self._energy_due_s = self._free_s = float("inf")
        self._in_vain = 0
        self._clocks: dict[str, float] = {}
        self._asked: Round | None = None  # the round of a pending decision that takes time
        self._answer_s = float("inf")
        self._again = False  # whether another decision has become due since

    def header(self) -> Header:
        """Return the header that identifies the run in its journal."""
        settings: dict[str, Any] = {
            "time_limit_s": self.time_limit_s,
            "cadence": msgspec.to_builtins(self.cadence),
            "knowledge": self.state.knowledge,
        }
        if self.predictor is not None:
            settings["predictor"] = self.predictor.checksum
        return Header(
            format=FORMAT,
            instance=self.instance.name,
            fingerprint=self.fingerprint,
            policy=self.policy.name,
            config=config_of(self.policy),
            seed=self.seed,
            settings=settings,
            version=versions()["ronda"],
        )

    def drive(self, journal: Journal | None, progress: Progress | None) -> Schedule:
        """Run to the end and return the schedule."""
        state = self.state
        recorded = journal.replay() if journal is not None else iter(())
        first = state.next_submit_s() > 0  # limits hold from 0 s on, whenever the first job comes
        while state.completed < len(self.instance.jobs):
            began = time.perf_counter()
            now_s = 0.0 if first else self._next_event_s()
            first = False
            asked = self._to_answer(self._is_due(now_s, state.advance(now_s)))
            if asked is None:
                continue
            decision = next(recorded, None)
            if decision is not None:
                if journal is not None and decision.record.now_s != now_s:
                    raise journal.refused(len(self.records) + 2)
                self._replay(decision, asked)
            else:
                decision = self._decide(began, asked)
                if journal is not None:
                    journal.append(decision)
            self._energy_due_s = self._next_look_s()
            self.records.append(decision.record)
            self._count_in_vain(decision.record)
            if self._again and (state.queue.waiting or state.queue.running):
                self._ask()
            if progress is not None:
                progress(state.completed, len(self.instance.jobs), now_s)
        return self._schedule()

    def _next_event_s(self) -> float:
        """Return the time of the next event of any kind."""
        state = self.state
        times = [state.next_submit_s(), state.ends.next_s(), state.world.next_s, self._answer_s]
        if state.queue.waiting or state.queue.running:
            times.extend(self._clock_events())
        else:
            times.extend(state.limit_events())
        now_s = min(times)
        never = now_s == float("inf") or self._in_vain > PATIENCE
        running, waiting = state.queue.running, state.queue.waiting
        if never and not waiting:
            raise RondaError(
                f"{self.policy.name}: {len(running)} jobs run, {next(iter(running))!r} first, but "
                "none ever ends: they have too much work for their speed"
            )
        if never:
            first = next(iter(waiting))
            raise RondaError(
                f"{self.policy.name} leaves {len(waiting)} jobs waiting forever, "
                f"{first!r} first, though nothing else ends or will arrive: {self._why()}"
            )
        if now_s > LONGEST_S:
            raise RondaError(
                f"{self.policy.name}: the run goes beyond {LONGEST_S:.3g} s, where no microsecond "
                "is exact: a job has too much work for its speed, or a pause is too long"
            )
        return now_s

    def _why(self) -> str:
        """Return a possible reason why a job never starts."""
        said = self.records[-1].violations if self.records else ()
        budget, own = self.instance.budget, rules_of(self.policy)
        limits = [f"the rules ({own})"] * bool(own)
        if budget.power_cap_w is not None or budget.energy is not None:
            limits.append("the power or energy budget")
        if not own:  # with rules, the message says only how the round was solved
            said = said or (self.previous.record.message if self.previous else "",)
        if said and said[0]:
            return f"the last decision says: {said[0]}"
        if not limits:
            return "no limit on power, energy or of its own keeps the policy from it"
        return f"the job may be too large for {' or '.join(limits)} as the policy would run it"

    def _clock_events(self) -> list[float]:
        """Return the times of the next tick, limit or price change, energy check and report."""
        state, period = self.state, self.cadence.period_s
        times = []
        if period is not None:
            times.append(next_tick_s(state.now_s, period))
        changes = (series.next_change(state.now_s) for series in self.instance.budget.series)
        times.extend(change for change in changes if change is not None)
        times.append(self._energy_due_s)
        self._free_s = float("inf")
        if state.queue.waiting and self.cadence.on_event:
            self._free_s = state.next_free_s()
            times.append(self._free_s)
        if self.cadence.on_report:
            times.append(state.next_report_s())
        return [t for t in times if t > state.now_s]

    def _next_look_s(self) -> float:
        """Return the time of the next decision that the energy budget requires.

        This is the end of the window, or a fraction of it while jobs wait and there is no period;
        or earlier, when running jobs that take longer than expected would use up the budget.
        """
        state, window_s = self.state, self._window_s
        if window_s is None:
            return float("inf")
        often = state.queue.waiting and self.cadence.period_s is None
        look_s = state.now_s + (window_s / LOOKS if often else window_s)
        spent_s = state.spending.lasts_until_s(state.now_s)
        return min(look_s, spent_s) if spent_s > state.now_s + state.instant_s else look_s

    def _to_answer(self, due: bool) -> Round | None:
        """Return the round whose decision takes effect now, if there is one.

        Decisions that take time are requested when they are due, one by one. A limit that changes
        or runs out does not wait: the policy is asked again, and its answer takes effect at once.
        """
        now_s = self.state.now_s
        live = bool(self.state.queue.waiting or self.state.queue.running)
        at_once = not self.instance.faults.decision_s or not live or self._is_urgent(now_s)
        asked = None
        if due and at_once:
            asked, self._again = self.state.snapshot(self._length_s), False
        elif self._asked is not None:
            self._again |= due
            asked = self._asked if now_s >= self._answer_s else None
        elif due:
            self._ask()
        if asked is not None:
            self._asked, self._answer_s = None, float("inf")
        return asked

    def _ask(self) -> None:
        delay_s = self.instance.faults.decision_s
        self._asked = self.state.snapshot(self._length_s, delay_s)
        self._answer_s, self._again = self.state.now_s + delay_s, False

    @property
    def _length_s(self) -> float:
        return self.cadence.period_s or 60.0

    def _is_urgent(self, now_s: float) -> bool:
        changes = any(series.changes_at(now_s) for series in self.instance.budget.series)
        return changes or now_s >= self._energy_due_s

    def _is_due(self, now_s: float, happened: tuple[int, ...]) -> bool:
        """Return whether to call the policy now; without live jobs, only if limits need sleep."""
        if not (self.state.queue.waiting or self.state.queue.running):
            return self.state.must_rest()
        if self.cadence.on_event and (any(happened) or now_s == self._free_s):
            return True
        if self.cadence.on_report and self.state.next_report_s() <= now_s:
            return True
        period = self.cadence.period_s
        if period is not None and now_s == round(now_s / period) * period:
            return True
        return self._is_urgent(now_s)

    def _count_in_vain(self, record: RoundRecord) -> None:
        """Count consecutive rounds without a start in which no job will ever end or arrive."""
        state = self.state
        comes_s = min(state.next_submit_s(), state.world.next_s)
        idle = comes_s == float("inf") and state.ends.next_s() > LONGEST_S
        self._in_vain = self._in_vain + 1 if idle and not record.started else 0

    def _decide(self, began: float, asked: Round) -> Decision:
        """Ask the policy, check its plan, carry the plan out and record it.

        A plan for an earlier round is checked against that round. Parts that are no longer possible
        are then left out, and the rest is checked against the present, except for predicted values.
        """
        state = self.state
        pinned = tuple(state.pinned)
        deadline = Deadline(self.time_limit_s)
        now = None
        if asked.now_s != state.now_s:
            seen = state.snapshot(self._length_s)
            now = Passed(seen, partial(still, state, seen))
        cleared = answer(
            self.policy,
            asked,
            state.ledger,
            deadline=deadline,
            seed=(self.seed * 1_000_003 + len(self.records)) % 2**31,
            initial=self.previous,
            now=now,
        )
        round_ = asked if now is None else now.round
        if cleared.plan.status is SolutionStatus.NONE:
            raise RondaError(cleared.plan.record.message)
        elastic = Capability.ELASTIC in self.policy.capabilities
        if self._clocks and not cleared.replaced and not elastic:
            cleared = restore(round_, state.ledger, cleared, self._clocks)
        plan = cleared.plan
        state.ledger.accept(plan)
        change = state.difference(plan)
        started, stopped, changed = self._carry_out(change, cleared.slowed, plan.discarded)
        self._remember(plan)
        record = RoundRecord(
            now_s=state.now_s,
            waiting=len(round_.waiting),
            running=len(round_.running),
            started=started,
            stopped=stopped,
            changed=changed,
            objective=plan.objective,
            bound=plan.bound,
            stop=plan.stop,
            status=plan.status,
            solve_s=cleared.solve_s,
            overhead_s=time.perf_counter() - began - cleared.solve_s,
            overrun=self.time_limit_s is not None and cleared.solve_s > self.time_limit_s,
            power_w=state.nodes.meter.watts,
            violations=cleared.faults,
            prices=plan.prices,
            slowed_jobs=cleared.slowed,
            stopped_jobs=cleared.stopped,
            restored_jobs=cleared.restored,
            pinned_jobs=pinned,
            conflicts=tuple(each.message for each in plan.details.conflicts),
        )
        kept = msgspec.structs.replace(plan, allocations={})
        return Decision(change=change, plan=kept, record=record)

    def _replay(self, decision: Decision, asked: Round) -> None:
        """Carry out a recorded decision again."""
        state, change = self.state, decision.change
        if asked.now_s != state.now_s:
            state.snapshot(self._length_s)  # measures progress, as the original decision did
        kept = {i: a for i, a in state.held().items() if i not in change.stopped}
        plan = msgspec.structs.replace(
            decision.plan, allocations=kept | change.held, asleep=change.asleep
        )
        state.ledger.accept(plan)
        self._carry_out(change, decision.record.slowed_jobs, decision.plan.discarded)
        self._remember(decision.plan)

    def _carry_out(
        self, change: Change, slowed: tuple[str, ...], discarded: tuple[str, ...]
    ) -> tuple[int, int, int]:
        """Apply a change; remember the clocks of slowed jobs in order to restore them later."""
        for job_id in slowed:
            held = self.state.queue.running[job_id].allocation
            if held is not None:
                self._clocks.setdefault(job_id, held.option.clock)
        for job_id in {*change.held, *change.stopped} - set(slowed):
            self._clocks.pop(job_id, None)
        done = self.state.apply(change)
        self.state.discard(discarded)
        return done

    def _remember(self, plan: Plan) -> None:
        self.previous = msgspec.structs.replace(plan, allocations=self.state.held())

    def _schedule(self) -> Schedule:
        state = self.state
        jobs, cost, carbon = state.close(), state.spending.cost, state.spending.carbon
        return Schedule(
            instance=self.instance.name,
            fingerprint=self.fingerprint,
            policy=self.policy.name,
            config=config_of(self.policy),
            seed=self.seed,
            jobs=jobs,
            rounds=tuple(self.records),
            sleeps=tuple(state.nodes.sleeps),
            failures=tuple(state.failures),
            forecasts=() if state.beliefs is None else tuple(state.beliefs.forecasts),
            energy=state.nodes.meter.total(state.now_s),
            energy_cost=None if cost is None else cost.total,
            carbon_g=None if carbon is None else carbon.total,
            end_s=state.now_s,
            versions=versions(),
        )


def next_tick_s(now_s: float, period_s: float) -> float:
    """Return the least ``k * period_s`` after `now_s`, with k whole to avoid rounding errors."""
    k = round(now_s / period_s)
    while k * period_s <= now_s:
        k += 1
    return k * period_s


def still(state: ClusterState, seen: Round, plan: Plan) -> Plan:
    """Return a plan for an earlier round without the parts that are no longer possible in `seen`.

    Jobs that have ended are left out. A job that finds too few GPUs in service at its new place, or
    a node there that is now about to leave, stays where it runs if no other job has moved there;
    otherwise it waits.
    """
    left: list[int] = state.cluster.topology.node_gpus.tolist()

    taken: set[object] = set()
    on: defaultdict[object, list[tuple[Option, int]]] = defaultdict(list)

    def take(allocation: Allocation) -> bool:
        place: object = allocation.array and (allocation.array, allocation.placement)
        for node, gpu, start in allocation.parts:
            place = node, gpu
            on[place].append((allocation.option, start))
            if crowded(state.cluster, node, on[place]):
                on[place].pop()
                return False
        if place in taken:
            return True
        if any(left[node] < gpus for node, gpus in allocation.placement):
            return False
        if place is not None:
            taken.add(place)
        for node, gpus in allocation.placement:
            left[node] -= gpus
        return True

    held, kept = state.held(), dict[str, Allocation]()
    wanted = {i: a for i, a in plan.allocations.items() if i in state.lives}
    for job_id, allocation in wanted.items():
        now = held.get(job_id)
        if now is not None and now.goes_on(allocation) and take(now):
            kept[job_id] = now
    for job_id, allocation in wanted.items():
        if job_id not in kept:
            closed = closed_to(seen, state.lives[job_id].state, allocation.option)
            shut = closed is not None and any(closed[n] for n, _ in allocation.placement)
            for choice in (None if shut else allocation, held.get(job_id)):
                if choice is not None and take(choice):
                    kept[job_id] = choice
                    break
    jobs = {i: state.lives[i].job for i in kept}
    kept |= narrowed(kept, jobs, state.instance.profiles, state.instance.cluster)
    used = used_nodes(kept.values())
    asleep = plan.asleep
    if asleep is not None:
        asleep = tuple(n for n in asleep if n not in state.nodes.off and n not in used)
    gone = tuple(i for i in plan.discarded if i in state.lives)
    return msgspec.structs.replace(plan, allocations=kept, asleep=asleep, discarded=gone)
