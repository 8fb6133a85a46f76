"""Hermes: a queue of trials for every GPU, the fastest converging first."""

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
from ronda.systems.hermes.order import firm, in_order
from ronda.systems.hermes.trials import Trial, trials_of


class TrialQueues(PlanMemory, frozen=True):
    """The number of the queue of each trial."""

    key: ClassVar[str] = "queues"

    of: dict[str, int] = {}


@dataclass(frozen=True)
class Hermes(Clocked):
    """Run in each GPU's queue the trial whose loss falls fastest; stop the one that runs for it.

    Hermes (Son et al., *Electronics* 2021, 10, 350) as far as it is public: a global scheduler
    balances the load, a scheduler on each node gives its GPUs to the jobs that converge fastest,
    preemption keeps their progress. The rest is INFERRED: a new trial joins the queue with fewest
    trials and stays there; one without a report comes first, so that each is tried once; then the
    slope of the normalised loss (`slope`) decides, ties by submission; a trial whose loss has
    diverged comes last. Trials for several GPUs share no queue: they are taken in order of
    submission.

    Parameters
    ----------
    hysteresis
        The share of the running trial's slope by which a waiting one must exceed it.
    """

    hysteresis: Annotated[float, msgspec.Meta(ge=0)] = 0.1

    name: ClassVar[str] = "hermes"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SLEEPS

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Choose the trial of every queue."""
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
        # Where watts are scarce those without a report go first, then the steepest.
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
        """Return the trial of a queue that runs next."""
        running = next((t for t in queue if t.runs), None)
        if running is not None and (firm(running.state) or not running.losses):
            return running
        fresh = next((t for t in queue if not t.losses), None)
        if fresh is not None:
            return fresh
        best = max((t for t in queue if not t.runs), key=lambda t: slope(t.losses), default=running)
        assert best is not None  # queues have members
        if running is None or overtakes(slope(best.losses), slope(running.losses), self.hysteresis):
            return best
        return running


@lru_cache(maxsize=65536)
def slope(losses: tuple[float, ...], weight: float = 0.5) -> float:
    """Return the fall of the normalised loss per report, exponentially smoothed.

    ``n_k = l_k / max(l_0 .. l_k)``, ``c_k = w (n_{k-1} - n_k) + (1 - w) c_{k-1}``; the first c is
    not smoothed. Minus infinity once the loss has diverged.

    Parameters
    ----------
    losses
        At least two: before the first epoch, and after each.
    weight
        w, above 0 to 1 (no smoothing).
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
    """Return whether a waiting slope exceeds a running one by a share of its size."""
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

    A trial that runs is in a queue of its node, and any other stays where it was. A new one goes to
    the queue with fewest trials, of those that it can use; one that can use none is left out.

    Parameters
    ----------
    slots
        (Q,) the node of each queue: as often as it has GPUs; -1 for those out of service.
    able
        Whether a trial may run on a node.
    before
        The queue of each trial until now.
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
