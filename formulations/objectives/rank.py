"""The rank objective: what a job's progress saves of the total flow time of all jobs.

For m jobs that are all present, speed-up n^p and N GPUs, the least total flow time is known
(heSRPT: Berg, Vesilo and Harchol-Balter, Performance Evaluation 2020). Ranked by remaining work,
largest first, i = 1 ... m, it is ``sum_i v_i x_i / N^p`` with remaining times x_i on one GPU and ::

    v_i = (i^q - (i - 1)^q)^(1/q),   q = 1 / (1 - p)

so a unit of work of job i costs ``v_i / N^p`` seconds of flow time, and a round should maximise
the sum of that times the rates: the optimal shares of heSRPT are just the maximiser.

**Generalised** (ours). Take the price of a unit of work of job j as ::

    price_j = (v_i (n/N)^p + (1 - (n/N)^p) / 2) / rate_j(n)

* p is the job's own elasticity, from its smallest to its fastest option; n is the GPUs of the
  fastest one and ``rate_j(n) (N/n)^p`` what all N GPUs would give. This puts jobs of different
  elasticity on one scale (the v_i alone do not have one: elastic jobs would starve others).
* The second term is 0 for n = N. It is half the time that the job itself needs, of which others
  do not see a part as it cannot use all GPUs: the second term of the classic bound for parallel
  machines, ``sum C >= (flow time on one fast machine) + (1 - 1/N)/2 sum x`` (Eastman, Even and
  Isaacs 1964).
* A rigid job is linear in its GPUs as long as there are enough such jobs (p = 1, v_i = i): its
  value per GPU is ``i/N + (1/n - 1/N)/2``, so of jobs of one width the one with the fewest
  GPU-seconds left goes first, and of jobs of about one rank the narrower.
* Jobs are ranked by remaining GPU-seconds at their smallest option over their weight; with
  weights, i becomes the sum of the weights of the jobs up to and including j.
* Jobs of unknown size have no rank but the probabilities of being the smaller one of each pair
  (`expected_rank`). Without that, jobs of like age take turns at being the smallest.
* Ranks and N are those of the job's partition: others do not compete.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.objectives.ageing import PATIENCE, aged_weight
from ronda.formulations.objectives.outlook import Extent, Outlook, extent
from ronda.formulations.options.table import OptionTable
from ronda.instances.arrays import Floats, Rows

# Above it, heSRPT gives all but everything to the smallest job; measured curves never stay there.
MOST_ELASTIC = 0.95
# Next to 1 and to 0, for a logarithm and a quotient that are finite: q is infinite for p = 1.
ALL, LEAST_SHARE = -(1.0 - 2.0**-53), 1e-300
# Jobs of unknown size are compared with no more than so many classes of others.
CLASSES = 128


def rank_values(o: Outlook, patience: float = PATIENCE) -> Floats:
    """Return (K,) ``price_j rate_k``: seconds of flow time saved per second (see the module).

    Weights grow with age, so that nobody starves: see `ronda.formulations.objectives.ageing`.
    """
    weight, of = aged_weight(o, patience), o.table.derive("partitions", _partitions)
    size = o.remaining / o.least_rate * o.least_gpus / weight
    scarce = prices(_ranks(o, of.members, size, weight), weight, of.elasticity) * of.share
    price = (scarce + weight * of.spare) / o.most_rate
    return np.asarray(o.by_row(price) * o.rate)


class Partitions(NamedTuple):
    """Who competes with whom, and how large the largest option is.

    Attributes
    ----------
    members
        The jobs of each partition that have options.
    elasticity, share, spare
        (J,) p, ``(n/N)^p`` and ``(1 - (n/N)^p) / 2``: see the module.
    """

    members: tuple[Rows, ...]
    elasticity: Floats
    share: Floats
    spare: Floats


def _partitions(table: OptionTable) -> Partitions:
    of = extent(table)
    gpus, members = _competitors(table, of.rows.filled)
    p = _elasticity(of)
    share = (of.most_gpus / gpus) ** p
    return Partitions(members, p, share, 0.5 * (1.0 - share))


def _competitors(table: OptionTable, filled: Rows) -> tuple[Floats | float, tuple[Rows, ...]]:
    """Return the GPUs of each job's partition, and which of the jobs with options are in each."""
    if len(table.pools) == 1:
        return float(table.pools[0].gpus), (filled,)
    capacity: defaultdict[str, int] = defaultdict(int)
    for pool in table.pools:
        capacity[pool.partition] += pool.gpus
    names = [state.job.partition for state in table.jobs]
    gpus = np.array([capacity[name] for name in names], dtype=float)
    if len(set(names)) == 1:
        return gpus, (filled,)
    own: defaultdict[str, list[int]] = defaultdict(list)
    for j in filled.tolist():
        own[names[j]].append(j)
    return gpus, tuple(np.array(members) for members in own.values())


def _ranks(o: Outlook, members: Sequence[Rows], size: Floats, weight: Floats) -> Floats:
    """Return (J,) each job's expected rank among its partition's, NaN for jobs without options."""
    if len(members) == 1 and len(members[0]) == len(size):
        return expected_rank(size, weight, o.submit_s, o.guessed)
    upto = np.full(len(size), np.nan)
    for own in members:
        upto[own] = expected_rank(size[own], weight[own], o.submit_s[own], o.guessed[own])
    return upto


def prices(upto: Floats, weight: Floats, p: Floats) -> Floats:
    """Return ``v = (z^q - (z - w)^q)^(1/q)``, and z for p = 1.

    Parameters
    ----------
    upto
        z: the sum of weights of all jobs that are not smaller (the rank i, without weights).
    weight
        w: the job's own weight, part of z.
    p
        Elasticity, 0 to 1.
    """
    share = 1.0 - p  # 1/q
    part = np.maximum(-weight / upto, ALL)
    others = np.exp(np.reciprocal(np.maximum(share, LEAST_SHARE)) * np.log1p(part))
    return np.asarray(upto * (1.0 - others) ** share)  # anything to the power of 0 is 1


def _elasticity(o: Extent) -> Floats:
    """Return (J,) d ln rate / d ln GPUs from a job's smallest to its fastest option; 1 if rigid."""
    elastic, gain = o.most_gpus > o.least_gpus, np.log(o.most_rate / o.least_rate)
    more = np.log(o.most_gpus / o.least_gpus)
    if np.count_nonzero(elastic) == len(elastic):
        return np.asarray(np.minimum(gain / more, MOST_ELASTIC))
    more[~elastic] = 1.0  # not to divide by nothing
    return np.where(elastic, np.minimum(gain / more, MOST_ELASTIC), 1.0)


def expected_rank(
    size: Floats, weight: Floats, submit: Floats, guessed: NDArray[np.bool_]
) -> Floats:
    """Return the summed weights of the jobs that are not smaller, the job itself included.

    That is the rank, largest first, if all weights are 1. Of equal sizes the later submission
    counts as the larger. Where a size s is only guessed, the true one R is taken to have the
    distribution ``P(R > x) = s / (s + x)``: a Pareto tail with exponent 1, given that it lasted so
    far. So of two guessed sizes in the ratio r the first is the larger with probability
    ``r (r - 1 - ln r) / (r - 1)^2``.

    Parameters
    ----------
    size, weight, submit, guessed
        (J,) sizes in any unit, weights, submission times, and whether the size is a guess.
    """
    if not np.count_nonzero(guessed):
        return _rank(size, weight, submit)
    rank, sure, unsure = weight.copy(), (~guessed).nonzero()[0], guessed.nonzero()[0]
    rank[sure] = _rank(size[sure], weight[sure], submit[sure])
    for others in (sure, unsure):
        known = others is sure
        for at, mass in zip(*_classes(size[others], weight[others]), strict=True):
            ratio = at / size
            longer = ratio / (1.0 + ratio)
            if known:
                rank[unsure] += mass * longer[unsure]
                continue
            rank[sure] += mass * longer[sure]
            rank[unsure] += mass * _larger(ratio[unsure])
    rank[unsure] -= 0.5 * weight[unsure]  # the job itself, counted as one of the others
    return rank


def _rank(size: Floats, weight: Floats, submit: Floats) -> Floats:
    """Return the same (see `expected_rank`) of jobs whose sizes are known."""
    order, rank = np.lexsort((-submit, -size)), np.empty(len(size))
    rank[order] = np.add.accumulate(weight[order])
    return rank


def _larger(ratio: Floats) -> Floats:
    """Return the probability that the first of two guessed sizes in this ratio is the larger."""
    near = np.abs(ratio - 1.0) < 1e-4
    r = np.where(near, 2.0, ratio)
    return np.where(near, 0.5 + (ratio - 1.0) / 6.0, r * (r - 1.0 - np.log(r)) / (r - 1.0) ** 2)


def _classes(size: Floats, weight: Floats) -> tuple[list[float], list[float]]:
    """Return sizes and weights of at most `CLASSES` classes of jobs of about equal size."""
    order = np.argsort(size, kind="stable")
    parts = np.array_split(order, min(CLASSES, len(order))) if len(order) else []
    means = [float(np.exp(np.log(size[part]).mean())) for part in parts]
    return means, [float(weight[part].sum()) for part in parts]
