"""The watts that are left for jobs."""

import numpy as np

from ronda.formulations.options.table import OptionTable
from ronda.instances.arrays import Floats
from ronda.instances.round import Round


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
