"""Hermes: every GPU has a queue of trials and runs the one that converges fastest."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Annotated, ClassVar

import msgspec
from msgspec.structs import replace

from ronda.formulations.options.application import requested_options
from ronda.formulations.sleeping import rest
from ronda.instances.clock import Deadline, checkpoint
from ronda.instances.plan import Plan, PlanMemory
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.policy import Clocked
from ronda.systems.hermes.trials import Trial, firm, in_order, trials_of


class TrialQueues(PlanMemory, frozen=True):
    """The queue number of each trial."""

    key: ClassVar[str] = "queues"

    of: dict[str, int] = {}


@dataclass(frozen=True)
class Hermes(Clocked):
    """Run the trial of each GPU's queue whose loss falls fastest, and preempt slower ones.

    The public part of Hermes (Son et al., *Electronics* 2021, 10, 350) is this: a global scheduler
    balances the load, a scheduler on each node gives its GPUs to the jobs that converge fastest,
    and preemption keeps their progress. The rest is INFERRED. A new trial joins the queue with the
    fewest trials and stays there. Trials without a report come first, so that each is tried once.
    Then the slope of the normalised loss (`slope`) decides, with ties broken by submission, and
    diverged trials come last. Trials on several GPUs have no queue and run in order of submission.

    Parameters
    ----------
    hysteresis
        Share of the running trial's slope by which a waiting trial must exceed it.
    """

    hysteresis: Annotated[float, msgspec.Meta(ge=0)] = 0.1

    name: ClassVar[str] = "hermes"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SLEEPS

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Choose the trial that each queue runs."""
        trials = trials_of(round)
        gangs = [t for t in trials if t.state.job.gpus > 1]
        single = [t for t in trials if t.state.job.gpus == 1]
        slots, found = self._queued(round, single, initial)
        members: dict[int, list[Trial]] = {}
        for trial in single:
            checkpoint()
            if trial.name in found:
                members.setdefault(found[trial.name], []).append(trial)
        heads = [self.head(each) for each in members.values()]
        # If power is scarce, trials without a report go first, then the steepest slopes.
        heads.sort(key=lambda t: -slope(t.losses) if t.losses else -inf)
        nodes = {head.name: slots[found[head.name]] for head in heads}
        plan = in_order(round, [*gangs, *heads], self.clocks(round), nodes=nodes)
        plan = replace(plan, policy=self.name, memory=TrialQueues(found).noted())
        return rest(round, plan, initial)

    def _queued(
        self, round: Round, trials: Sequence[Trial], initial: Plan | None
    ) -> tuple[list[int], dict[str, int]]:
        """Return the node of each queue, and the queue of each trial."""
        topology, out = round.cluster.topology, dict(round.cluster.out)
        pool_of = topology.node_pool.tolist()
        slots: list[int] = []
        for node, gpus in enumerate(topology.node_gpus.tolist()):
            slots += [node] * gpus + [-1] * out.get(node, 0)

        known: dict[str, set[int]] = {}

        def able(trial: Trial, node: int) -> bool:
            if trial.name not in known:
                options = requested_options(round, trial.state)
                known[trial.name] = {option.pool for option in options}
            return pool_of[node] in known[trial.name]

        return slots, queues(trials, slots, able, TrialQueues.recall(initial).of)

    def head(self, queue: Sequence[Trial]) -> Trial:
        """Return the trial of a queue that is to run next."""
        running = next((t for t in queue if t.runs), None)
        if running is not None and (firm(running.state) or not running.losses):
            return running
        fresh = next((t for t in queue if not t.losses), None)
        if fresh is not None:
            return fresh
        best = max((t for t in queue if not t.runs), key=lambda t: slope(t.losses), default=running)
        assert best is not None  # no queue is empty
        if running is None or overtakes(slope(best.losses), slope(running.losses), self.hysteresis):
            return best
        return running


@lru_cache(maxsize=65536)
def slope(losses: tuple[float, ...], weight: float = 0.5) -> float:
    """Return the fall of the normalised loss per report, exponentially smoothed.

    The slope is c of the last report, with ``n_k = l_k / max(l_0 .. l_k)`` and ``c_k = w (n_{k-1} -
    n_k) + (1 - w) c_{k-1}``; the first c is not smoothed. It is minus infinity once the loss has
    diverged.

    Parameters
    ----------
    losses
        At least two losses: before the first epoch and after each epoch.
    weight
        The weight w, above 0 and at most 1 (no smoothing).
    """
    largest, before, smooth = losses[0], 1.0, 0.0
    for k, loss in enumerate(losses[1:], start=1):
        if loss == inf:
            return -inf
        largest = max(largest, loss)
        now = loss / largest
        fall, before = before - now, now
        smooth = fall if k == 1 else weight * fall + (1 - weight) * smooth
    return smooth


def overtakes(waiting: float, running: float, hysteresis: float) -> bool:
    """Return whether a waiting slope exceeds the running one by the share `hysteresis`."""
    if running == -inf:
        return waiting > running
    return waiting > running + hysteresis * abs(running)


def queues(
    trials: Iterable[Trial],
    slots: Sequence[int],
    able: Callable[[Trial, int], bool],
    before: Mapping[str, int],
) -> dict[str, int]:
    """Return the queue of each trial.

    A running trial is in a queue of its node, and any other known trial stays in its queue. A new
    trial goes to the queue with the fewest trials that it can use. A trial that can use no queue is
    left out.

    Parameters
    ----------
    slots
        Node of each queue, shape (Q,); a node occurs once per GPU, and -1 marks a GPU out of
        service.
    able
        Returns whether a trial may run on a node.
    before
        Previous queue of each trial.
    """
    found: dict[str, int] = {}
    length = [0] * len(slots)
    busy = set[int]()

    def join(trial: Trial, queue: int) -> None:
        found[trial.name] = queue
        length[queue] += 1

    new = []
    for trial in trials:
        queue = before.get(trial.name, -1)
        held = trial.state.allocation
        if held is not None:
            node = held.placement[0][0]
            if queue in busy or queue >= len(slots) or queue < 0 or slots[queue] != node:
                queue = next(q for q, n in enumerate(slots) if n == node and q not in busy)
            busy.add(queue)
            join(trial, queue)
        elif 0 <= queue < len(slots) and slots[queue] >= 0:
            join(trial, queue)
        else:
            new.append(trial)
    for trial in new:
        mine = [q for q, node in enumerate(slots) if node >= 0 and able(trial, node)]
        if mine:
            join(trial, min(mine, key=length.__getitem__))
    return found
