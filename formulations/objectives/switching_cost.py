"""The switching cost, which is the progress that a job loses by a start, stop, move or new option.

An option that differs from the current one pauses its job for c seconds, as long as the driver
charges (`JobState.pause_at`). A change that cuts a pause short owes the rest of it in addition to
its own pause. If the option lasts for H seconds, its rate falls to ``rate (1 - c/H)`` on average
(`pause_share`), which is never negative and rises with the rate.
"""

from collections.abc import Collection

import numpy as np
from numpy.typing import ArrayLike

from ronda.formulations.objectives.remaining_work import work_ahead
from ronda.formulations.options.table import OptionTable
from ronda.formulations.watts import may_sleep
from ronda.instances.base import Floats, Rows
from ronda.instances.clock import checkpoint
from ronda.instances.job import JobState
from ronda.instances.models.cache import per_record
from ronda.instances.round import Round
from ronda.instances.violation import LONGEST_S


@per_record(maxsize=2)
def horizon_s(round: Round) -> float:
    """Return the longest time in seconds that an allocation is expected to last.

    A round shows how long allocations lasted: its live jobs have started t seconds ago in all and
    have changed n times since. As a job that grows for lack of others shrinks when they come, half
    of the changes undo another one, and a change has to pay for both pauses in half of the time
    between two of them. So the time is ``(t/2 + L) / (n + 1)``, as if one more allocation had
    lasted for L seconds, where L is the longest of ten rounds, 600 s and two restarts, or half of
    it where nodes may sleep. It is at most L, as hosts may not count changes, and at least two
    restarts. (With restarts of 600 s on pollux-1, a horizon of 600 s keeps jobs from ever growing
    and triples the mean JCT; two restarts are the best of one to twenty there.)
    """
    costs = round.costs
    restart_s = max((pause_s for _, pause_s in costs.restart_by_gpus), default=costs.restart_s)
    longest_s = min(max(10.0 * round.length_s, 600.0, 2.0 * restart_s), LONGEST_S)
    longest_s = 0.5 * longest_s if may_sleep(round) else longest_s
    begun = [state for state in round.jobs if state.started]
    ages_s = sum(max(0.0, round.now_s - state.job.submit_s) for state in begun)
    seen_s = (0.5 * ages_s + longest_s) / (sum(state.restarts for state in begun) + 1)
    return min(max(seen_s, 2.0 * restart_s), longest_s)


def pause_share(pause_s: Floats, run_s: Floats, longest_s: Floats | float) -> Floats:
    """Return the shares c/H that pauses of c seconds take of the time H that options last.

    An option lasts until the job has run for the `run_s` seconds that it still needs, but at most
    for the `longest_s` of any allocation, so ``H = min(c + run, longest)``, and at least c.
    """
    lasts_s = np.maximum(np.minimum(pause_s + run_s, longest_s), pause_s)
    share = np.zeros(lasts_s.shape)
    return np.asarray(np.divide(pause_s, lasts_s, out=share, where=lasts_s > 0))


def pause_by_row(round: Round, table: OptionTable) -> Floats:
    """Return the seconds without progress if a job takes each row now, shape (K,).

    They are the rest of the job's pause for the current row, and for other rows the pause that the
    driver would charge (`JobState.pause_at`).
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


def stop_s(round: Round, state: JobState) -> float:
    """Return the pause in seconds that a running job would pay at its restart if it stopped now."""
    assert state.allocation is not None
    costs = state.job.costs or round.costs
    return costs.pause(state.allocation.option.gpus) + state.owed_at(round.now_s)


def loss_of_stops(
    round: Round, table: OptionTable, values: Floats, remaining: Floats, horizon_s: float
) -> Floats:
    """Return the value that each running job loses by a stop, for its later pause, shape (J,).

    If the job's current option has the value v of `values` (K,) per second and would last for H
    seconds, at most `horizon_s`, a later pause of c seconds loses ``v c/H``. The loss is added to
    the value of every option of the job. `remaining` (J,) is the remaining work. Jobs that wait
    lose 0.
    """
    lost = np.zeros(len(table.jobs))
    rows = np.flatnonzero(table.current)
    own = table.job[rows]
    pause_s = np.array([stop_s(round, table.jobs[j]) for j in own.tolist()], dtype=float)
    left_s = remaining[own] / table.rate[rows]
    lost[own] = values[rows] * _stop_share(pause_s, left_s, horizon_s)
    return lost


def _stop_share(pause_s: ArrayLike, left_s: ArrayLike, horizon_s: float) -> Floats:
    """Return the shares c/H for stops with `pause_s` of jobs that still need `left_s` seconds."""
    pause_s = np.asarray(pause_s, dtype=float)
    # A stop loses at most ten times the value of the job's option.
    lasts_s = np.minimum(np.maximum(left_s, pause_s / 10.0), horizon_s)
    share = np.zeros_like(pause_s)
    return np.asarray(np.divide(pause_s, lasts_s, out=share, where=pause_s > 0))


def loss_of_moves(
    round: Round, table: OptionTable, values: Floats, rows: Rows, moved: Collection[str]
) -> float:
    """Return the value lost if the `moved` jobs continue on other nodes with the options `rows`.

    A pause that is c seconds longer than the rest of the current one lowers the value v of an
    option to ``v (1 - c/H)`` (`pause_share`). v is the option's entry of `values` (K,) without the
    part from `loss_of_stops`.
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
