"""Successive halving: the best 1 / eta of the trials that have reached a rung go on.

ASHA applies the rule at each report, Hyperband once all trials of a bracket have reached the rung.
HyperSched pauses trials above the corresponding percentile. A trial's record at a rung is its loss
at that report. Rungs therefore follow from the logs of all trials, including ended ones, and ASHA
keeps no memory.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import ClassVar

import numpy as np
from msgspec.structs import replace

from ronda.formulations.sleeping import rest
from ronda.instances.clock import Deadline, checkpoint
from ronda.instances.plan import Plan, PlanMemory
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.policy import Clocked
from ronda.systems.hermes.trials import LiveSweep, Trial, in_order, searches

Losses = Sequence[float]
"""The losses that a trial has reported, from before its first epoch on; infinite if diverged."""


def rungs(first: int, eta: int, reports: int) -> tuple[int, ...]:
    """Return the reports at which trials are compared: first x eta^i below `reports`."""
    found = []
    while first < reports:
        found.append(first)
        first *= eta
    return tuple(found)


def at(rung: int, trials: Mapping[str, Losses]) -> dict[str, float]:
    """Return the loss at a rung of every trial that has reached it, keyed by name."""
    return {name: losses[rung] for name, losses in trials.items() if len(losses) > rung}


def best(losses: Mapping[str, float], eta: int, least: int = 0) -> list[str]:
    """Return the names of the best ``floor(n / eta)`` of n losses, at least `least`, best first.

    Ties are broken by name.
    """
    ordered = sorted(losses, key=lambda name: (losses[name], name))
    return ordered[: max(least, len(ordered) // eta)]


def cutoff(losses: Iterable[float], eta: int) -> float:
    """Return the percentile 1 / eta of the losses at a rung, linearly interpolated.

    It is infinite for fewer than two losses. Diverged trials count with the largest finite loss.
    """
    known = np.array(sorted(losses))
    if len(known) < 2:
        return inf
    finite = known[np.isfinite(known)]
    place = (len(known) - 1) / eta
    if not len(finite) or place > len(finite) - 1:
        return float(finite[-1]) if len(finite) else inf
    return float(np.interp(place, np.arange(len(finite)), finite))


Rank = tuple[int, int, float]


@dataclass(frozen=True)
class Asha(Clocked):
    """Let a trial go on from a rung if its loss is in the best quarter there; otherwise pause it.

    This is ASHA (Li et al., MLSys 2020) with checkpoints. A free GPU goes first to the paused trial
    of the highest rung that is now among the best, otherwise to a new trial. Once no trial of a
    sweep can go on, its paused trials are given up. Rungs are at 1, 4, 16, ... reports.
    """

    name: ClassVar[str] = "asha"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SLEEPS

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Order the trials that may go on, and give up those that never will."""
        ranked: list[tuple[Rank, Trial]] = []
        discarded: list[str] = []
        for search in searches(round).values():
            checkpoint()
            able = list(self._able(search))
            ranked += able
            if not able:
                discarded += [t.name for t in search.live if t.state.job.preemptible]
        ranked.sort(key=lambda pair: pair[0])
        plan = in_order(round, [trial for _, trial in ranked], self.clocks(round))
        return rest(round, replace(plan, policy=self.name, discarded=tuple(discarded)), initial)

    def _able(self, search: LiveSweep) -> Iterable[tuple[Rank, Trial]]:
        """Yield the trials that may run with their ranks; the least rank runs first."""
        levels = rungs(1, 4, search.sweep.reports)
        leaves = promoted(search.losses, levels, 4)
        for trial in search.live:
            reports = trial.reports
            if not reports:
                yield (1 - trial.runs, 3, 0.0), trial
            elif reports not in levels:
                yield (1 - trial.runs, 1, 0.0), trial
            elif trial.name in leaves:
                yield (1 - trial.runs, 2, trial.losses[-1] - 1e6 * reports), trial


def promoted(trials: Mapping[str, Losses], levels: Iterable[int], eta: int) -> dict[str, int]:
    """Return the current rung of each trial that may leave it by ASHA's rule.

    Of the n trials that have reached a rung so far, the best floor(n / eta) may go on, except
    diverged ones (Li et al., MLSys 2020).
    """
    go_on = {level: {*best(at(level, trials), eta)} for level in levels}
    stand = {n: len(each) - 1 for n, each in trials.items() if each and each[-1] < inf}
    return {n: rung for n, rung in stand.items() if n in go_on.get(rung, ())}


@dataclass(frozen=True, slots=True)
class Bracket:
    """The trials of a bracket, and the reports at which the best 1 / eta of them go on."""

    trials: int
    rungs: tuple[int, ...]


class Submitted(PlanMemory, frozen=True):
    """The number of earlier trials in the sweep of each trial, keyed by sweep."""

    key: ClassVar[str] = "submitted"

    before: dict[str, dict[str, int]] = {}


@dataclass(frozen=True)
class Hyperband(Clocked):
    """Run brackets of trials one after another, and let the best third go on at each rung.

    This is Hyperband (Li et al., JMLR 2018). Trials wait at a rung until all trials of the bracket
    have reached it; then all but the best third are given up. Trials fill brackets in order of
    submission, and the first bracket follows the last. The next bracket begins if GPUs are left.
    Trials keep their progress from rung to rung.
    """

    name: ClassVar[str] = "hyperband"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SLEEPS

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Order the trials that may go on, and give up those that fail at a rung."""
        before = Submitted.recall(initial).before
        places: dict[str, dict[str, int]] = {}
        ranked: list[tuple[tuple[int, int, int], Trial]] = []
        discarded: list[str] = []
        for name, search in searches(round).items():
            checkpoint()
            own = dict(before.get(name, {}))
            for trial in sorted(search.live, key=lambda t: (t.state.job.submit_s, t.name)):
                own.setdefault(trial.name, len(own))
            places[name] = own
            able, lost = self._sorted_out(search, own)
            ranked += able
            discarded += lost
        ranked.sort(key=lambda pair: pair[0])
        plan = in_order(round, [trial for _, trial in ranked], self.clocks(round))
        memory = Submitted(places).noted()
        plan = replace(plan, policy=self.name, discarded=tuple(discarded), memory=memory)
        return rest(round, plan, initial)

    def _sorted_out(
        self, search: LiveSweep, places: Mapping[str, int]
    ) -> tuple[list[tuple[tuple[int, int, int], Trial]], list[str]]:
        """Return the trials that may run, with their ranks, and the trials to give up."""
        all_ = brackets(search.sweep.reports, 3)
        groups: dict[int, tuple[Bracket, dict[str, tuple[float, ...]]]] = {}
        numbers = {}
        for name, place in places.items():
            number, bracket = bracket_of(place, all_)
            numbers[name] = number
            groups.setdefault(number, (bracket, {}))[1][name] = search.losses.get(name, ())
        able, lost = [], []
        stopped: set[str] = set()
        gone: set[str] = set()
        for bracket, members in groups.values():
            live = {t.name for t in search.live} & members.keys()
            waits, out = survivors(members, live, bracket.rungs, 3)
            stopped |= waits
            gone |= out
        for trial in search.live:
            if trial.name in gone and trial.state.job.preemptible:
                lost.append(trial.name)
            elif trial.name not in stopped | gone:
                rank = (1 - trial.runs, numbers[trial.name], places[trial.name])
                able.append((rank, trial))
        return able, lost


def rungs_of(resource: int, eta: int) -> list[list[tuple[int, int]]]:
    """Return, for each bracket, the number of trials and the resource per trial of each rung.

    R = `resource` is a power of eta. Bracket s, from s_max = log_eta R down, begins with n =
    ceil((s_max + 1) eta^s / (s + 1)) trials of resource R / eta^s. Rung i has the best n / eta^i of
    them and gives each eta^i times as much.
    """
    top = len(rungs(1, eta, resource + 1)) - 1
    return [
        [
            (-(-(top + 1) * eta**s // (s + 1)) // eta**i, resource // eta ** (s - i))
            for i in range(s + 1)
        ]
        for s in range(top, -1, -1)
    ]


def brackets(reports: int, eta: int) -> tuple[Bracket, ...]:
    """Return the brackets for trials that keep their progress and have `reports` reports in all.

    The brackets are those of the largest power of eta up to `reports`, with rungs stretched to
    `reports`. The last rung of a bracket is a whole trial.
    """
    whole, found = rungs(1, eta, reports + 1)[-1], []
    for levels in rungs_of(whole, eta):
        stretched = (round(resource * reports / whole) for _, resource in levels)
        found.append(Bracket(levels[0][0], tuple(rung for rung in stretched if rung < reports)))
    return tuple(found)


def bracket_of(place: int, all_: Sequence[Bracket]) -> tuple[int, Bracket]:
    """Return the bracket of the trial submitted after `place` others, and the bracket's number.

    After the last bracket the first one follows again.
    """
    number = 0
    while True:
        for bracket in all_:
            if place < bracket.trials:
                return number, bracket
            place -= bracket.trials
            number += 1


def survivors(
    trials: Mapping[str, Losses], live: Collection[str], levels: Sequence[int], eta: int
) -> tuple[set[str], set[str]]:
    """Return the live trials of a bracket that must wait at a rung, and those that fail there.

    Once all trials have come to a rung, the best 1 / eta of them go on, and at least one does
    (successive halving). Trials that ended earlier or have diverged rank last.
    """
    waits: set[str] = set()
    lost: set[str] = set()
    field = dict(trials)
    for rung in levels:
        here = dict.fromkeys(field, inf) | at(rung, field)
        missing = [n for n in field if n in live and len(field[n]) <= rung]
        if missing:
            waits |= {n for n in field if n in live and len(field[n]) - 1 == rung}
            break
        kept = best(here, eta, least=1)
        lost |= (here.keys() - set(kept)) & set(live)
        field = {n: field[n] for n in kept}
    return waits, lost
