"""The thrifty rank, which is the flow time that progress saves less a price for extra energy."""

import numpy as np

from ronda.formulations.objectives.outlook import Outlook
from ronda.formulations.objectives.rank import rank_values
from ronda.formulations.options.table import OptionTable
from ronda.formulations.watts import least_held_w
from ronda.instances.base import Floats, Rows


def thrifty_rank(
    o: Outlook, thrift: float, hosts: float, patience: float, alone_s: float | None
) -> Floats:
    """Return ``rank value (1 - thrift e_k / e_min)``, where e is the energy per unit of work.

    It is the rank value less a price for watts, which is `thrift` times the earnings per watt of
    the job's most frugal option. So an option has a higher value than a slower one only if each
    additional watt earns at least `thrift` times as much. In units of the job, this is the cost
    ``eta energy + (1 - eta) power time`` of Zeus (NSDI 2023). A budget that binds prices watts
    itself; this price also holds when the budget does not bind, and saves energy for later. At 0
    only the budget limits energy; at 1 no job gets more than its most frugal option.

    The rate includes the pause of a change, in which GPUs are held and hosts draw power as well.
    The energy is a lower bound: each allocated GPU of a node of G replaces an idle GPU and keeps at
    least a G-th of the node awake (`least_held_w`). A job is charged the share `hosts` of that,
    which is 0 where nodes are awake in any case; e_min is the energy with the full charge.
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
    """Return the mean value per watt of the `chosen` rows (J,), 0 if they draw no power.

    Where energy must be saved even if the budget does not bind, a watt of idle nodes has the same
    value. In that case jobs leave nodes, which are powered off, if this saves more than the moves
    lose.
    """
    rows = chosen[chosen >= 0]
    drawn_w = float(table.power_w[rows].sum())
    return float(values[rows].sum()) / drawn_w if drawn_w > 0 else 0.0
