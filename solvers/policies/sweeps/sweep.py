"""ronda's own policy for searches: trials by what is believed of where they will end."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from math import ceil, floor, inf
from typing import Annotated, ClassVar

import msgspec
from msgspec.structs import replace

from ronda.formulations.clock import Deadline, checkpoint
from ronda.formulations.sleeping.standby import rest
from ronda.formulations.sweeps.posterior import Final, Posterior
from ronda.formulations.sweeps.trials import Search, Trial, searches
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.as_one import AsOne, Members
from ronda.solvers.greedy.in_time import in_time
from ronda.solvers.greedy.room import Clocked
from ronda.solvers.policies.sweeps.order import grown, in_order, speed
from ronda.solvers.policies.sweeps.probes import fused, parted


@dataclass(frozen=True)
class SweepPolicy(Clocked):
    """Run the trials that are believed to end lowest, wherever there is room; give up the hopeless.

    Each trial is tried until its first report, alone or in an array. Then the least expected final
    loss goes first (`ronda.formulations.sweeps.posterior`: from the losses of all trials of the
    sweep, nothing from elsewhere), over all GPUs, relative to the least loss that the sweep has
    reported. Once a trial has come to its end, those that end below the least reported loss with
    too small a probability are given up. Before a deadline the first part of the time is for new
    trials; after it ever fewer run side by side, at first as many as half the GPUs, and all end
    there. GPUs that no trial may use go to those that run, if they scale.

    Parameters
    ----------
    hysteresis
        By what share of the least reported loss a waiting trial must be better than a running one.
    hopeless
        Probability below which a trial is given up; 0: none is.
    beside
        Trials of a sweep that run side by side once all have been tried; 0: as many as fit. Fewer
        take less GPU time to a good trial, and longer.
    trying
        Share of the time to a deadline in which new trials are tried.
    grow
        Whether running trials get GPUs that no trial may use, where their profiles scale.
    fuse
        Whether new trials of a fusion class share GPUs, where all have then reported sooner. With
        each report the worse half of an array leaves it.
    """

    hysteresis: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    hopeless: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.05
    beside: Annotated[int, msgspec.Meta(ge=0)] = 0
    trying: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.25
    grow: bool = True
    fuse: bool = True

    name: ClassVar[str] = "sweep"
    capabilities: ClassVar[Capability] = (
        Capability.PREEMPTS | Capability.SLEEPS | Capability.ELASTIC | Capability.ARRAYS
    )

    @in_time
    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Order the trials, give up the hopeless, and let leaders grow."""
        seen = AsOne(round, _not_of_trials)
        round = seen.round
        ranked: list[tuple[tuple[bool, float], Trial]] = []
        discarded: list[str] = []
        for search in searches(round).values():
            checkpoint()
            posterior = Posterior(search.losses.values())
            finals = {
                t.name: posterior.final(t.losses, _reached(round, t))
                for t in search.live
                if t.losses
            }
            lost = self._hopeless(round, search, finals)
            discarded += lost
            able = self._able(round, search, frozenset(lost))
            ranks = [(self._rank(t, finals, search.least), t) for t in able]
            tried = all(trial.losses for trial in able)
            ranked += sorted(ranks, key=_rank_of)[: self._most(round, search) if tried else None]
        ranked.sort(key=_rank_of)
        plan = self._filled(round, [trial for _, trial in ranked], initial, seen.names)
        plan = replace(plan, policy=self.name, discarded=tuple(discarded))
        return seen.told(rest(round, plan, initial))

    def _filled(
        self, round: Round, order: list[Trial], initial: Plan | None, taken: Set[str]
    ) -> Plan:
        """Return the plan that an order makes, with new trials in arrays, and leaders grown.

        Other arrays have `taken` their names.
        """
        probes, clocks = parted(round, order, initial), self.clocks(round)
        plan = in_order(probes.round, probes.order, clocks)
        if self.fuse and (new := fused(probes, plan)) is not probes:
            probes, plan = new, in_order(new.round, new.order, clocks)
        sizes = grown(probes.round, probes.order, plan) if self.grow else {}
        if sizes:
            plan = in_order(probes.round, probes.order, clocks, sizes=sizes)
        return probes.told(plan, taken)

    def _rank(self, trial: Trial, finals: Mapping[str, Final], least: float) -> tuple[bool, float]:
        """Return by what trials are ordered: no report yet, then the expected final loss."""
        if not trial.losses:
            return False, -float(trial.runs)
        mean = finals[trial.name].mean
        relative = mean / least if 0 < least < inf else mean
        return True, relative - self.hysteresis * trial.runs

    def _able(self, round: Round, search: Search, lost: frozenset[str]) -> list[Trial]:
        """Return the trials that may run: those with a report, and new ones in good time."""
        able = [t for t in search.live if t.name not in lost]
        late = _used(round, search) >= self.trying
        return [t for t in able if t.losses or t.runs or not late] or able

    def _most(self, round: Round, search: Search) -> int | None:
        """Return how many trials may run side by side: ever fewer before a deadline; None: all."""
        used = _used(round, search)
        if used < self.trying:
            return self.beside or None
        gpus = sum(pool.gpus for pool in round.cluster.topology.pools)
        return max(1, ceil(gpus * (1 - used) / (1 - self.trying) / 2))

    def _hopeless(self, round: Round, search: Search, finals: Mapping[str, Final]) -> list[str]:
        """Return the trials that are given up."""
        able = [t for t in search.live if t.state.job.preemptible]
        end_s = search.sweep.deadline_s
        if end_s is not None and round.now_s >= end_s:
            return [t.name for t in able]
        if not any(len(losses) > search.sweep.reports for losses in search.losses.values()):
            return []
        below = {n: final.chance_below(search.least) for n, final in finals.items()}
        return [t.name for t in able if below.get(t.name, 1.0) < self.hopeless]


def _not_of_trials(members: Members) -> bool:
    """Return whether an array holds other jobs than trials."""
    return any(state.job.sweep is None for state in members)


def _reached(round: Round, trial: Trial) -> int:
    """Return the reports of a trial at its end, or by the deadline as fast as it runs now."""
    whole, end_s, state = trial.sweep.reports, trial.sweep.deadline_s, trial.state
    if end_s is None or not state.job.epoch:
        return whole
    held = state.allocation
    alone = held is not None and held.array is None
    rate = held.option.rate if held is not None and alone else speed(round, state, 1)
    more = max(0.0, end_s - round.now_s) * rate / state.job.epoch
    return min(whole, trial.reports + floor(more))


def _used(round: Round, search: Search) -> float:
    """Return the share of the time to a sweep's deadline that is over; 0 without a deadline."""
    end_s = search.sweep.deadline_s
    began_s = min(t.state.job.submit_s for t in search.live)
    if end_s is None or end_s <= began_s:
        return float(end_s is not None)
    return (round.now_s - began_s) / (end_s - began_s)


def _rank_of(pair: tuple[tuple[bool, float], Trial]) -> tuple[bool, float]:
    """Return the rank of a trial."""
    return pair[0]
