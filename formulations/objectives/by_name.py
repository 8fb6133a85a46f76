"""What the options of a round are worth: the objectives of its optimisation problem.

A form gives each row of the option table a value, to be maximised in sum; not to run is worth 0.
The value that a round gives to speed decides the horizon's mean JCT more than the solver does.
To each form's values comes what is lost by stops (`outlook.loss_of_a_stop`) and taken from gangs.

**Reservations**: what jobs that nobody may stop take from a gang that waits for their GPUs. Jobs
that may be stopped make room for a gang as soon as it is worth more than they are. Those that may
not keep it waiting until they end, and it never fits as long as others like them start. So
the gang at the head, the one of most value of those that cannot start, is given the earliest start
S for which enough of them have ended, by what is believed of them. As long as some of the F GPUs
that are free now must stay free for that, an option of n of them that is expected to last for L > S
seconds and cannot be stopped loses ::

    (1 - S / L) v n / F

by the second, with v the value of the gang: all of v if they all were taken for good. What ends
before S loses nothing (backfill). GPUs stay idle (draining) where the gang is worth more than what
else could run on them, which sooner or later it is, as it ages.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import nan
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ronda.formulations.objectives.outlook import (
    Outlook,
    horizon_s,
    loss_of_a_stop,
    outlook,
    stop_s,
)
from ronda.formulations.objectives.rank import (
    ALONE_S,
    PATIENCE,
    aged_weight,
    gittins_rank,
    rank_values,
)
from ronda.formulations.objectives.thrifty_rank import thrifty_rank
from ronda.formulations.options.table import OptionTable
from ronda.instances.arrays import Floats, Mask
from ronda.instances.errors import InputError
from ronda.instances.job import JobState
from ronda.instances.round import Round

LEAST_FACTOR = 1e-9
"""Instead of a penalty that leaves nothing: such a job takes GPUs that nobody else wants."""

Range = tuple[float | None, float, float]
"""Of a parameter: its default, and the least and the greatest value that it may take."""

MOST = 1e18


HORIZON_S: Range = (None, np.finfo(float).tiny, MOST)
"""For how many seconds at most an allocation is expected to last: of all forms."""


@dataclass(frozen=True, slots=True)
class Form:
    """An objective: ``value`` maps an outlook, and parameters by name, to (K,) values.

    ``parameters`` holds the default of each and the least and greatest value that it may take,
    all finite: results are kept as JSON.
    Forms that mind power need a table built with ``mind_power=True``. What it loses to stop a
    running job is added to its values unless the form counts ``stops`` by itself. With `priced`
    values are a number of the job times the rate, so that a round can be valued on another one's
    scale (`ronda.formulations.objectives.scale`).
    """

    value: Callable[..., Floats]
    parameters: Mapping[str, Range] = field(default_factory=dict)
    minds_power: bool = False
    stops: bool = False
    priced: bool = False


def values(
    round: Round, table: OptionTable, objective: str = "rank", **params: float | None
) -> Floats:
    """Return (K,) what each row of a table is worth, to be maximised; not to run is worth 0.

    The cost of switching is inside: see `outlook.outlook` and `outlook.loss_of_a_stop`.

    Parameters
    ----------
    objective
        One of `OBJECTIVES`.
    **params
        The form's `parameters`. All forms know ``horizon_s``: for how long at most an allocation
        is expected to last, by default `outlook.horizon_s`.

    Raises
    ------
    InputError
        For an unknown objective or parameter, or a parameter out of its range.
    """
    return values_of(outlook_of(round, table, objective, params), objective, params)


def outlook_of(
    round: Round, table: OptionTable, objective: str, given: Mapping[str, float | None]
) -> Outlook:
    """Return the outlook of a round over the horizon that an objective's `parameters` give."""
    lasts_s = parameters(objective, given)["horizon_s"]
    return outlook(round, table, horizon_s(round) if lasts_s is None else lasts_s)


def parameters(
    objective: str, given: Mapping[str, float | None] = MappingProxyType({})
) -> dict[str, float | None]:
    """Return all parameters of an objective, with the values given or their defaults.

    None stands for the default: of ``horizon_s``, what the round says.

    Raises
    ------
    InputError
        For an unknown objective or parameter, or a parameter out of its range.
    """
    known = {**form_of(objective).parameters, "horizon_s": HORIZON_S}
    chosen = {name: default for name, (default, _, _) in known.items()}
    for name, value in given.items():
        if name not in known:
            expected = f"one of: {', '.join(known)}"
            raise InputError(f"objective {objective}", f"parameter {name!r}", expected)
        if value is not None:
            chosen[name] = _number(f"objective {objective}({name})", value, *known[name][1:])
    return chosen


def _number(place: str, value: float, least: float, greatest: float) -> float:
    """Return a value as a number, or refuse one that is none or out of range."""
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
    """Return the values of an outlook, which has its horizon, with `parameters` of the form."""
    chosen = parameters(objective, given)
    del chosen["horizon_s"]
    form = form_of(objective)
    worth = form.value(seen, **chosen)
    return with_stops(form, seen, worth, less_reserved(seen, worth, reservation(seen, worth)))


def with_stops(form: Form, seen: Outlook, worth: Floats, kept: Floats) -> Floats:
    """Return (K,) what is kept of the values `worth`, with what is lost by stops.

    That is added to all rows of jobs that run.
    """
    return kept if form.stops else kept + seen.by_row(loss_of_a_stop(seen, worth))


class Reservation(NamedTuple):
    """The start of a job in `in_s` seconds on a pool, and its value by GPU that is free now."""

    job: int
    pool: int
    in_s: float
    worth: float


def less_reserved(o: Outlook, values: Floats, head: Reservation | None) -> Floats:
    """Return (K,) values less what options take from the gang at the head, if there is one."""
    if head is None:
        return values
    t = o.table
    takes = _stays(o)[t.job] & ~t.must_run[t.job] & (t.pool == head.pool) & (t.job != head.job)
    beyond = np.maximum(0.0, 1.0 - head.in_s / np.maximum(o.left_s, head.in_s))
    return np.where(takes, values - head.worth * t.gpus * beyond, values)


def _stays(o: Outlook) -> Mask:
    return np.array([not state.job.preemptible for state in o.table.jobs], dtype=bool)


def reservation(o: Outlook, values: Floats) -> Reservation | None:
    """Return the reservation of the gang of most value that does not fit next to who stays.

    None if every job does, or enough end in time. A gang counts by its narrowest options.
    """
    if not _stays(o).any():
        return None
    t = o.table
    staying = t.must_run[t.job] & t.current
    held = np.bincount(t.pool[staying], t.gpus[staying], minlength=len(t.pools))
    free = np.array([pool.gpus for pool in t.pools]) - held
    waits = ~t.must_run[t.job] & (t.gpus == o.by_row(o.least_gpus)) & (values > 0)
    waits &= _never(o, t.gpus <= free[t.pool])[t.job]
    if not waits.any():
        return None
    k = int(np.where(waits, values, -np.inf).argmax())
    pool, gpus = int(t.pool[k]), float(t.gpus[k])
    own = staying & (t.pool == pool)
    order = np.argsort(o.left_s[own], kind="stable")
    ends_s, there = o.left_s[own][order], free[pool] + np.cumsum(t.gpus[own][order])
    enough = int(np.searchsorted(there, gpus))
    if enough == len(there) or there[enough] - gpus >= free[pool]:
        return None  # the pool is too small today, or what ends leaves room for others
    worth = float(values[k]) / float(free[pool])
    return Reservation(int(t.job[k]), pool, float(ends_s[enough]), worth)


def _never(o: Outlook, rows: Mask) -> Mask:
    """Return (J,) whether none of a job's rows is one of some."""
    found = np.ones(len(o.table.jobs), dtype=bool)
    found[o.table.job[rows]] = False
    return found


def minds_power(objective: str) -> bool:
    """Return whether an objective looks at watts: build its table with ``mind_power=True`` then."""
    return form_of(objective).minds_power


def form_of(objective: str) -> Form:
    """Return an objective by its name."""
    try:
        return OBJECTIVES[objective]
    except (KeyError, TypeError):
        known = ", ".join(OBJECTIVES)
        raise InputError("objective", repr(objective), f"one of: {known}") from None


def density(o: Outlook, patience: float, alone_s: float | None) -> Floats:
    """Return ``w rate / remaining work``: the job that can be completed soonest first.

    The weight w grows with a job's age, as it does in `rank`.
    """
    return np.asarray(o.by_row(aged_weight(o, patience, alone_s) / o.remaining) * o.rate)


def snapshot(o: Outlook) -> Floats:
    """Return by how many seconds an option shortens the sum of remaining times, as things are now.

    A job that waits is taken to wait for W, then to run at its smallest option for the rest:
    value ``w (W + R / least rate - left_s)``, with W the mean of all jobs' R / least rate. This is
    what PowerFlow and most MILPs of one round minimise; it favours long jobs.
    """
    slowest = o.remaining / o.least_rate
    wait = float(np.nanmean(slowest)) if np.isfinite(slowest).any() else 0.0
    first = o.over_jobs(np.minimum, o.left_s - o.by_row(o.remaining) / o.table.rate)
    for j, state in enumerate(o.table.jobs):
        if state.allocation is not None:  # stopped, it will restart and pay what it owes
            first[j] = stop_s(o.round, state)
    return np.asarray(o.by_row(o.weight * (wait + slowest + first)) - o.by_row(o.weight) * o.left_s)


def weighted_goodput(o: Outlook, power: float, waiting: float) -> Floats:
    """Return a power mean's term of the speed-up s over the job's smallest option.

    ``w s^power`` for power > 0; ``w (waiting - s^power)`` for power < 0, where a job that does not
    run costs `waiting`; ``w (1 + ln s)`` for 0. Pollux maximises the mean of power -1; Sia (SOSP
    2023) minimises with -0.5 and waiting 1.1. Slow options (a low clock) keep a small value.
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
    """Return Sia's (SOSP 2023) term of the goodput g over the least one of the job's options.

    ``w (waiting - (f g / min g)^power)`` for power < 0, ``w (f g / min g)^power`` for power > 0,
    over the options of all GPU types at full clock; f is the `restart_factor` of what differs from
    what the job runs on. Other clocks, and what is worse than waiting, are worth nothing, unless
    the job runs on such a clock.
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
    """Return progress in GPU-seconds at the smallest option, more for jobs near the critical path.

    ``(1 + (T/C)^2) least_gpus rate / least_rate`` with T the job's remaining time at its best rate
    and ``C = max(max T, all GPU-seconds left / GPUs)``, a lower bound on the makespan. The first
    term keeps GPUs working well; the second alone (longest job first) makes jobs take turns.
    """
    shortest = o.remaining / o.most_rate
    area = o.remaining / o.least_rate * o.least_gpus
    gpus = sum(pool.gpus for pool in o.table.pools)
    bound = max(float(np.nanmax(shortest, initial=0.0)), float(np.nansum(area)) / gpus)
    urgency = 1.0 + (shortest / bound) ** 2 if bound > 0 else np.ones_like(shortest)
    return np.asarray(o.by_row(urgency * o.least_gpus / o.least_rate) * o.rate)


def finish_time_fairness(o: Outlook, power: float) -> Floats:
    """Return ``w rho^power rate / fair rate``: descent on ``sum rho^(power + 1)``.

    rho = (age + remaining time at the fair rate) / (total work at the fair rate) is Themis'
    (NSDI 2020) finish-time fairness, with the rate at an equal share of the GPUs of all jobs.
    """
    fair_gpus = sum(pool.gpus for pool in o.table.pools) / max(1, len(o.table.jobs))
    fits = o.table.gpus <= np.maximum(o.by_row(o.least_gpus), fair_gpus)
    fair = o.over_jobs(np.maximum, np.where(fits, o.table.rate, 0.0))
    work, age = o.remaining + o.done, o.round.now_s - o.submit_s
    rho = (np.maximum(age, 0.0) + o.remaining / fair) / (work / fair)
    return np.asarray(o.by_row(o.weight * rho**power / fair) * o.rate)


def deadlines(o: Outlook, best_effort: float) -> Floats:
    """Return ``w (urgency [on time] + best_effort rate / best rate)``.

    An option is on time if the job meets its deadline with it; urgency is ``L / (L + slack)``
    with slack the seconds that the job could still lose at its best rate, L `outlook.horizon_s`.
    Jobs without a deadline, or that cannot meet theirs, only have the second term.
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
    """Return the least cost of a unit of the job's work over the option's, times w.

    The cost is Zeus' (NSDI 2023) ``eta energy + (1 - eta) full power time``, per unit of work
    ``(eta watts + (1 - eta) gpus P) / rate`` with P the watts per GPU of the smallest option at
    its best rate. Jobs without a power model cost GPU-seconds instead.
    """
    t, gpus = o.table, o.table.gpus.astype(float)
    smallest = (gpus == o.by_row(o.least_gpus)) & (t.rate == o.by_row(o.least_rate))
    full = o.over_jobs(np.maximum, np.where(smallest, t.power_w / gpus, 0.0))
    known = o.by_row(full) > 0
    cost = np.where(known, eta * t.power_w + (1.0 - eta) * gpus * o.by_row(full), gpus) / t.rate
    least = o.by_row(o.over_jobs(np.minimum, cost))
    return np.asarray(o.by_row(o.weight) * least / cost * (o.rate / t.rate))


AGEING: Mapping[str, Range] = {"patience": (PATIENCE, 0.0, MOST), ALONE_S: (None, 0.0, MOST)}


OBJECTIVES: Mapping[str, Form] = {
    "rank": Form(rank_values, AGEING, priced=True),
    "gittins": Form(gittins_rank, AGEING, priced=True),
    "density": Form(density, AGEING, priced=True),
    "snapshot": Form(snapshot, stops=True),
    "weighted-goodput": Form(
        weighted_goodput, {"power": (-0.5, -10.0, 10.0), "waiting": (1.1, 0.0, MOST)}
    ),
    "sia-goodput": Form(
        sia_goodput,
        {"power": (-0.5, -10.0, 10.0), "waiting": (1.1, 0.0, MOST), "delay_s": (30.0, 0.0, MOST)},
        stops=True,
    ),
    "makespan": Form(makespan, priced=True),
    "finish-time-fairness": Form(finish_time_fairness, {"power": (2.0, 0.0, 100.0)}, priced=True),
    "deadlines": Form(deadlines, {"best_effort": (0.1, 0.0, 1.0)}),
    "energy": Form(energy, {"eta": (0.5, 0.0, 1.0)}, minds_power=True),
    "thrifty-rank": Form(
        thrifty_rank,
        {"thrift": (0.3, 0.0, 1.0), "hosts": (1.0, 0.0, 1.0), **AGEING},
        minds_power=True,
    ),
}
"""All objectives by name."""


def restart_factor(round: Round, state: JobState, delay_s: float) -> float:
    """Return by what the speedup of anything but what a job runs on is multiplied.

    ``max(age - delay n, 0) / (age + delay)`` after n restarts; 1 before the first start.
    """
    if not state.started:
        return 1.0
    age_s = max(0.0, round.now_s - state.job.submit_s)
    if age_s + delay_s <= 0:
        return 1.0
    return max((age_s - delay_s * state.restarts) / (age_s + delay_s), LEAST_FACTOR)
