"""The rank objective, which values progress of one job by the flow time that it saves for all.

For m jobs that are all present, speed-up n^p and N GPUs, the least total flow time is known
(heSRPT: Berg, Vesilo and Harchol-Balter, Performance Evaluation 2020). If jobs are ranked by
remaining work, largest first, i = 1 ... m, it is ``sum_i v_i x_i / N^p`` with remaining times x_i
on one GPU and ::

    v_i = (i^q - (i - 1)^q)^(1/q),   q = 1 / (1 - p)

so a unit of work of job i costs ``v_i / N^p`` seconds of flow time. A round should maximise the sum
of these costs times the rates; its maximiser is exactly the optimal shares of heSRPT.

**Generalisation** (our own). The price of a unit of work of job j is ::

    price_j = (v_i (n/N)^p + (1 - (n/N)^p) / 2) / rate_j(n)

* p is the job's own elasticity, from its smallest to its fastest option. n is the number of GPUs of
  the fastest option, and ``rate_j(n) (N/n)^p`` is the rate that all N GPUs would give. This puts
  jobs of different elasticity on one scale, which the v_i alone lack: elastic jobs would starve
  others.
* The second term is 0 for n = N. It is half of the part of the job's own time that others do not
  feel, as the job cannot use all GPUs. It corresponds to the second term of the classic bound for
  parallel machines, ``sum C >= (flow time on one fast machine) + (1 - 1/N)/2 sum x`` (Eastman, Even
  and Isaacs 1964).
* A rigid job is linear in its GPUs as long as there are enough such jobs (p = 1, v_i = i). Its
  value per GPU is ``i/N + (1/n - 1/N)/2``. So among jobs of one width, the job with the fewest
  GPU-seconds left goes first, and among jobs of about the same rank, the narrower one.
* Jobs are ranked by remaining GPU-seconds at their smallest option divided by their weight; with
  weights, i becomes the sum of the weights of the jobs up to and including j.
* The rank of a job of unsure size counts, for each other job, the probability that the job is
  smaller than the other (`expected_rank`). Without that, jobs of similar size take turns at being
  the smallest. The job's remaining work is lognormal, with the estimated mean and standard
  deviation. A job of unknown size is expected to have as much work left as it has done. This is a
  Pareto tail of exponent 2, represented by its spread, and ranks jobs by attained service as
  Tiresias' LAS does (Gu et al., NSDI 2019).
* Ranks and N belong to the job's partition, as jobs of other partitions do not compete.
* For a rigid job, the GPUs that it displaces replace n
  (`ronda.formulations.objectives.displaced_gpus`). They are its own, those that no job can use next
  to it, and a share of those on which others earn less, by the ranks without this last part.

**Ageing** (our own). A job's weight doubles as it grows older, so that no job starves. Otherwise a
large job would wait as long as small jobs arrive. With ::

    weight_j 2^max(0, (age_j - least age) / tau_j - 1),  tau_j = patience x max(alone_j, mean alone)

a job that is much older than the newest job outweighs any number of later arrivals. It waits for
about ``tau_j (1 + log2(price ratio))`` at most, where the price ratio compares the small jobs that
arrive with the job itself (at most the squared ratio of sizes). Nothing changes until a job is
tau_j older than the newest job. The time alone of a job is its whole work at its best rate. Small
jobs do not age faster than jobs of mean size. Long jobs age with their own time, as all others
would wait for that long if long jobs ran early.

The mean is that of all jobs seen so far. Live jobs are mostly long, and a few that take days would
make all others wait for weeks. The size of a job counts as it is estimated when the job is first
seen; jobs of unknown size do not count.

**Gittins index** (`gittins_rank`). Jobs that may be short go earlier than their mean suggests. The
index of a job with S seconds left, for a given distribution of S, is the least time that must be
spent on it per completion (Gittins, *J. R. Statist. Soc.* B 1979; Aalto, Ayesta and Righter,
*Queueing Systems* 2009)::

    min over x of  E[min(S, x)] / P(S <= x)

The index is a share of the mean: 1 for sizes that are nearly sure, 0.89 at a spread of 1, 0.41 at
1.5 and 0.10 at 2. `rank` compares jobs by their medians, which are 0.61, 0.32 and 0.14 of the mean;
`gittins_rank` uses the index in their place. This module assumes lognormal sizes throughout. The
policy `gittins` (`ronda.solvers.policies.rigid.preemptive`) takes the index of the quantiles that a
predictor gives, since a queue needs no spread.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import ClassVar

import numpy as np

from ronda.formulations.objectives.displaced_gpus import displaced, outdone
from ronda.formulations.objectives.outlook import Outlook
from ronda.instances.base import Floats, Rows
from ronda.instances.clock import checkpoint
from ronda.instances.plan import Plan, PlanMemory

PATIENCE = 3.0
"""The number of times alone after which a weight grows, as chosen in docs/rolling_horizon.md."""

ALONE_S = "alone_s"
"""The name of the parameter for the mean time alone in seconds, in objectives with ageing."""

CLASSES = 128
"""The most classes of other jobs with which jobs of unsure size are compared."""


def rank_values(
    o: Outlook, patience: float, alone_s: float | None, larger: Floats | float = 1.0
) -> Floats:
    """Return ``price_j rate_k``, the seconds of flow time saved per second, shape (K,).

    `patience` and `alone_s` are as in `aged_weight`. Jobs are ranked as if their remaining work
    were `larger` (J,) times as much.
    """
    weight, p = aged_weight(o, patience, alone_s), elasticity(o)
    gpus, members = _competitors(o)

    def worth(least: Floats, most: Floats) -> Floats:
        """Return each job's value at its best rate, for the GPUs that it displaces, shape (J,)."""
        share = (most / gpus) ** p
        size = o.remaining * larger / o.least_rate * least / weight
        scarce = prices(_ranks(o, members, size, weight), weight, p) * share
        return np.asarray(scarce + 0.5 * weight * (1.0 - share))

    extra = np.zeros(len(gpus))
    if (o.least_gpus == o.most_gpus).any():
        extra = _idle(o, gpus, members)
        each = worth(o.least_gpus + extra, o.most_gpus) / o.most_gpus
        extra += _outdone(o, gpus, members, each)
    price = worth(o.least_gpus + extra, o.most_gpus + extra) / o.most_rate
    return np.asarray(o.by_row(price) * o.rate)


class Seen(PlanMemory, frozen=True):
    """The number of jobs of known size submitted until `until_s`, and their mean seconds alone."""

    key: ClassVar[str] = "seen"

    jobs: int = 0
    alone_s: float = 0.0
    until_s: float | None = None


def seen(o: Outlook, initial: Plan | None) -> Seen:
    """Return the record of all jobs seen so far, from the previous plan's memory and live jobs."""
    before = Seen.recall(initial)
    alone_s, new = _alone_s(o), ~o.guessed
    if before.until_s is not None:
        new &= o.submit_s > before.until_s
    found = alone_s[new & np.isfinite(alone_s)]
    jobs = before.jobs + len(found)
    total_s = before.jobs * before.alone_s + float(found.sum())
    return Seen(jobs, total_s / jobs if jobs else 0.0, o.round.now_s)


def aged_weight(o: Outlook, patience: float, alone_s: float | None = None) -> Floats:
    """Return the weights of jobs, which grow with age (see the module), shape (J,).

    `alone_s` is the mean time alone, by default of the live jobs.
    """
    if not len(o.submit_s):
        return o.weight
    older_s, own_s = o.submit_s.max() - o.submit_s, _alone_s(o)
    if alone_s is None:
        known = own_s[np.isfinite(own_s)]
        alone_s = float(known.mean()) if known.size else np.inf
    tau_s = patience * np.fmax(own_s, alone_s)
    if not (older_s > tau_s).any() or not tau_s.min() > 0:
        return o.weight
    # No weight grows beyond 2^20: solvers work with coefficients of limited range.
    doublings = np.clip(older_s / tau_s - 1.0, 0.0, 20.0)
    return np.asarray(o.weight * 2.0**doublings)


def _alone_s(o: Outlook) -> Floats:
    return np.asarray((o.remaining + o.done) / o.most_rate)


def _competitors(o: Outlook) -> tuple[Floats, list[Rows]]:
    """Return the GPUs of each job's partition (J,), and the jobs with options per partition."""
    capacity: defaultdict[str, int] = defaultdict(int)
    for pool in o.table.pools:
        capacity[pool.partition] += pool.gpus
    names = [state.job.partition for state in o.table.jobs]
    own: defaultdict[str, list[int]] = defaultdict(list)
    for j in o.filled.tolist():
        own[names[j]].append(j)
    gpus = np.array([capacity[name] for name in names], dtype=float)
    return gpus, [np.array(members) for members in own.values()]


def _idle(o: Outlook, gpus: Floats, members: Sequence[Rows]) -> Floats:
    idle, rigid = np.zeros(len(gpus)), o.least_gpus == o.most_gpus
    start, widths = _widths(o)
    for own in members:
        bound = own[rigid[own]]
        if len(bound):
            asked = o.least_gpus[bound].astype(int).tolist()
            others = [tuple(widths[start[j] : start[j + 1]]) for j in own[~rigid[own]].tolist()]
            takes = displaced(int(gpus[own[0]]), asked, others)
            idle[bound] = [takes[n] - n for n in asked]
    return idle


def _outdone(o: Outlook, gpus: Floats, members: Sequence[Rows], worth: Floats) -> Floats:
    found, rigid = np.zeros(len(gpus)), o.least_gpus == o.most_gpus
    for own in members:
        lost = outdone(int(gpus[own[0]]), o.least_gpus[own], o.most_gpus[own], worth[own])
        bound = own[rigid[own]]
        found[bound] = [lost[n] for n in o.least_gpus[bound].astype(int).tolist()]
    return found


def _widths(o: Outlook) -> tuple[list[int], list[int]]:
    """Return the widths that are faster than all narrower ones, and where each job's begin."""
    t = o.table
    width = t.job * (t.gpus.max() + 1) + t.gpus
    order = np.argsort(width, kind="stable")
    first = np.flatnonzero(np.append(True, np.diff(width[order])))
    job, rows = t.job[order[first]], order[first]
    pace = np.maximum.reduceat((t.rate / o.by_row(o.most_rate))[order], first)  # at most 1
    key = job + pace
    faster = np.append(key[:1] > 0, key[1:] > np.maximum.accumulate(key)[:-1])
    start = np.searchsorted(job[faster], np.arange(len(t.jobs) + 1))
    return start.tolist(), t.gpus[rows[faster]].tolist()


def _ranks(o: Outlook, members: Sequence[Rows], size: Floats, weight: Floats) -> Floats:
    upto = np.full(len(size), np.nan)
    for own in members:
        upto[own] = expected_rank(size[own], weight[own], o.submit_s[own], o.spread[own])
    return upto


def prices(upto: Floats, weight: Floats, p: Floats) -> Floats:
    """Return ``v = (z^q - (z - w)^q)^(1/q)``, which is z for p = 1.

    `upto` is z, the sum of the weights of all jobs that are not smaller (the rank i if all weights
    are 1). `weight` is w, the job's own weight, which z includes. `p` is the elasticity, 0 to 1.
    """
    share = 1.0 - p  # 1/q
    part = np.maximum(-weight / upto, -(1.0 - 2.0**-53))  # its logarithm is finite
    others = np.exp(np.reciprocal(np.maximum(share, 1e-300)) * np.log1p(part))
    return np.asarray(upto * (1.0 - others) ** share)  # anything to the power of 0 is 1


def elasticity(o: Outlook) -> Floats:
    """Return d ln rate / d ln GPUs from each smallest to fastest option, 1 if rigid, (J,)."""
    elastic = o.most_gpus > o.least_gpus
    more = np.log(np.where(elastic, o.most_gpus / o.least_gpus, math.e))
    # Above 0.95, heSRPT gives nearly all to the smallest job; no measured curve stays there.
    slope = np.minimum(np.log(o.most_rate / o.least_rate) / more, 0.95)
    return np.where(elastic, slope, 1.0)


def expected_rank(size: Floats, weight: Floats, submit: Floats, spread: Floats) -> Floats:
    """Return the total weight of the jobs that are not smaller, itself included, for each job.

    This is the rank, largest first, if all weights are 1. Among equal sizes the later submission
    counts as larger. Where sizes have a `spread`, the standard deviation of their logarithms,
    another job counts with the probability that it is not smaller. All arrays have shape (J,);
    `size` may be in any unit.
    """
    unsure = spread.nonzero()[0]
    if not len(unsure):
        return _rank(size, weight, submit)
    sure, middle, rank = (spread == 0).nonzero()[0], np.log(size) - 0.5 * spread**2, weight.copy()
    rank[sure] = _rank(size[sure], weight[sure], submit[sure])
    for others in (sure, unsure):
        for at, variance, mass in _classes(middle[others], spread[others], weight[others]):
            checkpoint()
            who = unsure if others is sure else slice(None)
            wide = np.sqrt(spread[who] ** 2 + variance)
            # The logistic curve of slope 1.702 differs from the normal one by 0.0095 at most
            # (Camilli, J. Educ. Stat. 1994).
            rank[who] += 0.5 * mass * (1.0 + np.tanh(0.5 * 1.702 / wide * (at - middle[who])))
    rank[unsure] -= 0.5 * weight[unsure]  # the job itself, counted as one of the others
    return rank


def _rank(size: Floats, weight: Floats, submit: Floats) -> Floats:
    order, rank = np.lexsort((-submit, -size)), np.empty(len(size))
    rank[order] = np.add.accumulate(weight[order])
    return rank


def _classes(middle: Floats, spread: Floats, weight: Floats) -> list[tuple[float, float, float]]:
    """Return the middle, variance and weight of classes of jobs of about equal size."""
    order = np.argsort(middle, kind="stable")
    parts = np.array_split(order, min(CLASSES, len(order))) if len(order) else []
    return [
        (float(middle[k].mean()), float((spread[k] ** 2).mean()), float(weight[k].sum()))
        for k in parts
    ]


def gittins_rank(o: Outlook, patience: float, alone_s: float | None) -> Floats:
    """Return the values of `rank_values` with the Gittins index for the median, shape (K,)."""
    over_median = np.exp(0.5 * o.spread**2) * index_over_mean(o.spread)
    return rank_values(o, patience, alone_s, over_median)


def index_over_mean(spread: Floats) -> Floats:
    """Return the Gittins index of lognormal work divided by its mean, for `spread` (J,)."""
    spreads, logarithms = _index_by_spread()
    return np.asarray(np.exp(np.interp(spread, spreads, logarithms, left=0.0)))


@cache
def _index_by_spread() -> tuple[Floats, Floats]:
    """Return spreads, and for each the logarithm of the index divided by the mean."""
    spreads, x = np.linspace(0.05, 6.0, 120), np.linspace(-8.0, 8.0, 321)  # x is in spreads
    s = spreads[:, None]
    within, before = _normal(x), _normal(x - s)
    spent = before + np.exp(s * x - 0.5 * s**2) * (1.0 - within)
    return spreads, np.asarray(np.minimum(0.0, np.log((spent / within).min(axis=1))))


def _normal(z: Floats) -> Floats:
    return np.array([0.5 * math.erfc(-x / math.sqrt(2.0)) for x in z.ravel()]).reshape(z.shape)
