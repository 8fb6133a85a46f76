"""What the objectives look at: each job's work and pauses, and the span of its options."""

from collections.abc import Collection, Sequence
from math import nan

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from ronda.formulations.options.table import OptionTable
from ronda.formulations.watts import may_sleep
from ronda.instances.arrays import Floats, Mask, Rows
from ronda.instances.clock import checkpoint
from ronda.instances.job import JobState
from ronda.instances.models.cache import per_record
from ronda.instances.round import Round
from ronda.instances.violation import LONGEST_S


@per_record(maxsize=2)
def work_done(round: Round) -> Floats:
    """Return (J,) the work that each job has done by now (`JobState.done_at`)."""
    return np.array([state.done_at(round.now_s) for state in round.jobs], dtype=float)


@per_record(maxsize=2)
def work_left(round: Round) -> Floats:
    """Return (J,) the work left of each job (`JobState.remaining_at`), NaN if it is not known."""
    left = [state.remaining_at(round.now_s) for state in round.jobs]
    return np.array([nan if work is None else work for work in left], dtype=float)


def work_ahead(round: Round) -> Floats:
    """Return (J,) the work left of each job, infinite if it is not known."""
    left = work_left(round)
    return np.where(np.isnan(left), np.inf, left)


def expected_left(round: Round, rate: Floats) -> Floats:
    """Return (J,) the work left of jobs by which they are ordered: a guess where it is not known.

    As much is left of such a job as it has done (`ronda.formulations.objectives.rank`), which is at
    least one round at its `rate` (J,) on its fewest GPUs. How long it goes on is not guessed: what
    lasts takes `work_ahead`.
    """
    left, guess = (
        work_left(round),
        np.maximum(work_done(round), np.nan_to_num(rate * round.length_s)),
    )
    return np.where(np.isnan(left), guess, left)


UNKNOWN = 1.5
"""Spread of what is left of a job of unknown size: that of a Pareto tail of exponent 2."""

MOST_UNSURE = 1e6
"""The greatest standard deviation that counts, over the mean."""

LEAST_WEIGHT, MOST_WEIGHT = 1e-150, 1e150
"""The least and the greatest weight that count: sums and quotients of such are still finite."""

MOST_OF_A_STOP = 10.0
"""A stop loses no more than what the job's option is worth, times this."""


def weights(states: Sequence[JobState]) -> Floats:
    """Return (J,) the weights of jobs."""
    given = np.array([state.job.weight for state in states], dtype=float)
    return np.asarray(np.clip(given, LEAST_WEIGHT, MOST_WEIGHT))


class Outlook(msgspec.Struct, frozen=True, eq=False):
    """A round as its objectives see it; (J,) arrays are NaN where a job has no option.

    Of the jobs (J,): expected work ``done`` and ``remaining``, ``guessed`` where the size is not
    known, and the ``spread`` of what remains (standard deviation of its logarithm, 0 where it is
    sure); the fewest GPUs of any option (``least_gpus``) and the best rate with these; the best
    rate of any option (``most_rate``) and the fewest GPUs that give it. ``filled`` are the jobs
    that have rows, ascending. Of the rows (K,): ``rate``, work per second less what is lost by the
    pause if the option is not the current one, and ``left_s``, expected seconds until completion if
    the job keeps the option, its pause included.
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
        """Return a (J,) array spread over the (K,) rows."""
        return np.asarray(of_job[self.table.job])

    def over_jobs(self, reduce: np.ufunc, column: Floats) -> Floats:
        """Return (J,) a (K,) column reduced over each job's rows, NaN for jobs without rows."""
        return _over_jobs(self.table, self.filled, reduce, column)


def horizon_s(round: Round) -> float:
    """Return the seconds that an allocation is expected to last at most.

    Ten rounds, 600 s, or two restarts, whichever is the longest: where restarts take long, jobs
    change less often. (With restarts of 600 s on pollux-1, an expected 600 s keep jobs from ever
    growing and triple the mean JCT; two restarts are the best of one to twenty there.) Half of that
    where nodes may sleep: what they leave and take back changes more often, and a pause wastes
    energy as well.
    """
    costs = round.costs
    restart_s = max((pause_s for _, pause_s in costs.restart_by_gpus), default=costs.restart_s)
    longest_s = min(max(10.0 * round.length_s, 600.0, 2.0 * restart_s), LONGEST_S)
    return 0.5 * longest_s if may_sleep(round) else longest_s


def outlook(round: Round, table: OptionTable, horizon_s: float) -> Outlook:
    """Return the outlook of a round, whose allocations last at most `horizon_s` seconds.

    The work left is `expected_left`. Work that is believed with a standard deviation is lognormal.

    **Switching cost.** An option that differs from what the job runs on pauses the job, for as long
    as the driver charges (`JobState.pause_at`): a change that cuts a pause short owes the rest of
    it besides its own. The rate is ``rate (1 - c/H)`` on average (`pause_share`): never negative,
    and rising with the rate. As c counts only what the pause is longer than that of the job's
    option with the shortest pause: a waiting job must start some time, so that costs nothing; nor
    does the pause that a job is in. What a stop costs is `loss_of_a_stop`.
    """
    rate, job, jobs = table.rate, table.job, [state.job for state in table.jobs]
    gpus, filled = table.gpus.astype(float), (table.start[1:] > table.start[:-1]).nonzero()[0]
    least_gpus, least_rate = _extremes(table, filled, (np.minimum, gpus), (np.maximum, rate))
    most_rate, most_gpus = _extremes(table, filled, (np.maximum, rate), (np.minimum, gpus))
    pause, remaining = _pause_s(round, table), expected_left(round, least_rate)
    guessed = np.array([job.estimate is None for job in jobs], dtype=bool)
    sd = np.array([0.0 if job.estimate is None else job.estimate.sd for job in jobs], dtype=float)
    ratio = np.minimum(sd / remaining, MOST_UNSURE)
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


def pause_share(pause_s: Floats, run_s: Floats, longest_s: Floats | float) -> Floats:
    """Return the shares c/H that pauses of c seconds take of the time H that options last.

    An option lasts until the job has run for the `run_s` seconds that it still needs, or for the
    `longest_s` that any allocation is expected to: ``H = min(c + run, longest)``, at least c.
    """
    lasts_s = np.maximum(np.minimum(pause_s + run_s, longest_s), pause_s)
    share = np.zeros(lasts_s.shape)
    return np.asarray(np.divide(pause_s, lasts_s, out=share, where=lasts_s > 0))


def _pause_s(round: Round, table: OptionTable) -> Floats:
    """Return (K,) the seconds without progress if a job takes a row now.

    What is left of the pause for the current row; for others what the driver would charge
    (`JobState.pause_at`).
    """
    now_s, costs = round.now_s, round.costs
    change = [state.pause_at(now_s, 1, costs) for state in table.jobs]
    checkpoint()
    rest = [state.rest_at(now_s) for state in table.jobs]
    checkpoint()
    by_gpus = [
        j for j, state in enumerate(table.jobs) if (state.job.costs or costs).restart_by_gpus
    ]
    pause = np.array(change, dtype=float)[table.job]
    for j in by_gpus:
        checkpoint()
        own = slice(table.start[j], table.start[j + 1])
        pauses = [table.jobs[j].pause_at(now_s, n, costs) for n in table.gpus[own].tolist()]
        pause[own] = pauses
    running = table.current.nonzero()[0]
    pause[running] = np.array(rest, dtype=float)[table.job[running]]
    return pause


def _extremes(
    table: OptionTable, filled: Rows, one: tuple[np.ufunc, Floats], then: tuple[np.ufunc, Floats]
) -> tuple[Floats, Floats]:
    """Return (J,) a column reduced over each job's rows, and another one over those that give it.

    NaN for jobs without rows.
    """
    extreme = _over_jobs(table, filled, *one)
    reduce, column = then
    best = (one[1] == extreme[table.job]).nonzero()[0]
    of_best = column[best]
    if len(best) > len(filled):  # several rows of a job give it
        of_best = reduce.reduceat(of_best, table.job[best].searchsorted(filled))
    return extreme, _spread(len(table.jobs), filled, of_best)


def _over_jobs(table: OptionTable, filled: Rows, reduce: np.ufunc, column: Floats) -> Floats:
    """Return (J,) a column reduced over each job's rows, NaN for jobs without rows."""
    reduced = reduce.reduceat(column, table.start[filled]) if len(filled) else np.empty(0)
    return _spread(len(table.jobs), filled, reduced)


def _spread(jobs: int, filled: Rows, of_filled: Floats) -> Floats:
    """Return (J,) the values of the jobs with rows, NaN for the others."""
    result = np.full(jobs, np.nan)
    result[filled] = of_filled
    return result


def loss_of_a_stop(o: Outlook, values: Floats) -> Floats:
    """Return (J,) what it loses to stop a running job now: the progress of the pause that it owes.

    If its option is worth v (`values`, (K,), by the second) and would go on for H seconds, at most
    the horizon, a pause of c seconds later costs ``v c/H``: just as much more is every option of
    the job worth than not to run. 0 for jobs that wait.
    """
    t, lost = o.table, np.zeros(len(o.table.jobs))
    rows = np.flatnonzero(t.current)
    own = t.job[rows]
    pause_s = np.array([stop_s(o.round, t.jobs[j]) for j in own.tolist()], dtype=float)
    left_s = o.remaining[own] / t.rate[rows]
    lost[own] = values[rows] * _stop_share(pause_s, left_s, o.horizon_s)
    return lost


def stop_s(round: Round, state: JobState) -> float:
    """Return the pause with which a running job would restart if it were stopped now."""
    assert state.allocation is not None
    costs = state.job.costs or round.costs
    return costs.pause(state.allocation.option.gpus) + state.owed_at(round.now_s)


def _stop_share(pause_s: ArrayLike, left_s: ArrayLike, horizon_s: float) -> Floats:
    """Return c/H of stops with such pauses, of jobs that run and need `left_s` more."""
    pause_s = np.asarray(pause_s, dtype=float)
    lasts_s = np.minimum(np.maximum(left_s, pause_s / MOST_OF_A_STOP), horizon_s)
    share = np.zeros_like(pause_s)
    return np.asarray(np.divide(pause_s, lasts_s, out=share, where=pause_s > 0))


def loss_of_moves(
    round: Round, table: OptionTable, values: Floats, rows: Rows, moved: Collection[str]
) -> float:
    """Return the value lost if `moved` jobs go on on other nodes with the options of `rows`.

    The value v of an option drops to ``v (1 - c/H)`` (`pause_share`) by a pause that is c seconds
    longer than the one that the job is in. Of the `values` (K,), v is what is not `loss_of_a_stop`.
    """
    rows = rows[[table.jobs[j].job.id in moved for j in table.job[rows].tolist()]]
    states, longest_s = [table.jobs[j] for j in table.job[rows].tolist()], horizon_s(round)
    pauses = zip(states, table.gpus[rows].tolist(), strict=True)
    pause_s = np.array([s.pause_at(round.now_s, n, round.costs) for s, n in pauses], dtype=float)
    rest_s = np.array([state.rest_at(round.now_s) for state in states], dtype=float)
    run_s = work_ahead(round)[table.job[rows]] / table.rate[rows]
    stops_s = np.array([stop_s(round, state) for state in states], dtype=float)
    own = values[rows] / (1.0 + _stop_share(stops_s, run_s, longest_s))
    extra_s = np.maximum(pause_s - rest_s, 0.0)
    return float((own * pause_share(extra_s, run_s, longest_s)).sum())
