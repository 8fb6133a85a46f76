"""ronda's own policy for searches, which runs trials in the order of their expected final losses.

A loss is assumed to keep falling as it has fallen lately: by b per unit of log(1 + k), measured
from the middle of its reports to the last. Only a share rho of such a fall comes true. It differs
from sweep to sweep (losses stall, or start slowly) but is common to the trials of a sweep. Bayesian
linear regression estimates rho from the course of every trial after each of its reports. Falls are
relative to the loss at which they start, and their error grows like a random walk::

    l(k') = l(k) (1 - rho x) + e,   x = b (log(1 + k') - log(1 + k)) / l(k)
    e / l(k) ~ Normal(0, s^2 (log(1 + k') - log(1 + k)))

The leading trials thus show what to expect of the others. Only the reported losses of the same
sweep are used.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, erfc, floor, hypot, inf, log1p, sqrt
from operator import itemgetter
from typing import Annotated, ClassVar, NamedTuple

import msgspec
from msgspec.structs import replace

from ronda.formulations.sleeping import rest
from ronda.instances.clock import Deadline, checkpoint
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.as_one import AsOne
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.policy import Clocked
from ronda.systems.hermes.probes import fused, parted
from ronda.systems.hermes.trials import (
    LiveSweep,
    Trial,
    firm,
    in_order,
    most_gpus,
    searches,
    shares,
    speed,
    worth_resizing,
)

MOST = 1.5
"""The upper limit on rho."""

TRYING = 0.25
"""The first share of the time to a deadline, in which new trials are tried."""

STEEPEST = 1e6
"""The largest relative fall or rise that counts; no real training shows a larger one."""


class Final(NamedTuple):
    """The distribution of a trial's final loss, which is assumed to be normal."""

    mean: float
    sd: float

    def chance_below(self, loss: float) -> float:
        """Return the probability that the final loss is less than `loss`."""
        return 0.5 * erfc((self.mean - loss) / (sqrt(2) * self.sd)) if self.sd > 0 else 0.0


@dataclass(frozen=True)
class SweepPolicy(Clocked):
    """Run the trials with the least expected final losses on any GPUs, and give up hopeless trials.

    Each trial is tried until its first report, alone or in an array. Then the trial with the least
    expected final loss, relative to the least loss reported in its sweep, goes first on all GPUs;
    the expectation (`Posterior`) uses the losses of all trials of the sweep and no other data. Once
    one trial has ended, trials that are too unlikely to end below the least reported loss are given
    up. If the sweep has a deadline, new trials are tried in the first part of the time. After that
    fewer and fewer trials run side by side, at first as many as half the GPUs, and all are given up
    at the deadline. GPUs that no other trial may use go to running trials that scale.

    Parameters
    ----------
    hopeless
        Probability below which a trial is given up; with 0 no trial is given up.
    beside
        Number of trials of a sweep that run side by side once all have been tried; 0 means as many
        as fit. Fewer trials find a good one in less GPU time but later.
    grow
        Whether running trials whose profiles scale get GPUs that no other trial may use.
    fuse
        Whether new trials of a fusion class share GPUs if all of them report sooner that way. The
        worse half of an array leaves it at each report.
    """

    hopeless: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.05
    beside: Annotated[int, msgspec.Meta(ge=0)] = 0
    grow: bool = True
    fuse: bool = True

    name: ClassVar[str] = "sweep"
    capabilities: ClassVar[Capability] = (
        Capability.PREEMPTS | Capability.SLEEPS | Capability.ELASTIC | Capability.ARRAYS
    )

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Order the trials, give up hopeless ones, and let the leading ones grow."""
        seen = AsOne(round, lambda members: any(s.job.sweep is None for s in members))
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
            able = [t for t in search.live if t.name not in lost]
            late = _used(round, search) >= TRYING  # for trials without a report
            able = [t for t in able if t.losses or t.runs or not late] or able
            ranks = [(_rank(t, finals, search.least), t) for t in able]
            tried = all(trial.losses for trial in able)
            ranked += sorted(ranks, key=itemgetter(0))[
                : self._most(round, search) if tried else None
            ]
        ranked.sort(key=itemgetter(0))
        # New trials share GPUs as arrays, whose names no other array has, and leading trials grow.
        probes, clocks = parted(round, [trial for _, trial in ranked], initial), self.clocks(round)
        plan = in_order(probes.round, probes.order, clocks)
        if self.fuse and (new := fused(probes, plan)) is not probes:
            probes, plan = new, in_order(new.round, new.order, clocks)
        sizes = grown(probes.round, probes.order, plan) if self.grow else {}
        if sizes:
            plan = in_order(probes.round, probes.order, clocks, sizes=sizes)
        plan = probes.told(plan, seen.names)
        plan = replace(plan, policy=self.name, discarded=tuple(discarded))
        return seen.told(rest(round, plan, initial))

    def _most(self, round: Round, search: LiveSweep) -> int | None:
        """Return the limit on concurrent trials, which falls towards a deadline; None if none."""
        used = _used(round, search)
        if used < TRYING:
            return self.beside or None
        gpus = sum(pool.gpus for pool in round.cluster.topology.pools)
        return max(1, ceil(gpus * (1 - used) / (1 - TRYING) / 2))

    def _hopeless(self, round: Round, search: LiveSweep, finals: Mapping[str, Final]) -> list[str]:
        """Return the names of the trials to give up."""
        able = [t for t in search.live if t.state.job.preemptible]
        end_s = search.sweep.deadline_s
        if end_s is not None and round.now_s >= end_s:
            return [t.name for t in able]
        if not any(len(losses) > search.sweep.reports for losses in search.losses.values()):
            return []
        below = {n: final.chance_below(search.least) for n, final in finals.items()}
        return [t.name for t in able if below.get(t.name, 1.0) < self.hopeless]


class Evidence(NamedTuple):
    """A trial's evidence about rho: sums over its falls, each divided by its step of log(1 + k)."""

    xx: float = 0.0
    xy: float = 0.0
    yy: float = 0.0
    steps: int = 0


class Posterior:
    """The posterior of rho for one sweep, from the losses of all its trials."""

    def __init__(self, trials: Iterable[tuple[float, ...]]) -> None:
        found = [evidence(losses) for losses in trials if len(losses) > 2] or [Evidence()]
        xx, xy, yy, steps = (sum(column) for column in zip(*found, strict=True))
        prior = 5.0 * xx / steps if xx else 1.0  # rho = 0, with the weight of five falls
        self.rho = min(MOST, max(0.0, xy / (xx + prior)))
        error = yy - 2 * self.rho * xy + self.rho**2 * xx
        # Most losses fall smoothly or not at all, but some begin to fall late: s is at least 0.1.
        self.variance = max(0.1**2, error / max(1, steps))
        self.rho_variance = self.variance / (xx + prior)

    def final(self, losses: tuple[float, ...], reports: int) -> Final:
        """Return the distribution of the loss after `reports` reports; infinite if diverged."""
        if losses[-1] == inf:
            return Final(inf, 0.0)
        ahead = max(0.0, log1p(reports) - log1p(len(losses) - 1))
        fall = min(trend(losses) * ahead, sys.float_info.max)
        mean = max(0.0, losses[-1] - self.rho * fall)
        return Final(
            mean, hypot(sqrt(self.variance * ahead) * losses[-1], sqrt(self.rho_variance) * fall)
        )


def trend(losses: tuple[float, ...]) -> float:
    """Return b, the recent fall of a loss per unit of log(1 + k); 0 if it has risen."""
    last = len(losses) - 1
    middle = last // 2
    fall = losses[middle] - losses[last]
    return max(0.0, fall) / (log1p(last) - log1p(middle))


@lru_cache(maxsize=65536)
def evidence(losses: tuple[float, ...]) -> Evidence:
    """Return the evidence from at least three losses; losses after a divergence do not count."""
    xx = xy = yy = 0.0
    steps = 0
    for k in range(2, len(losses)):
        last, loss = losses[k - 1], losses[k]
        if loss == inf or not last > 0:
            continue
        step = log1p(k) - log1p(k - 1)
        x = min(trend(losses[:k]) * step / last, STEEPEST)
        y = max((last - loss) / last, -STEEPEST)
        xx += x * x / step
        xy += x * y / step
        yy += y * y / step
        steps += 1
    return Evidence(xx, xy, yy, steps)


def grown(round: Round, order: Sequence[Trial], plan: Plan) -> dict[str, int]:
    """Return larger numbers of GPUs on which trials end sooner, from GPUs that no job waits for.

    Trials grow in their order, and none shrinks.
    """
    if any(t.name not in plan.allocations for t in order):
        return {}
    if any(s.job.sweep is None for s in round.waiting):
        return {}
    others = [a for i, a in plan.allocations.items() if i not in {t.name for t in order}]
    atoms = sum(pool.gpus for pool in round.cluster.topology.pools)
    atoms -= sum(allocation.option.gpus for allocation in others)
    given = shares([most_gpus(round, t.state, atoms) for t in order], atoms)
    found = {}
    for trial, gpus in zip(order, given, strict=True):
        state, held = trial.state, plan.allocations[trial.name]
        left = state.remaining_at(round.now_s)
        if gpus <= held.option.gpus or firm(state) or left is None:
            continue
        now, then = held.option.rate, speed(round, state, gpus)
        pause_s = state.pause_at(round.now_s, gpus, round.costs)
        if worth_resizing(now, then, left / now, pause_s):
            found[trial.name] = gpus
    return found


def _reached(round: Round, trial: Trial) -> int:
    """Return the reports of a trial at its end, or by the deadline at its current speed."""
    whole, end_s, state = trial.sweep.reports, trial.sweep.deadline_s, trial.state
    if end_s is None or not state.job.epoch:
        return whole
    held = state.allocation
    alone = held is not None and held.array is None
    rate = held.option.rate if held is not None and alone else speed(round, state, 1)
    more = max(0.0, end_s - round.now_s) * rate / state.job.epoch
    return min(whole, trial.reports + floor(more))


def _used(round: Round, search: LiveSweep) -> float:
    """Return the share of the time to a sweep's deadline that has passed; 0 without a deadline."""
    end_s = search.sweep.deadline_s
    began_s = min(t.state.job.submit_s for t in search.live)
    if end_s is None or end_s <= began_s:
        return float(end_s is not None)
    return (round.now_s - began_s) / (end_s - began_s)


def _rank(trial: Trial, finals: Mapping[str, Final], least: float) -> tuple[bool, float]:
    """Return the sort key of a trial: no report yet first, then the expected final loss."""
    if not trial.losses:
        return False, -float(trial.runs)
    mean = finals[trial.name].mean
    return True, mean / least if 0 < least < inf else mean
