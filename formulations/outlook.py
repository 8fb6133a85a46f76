"""What the objectives look at: each job's remaining work, pauses, and the span of its options."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.options import OptionTable
from ronda.instances.instance import Round

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


class Extent(NamedTuple):
    """What the options of a table say whatever runs now; (J,) arrays, NaN without an option.

    Attributes
    ----------
    gpus
        (K,) GPUs of the options, as real numbers.
    least_gpus, least_rate, most_gpus, most_rate
        As of `Outlook`.
    weight, submit_s, work
        Of the jobs; `work` is the expected size, NaN if it is not known.
    guessed
        Whether it is not known.
    spread_s
        Seconds from the first submission to the last one.
    """

    gpus: Floats
    least_gpus: Floats
    least_rate: Floats
    most_gpus: Floats
    most_rate: Floats
    weight: Floats
    submit_s: Floats
    work: Floats
    guessed: NDArray[np.bool_]
    spread_s: float


class Outlook(NamedTuple):
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
        return _over_jobs(self.table, reduce, column)


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
    done = np.array([state.done_at(round.now_s) for state in table.jobs], dtype=float)
    remaining = _remaining(of, done, round.length_s)
    pause = pause_s(round, table)
    extra = pause - _over_jobs(table, np.minimum, pause)[job]
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
    jobs, rate, gpus = [state.job for state in table.jobs], table.rate, table.gpus.astype(float)
    least_gpus = _over_jobs(table, np.minimum, gpus)
    most_rate = _over_jobs(table, np.maximum, rate)
    smallest = np.where(gpus == least_gpus[table.job], rate, 0.0)
    fastest = np.where(rate == most_rate[table.job], gpus, np.inf)
    work = [np.nan if job.estimate is None else job.estimate.work for job in jobs]
    works, submit_s = np.array(work, dtype=float), [job.submit_s for job in jobs]
    return Extent(
        gpus=gpus,
        least_gpus=least_gpus,
        least_rate=_over_jobs(table, np.maximum, smallest),
        most_gpus=_over_jobs(table, np.minimum, fastest),
        most_rate=most_rate,
        weight=np.array([job.weight for job in jobs], dtype=float),
        submit_s=np.array(submit_s, dtype=float),
        work=works,
        guessed=np.isnan(works),
        spread_s=max(submit_s) - min(submit_s) if jobs else 0.0,
    )


def pause_s(round: Round, table: OptionTable) -> Floats:
    """Return (K,) the seconds without progress if a job takes a row now.

    What is left of the pause for its current row; else a start or a restart.
    """
    usual, whole, by_gpus = round.costs, [], []
    for j, state in enumerate(table.jobs):
        costs = state.job.costs or usual
        if not state.started:
            whole.append(costs.start_s)
        elif state.allocation is not None and costs.scale_s is not None:
            whole.append(costs.scale_s)  # in place
        else:
            whole.append(costs.restart_s)
            if costs.restart_by_gpus:
                by_gpus.append((j, costs))
    pause = np.array(whole, dtype=float)[table.job]
    for j, costs in by_gpus:
        own = slice(table.start[j], table.start[j + 1])
        pause[own] = [costs.restart(n) for n in table.gpus[own].tolist()]
    running = table.current.nonzero()[0]
    jobs, now_s = table.jobs, round.now_s
    pause[running] = [max(jobs[j].since_s - now_s, 0.0) for j in table.job[running].tolist()]
    return pause


def _remaining(of: Extent, done: Floats, length_s: float) -> Floats:
    """Return (J,) the expected work left (see `outlook` and `JobState.remaining_at`)."""
    left = of.work - done
    under_way = left > 0
    if np.count_nonzero(under_way) == len(left):  # all sizes are known, none is outlived
        return left
    known = np.where(under_way, left, 0.01 * of.work)
    return np.where(of.guessed, np.maximum(done, np.nan_to_num(of.least_rate) * length_s), known)


def _over_jobs(table: OptionTable, reduce: np.ufunc, column: Floats) -> Floats:
    """Return (J,) a column reduced over each job's rows, NaN for jobs without rows."""
    some, start = filled(table)
    of_some = np.asarray(reduce.reduceat(column, start))
    if len(some) == len(table.jobs):
        return of_some
    result = np.full(len(table.jobs), np.nan)
    result[some] = of_some
    return result


def filled(table: OptionTable) -> tuple[Rows, Rows]:
    """Return the jobs that have rows, ascending, and where these start."""
    return table.derive("filled", _filled)


def _filled(table: OptionTable) -> tuple[Rows, Rows]:
    some = (table.start[1:] > table.start[:-1]).nonzero()[0]
    return some, table.start[some]
