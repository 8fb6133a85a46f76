"""ASHA: trials go on from rung to rung while they are among the best, without waiting for others.

A trial's record at a rung is its loss at that report. Rungs therefore follow from the logs of all
trials, including ended ones, and the policy keeps no memory.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import ClassVar

from msgspec.structs import replace

from ronda.formulations.sleeping import rest
from ronda.instances.clock import Deadline, checkpoint
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.policy import Clocked
from ronda.systems.hermes.halving import Losses, at, best, rungs
from ronda.systems.hermes.order import in_order
from ronda.systems.hermes.trials import LiveSweep, Trial, searches

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
