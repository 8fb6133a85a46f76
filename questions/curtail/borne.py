"""Who bears a reduction: the work that each job falls behind with in the window, by tenant."""

from collections.abc import Mapping
from math import inf

import numpy as np

from ronda.formulations.options.table import OptionTable
from ronda.instances.job import Allocation, JobState
from ronda.instances.round import Round
from ronda.questions.curtail.curve import Bearer

Allocations = Mapping[str, Allocation]


def kind_of_bearers(round: Round) -> str:
    """Return "tenant", "user" or "partition": the first that any live job names."""
    for kind in ("tenant", "user"):
        if any(getattr(state.job, kind) is not None for state in round.jobs):
            return kind
    return "partition"


def borne(
    round: Round, table: OptionTable, before: Allocations, after: Allocations, for_s: float
) -> tuple[Bearer, ...]:
    """Return who bears the step from one plan to another, most GPU-seconds first.

    Each job runs for the whole window as the plan says, after the pause of a change, and from then
    on with the faster of both options; a job that is stopped pays for its restart. So a job is
    late by what it has lost by the end of the window, if the GPUs for the faster option are free
    then. The work that it has not done by then counts as the fewest GPU-seconds that any of its
    options takes for it.
    """
    kind, found = kind_of_bearers(round), dict[str, Bearer]()
    each = np.zeros(len(table.jobs))  # the most work per GPU-second
    np.maximum.at(each, table.job, table.rate / table.own_gpus)
    most = each.tolist()
    for j, state in enumerate(table.jobs):
        held = before.get(state.job.id), after.get(state.job.id)
        fastest = max(filter(None, held), key=lambda a: a.option.rate, default=None)
        if fastest is None:
            continue
        rate = fastest.option.rate
        ends_s, work = zip(*(_outlook(round, state, a, rate, for_s) for a in held), strict=True)
        name = str(getattr(state.job, kind) or "(none)")
        known = found.get(name, Bearer(name=name, jobs=0, delay_s=0.0, gpu_s=0.0))
        found[name] = Bearer(
            name=name,
            jobs=known.jobs + (ends_s[1] > ends_s[0]),
            delay_s=known.delay_s + ends_s[1] - ends_s[0],
            gpu_s=known.gpu_s + (work[0] - work[1]) / max(most[j], rate / fastest.option.own_gpus),
        )
    return tuple(sorted(found.values(), key=lambda bearer: (-bearer.gpu_s, bearer.name)))


def _outlook(
    round: Round, state: JobState, held: Allocation | None, rate: float, for_s: float
) -> tuple[float, float]:
    """Return the seconds until a job ends, and its work by the end of a window.

    After the window it goes on at `rate`. A job of unknown size ends when it has done as much as it
    would have done in the window at that rate.
    """
    costs, left = state.job.costs or round.costs, state.remaining_at(round.now_s)
    size = rate * for_s if left is None else left
    if held is None:
        now = state.allocation
        again_s = 0.0 if now is None else costs.restart(now.option.gpus)
        return for_s + again_s + size / rate, 0.0
    pause_s = state.pause_at(round.now_s, held.option.gpus, round.costs)
    if state.allocation is not None and state.allocation.goes_on(held):
        pause_s = state.rest_at(round.now_s)
    done = min(held.option.rate * max(0.0, for_s - pause_s), inf if left is None else left)
    if done >= size:
        return pause_s + size / held.option.rate, done
    return max(for_s, pause_s) + (size - done) / rate, done
