"""A tight lower bound on mean JCT: the best prices over time, from a bundle of trajectories.

With fixed weights of its stages, a job's least cost (`ronda.formulations.bounds.trajectories`) is a
concave function of the prices, and the cost C + prices x use of any of its trajectories is a linear
function above it. Each step finds the cheapest trajectories under some prices. A linear programme
over the trajectories found so far gives the next prices, which stay near the best so far (a trust
region). From time to time the weights are chosen anew, for the best prices.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import highspy
import numpy as np
from msgspec.structs import replace
from scipy.sparse import csr_matrix, diags, hstack, vstack

from ronda.formulations.bounds.certificate import (
    SLACK,
    BoundCertificate,
    check_bound,
    evaluated,
    packaged_bound,
    read_bound,
    write_bound,
)
from ronda.formulations.bounds.clairvoyant import busy_grid, counting
from ronda.formulations.bounds.least_needs import Needs, needs
from ronda.formulations.bounds.price_bound import mean_prices, total_by_prices
from ronda.formulations.bounds.resources import shared, supplied, watts_of
from ronda.formulations.bounds.trajectories import Cheapest, Rows, Trajectories
from ronda.instances.base import Floats, Mask
from ronda.instances.errors import InputError
from ronda.instances.files.json import fingerprint
from ronda.instances.files.storage import label
from ronda.instances.instance import Instance
from ronda.solvers.exact.highs import highs_of, run
from ronda.solvers.exact.linear_form import LinearForm

ROUNDS, STEPS = 3, 20
"""How often the weights of stages are chosen, if not stated, and the most steps in between."""

PICKS = 16
"""The multipliers of each job in a certificate."""

LP_S = 60.0
"""The most seconds of a linear programme; most take a tenth of a second."""


def tighten(
    instance: Instance,
    watch: Callable[[float], None] | None = None,
    count: int | None = None,
    rounds: int = ROUNDS,
) -> BoundCertificate:
    """Return a certificate of a tight lower bound on the mean JCT of an instance.

    It takes seconds to minutes. `watch` is called with the share of the steps that is done. `count`
    is the number of intervals, by default up to 768, and fewer with many jobs and modes. More
    `rounds` of choosing the weights of stages take as much longer, and gain up to 2 %. Another
    version of HiGHS may find other prices, and a bound that differs by some thousandths.

    InputError if a job has no truth, or nothing in the cluster can run it.
    """
    need = needs(instance)
    pairs = sum(alike.modes.rate.shape[1] * len(alike.rows) for alike in need.kinds)
    count = int(np.clip(6_000_000 // pairs, 96, 768)) if count is None else count
    counted = counting(need, watts_of(instance, need), need.submit_s + need.seconds)
    times = _plain(busy_grid(need, counted, count), 7)
    times[-1] *= 1.0 + 1e-6  # rounded, it may come before the last submission
    search = _Search(instance, need, times)
    for k, _ in enumerate(search.steps(rounds)):
        if watch is not None:
            watch((k + 1) / (rounds * STEPS))
    return search.certificate()


def _plain(values: Floats, digits: int) -> Floats:
    """Return the distinct ascending values, or a matrix, with few significant digits."""
    rounded = np.array([float(f"{value:.{digits}g}") for value in values.ravel().tolist()])
    return rounded.reshape(values.shape) if values.ndim > 1 else rounded


def tight_bound_s(
    instance: Instance, path: Path | None = None, watch: Callable[[float], None] | None = None
) -> float:
    """Return a tight lower bound in seconds on the mean JCT of an instance.

    It is that of the packaged certificate, or of the one in the file `path`. If there is neither, a
    certificate is made, which takes minutes, and is kept in that file. `watch` is called with the
    share of the work that is done.

    InputError if the file holds anything but a certificate of the instance.
    """
    known = packaged_bound(instance)
    if known is None and path is not None and path.exists():
        known = read_bound(path)
        try:
            check_bound(instance, known)
        except InputError as error:
            raise InputError(f"{label(path)}, {error.place}", error.found, error.expected) from None
    if known is None:
        known = tighten(instance, watch)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bound(known, path)
    return known.mean_jct_s


class _Search:
    """The search for the best prices of an instance on a grid of times."""

    def __init__(self, instance: Instance, need: Needs, times: Floats) -> None:
        self.instance, self.need, self.times = instance, need, times
        resources = shared(instance, need)
        self.supply = supplied(resources, times)
        self.stored = [m for m, resource in enumerate(resources) if resource.stored]
        self.ways = Trajectories(instance, need, resources, times)
        self.staged = any(len(kind.rate) > 1 for kind in self.ways.kinds)
        _, self.centre = total_by_prices(need, resources, times, steps=40)
        mean = (self.centre * np.diff(times)).sum(axis=1, keepdims=True) / times[-1]
        self.scale = np.maximum(mean, 1e-12)
        # the best bound so far, with the prices, trajectories and prices of stages that prove it
        self.best: tuple[float, Floats, Cheapest, Floats] | None = None

    def steps(self, rounds: int) -> Iterator[None]:
        """Carry out the steps one by one."""
        floor = float(self.need.submit_s.sum())
        found: Cheapest | None = None
        nu: Floats | None = None
        for turn in range(rounds):
            if self.staged or turn == 0:
                self._weigh(found)
                bundle = _Bundle(len(self.need.submit_s), self.supply.size)
                prices, most, promise, nu = self.centre, -np.inf, np.inf, None
                reach = 0.1 if turn == 0 else 0.03
            for _ in range(STEPS):
                found = self.ways.cheapest(prices, nu, bundle.least(prices))
                nu = found.nu
                bundle.add(found)
                total = float(found.least_s.sum()) - float((prices * self.supply).sum())
                if self.best is None or total > self.best[0]:
                    self.best = total, prices, found, self.ways.stage_prices.copy()
                if total > most:
                    good = total > most + 0.1 * (promise - most)
                    reach = min(1.0, 1.5 * reach if good else reach)
                    most, self.centre = total, prices
                else:
                    reach *= 0.75
                yield
                if promise - most < 2e-4 * (most - floor) or reach < 0.0005:
                    break
                prices, promise = self._next(bundle, reach)
                if not np.isfinite(promise):
                    break

    def _weigh(self, found: Cheapest | None) -> None:
        """Choose for each job the prices that weigh its stages, by the bound that they give."""
        if not self.staged:
            return
        shape, mean = self.ways.stage_prices.shape, mean_prices(self.centre, self.times)
        trials = [np.broadcast_to(factor * mean, shape) for factor in (1.0, 5.0, 0.25)]
        if found is not None:
            trials += [self.ways.stage_prices.copy(), *(f * found.seen for f in (1.0, 3.0, 0.33))]
        best, picked = np.full(shape[0], -np.inf), np.zeros(shape)
        for trial in trials:
            self.ways.stage_prices[:] = trial = _plain(trial, 4)
            value = self.ways.cheapest(self.centre, None, np.full(shape[0], np.inf)).least_s
            picked[value > best] = trial[value > best]
            best = np.maximum(best, value)
        self.ways.stage_prices[:] = picked

    def _next(self, bundle: "_Bundle", reach: float) -> tuple[Floats, float]:
        """Return the prices that are best for the trajectories in the bundle, and their total."""
        (count, intervals), jobs = self.supply.shape, len(self.need.submit_s)
        rows = np.arange(len(bundle.job))
        own = csr_matrix((np.ones(len(rows)), (rows, bundle.job)), shape=(len(rows), jobs))
        falls = []
        for m in self.stored:  # the next price is no higher
            step = diags([-1.0, 1.0], [0, 1], shape=(intervals - 1, intervals))
            before = csr_matrix((intervals - 1, jobs + m * intervals))
            after = csr_matrix((intervals - 1, (count - m - 1) * intervals))
            falls.append(hstack([before, step, after]))
        table = vstack([hstack([own, -bundle.use]), *falls], format="csr")
        width = reach * (self.centre + self.scale)
        free = np.full(jobs, np.inf)
        form = LinearForm(
            columns=tuple(range(table.shape[1])),
            rows=tuple(range(table.shape[0])),
            maximize=True,
            cost=np.concatenate([np.ones(jobs), -self.supply.ravel()]),
            offset=0.0,
            lower=np.concatenate([-free, np.maximum(self.centre - width, 0.0).ravel()]),
            upper=np.concatenate([free, (self.centre + width).ravel()]),
            integer=np.zeros(table.shape[1], dtype=bool),
            start=table.indptr.astype(np.int32),
            index=table.indices.astype(np.int32),
            value=table.data,
            row_lower=np.full(table.shape[0], -np.inf),
            row_upper=np.concatenate([bundle.end_s, np.zeros(table.shape[0] - len(rows))]),
        )
        solver = highs_of(form, relaxed=True, solver="ipm", run_crossover="off")
        run(solver, LP_S)
        if solver.getInfo().primal_solution_status != highspy.kSolutionStatusFeasible:
            return self.centre, np.inf  # without a basis, an optimum may be called unknown
        x = np.array(solver.getSolution().col_value, dtype=float)
        prices = np.maximum(x[jobs:].reshape(count, intervals), 0.0)
        for m in self.stored:
            prices[m] = np.minimum.accumulate(prices[m])
        idle_s = bundle.costs(prices) - x[:jobs][bundle.job]
        bundle.keep((bundle.age < 6) | (idle_s < 1e-3 * np.abs(x[:jobs][bundle.job])))
        return prices, float(solver.getInfo().objective_function_value)

    def certificate(self) -> BoundCertificate:
        """Return the best prices, rounded, with the bound that they prove when evaluated once."""
        assert self.best is not None
        _, exact, best, stage_prices = self.best
        prices = _plain(exact, 5)
        self.ways.stage_prices[:] = stage_prices
        until_s = best.end_s + best.use @ exact.ravel()
        found = self.ways.cheapest(prices, best.nu, until_s * 1.001, PICKS)
        until_s = np.minimum(until_s, found.end_s + found.use @ prices.ravel())
        made = BoundCertificate(
            instance=self.instance.name,
            fingerprint=fingerprint(self.instance),
            mean_jct_s=0.0,
            times_s=tuple(self.times.tolist()),
            prices=tuple(map(tuple, prices.tolist())),
            nu=tuple(map(tuple, _plain(found.nu, 6).tolist())),
            until_s=tuple(_plain(until_s * (1.0 + 1e-4), 6).tolist()),
            stage_prices=tuple(map(tuple, stage_prices.tolist())) if self.staged else (),
        )
        proven_s = evaluated(self.instance, made, self.need)
        return replace(made, mean_jct_s=float(f"{proven_s * (1.0 - SLACK):.12g}"))


class _Bundle:
    """Trajectories of the jobs: completions, use, job and age, in rows."""

    def __init__(self, jobs: int, size: int) -> None:
        self.jobs = jobs
        self.end_s, self.use = np.zeros(0), csr_matrix((0, size))
        self.job: Rows = np.zeros(0, dtype=np.int64)
        self.age: Rows = np.zeros(0, dtype=np.int64)

    def add(self, found: Cheapest) -> None:
        """Add a trajectory of each job."""
        jobs = np.arange(len(found.end_s))
        self.end_s = np.concatenate([self.end_s, found.end_s])
        self.use = vstack([self.use, found.use], format="csr")
        self.job = np.concatenate([self.job, jobs])
        self.age = np.concatenate([self.age + 1, np.zeros_like(jobs)])

    def costs(self, prices: Floats) -> Floats:
        """Return the cost of each trajectory."""
        return np.asarray(self.end_s + self.use @ prices.ravel())

    def least(self, prices: Floats) -> Floats:
        """Return the cost (J,) of each job's cheapest trajectory, infinite if it has none."""
        least = np.full(self.jobs, np.inf)
        np.minimum.at(least, self.job, self.costs(prices))
        return least

    def keep(self, mask: Mask) -> None:
        """Keep some of the trajectories."""
        self.end_s, self.use = self.end_s[mask], self.use[mask]
        self.job, self.age = self.job[mask], self.age[mask]
