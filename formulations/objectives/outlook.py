"""What the objectives look at: each job's remaining work, pauses, and the span of its options."""

from math import nan
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from ronda.formulations.options.table import OptionTable
from ronda.instances.arrays import Floats, Rows
from ronda.instances.round import Round


class Rowed(NamedTuple):
    """Which rows are whose.

    Attributes
    ----------
    jobs
        How many jobs there are.
    job
        (K,) the job of each row.
    filled, start
        The jobs that have rows, ascending, and where these start.
    """

    jobs: int
    job: Rows
    filled: Rows
    start: Rows


class Extent(msgspec.Struct, frozen=True, eq=False):
    """What the options of a table say whatever runs now; (J,) arrays, NaN without an option.

    Attributes
    ----------
    rows
        Which rows are whose.
    least_gpus, least_rate, most_gpus, most_rate
        As of `Outlook`.
    weight, submit_s, guessed
        As of `Outlook`.
    spread_s
        Seconds from the first submission to the last one.
    """

    rows: Rowed
    least_gpus: Floats
    least_rate: Floats
    most_gpus: Floats
    most_rate: Floats
    weight: Floats
    submit_s: Floats
    guessed: NDArray[np.bool_]
    spread_s: float


class Outlook(msgspec.Struct, frozen=True, eq=False):
    """A round as its objectives see it; (J,) arrays are NaN where a job has no option.

    Attributes
    ----------
    round, table
        The round and its options.
    weight
        (J,) importance of the jobs.
    done
        (J,) expected work done.
    remaining, guessed
        (J,) expected work left, and whether that is a guess as the job's size is not known.
    submit_s
        (J,) when the jobs were submitted.
    rate
        (K,) work per second, less what is lost by the pause if the option is not the current one.
    left_s
        (K,) expected seconds until completion if the job keeps the option, its pause included.
    least_gpus, least_rate
        (J,) the fewest GPUs of any option, and the best rate with so few.
    most_gpus, most_rate
        (J,) the best rate of any option, and the fewest GPUs that give it.
    """

    round: Round
    table: OptionTable
    weight: Floats
    done: Floats
    remaining: Floats
    guessed: NDArray[np.bool_]
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
        return _over_jobs(extent(self.table).rows, reduce, column)


def horizon_s(round: Round) -> float:
    """Return the seconds that an allocation is expected to last at most: ten rounds, or 600 s."""
    return max(10.0 * round.length_s, 600.0)


def outlook(round: Round, table: OptionTable, horizon_s: float) -> Outlook:
    """Return the outlook of a round.

    A job whose size is not known is expected to need as much work as it has done: what holds for
    sizes with a heavy (Pareto, exponent 2) tail, and what ranks jobs by attained service as
    Tiresias' LAS does (Gu et al., NSDI 2019). It counts as at least one round at its lowest rate.

    **Switching cost.** An option that differs from what the job runs on pauses the job. Over the
    time H that the new allocation is expected to last, at most `horizon_s`, the rate is
    ``rate (1 - c/H)`` on average. If the job completes before, ``H = c + R/rate`` for remaining
    work R, and the rate is ``R / (c + R/rate)``: never negative, and rising with the rate. As c
    counts only what the pause is longer than that of the job's option with the shortest pause:
    a waiting job must start some time, so that costs nothing; nor does the pause that a job is in.

    Parameters
    ----------
    round, table
        The round and its options.
    horizon_s
        Longest time in seconds that an allocation is expected to last.
    """
    rate, job, of = table.rate, table.job, extent(table)
    done, remaining, pause = _until_now(round, table)
    if np.count_nonzero(of.guessed):
        attained = np.maximum(done, np.nan_to_num(of.least_rate) * round.length_s)
        remaining = np.where(of.guessed, attained, remaining)
    extra = pause - _over_jobs(of.rows, np.minimum, pause)[job]
    running_s = remaining[job] / rate
    lasts = np.maximum(np.minimum(extra + running_s, horizon_s), extra)
    kept = 1.0 - extra / lasts  # it lasts some time: there is always work left
    return Outlook(
        round=round,
        table=table,
        weight=of.weight,
        done=done,
        remaining=remaining,
        guessed=of.guessed,
        submit_s=of.submit_s,
        rate=rate * kept,
        left_s=pause + running_s,
        least_gpus=of.least_gpus,
        least_rate=of.least_rate,
        most_gpus=of.most_gpus,
        most_rate=of.most_rate,
    )


def extent(table: OptionTable) -> Extent:
    """Return what the options of a table say whatever runs now."""
    return table.derive("extent", _extent)


def _extent(table: OptionTable) -> Extent:
    jobs = [state.job for state in table.jobs]
    gpus = table.gpus.astype(float)
    filled = (table.start[1:] > table.start[:-1]).nonzero()[0]
    rows = Rowed(len(jobs), table.job, filled, table.start[filled])
    least_gpus, least_rate = _extremes(rows, np.minimum, gpus, np.maximum, table.rate)
    most_rate, most_gpus = _extremes(rows, np.maximum, table.rate, np.minimum, gpus)
    submit_s = [job.submit_s for job in jobs]
    return Extent(
        rows=rows,
        least_gpus=least_gpus,
        least_rate=least_rate,
        most_gpus=most_gpus,
        most_rate=most_rate,
        weight=np.array([job.weight for job in jobs], dtype=float),
        submit_s=np.array(submit_s, dtype=float),
        guessed=np.array([job.estimate is None for job in jobs], dtype=bool),
        spread_s=max(submit_s) - min(submit_s) if jobs else 0.0,
    )


def _until_now(round: Round, table: OptionTable) -> tuple[Floats, Floats, Floats]:
    """Return (J,) the expected work done and left, and (K,) the pause if a job takes a row now.

    The work is that of `JobState.done_at` and `JobState.remaining_at`, NaN if the size is not
    known. The pause, in seconds without progress, is what is left of that for the current row;
    else a start or a restart. One pass over the jobs gives all: it is what small rounds wait for.
    """
    now_s, usual = round.now_s, round.costs
    done, left, whole, rest, by_gpus = [], [], [], [], []
    for state in table.jobs:
        job, allocation, did = state.job, state.allocation, state.done
        costs, estimate = job.costs or usual, job.estimate
        if allocation is None:
            rest.append(0.0)
        else:
            ran_s = now_s - state.since_s
            if ran_s > 0.0:
                did += allocation.option.rate * ran_s
            rest.append(-ran_s if ran_s < 0.0 else 0.0)
        done.append(did)
        if estimate is None:
            left.append(nan)
        else:
            work = estimate.work
            left.append(work - did if work > did else 0.01 * work)
        if not state.started:
            whole.append(costs.start_s)
        elif allocation is not None and costs.scale_s is not None:
            whole.append(costs.scale_s)  # in place
        else:
            if costs.restart_by_gpus:
                by_gpus.append((len(whole), costs))
            whole.append(costs.restart_s)
    pause = np.array(whole, dtype=float)[table.job]
    for j, costs in by_gpus:
        own = slice(table.start[j], table.start[j + 1])
        pause[own] = [costs.restart(n) for n in table.gpus[own].tolist()]
    running = table.current.nonzero()[0]
    pause[running] = np.array(rest, dtype=float)[table.job[running]]
    return np.array(done, dtype=float), np.array(left, dtype=float), pause


def _extremes(
    rows: Rowed, reduce: np.ufunc, column: Floats, then: np.ufunc, other: Floats
) -> tuple[Floats, Floats]:
    """Return (J,) a column reduced over each job's rows, and another one over those that give it.

    NaN for jobs without rows.
    """
    extreme = _spread(rows, reduce.reduceat(column, rows.start))
    best = (column == extreme[rows.job]).nonzero()[0]
    of_best = other[best]
    if len(best) > len(rows.filled):  # several rows of a job give it
        of_best = then.reduceat(of_best, rows.job[best].searchsorted(rows.filled))
    return extreme, _spread(rows, of_best)


def _over_jobs(rows: Rowed, reduce: np.ufunc, column: Floats) -> Floats:
    """Return (J,) a column reduced over each job's rows, NaN for jobs without rows."""
    return _spread(rows, reduce.reduceat(column, rows.start))


def _spread(rows: Rowed, of_filled: Floats) -> Floats:
    """Return (J,) what there is of the jobs with rows, NaN for the others."""
    if len(of_filled) == rows.jobs:
        return of_filled
    result = np.full(rows.jobs, np.nan)
    result[rows.filled] = of_filled
    return result
