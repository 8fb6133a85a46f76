"""The objectives of a round by name, which give a value to each option.

An objective gives each row of the option table a value; solvers maximise the sum, and a job that
does not run has the value 0. How a round values speed matters more to the horizon's mean JCT than
the solver. The values also include the losses by stops (`switching_cost.loss_of_stops`) and by
reservations for gangs (`ronda.formulations.objectives.reservation`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import nan
from types import MappingProxyType

import numpy as np

from ronda.formulations.objectives.outlook import Outlook, outlook
from ronda.formulations.objectives.rank import (
    ALONE_S,
    PATIENCE,
    aged_weight,
    gittins_rank,
    rank_values,
)
from ronda.formulations.objectives.reservation import less_reserved, reservation
from ronda.formulations.objectives.switching_cost import horizon_s, loss_of_stops, stop_s
from ronda.formulations.objectives.thrifty_rank import thrifty_rank
from ronda.formulations.options.table import OptionTable
from ronda.instances.base import Floats
from ronda.instances.errors import InputError
from ronda.instances.job import JobState
from ronda.instances.round import Round

Range = tuple[float | None, float, float]
"""The default of a parameter, and the least and the greatest value that it may take."""

MOST = 1e18
"""The greatest value of a parameter without a limit of its own, finite for JSON."""


@dataclass(frozen=True, slots=True)
class Objective:
    """An objective, whose ``value`` maps an outlook and named parameters to values (K,).

    ``parameters`` holds the `Range` of each parameter. An objective that ``minds_power`` needs a
    table built with ``mind_power=True``. The loss by a stop is added to the values of a running job
    unless the objective counts ``stops`` itself. Each value of a ``priced`` objective is a price of
    the job times the rate, so that a round can be valued on the scale of another round
    (`ronda.formulations.objectives.scale`).
    """

    value: Callable[..., Floats]
    parameters: Mapping[str, Range] = field(default_factory=dict)
    minds_power: bool = False
    stops: bool = False
    priced: bool = False


def values(
    round: Round, table: OptionTable, objective: str = "rank", **params: float | None
) -> Floats:
    """Return the value of each row of a table, of which solvers maximise the sum, shape (K,).

    A job that does not run has the value 0. The values include the switching cost
    (`ronda.formulations.objectives.switching_cost`).

    Parameters
    ----------
    objective
        One of `OBJECTIVES`.
    **params
        The `parameters` of the objective. All objectives have ``horizon_s``, the longest time that
        an allocation is expected to last, by default `switching_cost.horizon_s`.

    Raises
    ------
    InputError
        For an unknown objective or parameter, or a parameter out of its range.
    """
    return values_of(outlook_of(round, table, objective, params), objective, params)


def outlook_of(
    round: Round, table: OptionTable, objective: str, given: Mapping[str, float | None]
) -> Outlook:
    """Return the outlook of a round over the horizon of an objective with its `parameters`."""
    lasts_s = parameters(objective, given)["horizon_s"]
    return outlook(round, table, horizon_s(round) if lasts_s is None else lasts_s)


def parameters(
    objective: str, given: Mapping[str, float | None] = MappingProxyType({})
) -> dict[str, float | None]:
    """Return all parameters of an objective, with the given values or the defaults.

    None stands for the default; the default of ``horizon_s`` follows from the round.

    Raises
    ------
    InputError
        For an unknown objective or parameter, or a parameter out of its range.
    """
    known = {**objective_of(objective).parameters, "horizon_s": (None, np.finfo(float).tiny, MOST)}
    chosen = {name: default for name, (default, _, _) in known.items()}
    for name, value in given.items():
        if name not in known:
            expected = f"one of: {', '.join(known)}"
            raise InputError(f"objective {objective}", f"parameter {name!r}", expected)
        if value is not None:
            chosen[name] = _number(f"objective {objective}({name})", value, *known[name][1:])
    return chosen


def _number(place: str, value: float, least: float, greatest: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = nan
    if not least <= number <= greatest:
        raise InputError(place, f"{value}", f"a number from {least:g} to {greatest:g}")
    return number


def values_of(
    seen: Outlook, objective: str, given: Mapping[str, float | None] = MappingProxyType({})
) -> Floats:
    """Return the values of an outlook; the outlook already has the parameter ``horizon_s``."""
    chosen = parameters(objective, given)
    del chosen["horizon_s"]
    form = objective_of(objective)
    worth = form.value(seen, **chosen)
    return with_stops(form, seen, worth, less_reserved(seen, worth, reservation(seen, worth)))


def with_stops(form: Objective, seen: Outlook, worth: Floats, kept: Floats) -> Floats:
    """Return `kept` (K,), and for running jobs add the loss by a stop of the values `worth`."""
    if form.stops:
        return kept
    lost = loss_of_stops(seen.round, seen.table, worth, seen.remaining, seen.horizon_s)
    return kept + seen.by_row(lost)


def minds_power(objective: str) -> bool:
    """Return whether an objective needs a table built with ``mind_power=True``."""
    return objective_of(objective).minds_power


def objective_of(objective: str) -> Objective:
    """Return an objective by its name."""
    try:
        return OBJECTIVES[objective]
    except (KeyError, TypeError):
        known = ", ".join(OBJECTIVES)
        raise InputError("objective", repr(objective), f"one of: {known}") from None


def density(o: Outlook, patience: float, alone_s: float | None) -> Floats:
    """Return ``w rate / remaining work``, which favours the job that can be completed soonest.

    As in `rank`, the weight w grows with the job's age.
    """
    return np.asarray(o.by_row(aged_weight(o, patience, alone_s) / o.remaining) * o.rate)


def snapshot(o: Outlook) -> Floats:
    """Return the seconds by which an option shortens the sum of remaining times of live jobs.

    A waiting job is assumed to wait for W seconds and then to run with its smallest option. So the
    value is ``w (W + R / least rate - left_s)``, where R is the remaining work and W is the mean of
    R / least rate among all jobs. PowerFlow and most MILPs for one round minimise this sum, which
    favours long jobs.
    """
    slowest = o.remaining / o.least_rate
    wait = float(np.nanmean(slowest)) if np.isfinite(slowest).any() else 0.0
    first = o.over_jobs(np.minimum, o.left_s - o.by_row(o.remaining) / o.table.rate)
    for j, state in enumerate(o.table.jobs):
        if state.allocation is not None:  # stopped, it will restart and pay what it owes
            first[j] = stop_s(o.round, state)
    return np.asarray(o.by_row(o.weight * (wait + slowest + first)) - o.by_row(o.weight) * o.left_s)


def weighted_goodput(o: Outlook, power: float, waiting: float) -> Floats:
    """Return the term of a power mean for the speed-up s relative to the job's smallest option.

    It is ``w s^power`` for power > 0, ``w (1 + ln s)`` for power 0, and ``w (waiting - s^power)``
    for power < 0, where a job that does not run costs `waiting`. Pollux maximises the mean of power
    -1; Sia (SOSP 2023) minimises with power -0.5 and waiting 1.1. Slow options (with a low clock)
    keep a small value.
    """
    s = o.rate / o.by_row(o.least_rate)
    if power > 0:
        worth = s**power
    else:
        tiny = np.finfo(float).tiny
        fast = np.maximum(s, tiny)
        worth = waiting - fast**power if power < 0 else 1.0 + np.log(fast)
        worth = np.maximum(worth, 0.01 * np.minimum(s, 1.0))
    return np.asarray(o.by_row(o.weight) * worth)


def sia_goodput(o: Outlook, power: float, waiting: float, delay_s: float) -> Floats:
    """Return Sia's (SOSP 2023) term for the goodput g relative to the job's least goodput min g.

    It is ``w (waiting - (f g / min g)^power)`` for power < 0, and ``w (f g / min g)^power`` for
    power > 0. The minimum is taken among the options of all GPU types at full clock, and f is the
    `restart_factor` of all options but the current one. Options worse than waiting have the value
    0, and so have options at other clocks, except for the current option.
    """
    t = o.table
    full = t.clock >= 1.0
    least = o.over_jobs(np.minimum, np.where(full, t.rate, np.inf))
    least = np.where(np.isfinite(least), least, o.over_jobs(np.minimum, t.rate))
    factor = np.array([restart_factor(o.round, state, delay_s) for state in t.jobs], dtype=float)
    s = t.rate / o.by_row(least) * np.where(t.current, 1.0, o.by_row(factor))
    worth = s**power if power > 0 else np.maximum(waiting - s**power, 0.0)
    return np.where(full | t.current, o.by_row(o.weight) * worth, 0.0)


def makespan(o: Outlook) -> Floats:
    """Return the progress in GPU-seconds, with a higher weight for jobs near the critical path.

    It is ``(1 + (T/C)^2) least_gpus rate / least_rate``. T is the job's remaining time at its best
    rate, and ``C = max(max T, all GPU-seconds left / GPUs)`` is a lower bound on the makespan. The
    first term keeps GPUs working well; the second term alone (longest job first) makes jobs take
    turns.
    """
    shortest = o.remaining / o.most_rate
    area = o.remaining / o.least_rate * o.least_gpus
    gpus = sum(pool.gpus for pool in o.table.pools)
    bound = max(float(np.nanmax(shortest, initial=0.0)), float(np.nansum(area)) / gpus)
    urgency = 1.0 + (shortest / bound) ** 2 if bound > 0 else np.ones_like(shortest)
    return np.asarray(o.by_row(urgency * o.least_gpus / o.least_rate) * o.rate)


def finish_time_fairness(o: Outlook, power: float) -> Floats:
    """Return ``w rho^power rate / fair rate``, which descends on ``sum rho^(power + 1)``.

    rho = (age + remaining time at the fair rate) / (total time at the fair rate) is the finish-time
    fairness of Themis (NSDI 2020). At the fair rate, all jobs have equal shares of the GPUs.
    """
    fair_gpus = sum(pool.gpus for pool in o.table.pools) / max(1, len(o.table.jobs))
    fits = o.table.gpus <= np.maximum(o.by_row(o.least_gpus), fair_gpus)
    fair = o.over_jobs(np.maximum, np.where(fits, o.table.rate, 0.0))
    work, age = o.remaining + o.done, o.round.now_s - o.submit_s
    rho = (np.maximum(age, 0.0) + o.remaining / fair) / (work / fair)
    return np.asarray(o.by_row(o.weight * rho**power / fair) * o.rate)


def deadlines(o: Outlook, best_effort: float) -> Floats:
    """Return ``w (urgency [on time] + best_effort rate / best rate)``.

    An option is on time if the job meets its deadline with it. The urgency is ``L / (L + slack)``,
    where L is `switching_cost.horizon_s` and the slack is the time in seconds that the job could
    lose at its best rate. Jobs without a deadline, and jobs that must miss it, have only the second
    term.
    """
    now, jobs = o.round.now_s, o.table.jobs
    due = np.array([np.inf if s.job.deadline_s is None else s.job.deadline_s for s in jobs]) - now
    slack = due - o.over_jobs(np.minimum, o.left_s)
    scale = horizon_s(o.round)
    urgency = scale / (scale + np.maximum(slack, 0.0))
    on_time = (o.left_s <= o.by_row(due)) & np.isfinite(o.by_row(due))
    speed = o.rate / o.by_row(o.most_rate)
    return np.asarray(o.by_row(o.weight) * (on_time * o.by_row(urgency) + best_effort * speed))


def energy(o: Outlook, eta: float) -> Floats:
    """Return w times the job's least cost per unit of work, divided by the cost of the option.

    The cost is ``eta energy + (1 - eta) full power time`` from Zeus (NSDI 2023). Per unit of work,
    it is ``(eta watts + (1 - eta) gpus P) / rate``, where P is the power per GPU in watts of the
    smallest option at its best rate. Jobs without a power model cost GPU-seconds instead.
    """
    t, gpus = o.table, o.table.gpus.astype(float)
    smallest = (gpus == o.by_row(o.least_gpus)) & (t.rate == o.by_row(o.least_rate))
    full = o.over_jobs(np.maximum, np.where(smallest, t.power_w / gpus, 0.0))
    known = o.by_row(full) > 0
    cost = np.where(known, eta * t.power_w + (1.0 - eta) * gpus * o.by_row(full), gpus) / t.rate
    least = o.by_row(o.over_jobs(np.minimum, cost))
    return np.asarray(o.by_row(o.weight) * least / cost * (o.rate / t.rate))


AGEING: Mapping[str, Range] = {"patience": (PATIENCE, 0.0, MOST), ALONE_S: (None, 0.0, MOST)}


OBJECTIVES: Mapping[str, Objective] = {
    "rank": Objective(rank_values, AGEING, priced=True),
    "gittins": Objective(gittins_rank, AGEING, priced=True),
    "density": Objective(density, AGEING, priced=True),
    "snapshot": Objective(snapshot, stops=True),
    "weighted-goodput": Objective(
        weighted_goodput, {"power": (-0.5, -10.0, 10.0), "waiting": (1.1, 0.0, MOST)}
    ),
    "sia-goodput": Objective(
        sia_goodput,
        {"power": (-0.5, -10.0, 10.0), "waiting": (1.1, 0.0, MOST), "delay_s": (30.0, 0.0, MOST)},
        stops=True,
    ),
    "makespan": Objective(makespan, priced=True),
    "finish-time-fairness": Objective(
        finish_time_fairness, {"power": (2.0, 0.0, 100.0)}, priced=True
    ),
    "deadlines": Objective(deadlines, {"best_effort": (0.1, 0.0, 1.0)}),
    "energy": Objective(energy, {"eta": (0.5, 0.0, 1.0)}, minds_power=True),
    "thrifty-rank": Objective(
        thrifty_rank,
        {"thrift": (0.3, 0.0, 1.0), "hosts": (1.0, 0.0, 1.0), **AGEING},
        minds_power=True,
    ),
}
"""The objectives by name."""


def restart_factor(round: Round, state: JobState, delay_s: float) -> float:
    """Return the factor that lowers the speed-up of all options except the current one.

    It is ``max(age - delay n, 0) / (age + delay)`` after n restarts, and 1 before the first start.
    """
    if not state.started:
        return 1.0
    age_s = max(0.0, round.now_s - state.job.submit_s)
    if age_s + delay_s <= 0:
        return 1.0
    # A job keeps a billionth of its value: it takes GPUs that no other job wants.
    return max((age_s - delay_s * state.restarts) / (age_s + delay_s), 1e-9)
