"""The resources that the jobs of an instance share over time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ronda.formulations.bounds.least_needs import Needs
from ronda.instances.base import Floats
from ronda.instances.instance import Instance
from ronda.instances.outcome.accrual import accrual


class Supply:
    """The supply of a resource as a continuous, piecewise linear, increasing function of time.

    The supply is `initial` at time 0. It grows at `rates` (K,) per second from the breakpoints
    `times_s` (K,) on, which ascend from 0; the last rate holds indefinitely. Rates are at least 0.
    """

    def __init__(self, times_s: Floats, rates: Floats, initial: float = 0.0) -> None:
        self.times_s, self.rates = times_s, rates
        steps = np.diff(times_s) * rates[:-1]
        self._total = initial + np.concatenate([[0.0], np.cumsum(steps)])

    def until(self, time_s: Floats) -> Floats:
        """Return the supply until `time_s`."""
        k = np.searchsorted(self.times_s, time_s, side="right") - 1
        return np.asarray(self._total[k] + self.rates[k] * (time_s - self.times_s[k]))

    def when(self, amount: Floats) -> Floats:
        """Return the first time at which the supply is `amount`, infinite if it never is."""
        k = np.maximum(np.searchsorted(self._total, amount, side="left") - 1, 0)
        short = np.maximum(amount - self._total[k], 0.0)
        rate = self.rates[k]
        with np.errstate(divide="ignore", invalid="ignore"):
            wait = np.where(short > 0, short / np.where(rate > 0, rate, np.nan), 0.0)
        return np.asarray(self.times_s[k] + np.nan_to_num(wait, nan=np.inf))


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource that jobs share.

    ``supply`` is in GPU-seconds or joules; ``stored`` tells whether it can be used later. ``pool``
    is the pool of GPUs, None for watts, which all pools share. ``unit`` is the typical use of one
    GPU.
    """

    supply: Supply
    stored: bool
    pool: int | None
    unit: float


def shared(instance: Instance, need: Needs) -> list[Resource]:
    """Return the GPUs of each pool, and the watts and joules that a budget limits."""
    gpus = [
        Resource(Supply(np.zeros(1), np.array([1.0 * pool.gpus])), stored=False, pool=p, unit=1.0)
        for p, pool in enumerate(instance.cluster.topology.pools)
    ]
    return [*gpus, *(watts for watts in watts_of(instance, need) if watts.unit > 0)]


def watts_of(instance: Instance, need: Needs) -> list[Resource]:
    """Return the watts and joules that idling leaves of the budget, as resources.

    The list is empty without a budget. While less energy accrues than idling uses, the supply stays
    constant, which overestimates it.
    """
    if not need.all_draw_power:
        return []
    unit = float(rounded(need.joules.sum() / need.gpu_s.sum(), 1))
    found = []
    cap = instance.budget.power_cap_w
    if cap is not None:
        left_w = np.maximum(np.array(cap.values) - need.idle_w, 0.0)
        supply = Supply(np.array(cap.times_s, dtype=float), left_w)
        found.append(Resource(supply, stored=False, pool=None, unit=unit))
    if instance.budget.energy is not None:
        line = accrual(instance.budget, reserved_w=0.0)
        supply = Supply(line.times_s, np.maximum(line.rates_w - need.idle_w, 0.0), line.initial_j)
        found.append(Resource(supply, stored=True, pool=None, unit=unit))
    return found


def supplied(resources: Sequence[Resource], times: Floats) -> Floats:
    """Return the supply (M, K) of each resource in each interval, in its units.

    The first interval has the initial supply, too.
    """
    until = np.stack([r.supply.until(times) / r.unit for r in resources])
    return np.concatenate([until[:, 1:2], np.diff(until[:, 1:], axis=1)], axis=1)


def rounded(values: Floats, side: int) -> Floats:
    """Return the values rounded to 30 bits, upwards (`side` 1) or downwards (-1)."""
    share, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.round(np.ldexp(share, 30)), exponent - 30) * (1 + side * 2**-29))
