"""The thrifty rank: what progress saves in flow time, less the energy that it costs beyond need."""

import numpy as np

from ronda.formulations.objectives.outlook import Outlook
from ronda.formulations.objectives.rank import rank_values
from ronda.formulations.options.table import OptionTable
from ronda.formulations.watts import least_held_w
from ronda.instances.arrays import Floats, Rows

LEAST = 0.01
"""Share of its rank value that even the most wasteful option keeps."""

LEAST_RATE = 1e-12
"""Share of its rate that is left of an option whose pause lasts as long as it is used."""


def thrifty_rank(
    o: Outlook, thrift: float, hosts: float, patience: float, alone_s: float | None
) -> Floats:
    """Return ``rank value (1 - thrift e_k / e_min)`` with e the energy for a unit of work.

    That is the rank value of the rate less a price for watts, ``thrift`` times what the job's most
    frugal option earns with a watt: an option is worth more than a slower one only if what it
    adds earns at least `thrift` times as much a watt. In units of the job itself, it is Zeus' cost
    (NSDI 2023) ``eta energy + (1 - eta) power time``. A budget that binds puts a price on watts by
    itself; this one counts when it does not, and energy is saved for later. At 0 only the budget
    limits energy; at 1 no job gets more than its most frugal option.

    The work is what is left of the rate by the pause of a change, in which GPUs are held and hosts
    draw power as well. The energy is a lower bound: each of the G GPUs of a node that is allocated
    replaces an idle one and keeps at least a G-th of the node awake (`least_held_w`). A job
    is charged the share `hosts` of that, 0 where nodes are awake whatever it does; e_min is the
    energy with all of it.
    """
    values = rank_values(o, patience, alone_s)
    if o.round.watts is None:
        return values
    t = o.table
    held_w = t.gpus * least_held_w(o.round.cluster.topology)[t.pool]
    rate = np.maximum(o.rate, LEAST_RATE * t.rate)

    def energy(share: float) -> Floats:
        return np.maximum(t.extra_w + share * held_w, 0.0) / rate

    least = o.by_row(o.over_jobs(np.minimum, energy(1.0)))
    ratio = energy(hosts) / np.where(least > 0, least, 1.0)
    return np.asarray(values * np.maximum(1.0 - thrift * ratio, LEAST * (1.0 - thrift)))


def worth_of_a_watt(table: OptionTable, values: Floats, chosen: Rows) -> float:
    """Return what a watt earns on average under (J,) chosen rows; 0 if none is drawn.

    Where energy must be saved whether or not the budget binds, a watt of idle nodes is worth
    as much: jobs leave nodes, and these are powered off, if that frees more than the moves lose.
    """
    rows = chosen[chosen >= 0]
    drawn_w = float(table.power_w[rows].sum())
    return float(values[rows].sum()) / drawn_w if drawn_w > 0 else 0.0
