"""The thrifty rank: the flow time that progress saves, less a price for energy beyond need."""

import numpy as np

from ronda.formulations.objectives.outlook import Outlook
from ronda.formulations.objectives.rank import rank_values
from ronda.formulations.options.table import OptionTable
from ronda.formulations.watts import least_held_w
from ronda.instances.arrays import Floats, Rows


def thrifty_rank(
    o: Outlook, thrift: float, hosts: float, patience: float, alone_s: float | None
) -> Floats:
    """Return ``rank value (1 - thrift e_k / e_min)`` with e the energy for a unit of work.

    It is the rank value less a price for watts, which is ``thrift`` times the earnings per watt of
    the job's most frugal option. So an option is worth more than a slower one only if its
    additional watts earn at least `thrift` times as much each. In units of the job, this is Zeus'
    cost (NSDI 2023) ``eta energy + (1 - eta) power time``. A budget that binds puts a price on
    watts itself; this price counts when it does not, and saves energy for later. At 0 only the
    budget limits energy; at 1 no job gets more than its most frugal option.

    The work counts the pause of a change, in which GPUs are held and hosts draw power as well. The
    energy is a lower bound: each allocated GPU of a node of G replaces an idle one and keeps at
    least a G-th of the node awake (`least_held_w`). A job is charged the share `hosts` of that, 0
    where nodes are awake whatever it does; e_min is the energy with all of it.
    """
    values = rank_values(o, patience, alone_s)
    if o.round.watts is None:
        return values
    t = o.table
    held_w = t.gpus * least_held_w(o.round.cluster.topology)[t.pool]
    rate = np.maximum(o.rate, 1e-12 * t.rate)  # a pause may last as long as the option

    def energy(share: float) -> Floats:
        return np.maximum(t.extra_w + share * held_w, 0.0) / rate

    least = o.by_row(o.over_jobs(np.minimum, energy(1.0)))
    ratio = energy(hosts) / np.where(least > 0, least, 1.0)
    # Even the most wasteful option keeps a hundredth of its rank value.
    return np.asarray(values * np.maximum(1.0 - thrift * ratio, 0.01 * (1.0 - thrift)))


def worth_of_a_watt(table: OptionTable, values: Floats, chosen: Rows) -> float:
    """Return the mean value per watt of (J,) chosen rows, 0 if they draw none.

    Where energy must be saved whether or not the budget binds, a watt of idle nodes is worth as
    much: jobs leave nodes, which are powered off, if that saves more than the moves lose.
    """
    rows = chosen[chosen >= 0]
    drawn_w = float(table.power_w[rows].sum())
    return float(values[rows].sum()) / drawn_w if drawn_w > 0 else 0.0
