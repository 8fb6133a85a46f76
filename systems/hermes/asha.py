"""ASHA: trials go on from rung to rung while among the best, without waiting for others.

A trial's record at a rung is its loss at that report, so that rungs follow from the logs of all
trials, ended ones included, and nothing has to be kept.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Annotated, ClassVar

import msgspec
from msgspec.structs import replace

from ronda.formulations.sleeping import rest
from ronda.instances.clock import Deadline, checkpoint
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.in_time import in_time
from ronda.solvers.greedy.room import Clocked
from ronda.systems.hermes.halving import best, rungs
from ronda.systems.hermes.order import in_order
from ronda.systems.hermes.trials import LiveSweep, Trial, searches

Rank = tuple[int, int, float]


Losses = Sequence[float]


@dataclass(frozen=True)
class Asha(Clocked):
    """Let a trial go on from a rung if its loss is among the best 1 / eta there; else it pauses.

    ASHA (Li et al., MLSys 2020) with checkpoints: a free GPU goes to a paused trial that is among
    the best by now, of the highest rung first, else to a trial that has not begun. Once no trial of
    a sweep can go on, those that pause are given up.

    Parameters
    ----------
    eta
        One in eta goes on; rungs are at first, first x eta, ... reports.
    first
        Reports of the lowest rung.
    """

    eta: Annotated[int, msgspec.Meta(ge=2)] = 4
    first: Annotated[int, msgspec.Meta(ge=1)] = 1

    name: ClassVar[str] = "asha"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SLEEPS

    @in_time
    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Order the trials that may go on; give up those that never will."""
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
        """Yield the trials that may run, with their ranks: least first."""
        levels = rungs(self.first, self.eta, search.sweep.reports)
        leaves = promoted(search.losses, levels, self.eta)
        for trial in search.live:
            reports = trial.reports
            if not reports:
                yield (1 - trial.runs, 3, 0.0), trial
            elif reports not in levels:
                yield (1 - trial.runs, 1, 0.0), trial
            elif trial.name in leaves:
                yield (1 - trial.runs, 2, trial.losses[-1] - 1e6 * reports), trial


def records(rung: int, trials: Mapping[str, Losses]) -> dict[str, float]:
    """Return the loss at a rung of every trial that has reached it, by name."""
    return {name: losses[rung] for name, losses in trials.items() if len(losses) > rung}


def top(found: Mapping[str, float], eta: int) -> set[str]:
    """Return the names of the best 1 / eta of some records; none of them has diverged."""
    return {name for name in best(found, eta) if found[name] < inf}


def promoted(trials: Mapping[str, Losses], levels: Iterable[int], eta: int) -> dict[str, int]:
    """Return the rung that each trial stands at and may leave by ASHA's rule.

    ASHA (Li et al., MLSys 2020): of the n trials that have reached a rung the best floor(n / eta)
    go on, whenever that is.
    """
    go_on = {level: top(records(level, trials), eta) for level in levels}
    stand = {name: len(losses) - 1 for name, losses in trials.items()}
    return {n: rung for n, rung in stand.items() if n in go_on.get(rung, ())}
