"""Comparators of Hermes: SLAQ for trials, and round-robin, in which all turns are equally long.

By SLAQ, the trial whose loss is expected to fall most runs next. A fit to the reported losses
predicts the next one.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import ClassVar

import numpy as np
from msgspec.structs import replace

from ronda.formulations.sleeping import rest
from ronda.instances.base import Floats
from ronda.instances.clock import Deadline, checkpoint
from ronda.instances.plan import Plan, PlanMemory
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.policy import Clocked
from ronda.systems.hermes.trials import Trial, in_order, trials_of


@dataclass(frozen=True)
class Slaq(Clocked):
    """Run the trials whose normalised loss is expected to fall most by the next report.

    SLAQ (Zhang et al., SoCC 2017) gives cores one by one to the job with the largest expected
    marginal fall, which for jobs of one GPU amounts to this order (INFERRED). Trials without a
    report come first, and running trials win ties.
    """

    name: ClassVar[str] = "slaq"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SLEEPS
    takes_turns: ClassVar[bool] = True

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Order trials by the expected fall of their losses."""

        def rank(trial: Trial) -> tuple[bool, float]:
            checkpoint()
            return bool(trial.losses), -expected_fall(trial.losses) if trial.losses else 0.0

        order = sorted(trials_of(round), key=rank)
        plan = in_order(round, order, self.clocks(round))
        return rest(round, replace(plan, policy=self.name), initial)


@lru_cache(maxsize=65536)
def expected_fall(losses: tuple[float, ...]) -> float:
    """Return the expected fall of the loss by the next report, divided by the largest fall so far.

    At least two losses are required. The result is 0 if the loss is expected to rise, and minus
    infinity once a loss has diverged.
    """
    if inf in losses:
        return -inf
    known = np.array(losses) / max(losses)
    largest = float(np.abs(np.diff(known)).max())
    if not largest > 0:
        return 0.0
    # Fewer losses fit any curve, and losses near 0 fit none: the last fall is then the estimate.
    if len(losses) < 4 or known.min() < 1e-30:
        return max(0.0, float(known[-2] - known[-1])) / largest
    now, after = fitted(known)
    return max(0.0, now - after) / largest


def fitted(losses: Floats) -> tuple[float, float]:
    """Return the best fit to K positive losses at the last report and at the next one."""
    steps = np.arange(len(losses), dtype=float)
    weights = 0.9 ** (steps[-1] - steps)  # an older report counts a tenth less
    left = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995])
    asymptotes = left * losses.min()
    above = losses - asymptotes[:, None]
    ahead = np.append(steps, steps[-1] + 1)
    inverse = _polynomial(steps, 1 / above, weights * above**4, 2, ahead)
    safe = np.where(inverse > 0, inverse, np.nan)
    decay = np.exp(_polynomial(steps, np.log(above), weights * above**2, 1, ahead))
    curves = np.concatenate([1 / safe + asymptotes[:, None], decay + asymptotes[:, None]])
    errors = (weights * (curves[:, :-1] - losses) ** 2).sum(axis=1)
    best = curves[int(np.nanargmin(np.where(np.isnan(curves[:, -1]), np.inf, errors)))]
    return float(best[-2]), float(best[-1])


def _polynomial(
    steps: Floats, values: Floats, weights: Floats, degree: int, ahead: Floats
) -> Floats:
    """Return weighted least-squares polynomials of `values` (D, K) at `ahead`, shape (D, A)."""
    powers = np.vander(steps, degree + 1)
    root = np.sqrt(weights)
    left = root[:, :, None] * powers
    matrix = left.transpose(0, 2, 1) @ left
    ridge = 1e-12 * np.trace(matrix, axis1=1, axis2=2) + 1e-300  # old reports weigh nothing
    matrix += ridge[:, None, None] * np.eye(degree + 1)
    right = (left * (root * values)[:, :, None]).sum(axis=1)
    found = np.linalg.solve(matrix, right[:, :, None])
    return (np.vander(ahead, degree + 1) @ found)[:, :, 0]


class Turns(PlanMemory, frozen=True):
    """The queue of trials, and the reports of each running trial when its turn began."""

    key: ClassVar[str] = "turns"

    queue: list[str] = []
    began: dict[str, int] = {}


@dataclass(frozen=True)
class RoundRobin(Clocked):
    """Let each trial in the queue run for one report in turn.

    Hermes is compared with this policy.
    """

    name: ClassVar[str] = "round-robin"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SLEEPS
    takes_turns: ClassVar[bool] = True

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Move trials whose turn is over to the end of the queue."""
        before = Turns.recall(initial)
        began, place = before.began, {name: k for k, name in enumerate(before.queue)}
        trials = sorted(trials_of(round), key=lambda t: place.get(t.name, len(place)))
        over = {t.name for t in trials if t.reports - began.get(t.name, t.reports) > 0}
        order = [t for t in trials if t.name not in over] + [t for t in trials if t.name in over]
        plan = in_order(round, order, self.clocks(round))
        turns = {
            t.name: t.reports if t.name in over else began.get(t.name, t.reports)
            for t in order
            if t.name in plan.allocations
        }
        memory = Turns([t.name for t in order], turns).noted()
        return rest(round, replace(plan, policy=self.name, memory=memory), initial)
