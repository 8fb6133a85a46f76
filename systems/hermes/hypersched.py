"""HyperSched: a search for as good a trial as possible by a deadline."""

from dataclasses import dataclass
from math import inf
from statistics import median
from typing import ClassVar

from msgspec.structs import replace

from ronda.formulations.sleeping import rest
from ronda.instances.clock import Deadline, checkpoint
from ronda.instances.plan import Plan, PlanMemory
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.policy import Clocked
from ronda.systems.hermes.halving import at, cutoff, rungs
from ronda.systems.hermes.trials import (
    LiveSweep,
    Trial,
    in_order,
    most_gpus,
    searches,
    shares,
    speed,
    worth_resizing,
)


class Resized(PlanMemory, frozen=True):
    """The number of reports of each trial when its number of GPUs last changed."""

    key: ClassVar[str] = "resized"

    reports: dict[str, int] = {}


@dataclass(frozen=True)
class HyperSched(Clocked):
    """Pause all but the best trials at a rung, start none too late, and give survivors spare GPUs.

    This is HyperSched (Liaw et al., SoCC 2019). A trial pauses while its loss at its last rung (1,
    4, 16, ... reports) is not in the best quarter there, even if it has gone on before. Paused
    trials that come into the best quarter may resume, the best first. No trial starts or resumes if
    the time left to the deadline of the sweep is less than four times the longest run and less than
    a whole trial takes. Spare GPUs go evenly to running trials, the best first, if that gets them
    further by the deadline. All trials are given up at the deadline, or once none can go on. A
    sweep without a deadline has unlimited time.
    """

    name: ClassVar[str] = "hypersched"
    capabilities: ClassVar[Capability] = (
        Capability.PREEMPTS | Capability.SLEEPS | Capability.ELASTIC
    )

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Order the trials that may go on, and choose their numbers of GPUs."""
        order: list[Trial] = []
        discarded: list[str] = []
        left_s: dict[str, float] = {}
        for search in searches(round).values():
            checkpoint()
            end_s = search.sweep.deadline_s
            time_left_s = inf if end_s is None else end_s - round.now_s
            able = self._able(round, search, time_left_s) if time_left_s > 0 else []
            order += able
            left_s |= dict.fromkeys((t.name for t in able), time_left_s)
            if not able:
                discarded += [t.name for t in search.live if t.state.job.preemptible]
        order.sort(key=lambda t: not t.runs)
        plan = in_order(round, order, self.clocks(round))
        resized = Resized.recall(initial).reports
        waiting = sum(t.name not in plan.allocations for t in order)
        running = [t for t in order if t.name in plan.allocations]
        # Trials shrink while others wait; otherwise they grow if that is worth the pause.
        best = sorted(running, key=_metric)
        held = (s.allocation for s in round.running if s.job.sweep is None)
        atoms = sum(pool.gpus for pool in round.cluster.topology.pools) - waiting
        atoms -= sum(allocation.option.gpus for allocation in held if allocation is not None)
        given = shares([most_gpus(round, t.state, atoms) for t in best], atoms)
        sizes = dict[str, int]()
        for trial, gpus in zip(best, given, strict=True):
            state = trial.state
            has = state.job.gpus if state.allocation is None else state.allocation.option.gpus
            if gpus == has or not state.job.preemptible:
                continue
            # A trial is resized at most once in five reports.
            since = trial.reports - resized.get(trial.name, -5)
            pause_s = state.pause_at(round.now_s, gpus, round.costs)
            now, then = speed(round, state, has), speed(round, state, gpus)
            grows = worth_resizing(now, then, left_s[trial.name], pause_s)
            if since >= 5 and (then > 0 and gpus < has if waiting else grows):
                sizes[trial.name] = gpus
        if sizes:
            plan = in_order(round, order, self.clocks(round), sizes=sizes)
        live = {t.name: t.reports for t in order}
        kept = {n: r for n, r in resized.items() if n in live}
        memory = Resized(kept | {name: live[name] for name in sizes}).noted()
        plan = replace(plan, policy=self.name, discarded=tuple(discarded), memory=memory)
        return rest(round, plan, initial)

    def _able(self, round: Round, search: LiveSweep, time_left_s: float) -> list[Trial]:
        """Return the running, paused and new trials that may run, in order."""
        levels = rungs(1, 4, search.sweep.reports)
        cutoffs = {r: cutoff(at(r, search.losses).values(), 4) for r in levels}
        good: list[Trial] = []
        fresh: list[Trial] = []
        for trial in search.live:
            last = max((r for r in levels if r <= trial.reports), default=None)
            if last is None:
                (good if trial.runs else fresh).append(trial)
            elif trial.losses[last] <= cutoffs[last] and trial.losses[-1] < inf:
                good.append(trial)
        report_s = median(_report_s(round, t) for t in search.live)
        longest_s = (
            max((len(losses) - 1 for losses in search.losses.values()), default=0) * report_s
        )
        good.sort(key=lambda t: (not t.runs, _metric(t)))
        if admits(time_left_s, max(0.0, longest_s), 4, search.sweep.reports * report_s):
            return good + fresh
        return [t for t in good if t.runs]


def admits(time_left_s: float, longest_s: float, eta: int, whole_s: float) -> bool:
    """Return whether a trial may start or resume with `time_left_s` to the deadline.

    It may not if that is less than eta times the longest run so far and less than `whole_s`, the
    time of a whole trial.
    """
    return time_left_s >= min(longest_s * eta, whole_s)


def _metric(trial: Trial) -> float:
    """Return the last loss of a trial, by which trials are ordered."""
    return trial.losses[-1] if trial.losses else inf


def _report_s(round: Round, trial: Trial) -> float:
    """Return the seconds from one report to the next on one GPU."""
    rate = speed(round, trial.state, 1) or speed(round, trial.state, trial.state.job.gpus)
    return (trial.state.job.epoch or 0.0) / rate if rate else inf
