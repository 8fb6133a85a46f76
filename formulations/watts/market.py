"""A round as a market: rows compete for the GPUs of their pool and for watts, at prices.

With a price on each resource every job decides for itself (the Lagrangian relaxation)::

    L(prices) = sum_r price_r capacity_r + sum_j max(0, max_k value_k - sum_r price_r use_rk)

is at least what any plan is worth, for all prices >= 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ronda.formulations.options.table import OptionTable
from ronda.instances.arrays import Floats, Rows
from ronda.instances.round import Round

# Sums of watts in another order differ by rounding.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Market:
    """The rows that compete: those worth more than 0, of jobs that have a choice.

    Attributes
    ----------
    capacity
        (R,) GPUs of each pool, then watts if they are limited; what must run is taken off.
    row
        (M,) row of the table.
    value, pool, gpus, watts
        (M,) what it is worth and uses; `watts` is all 0 if they are not limited.
    first, job
        (G,) where the rows of each competing job begin, and which job it is.
    limits_watts
        Whether the last resource is watts.
    fixed, fixed_value
        (F,) rows of jobs that must run, and what they are worth together.
    """

    capacity: Floats
    row: Rows
    value: Floats
    pool: Rows
    gpus: Floats
    watts: Floats
    first: Rows
    job: Rows
    limits_watts: bool
    fixed: Rows
    fixed_value: float

    @property
    def pools(self) -> int:
        """Number of pools."""
        return len(self.capacity) - self.limits_watts

    def cost(self, prices: Floats) -> Floats:
        """Return (M,) what each row costs."""
        gpu_price = prices[0] if self.pools == 1 else prices[self.pool]
        cost = gpu_price * self.gpus
        return np.asarray(cost + prices[-1] * self.watts if self.limits_watts else cost)

    def use(self, picked: Rows) -> Floats:
        """Return (R,) what rows use together."""
        used = np.bincount(self.pool[picked], self.gpus[picked], minlength=self.pools)
        return np.append(used, self.watts[picked].sum()) if self.limits_watts else np.asarray(used)

    def picks(self, prices: Floats) -> tuple[Rows, Floats]:
        """Return the (m,) rows that jobs pick at these prices, and their profits, all above 0.

        Of a job's equally profitable rows the first is picked.
        """
        if not len(self.first):
            return self.first, self.value
        profit = self.value - self.cost(prices)
        most = np.maximum.reduceat(profit, self.first)
        sizes = np.diff(self.first, append=len(profit))
        picked = np.flatnonzero(profit == np.repeat(np.where(most > 0, most, np.inf), sizes))
        owner = np.searchsorted(self.first, picked, side="right")
        picked = picked[np.diff(owner, prepend=0) > 0]
        return picked, profit[picked]


def market(
    table: OptionTable, values: Floats, gpus: Floats, watts: tuple[float, Floats] | None
) -> Market:
    """Return the market of a round.

    Parameters
    ----------
    table, values
        The round's options, and (K,) what they are worth.
    gpus
        (P,) GPUs of each pool.
    watts
        Watts left for jobs, and (K,) what each row takes of them; None: not limited.
    """
    capacity = gpus
    use_w = np.zeros(len(table))
    if watts is not None:
        capacity, use_w = np.append(capacity, watts[0]), watts[1]
    must = table.must_run[table.job]
    fixed = np.flatnonzero(must)
    taken = np.bincount(table.pool[fixed], table.gpus[fixed], minlength=len(table.pools))
    if watts is not None:
        taken = np.append(taken, use_w[fixed].sum())
    # What must run may use more watts than there are (a cap that has just dropped).
    capacity = np.maximum(capacity - taken, 0.0)
    # A row that does not even fit alone is no choice; without it the bound is tighter.
    fits = table.gpus <= capacity[table.pool]
    if watts is not None:
        fits &= use_w <= capacity[-1] + ROUNDING * max(1.0, watts[0])
    row = np.flatnonzero(~must & (values > 0) & fits)
    owner = table.job[row]
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    return Market(
        capacity=capacity,
        row=row,
        value=values[row],
        pool=table.pool[row],
        gpus=table.gpus[row].astype(float),
        watts=use_w[row],
        first=first,
        job=owner[first],
        limits_watts=watts is not None,
        fixed=fixed,
        fixed_value=float(values[fixed].sum()),
    )


def awake_gpus(round: Round, asleep: Sequence[int] = ()) -> Floats:
    """Return (P,) the GPUs of each pool on the nodes that do not sleep."""
    topology = round.cluster.topology
    awake = np.delete(np.arange(len(topology.node_pool)), list(asleep))
    pools = len(topology.pools)
    gpus = np.bincount(topology.node_pool[awake], topology.node_gpus[awake], pools)
    return np.asarray(gpus, dtype=float)


def watts_of_jobs(
    round: Round, table: OptionTable, asleep: Sequence[int] = ()
) -> tuple[float, Floats] | None:
    """Return the watts for jobs and what rows take of them, if just these nodes sleep.

    An option adds ``power_w - gpus idle_w``, at least 0: while a job starts, its GPUs idle. None
    if the round has no limit.
    """
    if round.watts is None:
        return None
    drawn = round.cluster.topology.awake_w
    drawn[list(asleep)] = round.cluster.topology.sleep_w[list(asleep)]
    return round.watts - float(drawn.sum()), np.maximum(table.extra_w, 0.0)


def watts_at_least(
    round: Round, table: OptionTable, *, sleeping: bool
) -> tuple[float, Floats] | None:
    """Return the most watts that jobs could have, and the least that each row takes of them.

    What a node draws without jobs is ``low = min(awake, sleep)`` if it may sleep. Each of its G
    GPUs that is allocated replaces an idle one and keeps at least a G-th of the node awake, so a
    row takes at least ``power_w + gpus min_n((awake_n - low_n)/G_n - idle_w)``, n over the nodes
    of its pool. None if the round has no limit.

    Parameters
    ----------
    round, table
        The round and its options.
    sleeping
        Whether plans may put nodes to sleep; if not, only those asleep now draw less.
    """
    if round.watts is None:
        return None
    t = round.cluster.topology
    awake = t.awake_w
    asleep = np.zeros(len(awake), dtype=bool)
    asleep[list(round.asleep)] = True
    low = np.where(asleep | sleeping, np.minimum(awake, t.sleep_w), awake)
    share = np.full(len(table.pools), np.inf)
    np.minimum.at(share, t.node_pool, (awake - low) / t.node_gpus)
    idle = np.array([pool.gpu_type.idle_w for pool in table.pools])
    least = table.power_w + table.gpus * (share - idle)[table.pool]
    return round.watts - float(low.sum()), np.asarray(least)
