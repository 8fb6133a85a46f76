"""Options within one rack, rack by rack: what a joint choice of options and racks is made from.

An option of span ``rack`` is copied for every rack that is large enough, and each copy takes its
GPUs from that rack as well as from the pool. What runs on whole nodes, or must run, stays where it
is (`ronda.formulations.placement.packing` never moves it), so it has no copies and takes GPUs from
the racks that it is in. All other options take GPUs from the pool alone, wherever they are.
"""

import numpy as np

from ronda.formulations.options.table import CLUSTER, RACK, OptionTable
from ronda.instances.arrays import Floats, Mask, Rows
from ronda.instances.cluster import Topology

ANYWHERE = -1
"""In place of a rack: the option is not tied to one."""


def rack_gpus(topology: Topology) -> Rows:
    """Return (P, R) the GPUs that each pool has in each rack."""
    found = np.zeros((len(topology.pools), len(topology.racks)), dtype=np.int64)
    np.add.at(found, (topology.node_pool, topology.node_rack), topology.node_gpus)
    return found


def stays(table: OptionTable, rows: Rows) -> Mask:
    """Return (n,) which rows are of jobs that stay where they run."""
    whole = np.array([pool.gpus_per_node for pool in table.pools])[table.pool[rows]]
    must = table.must_run[table.job[rows]]
    return np.asarray(table.current[rows] & ((table.gpus[rows] > whole) | must))


def reach(table: OptionTable, rows: Rows) -> Rows:
    """Return (n,) the kind of room that rows need: anywhere, one rack, where the job runs."""
    return np.where(stays(table, rows), 2, np.where(table.span[rows] == RACK, 1, 0))


def copies(topology: Topology, table: OptionTable, rows: Rows) -> tuple[Rows, Rows]:
    """Return which of the rows (n,) each copy is of, and its rack; rows keep their order.

    Options that are not tied to a rack have one copy, `ANYWHERE`.
    """
    fits = rack_gpus(topology)[table.pool[rows]] >= table.gpus[rows, None]
    fits &= (reach(table, rows) == 1)[:, None]
    free = ~fits.any(axis=1, keepdims=True)
    of, column = np.nonzero(np.concatenate([free, fits], axis=1))
    return of, column - 1


def held_gpus(topology: Topology, table: OptionTable, rows: Rows) -> Rows:
    """Return (n, R) the GPUs that jobs which stay where they run have in each rack; others 0."""
    held = np.zeros((len(rows), len(topology.racks)), dtype=np.int64)
    for i in np.flatnonzero(stays(table, rows)).tolist():
        allocation = table.jobs[int(table.job[rows[i]])].allocation
        for node, gpus in () if allocation is None else allocation.placement:
            held[i, topology.node_rack[node]] += gpus
    return held


def first_fit(topology: Topology, table: OptionTable, chosen: Rows) -> Rows | None:
    """Return (J,) a rack for each chosen option within a rack, others -1; None if some finds none.

    The largest options first, each to the rack that it fills best. `chosen` (J,): -1 for none.
    """
    racks = np.full(len(table.jobs), ANYWHERE)
    rows = chosen[chosen >= 0]
    free = rack_gpus(topology)
    np.subtract.at(free, table.pool[rows], held_gpus(topology, table, rows))
    tied = rows[reach(table, rows) == 1]
    for k in tied[np.argsort(-table.gpus[tied], kind="stable")].tolist():
        left = free[table.pool[k]] - table.gpus[k]
        if left.max() < 0:
            return None
        rack = int(np.argmin(np.where(left >= 0, left, np.iinfo(np.int64).max)))
        free[table.pool[k], rack] = left[rack]
        racks[table.job[k]] = rack
    return racks


def wider(table: OptionTable, values: Floats, k: int) -> int | None:
    """Return the row of most value like row k, of span ``rack``, with span ``cluster`` instead.

    None without one; `values` (K,) is what rows are worth.
    """
    j = int(table.job[k])
    own = np.arange(table.start[j], table.start[j + 1])
    same = (table.pool[own] == table.pool[k]) & (table.gpus[own] == table.gpus[k])
    like = own[same & (table.span[own] == CLUSTER) & (values[own] > 0)]
    return int(like[np.argmax(values[like])]) if len(like) else None
