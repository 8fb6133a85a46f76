"""Hermes: a queue of trials for every GPU, the fastest converging first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import msgspec
from msgspec.structs import replace

from ronda.formulations.clock import Deadline, checkpoint
from ronda.formulations.options.application import requested_options
from ronda.formulations.sleeping.standby import rest
from ronda.formulations.sweeps.convergence import overtakes, slope
from ronda.formulations.sweeps.queues import queues
from ronda.formulations.sweeps.trials import Trial, trials_of
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.in_time import in_time
from ronda.solvers.greedy.room import Clocked
from ronda.solvers.policies.sweeps.order import firm, in_order


@dataclass(frozen=True)
class Hermes(Clocked):
    """Run in each GPU's queue the trial whose loss falls fastest; stop the one that runs for it.

    Hermes (Son et al., *Electronics* 2021, 10, 350) as far as it is public: a global scheduler
    balances the load, a scheduler on each node gives its GPUs to the jobs that converge fastest,
    preemption keeps their progress. INFERRED is the rest: a new trial joins the queue with fewest
    trials and stays there; one without a report comes first, so that each is tried once; then the
    slope of the normalised loss decides (`ronda.formulations.sweeps.convergence`), ties by
    submission; a trial whose loss has diverged comes last. Trials for several GPUs share no queue:
    they are taken in order of submission. The plan's details carry the queues.

    Parameters
    ----------
    hysteresis
        By how much of the running slope a waiting one must exceed it.
    weight
        Of the last report in the smoothed slope; 1: nothing else counts.
    """

    hysteresis: Annotated[float, msgspec.Meta(ge=0)] = 0.1
    weight: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.5

    name: ClassVar[str] = "hermes"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SLEEPS

    @in_time
    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
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
        heads = sorted((self.head(each) for each in members.values()), key=self._urgency)
        nodes = {head.name: slots[found[head.name]] for head in heads}
        plan = in_order(round, [*gangs, *heads], self.clocks(round), nodes=nodes)
        plan = replace(plan, policy=self.name, details={"queues": found})
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

        before = {} if initial is None else initial.details.get("queues", {})
        return slots, queues(trials, slots, able, before)

    def head(self, queue: Sequence[Trial]) -> Trial:
        """Return the trial of a queue that runs next."""
        running = next((t for t in queue if t.runs), None)
        if running is not None and (firm(running.state) or not running.losses):
            return running
        fresh = next((t for t in queue if not t.losses), None)
        if fresh is not None:
            return fresh
        best = max((t for t in queue if not t.runs), key=self._slope, default=running)
        assert best is not None  # queues have members
        if running is None or overtakes(self._slope(best), self._slope(running), self.hysteresis):
            return best
        return running

    def _slope(self, trial: Trial) -> float:
        return slope(trial.losses, self.weight)

    def _urgency(self, trial: Trial) -> tuple[bool, float]:
        """Return by what heads go where watts are scarce: no report first, then the slope."""
        return bool(trial.losses), -self._slope(trial) if trial.losses else 0.0
