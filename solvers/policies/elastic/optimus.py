"""Optimus with an oracle: one GPU per job, then more GPUs where they save most time."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ronda.formulations.objectives.remaining_work import expected_left
from ronda.formulations.options.gpu_ladders import own_batch_ladders
from ronda.instances.clock import Deadline
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.gpu_climb import GpuLadderClimb
from ronda.solvers.greedy.policy import Clocked


@dataclass(frozen=True)
class Optimus(Clocked):
    """Give every job its least GPUs, then add one at a time where it saves most time.

    The policy follows "Optimus+Oracle" in the artifact of Pollux (OSDI 2021), after Optimus (Peng
    et al., EuroSys 2018). In order of submission every job gets the fewest GPUs that it can run on
    (in the artifact, one). While any gain is above 0, the job with the largest
    ``(t(n) - t(n + 1)) x remaining iterations`` gets one more GPU, where t is the seconds per
    iteration at the job's own batch. Remaining work comes from the estimate. Counts without a
    measured speed are skipped, and the gain is then per GPU.
    """

    name: ClassVar[str] = "optimus"
    capabilities: ClassVar[Capability] = (
        Capability.ELASTIC | Capability.PREEMPTS | Capability.SIZES | Capability.SLEEPS
    )
    takes_turns: ClassVar[bool] = True

    def decide(self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None) -> Plan:
        """Decide the number of GPUs of every job."""
        climb = GpuLadderClimb(round, own_batch_ladders(round, every=True), self.clocks(round))
        jobs = [j for j in range(len(climb.ladders)) if climb.move(j, 0)]
        work = remaining(round, climb)

        def loss(j: int) -> float | None:
            gained = 0.0 if climb.top(j) else gain(climb, j, work[j])
            return -gained if gained > 0 else None

        climb.climb(jobs, loss)
        return climb.plan(self.name, initial)


def remaining(round: Round, climb: GpuLadderClimb) -> list[float]:
    """Return the known or guessed remaining work of each job of a climb (`expected_left`)."""
    at = {state.job.id: j for j, state in enumerate(round.jobs)}
    own, rate = [at[each.state.job.id] for each in climb.ladders], np.full(len(at), np.nan)
    rate[own] = [each.rate[0] for each in climb.ladders]
    left: list[float] = expected_left(round, rate)[own].tolist()
    return left


def gain(climb: GpuLadderClimb, j: int, work: float) -> float:
    """Return the seconds that a job's next step saves, per added GPU."""
    ladder, step = climb.ladders[j], climb.step[j]
    shorter_s = work / ladder.rate[step] - work / ladder.rate[step + 1]
    return shorter_s / (ladder.gpus[step + 1] - ladder.gpus[step])
