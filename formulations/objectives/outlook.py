"""The view of a round for objectives, with the work, speed and pauses of each job and option."""

from collections.abc import Sequence

import msgspec
import numpy as np

from ronda.formulations.objectives.remaining_work import expected_left, work_done
from ronda.formulations.objectives.switching_cost import pause_by_row, pause_share
from ronda.formulations.options.table import OptionTable
from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.clock import checkpoint
from ronda.instances.job import JobState
from ronda.instances.round import Round

UNKNOWN = 1.5
"""The spread of the remaining work of a job of unknown size, from a Pareto tail of exponent 2."""


def weights(states: Sequence[JobState]) -> Floats:
    """Return the weights of jobs, shape (J,)."""
    given = np.array([state.job.weight for state in states], dtype=float)
    return np.asarray(np.clip(given, 1e-150, 1e150))  # sums and quotients are finite


class Outlook(msgspec.Struct, frozen=True, eq=False):
    """The view of a round for objectives.

    The arrays of jobs (J,) hold the expected work ``done`` and ``remaining``, whether the size is
    ``guessed``, and the ``spread`` of the remaining work (the standard deviation of its logarithm,
    0 where the work is sure). ``least_gpus`` are the fewest GPUs of any option, and ``least_rate``
    is the best rate on them. ``most_rate`` is the best rate of any option, and ``most_gpus`` are
    the fewest GPUs that give it. These four are NaN where a job has no option. ``filled`` are the
    ascending jobs that have rows. The arrays of rows (K,) are ``rate``, the work per second less
    the loss by the pause of a change, and ``left_s``, the expected seconds until completion if the
    job keeps the option, with its pause.
    """

    round: Round
    table: OptionTable
    horizon_s: float
    filled: Rows
    weight: Floats
    done: Floats
    remaining: Floats
    guessed: Mask
    spread: Floats
    submit_s: Floats
    rate: Floats
    left_s: Floats
    least_gpus: Floats
    least_rate: Floats
    most_gpus: Floats
    most_rate: Floats

    def by_row(self, of_job: Floats) -> Floats:
        """Return the entry of each row's job in `of_job` (J,), shape (K,)."""
        return np.asarray(of_job[self.table.job])

    def over_jobs(self, reduce: np.ufunc, column: Floats) -> Floats:
        """Return `column` (K,) reduced per job, NaN for jobs without rows, shape (J,)."""
        return _over_jobs(self.table, self.filled, reduce, column)


def outlook(round: Round, table: OptionTable, horizon_s: float) -> Outlook:
    """Return the outlook of a round whose allocations last at most `horizon_s` seconds.

    The remaining work is `expected_left`; if its estimate has a standard deviation, the work is
    lognormal. The pause of a change lowers the rate of a row, as far as this pause is longer than
    the job's shortest one. So the start of a waiting job costs nothing, as it must start some time,
    and a pause that has begun costs nothing either
    (`ronda.formulations.objectives.switching_cost`).
    """
    rate, job, jobs = table.rate, table.job, [state.job for state in table.jobs]
    gpus, filled = table.gpus.astype(float), (table.start[1:] > table.start[:-1]).nonzero()[0]
    least_gpus, least_rate = _extremes(table, filled, (np.minimum, gpus), (np.maximum, rate))
    most_rate, most_gpus = _extremes(table, filled, (np.maximum, rate), (np.minimum, gpus))
    pause, remaining = pause_by_row(round, table), expected_left(round, least_rate)
    guessed = np.array([job.estimate is None for job in jobs], dtype=bool)
    sd = np.array([0.0 if job.estimate is None else job.estimate.sd for job in jobs], dtype=float)
    ratio = np.minimum(sd / remaining, 1e6)  # its square is finite
    spread = np.where(guessed, UNKNOWN, np.sqrt(np.log1p(ratio**2)))
    checkpoint()
    extra = pause - _over_jobs(table, filled, np.minimum, pause)[job]
    running_s = np.maximum(remaining[job] / rate, np.finfo(float).tiny)
    return Outlook(
        round=round,
        table=table,
        horizon_s=horizon_s,
        filled=filled,
        weight=weights(table.jobs),
        done=work_done(round),
        remaining=remaining,
        guessed=guessed,
        spread=spread,
        submit_s=np.array([job.submit_s for job in jobs], dtype=float),
        rate=rate * (1.0 - pause_share(extra, running_s, horizon_s)),
        left_s=pause + running_s,
        least_gpus=least_gpus,
        least_rate=least_rate,
        most_gpus=most_gpus,
        most_rate=most_rate,
    )


def at_rest(round: Round, table: OptionTable) -> tuple[Round, OptionTable]:
    """Return a round, and its options, as if every job had just been stopped."""
    now_s = round.now_s
    waiting = tuple(state.stopped(now_s, state.done_at(now_s)) for state in table.jobs)
    nobody = msgspec.structs.replace(round, waiting=waiting, running=())
    none = np.zeros(len(table), dtype=bool)
    must = np.zeros(len(waiting), dtype=bool)
    return nobody, msgspec.structs.replace(table, jobs=waiting, current=none, must_run=must)


def _extremes(
    table: OptionTable, filled: Rows, one: tuple[np.ufunc, Floats], then: tuple[np.ufunc, Floats]
) -> tuple[Floats, Floats]:
    """Return each job's extreme of one column, and among its ties that of another, (J,) each.

    Jobs without rows have NaN.
    """
    extreme = _over_jobs(table, filled, *one)
    reduce, column = then
    best = (one[1] == extreme[table.job]).nonzero()[0]
    of_best = column[best]
    if len(best) > len(filled):  # several rows of a job give it
        of_best = reduce.reduceat(of_best, table.job[best].searchsorted(filled))
    return extreme, _spread(len(table.jobs), filled, of_best)


def _over_jobs(table: OptionTable, filled: Rows, reduce: np.ufunc, column: Floats) -> Floats:
    reduced = reduce.reduceat(column, table.start[filled]) if len(filled) else np.empty(0)
    return _spread(len(table.jobs), filled, reduced)


def _spread(jobs: int, filled: Rows, of_filled: Floats) -> Floats:
    result = np.full(jobs, np.nan)
    result[filled] = of_filled
    return result
