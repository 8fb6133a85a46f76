"""Clairvoyant lower bounds, which read the true work and which no schedule of an instance can beat.

**Counting bound on the completion times.** Suppose that, in a relaxation of the problem, no
schedule can complete its k-th job before c_k, for every k. Then the sum of all completion times is
at least sum_k c_k. Several relaxations may be combined: for each k, the latest c_k counts. The
relaxations are:

* *alone*: every job runs alone at its fastest, its first pause included;
* *GPUs*: the GPUs of a group of pools form one machine, and a job's size is its fewest GPU-seconds.
  A real schedule uses no more than the machine has, so it cannot be ahead of the machine's schedule
  by shortest remaining processing time, which has completed the most jobs at every moment;
* *power*: the same holds for joules and the watts between idling and the power cap;
* *energy*: under an energy budget, k jobs need at least the k smallest amounts of joules beyond
  the use of idling, and these must have accrued.

**Priced bound.** `ronda.formulations.bounds.price_bound` takes into account that a job cannot be
both fast and frugal, and is usually the better bound where jobs queue. Better prices and least
costs (`ronda.formulations.bounds.certificate`) make it tight; packaged instances have them.

Power and energy count only if no mode of a job draws less than idling. The bounds assume the
cheapest idling (every node sleeps that saves power by it) unless nodes cannot sleep.
"""

import heapq
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ronda.formulations.bounds.certificate import packaged_bound
from ronda.formulations.bounds.least_needs import Needs, needs
from ronda.formulations.bounds.price_bound import total_by_prices
from ronda.formulations.bounds.resources import Resource, shared, watts_of
from ronda.instances.base import Floats
from ronda.instances.errors import InputError
from ronda.instances.instance import Instance

Proof = Literal["quick", "tight", "packaged"]
"""Where the prices of a bound come from: a few steps, a search, or a packaged certificate."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower bounds on what any schedule of an instance achieves.

    ``mean_jct_s`` bounds the mean time from submission to completion. It is the best of the next
    three bounds, which come from every job alone, from counting and from prices (None if not
    computed). ``end_s`` counts from the instance's start and ``makespan_s`` from the first
    submission; ``energy_j`` is the energy of the cluster from 0 until the last job completes.
    ``proof`` says where the prices come from.
    """

    mean_jct_s: float
    alone_jct_s: float
    counting_jct_s: float
    priced_jct_s: float | None
    end_s: float
    makespan_s: float
    energy_j: float
    proof: Proof


def bounds(
    instance: Instance,
    *,
    may_sleep: bool = True,
    priced: bool = True,
    need: Needs | None = None,
    tight_s: float | None = None,
) -> Bounds:
    """Return lower bounds for every schedule of an instance.

    Without `may_sleep` all nodes stay awake, and the bound on energy is higher. The priced bound
    (`priced`) takes most of the time; a packaged certificate takes its place. `tight_s`, a bound on
    mean JCT that a certificate proves, counts where it is higher. `need` is the result of `needs`
    for the instance and `may_sleep`, if it is known already; it does not depend on budgets.

    InputError if a job has no truth, if nothing in the cluster can run it, or if the power beyond
    the idling cluster's is never enough.
    """
    need = needs(instance, may_sleep=may_sleep) if need is None else need
    watts = watts_of(instance, need)
    alone = need.submit_s + need.seconds
    counted = counting(need, watts, alone)
    jobs, submitted = len(alone), float(need.submit_s.sum())
    end_s = float(counted[-1])
    if not np.isfinite(end_s):
        raise InputError("budget", "too little power or energy for all jobs", "more than idling")
    alone_jct_s = float(need.seconds.mean())
    counting_jct_s = float((counted.sum() - submitted) / jobs)
    proven = packaged_bound(instance) if priced else None
    proof: Proof = "quick" if tight_s is None else "tight"
    priced_jct_s = tight_s
    if proven is not None:
        proof, priced_jct_s = "packaged", max(proven.mean_jct_s, tight_s or 0.0)
    elif priced and jobs <= 10_000:  # beyond, its grid is too coarse to help
        count = int(np.clip(300_000 // jobs, 32, 512))  # intervals: memory is bounded
        times = busy_grid(need, counted, count)
        total, _ = total_by_prices(need, shared(instance, need), times, steps=30)
        quick_jct_s = (total - submitted) / jobs
        if tight_s is None or quick_jct_s > tight_s:
            proof, priced_jct_s = "quick", quick_jct_s
    return Bounds(
        mean_jct_s=max(alone_jct_s, counting_jct_s, priced_jct_s or 0.0),
        alone_jct_s=alone_jct_s,
        counting_jct_s=counting_jct_s,
        priced_jct_s=priced_jct_s,
        end_s=end_s,
        makespan_s=end_s - float(need.submit_s.min()),
        energy_j=need.idle_w * end_s + float(need.joules.sum()),
        proof=proof,
    )


def counting(need: Needs, watts: list[Resource], alone: Floats) -> Floats:
    """Return the ascending times before which no schedule completes its k-th job, shape (J,)."""
    parts = []
    for group, gpus in enumerate(need.group_gpus.tolist()):
        own = need.group == group
        if own.any():
            machine = srpt(need.submit_s[own], need.gpu_s[own] / gpus)
            parts.append(np.maximum(np.sort(alone[own]), np.sort(machine)))
    counted = np.sort(np.concatenate(parts))
    for resource in watts:
        supply = resource.supply
        if resource.stored:
            latest = supply.when(np.cumsum(np.sort(need.joules)))
        else:  # SRPT in the time in which the supply grows evenly
            latest = supply.when(np.sort(srpt(supply.until(need.submit_s), need.joules)))
        counted = np.maximum(counted, latest)
    return counted


def busy_grid(need: Needs, counted: Floats, count: int) -> Floats:
    """Return the ascending ends of about `count` intervals for prices, from 0 s on.

    Half of them are equal, until all jobs can have ended, and half are dense where jobs crowd,
    between their submissions and the times `counted` of the counting bound.
    """
    alone_s = float((need.gpu_s / need.group_gpus[need.group]).sum())
    horizon_s = max(float(counted[-1]), float(need.submit_s.max()) + alone_s)
    times = np.concatenate([need.submit_s, counted])
    order = np.argsort(times, kind="stable")
    change = np.repeat([1.0, -1.0], len(counted))[order]
    weight = np.sqrt(np.maximum(np.cumsum(change)[:-1], 0.0))
    mass = np.concatenate([[0.0], np.cumsum(np.diff(times[order]) * weight)])
    crowd = np.interp(np.linspace(0.0, mass[-1], 4 * len(times)), mass, times[order])
    inside = crowd[(crowd > 0) & (crowd < horizon_s)]
    even = np.linspace(0.0, horizon_s, count // 2 + 1)
    dense = np.quantile(inside, np.linspace(0.0, 1.0, count // 2)) if len(inside) else even[:0]
    grain = np.ldexp(1.0, np.frexp(horizon_s)[1] - 28)
    return np.unique(np.round(np.concatenate([even, dense]) / grain) * grain)


def srpt(release: Floats, size: Floats) -> Floats:
    """Return the completion times under shortest remaining processing time (SRPT), shape (J,).

    The machine works at speed 1, and interruptions cost nothing. At every moment SRPT has completed
    at least as many jobs as any other rule could have (Schrage 1968), so the k-th completion of no
    schedule is earlier than that of SRPT, for any k.
    """
    order = np.argsort(release, kind="stable")
    arrivals: list[tuple[float, float, int]] = list(
        zip(release[order].tolist(), size[order].tolist(), order.tolist(), strict=True)
    )
    done = np.empty(len(release))
    waiting: list[tuple[float, int]] = []  # remaining size, job
    now = 0.0
    for k, (arrival, work, job) in enumerate(arrivals):
        now = max(now, arrival)
        heapq.heappush(waiting, (work, job))
        until = arrivals[k + 1][0] if k + 1 < len(arrivals) else float("inf")
        while waiting and now < until:
            left, first = waiting[0]
            if now + left <= until:
                heapq.heappop(waiting)
                now += left
                done[first] = now
            else:
                heapq.heapreplace(waiting, (left - (until - now), first))
                now = until
    return done
