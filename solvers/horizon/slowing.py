"""Lower clocks for running jobs: what they save and what they lose."""

import msgspec

from ronda.formulations.objectives.outlook import horizon_s
from ronda.formulations.options.application import application_of
from ronda.instances.job import JobState, Option
from ronda.instances.round import Round


def slowings(round: Round) -> list[tuple[str, Option]]:
    """Return steps down in clock of the running jobs, those with the least loss per watt first.

    A change of clock is a restart like any other change: over the time H that it is expected to
    last (`ronda.formulations.objectives.outlook.horizon_s`), it loses the pause and the progress
    that the job then makes less, in seconds of its GPUs at the clock that it has::

        loss(s) = gpus (pause + (H - pause) (1 - rate(s) / rate))

    From each clock a job's next step is the one with the least loss per watt saved, so that a
    job's steps follow its lower convex hull and their order among all jobs is that of a greedy
    fractional knapsack. A later step of a job takes the place of its earlier ones; jobs that must
    not be changed, rigid ones, and those in arrays have no steps.
    """
    found: list[tuple[float, str, Option]] = []
    for state in round.running:
        alone = state.allocation is not None and state.allocation.array is None
        if alone and state.job.preemptible:
            found += [(ratio, state.job.id, option) for ratio, option in _steps(round, state)]
    found.sort(key=lambda step: step[0])
    return [(job, option) for _, job, option in found]


def at_clock(round: Round, state: JobState, clock: float) -> Option:
    """Return what a running job runs on, at another clock; it must not be rigid."""
    if state.allocation is None:
        raise ValueError(f"job {state.job.id!r} does not run")
    held = state.allocation.option
    of = application_of(round, state, held.pool)
    assert of is not None, "the profile of a running job that may be slowed knows its GPUs"
    slower = of.option(held.gpus, held.batch, state.noise, clock=clock, span=held.span)
    if slower is None:
        return held
    return msgspec.structs.replace(held, clock=clock, rate=slower.rate, power_w=slower.power_w)


def _steps(round: Round, state: JobState) -> list[tuple[float, Option]]:
    """Return a job's steps with their loss in GPU-seconds per watt saved, which rises."""
    assert state.allocation is not None
    held = state.allocation.option
    of = application_of(round, state, held.pool)
    if of is None or of.rigid:
        return []
    full = at_clock(round, state, held.clock)
    pause_s = (state.job.costs or round.costs).pause(held.gpus, running=True)
    lasts_s = max(horizon_s(round), pause_s)
    left = []
    for clock in of.shape.pool.gpu_type.clocks:
        if clock < held.clock:
            option = at_clock(round, state, clock)
            slower = max(0.0, 1.0 - option.rate / full.rate)
            lost = held.gpus * (pause_s + (lasts_s - pause_s) * slower)
            left.append((held.power_w - option.power_w, lost, option))
    steps = []
    saved_w = lost_s = 0.0
    while left := [row for row in left if row[0] > saved_w]:
        ratio, best = min(
            (((row[1] - lost_s) / (row[0] - saved_w), row) for row in left), key=lambda x: x[0]
        )
        saved_w, lost_s, option = best
        steps.append((ratio, option))
    return steps
