"""Improving a round's answer by pairs: one job takes less (or waits) so that another takes more."""

import numpy as np

from ronda.formulations.watts.market import Market
from ronda.instances.arrays import Floats, Rows

ROUNDING = 1e-9
# Pairs times resources that are compared at once.
PAIRS = 250_000


def exchange(place: Market, prices: Floats, owner: Rows, now: Rows, left: Floats) -> bool:
    """Apply the pair of steps of two jobs that gains most; tell whether there was one.

    Only steps that a better answer can contain are tried: with the bound of these prices, a step
    may lose at most the gap between bound and answer in profit (reduced-cost fixing).

    Parameters
    ----------
    place, prices
        The market, and prices with a good bound.
    owner
        (M,) the competing job of each row.
    now
        (G,) row of each job, or -1; changed in place.
    left
        (R,) what is left of the capacities; changed in place.
    """
    profit = place.value - place.cost(prices)
    best = np.maximum(np.maximum.reduceat(profit, place.first), 0.0)
    held = now[now >= 0]
    gap = float(prices @ place.capacity + best.sum() - place.value[held].sum())
    row, job, loss = _steps(place, owner, now, best, profit)
    near = loss < gap
    most = int((PAIRS / len(place.capacity)) ** 0.5)
    order = np.flatnonzero(near)
    if len(order) > most:
        order = order[np.argsort(loss[order], kind="stable")[:most]]
    row, job = row[order], job[order]
    if not len(row):
        return False
    gain, use = _change(place, row, job, now)
    allowed = np.maximum(left, 0.0) + ROUNDING * np.maximum(1.0, place.capacity)
    both = (use[:, :, None] + use[:, None, :] <= allowed[:, None, None]).all(axis=0)
    worth = np.where(both & (job[:, None] != job), gain[:, None] + gain, 0.0)
    at = int(worth.argmax())
    if worth.flat[at] <= ROUNDING * float(np.abs(gain).max()):
        return False
    for k in divmod(at, len(row)):
        now[job[k]] = row[k]
        left -= use[:, k]
    return True


def _steps(
    place: Market, owner: Rows, now: Rows, best: Floats, profit: Floats
) -> tuple[Rows, Rows, Floats]:
    """Return all steps as rows (-1: to wait), jobs, and the profit each loses against the best."""
    jobs = np.arange(len(now))
    row = np.concatenate([np.arange(len(owner)), np.full(len(now), -1)])
    job = np.concatenate([owner, jobs])
    loss = best[job] - np.concatenate([profit, np.zeros(len(now))])
    other = row != now[job]
    return row[other], job[other], loss[other]


def _change(place: Market, row: Rows, job: Rows, now: Rows) -> tuple[Floats, Floats]:
    """Return (S,) what each step gains in value and (R, S) what it uses more of each resource."""
    gain, use = np.zeros(len(row)), np.zeros((len(place.capacity), len(row)))
    for rows, sign in ((row, 1.0), (now[job], -1.0)):
        some = np.flatnonzero(rows >= 0)
        k = rows[some]
        gain[some] += sign * place.value[k]
        use[place.pool[k], some] += sign * place.gpus[k]
        if place.limits_watts:
            use[-1, some] += sign * place.watts[k]
    return gain, use
