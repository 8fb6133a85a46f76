"""One round as a question on paper: the least mean JCT that an energy budget buys, all jobs served.

The problem on which rules for one round are compared with the exact optimum::

    min (1/J) sum_k left_k x_k
    s.t. sum_{k of job j} x_k = 1                     every job is served
         sum_{k in pool p} GPUs_k x_k <= GPUs of p
         sum_k E_k x_k <= budget,   E_k = power_k left_k

left_k are seconds from now until the job is complete if it keeps option k, its pause for a start
or restart included. There are no arrivals, no idle power and no nodes: rules are compared, not
schedules. Jobs choose among powers of two of GPUs and all clock levels.
"""

from dataclasses import dataclass

import numpy as np

from ronda.formulations.allocation.limits import Limits
from ronda.formulations.allocation.separable import Separable
from ronda.formulations.objectives.outlook import horizon_s, outlook
from ronda.formulations.options.build import build
from ronda.formulations.options.dominance import unbeaten
from ronda.formulations.options.table import OptionTable
from ronda.instances.arrays import Floats, Rows
from ronda.instances.errors import InputError
from ronda.instances.round import Round
from ronda.solvers.greedy.marginal import Ladder, climb, ladder, priced, relative


@dataclass(frozen=True, slots=True)
class EnergySnapshot:
    """A round, and what each option takes until the job is complete.

    Attributes
    ----------
    table, ladder
        The options, and the steps among them.
    left_s, energy_j
        (K,) seconds and joules until the job is complete.
    gpus
        (P,) GPUs of each pool.
    """

    table: OptionTable
    ladder: Ladder
    left_s: Floats
    energy_j: Floats
    gpus: Floats

    def mean_s(self, chosen: Rows) -> float:
        """Return the mean seconds until completion of (J,) rows."""
        return float(self.left_s[chosen].mean())

    def total_j(self, chosen: Rows) -> float:
        """Return the joules of (J,) rows."""
        return float(self.energy_j[chosen].sum())

    def limits(self, budget_j: float | None) -> Limits:
        """Return the capacities: GPUs of each pool, and joules unless the budget is None."""
        names = [f"gpus[{pool.name}]" for pool in self.table.pools]
        demand = [np.where(self.table.pool == p, self.table.gpus, 0.0) for p in range(len(names))]
        capacity = self.gpus
        if budget_j is not None:
            names.append("joules")
            demand.append(self.energy_j)
            capacity = np.append(capacity, budget_j)
        return Limits(tuple(names), capacity, np.array(demand))


def energy_snapshot(round: Round) -> EnergySnapshot:
    """Return the question that a round asks.

    Raises
    ------
    InputError
        If a job has no option, or there are fewer GPUs than jobs need at least: not all jobs can
        be served together.
    """
    table = build(round, prune=False, mind_power=True)
    left_s = outlook(round, table, horizon_s(round)).left_s
    energy_j = table.power_w * left_s
    steps = ladder(table, left_s, energy_j)
    gpus = np.array([float(pool.gpus) for pool in table.pools])
    if (steps.start < 0).any():
        job = table.jobs[int(np.argmin(steps.start))].job.id
        raise InputError(f"round {round.name}: job {job}", "no option", "at least one")
    least = np.bincount(table.pool[steps.start], table.gpus[steps.start], len(gpus))
    if (least > gpus).any():
        found = f"{least.sum():.0f} GPUs needed, {gpus.sum():.0f} there"
        raise InputError(f"round {round.name}", found, "room for all jobs together")
    return EnergySnapshot(table, steps, left_s, energy_j, gpus)


def full_speed_j(case: EnergySnapshot) -> float:
    """Return the joules of the greedy that minds GPUs only: full clock, most seconds per GPU."""
    table = case.table
    top = np.zeros(len(table.jobs))
    np.maximum.at(top, table.job, table.clock)
    full = np.flatnonzero(table.clock == top[table.job])
    order = full[np.lexsort((table.gpus[full], table.job[full]))]
    _, first = np.unique(table.job[order], return_index=True)
    worth = priced(case.ladder.up, -case.left_s, table.gpus.astype(float))
    worth[1] = -np.inf
    return case.total_j(climb(case.limits(None), order[first], case.ladder.up, worth))


def by_relative_rule(case: EnergySnapshot, budget_j: float) -> Rows | None:
    """Return (J,) rows of PowerFlow's rule; None if jobs cannot even start within the budget."""
    worth = relative(case.ladder.up, case.left_s, case.energy_j)
    return _climbed(case, budget_j, worth)


def by_two_prices(case: EnergySnapshot, budget_j: float) -> Rows | None:
    """Return (J,) rows of the rule dJCT / (dE / E_bud + dn / N); None if jobs cannot start."""
    cost = case.energy_j / budget_j + case.table.gpus / case.gpus[case.table.pool]
    return _climbed(case, budget_j, priced(case.ladder.up, -case.left_s, cost))


def _climbed(case: EnergySnapshot, budget_j: float, worth: Floats) -> Rows | None:
    if case.total_j(case.ladder.start) > budget_j:
        return None
    return climb(case.limits(budget_j), case.ladder.start, case.ladder.up, worth)


def exact_problem(case: EnergySnapshot, budget_j: float) -> tuple[Separable, Rows]:
    """Return the question as a separable problem, and the table's row of each of its options.

    Options that another one of the same job and pool beats in seconds, GPUs and joules are left
    out: an optimum without them exists.
    """
    table, bounds = case.table, case.limits(budget_j)
    two = np.flatnonzero((case.ladder.up >= 0).any(axis=0))
    kept = np.zeros(len(table), dtype=bool)
    kept[two] = kept[case.ladder.up[:, two][case.ladder.up[:, two] >= 0]] = True
    kept[case.ladder.start] = True
    rows = np.flatnonzero(kept)
    group = table.job[rows] * len(table.pools) + table.pool[rows]
    costs = np.array([table.gpus[rows], case.energy_j[rows]], dtype=float)
    rows = rows[unbeaten(group, -case.left_s[rows], costs)]
    jobs = len(table.jobs)
    none = np.zeros(0)
    problem = Separable(
        start=np.searchsorted(table.job[rows], np.arange(jobs + 1)),
        value=-case.left_s[rows],
        use=bounds.demand[:, rows],
        capacity=bounds.capacity,
        names=bounds.names,
        must=np.ones(jobs, dtype=bool),
        block_value=none,
        block_use=np.zeros((len(bounds.names), 0)),
        block_count=none,
        block_integer=none.astype(bool),
    )
    return problem, rows
