"""What jobs make of shares of time on GPU types, each job on the GPUs that it asks for.

An equal share of J jobs is a J-th of every type's GPUs: a job of g GPUs has type t for the share
N_t / (J g) of the time, of all types together at most all of it.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ronda.formulations.clock import checkpoint
from ronda.formulations.objectives.outlook import weights
from ronda.formulations.options.application import requested_options
from ronda.instances.arrays import Floats
from ronda.instances.job import JobState
from ronda.instances.round import Round


@dataclass(frozen=True)
class TimeShares:
    """The jobs of a round that some pool suits, and (J, P) their rates as requested, 0 for none.

    ``gpus`` (J,) are what each holds while it runs, ``capacity`` (P,) the GPUs of each pool, and
    ``weight`` (J,) the jobs' own.
    """

    round: Round
    jobs: tuple[JobState, ...]
    rate: Floats
    gpus: Floats
    capacity: Floats
    weight: Floats

    @classmethod
    def of(cls, round: Round) -> "TimeShares":
        """Return those of a round; jobs are in order of submission."""
        pools, jobs, rates = round.cluster.topology.pools, [], []
        for state in sorted(round.jobs, key=lambda state: state.job.submit_s):
            checkpoint()
            own = np.zeros(len(pools))
            for option in requested_options(round, state):
                own[option.pool] = option.rate
            if own.any():
                jobs.append(state)
                rates.append(own)
        return cls(
            round=round,
            jobs=tuple(jobs),
            rate=np.array(rates).reshape(len(jobs), len(pools)),
            gpus=np.array([state.job.gpus for state in jobs], dtype=float),
            capacity=np.array([pool.gpus for pool in pools], dtype=float),
            weight=weights(jobs),
        )

    @cached_property
    def equal(self) -> Floats:
        """(J,) the rate of each job at an equal share."""
        shares = self.capacity / (len(self.jobs) * self.gpus[:, None])
        shares = np.where(self.rate > 0, shares, 0.0)
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
        return np.asarray((self.rate * shares).sum(axis=1))

    @cached_property
    def done(self) -> Floats:
        """(J,) the work done by now."""
        return np.array([state.done_at(self.round.now_s) for state in self.jobs], dtype=float)

    @cached_property
    def left(self) -> Floats:
        """(J,) the work left; of an unknown size as much as is done, at least a round's."""
        known = [state.remaining_at(self.round.now_s) for state in self.jobs]
        work = np.array([np.nan if each is None else each for each in known], dtype=float)
        guess = np.maximum(self.done, self.rate.max(axis=1) * self.round.length_s)
        return np.where(np.isnan(work), guess, work)

    @cached_property
    def age_s(self) -> Floats:
        """(J,) the seconds since submission."""
        submitted = np.array([state.job.submit_s for state in self.jobs], dtype=float)
        return np.maximum(self.round.now_s - submitted, 0.0)

    @cached_property
    def alone_s(self) -> Floats:
        """(J,) the seconds that the whole job takes at an equal share."""
        return np.asarray((self.done + self.left) / self.equal)
