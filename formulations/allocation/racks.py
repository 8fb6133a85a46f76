"""Copies of options for each rack, for a joint choice of options and racks.

An option of span ``rack`` has a copy for every rack that is large enough, and each copy takes its
GPUs from that rack as well as from the pool. A job that runs on whole nodes, or must run, stays in
place (`ronda.formulations.placement.packing` never moves it), so its option has no copies and takes
GPUs from the racks of the job. All other options take GPUs from the pool alone.
"""

import numpy as np
from msgspec.structs import replace

from ronda.formulations.options.table import (
    ANYWHERE,
    CLUSTER,
    RACK,
    SEVERAL,
    OptionTable,
    in_place,
)
from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.cluster import Topology


def rack_gpus(topology: Topology) -> Rows:
    """Return the GPUs that each pool has in each rack, shape (P, R)."""
    found = np.zeros((len(topology.pools), len(topology.racks)), dtype=np.int64)
    np.add.at(found, (topology.node_pool, topology.node_rack), topology.node_gpus)
    return found


def stays(table: OptionTable, rows: Rows) -> Mask:
    """Return whether rows belong to jobs that stay in place, shape (n,)."""
    whole = np.array([pool.gpus_per_node for pool in table.pools])[table.pool[rows]]
    must = table.must_run[table.job[rows]]
    return np.asarray(table.current[rows] & ((table.gpus[rows] > whole) | must))


def reach(table: OptionTable, rows: Rows) -> Rows:
    """Return 0 for rows that fit anywhere, 1 in one rack and 2 in place only, shape (n,)."""
    return np.where(stays(table, rows), 2, np.where(table.span[rows] == RACK, 1, 0))


def copies(topology: Topology, table: OptionTable, rows: Rows) -> tuple[Rows, Rows]:
    """Return the row and the rack of each copy, both of shape (n,); rows keep their order.

    An option that is not tied to a rack has one copy, with the rack `ANYWHERE`.
    """
    fits = rack_gpus(topology)[table.pool[rows]] >= table.gpus[rows, None]
    fits &= (reach(table, rows) == 1)[:, None]
    free = ~fits.any(axis=1, keepdims=True)
    of, column = np.nonzero(np.concatenate([free, fits], axis=1))
    return of, column - 1


def by_rack(topology: Topology, table: OptionTable) -> tuple[OptionTable, Rows]:
    """Return a table with a copy of each option for every large enough rack, and each copy's row.

    The first copy of an option has the rack `ANYWHERE`. All copies of a current option are current.
    """
    fits = rack_gpus(topology)[table.pool] >= table.gpus[:, None]
    every = np.ones((len(table), 1), dtype=bool)
    of, column = np.nonzero(np.concatenate([every, fits], axis=1))
    found = replace(_some(table, of), rack=column - 1, node_rack=topology.node_rack)
    return found, of


def told_apart(table: OptionTable, of: Rows, worth: Floats) -> tuple[OptionTable, Rows]:
    """Return the options of `by_rack` that rules treat differently, and their rows in its table.

    An option that rules count the same in all racks has the rack `ANYWHERE`. Any other option is in
    one rack if one is large enough, or in `SEVERAL` if it runs in several racks now.
    """
    assert table.own is not None
    assert table.rack is not None
    counts = np.vstack([table.own.dense(), worth])
    first = np.flatnonzero(np.diff(of, prepend=-1))
    alike = (counts == counts[:, first][:, of]).all(axis=0)
    alike = np.logical_and.reduceat(alike, first)[of] if len(first) else alike
    anywhere = table.rack == ANYWHERE
    alone = anywhere & (np.bincount(of)[of] == 1)
    rack = np.where(anywhere & ~alike & ~alone, SEVERAL, table.rack)
    table = replace(table, rack=rack)
    here = table.current & in_place(
        table, np.arange(len(table)), [state.allocation for state in table.jobs]
    )
    kept = np.where(alike, anywhere, (rack != SEVERAL) | here)
    rows = np.flatnonzero(kept & (here | ~table.must_run[table.job]))
    return _some(table, rows), rows


def _some(table: OptionTable, rows: Rows) -> OptionTable:
    names = ("job", "pool", "gpus", "span", "width", "clock", "batch", "rate", "power_w", "current")
    columns = {name: getattr(table, name)[rows] for name in names}
    own, rack = table.own, table.rack
    return replace(
        table,
        **columns,
        start=np.searchsorted(columns["job"], np.arange(len(table.jobs) + 1)),
        own=None if own is None else own.of_options(rows),
        rack=None if rack is None else rack[rows],
    )


def held_gpus(topology: Topology, table: OptionTable, rows: Rows) -> Rows:
    """Return the GPUs that jobs in place hold in each rack, 0 for other rows, shape (n, R)."""
    held = np.zeros((len(rows), len(topology.racks)), dtype=np.int64)
    for i in np.flatnonzero(stays(table, rows)).tolist():
        allocation = table.jobs[int(table.job[rows[i]])].allocation
        for node, gpus in () if allocation is None else allocation.placement:
            held[i, topology.node_rack[node]] += gpus
    return held


def fit_racks(topology: Topology, table: OptionTable, chosen: Rows) -> bool:
    """Return whether all chosen options of span rack find a rack, the largest first.

    Each option takes the rack that it fills best. Which rack it gets is left to the placement,
    which knows where jobs run (`ronda.formulations.placement.packing`). `chosen` (J,) is -1 for
    jobs without an option.
    """
    rows = chosen[chosen >= 0]
    free = rack_gpus(topology)
    np.subtract.at(free, table.pool[rows], held_gpus(topology, table, rows))
    tied = rows[reach(table, rows) == 1]
    for k in tied[np.argsort(-table.gpus[tied], kind="stable")].tolist():
        left = free[table.pool[k]] - table.gpus[k]
        if left.max() < 0:
            return False
        rack = int(np.argmin(np.where(left >= 0, left, np.iinfo(np.int64).max)))
        free[table.pool[k], rack] = left[rack]
    return True


def wider(table: OptionTable, values: Floats, k: int) -> int | None:
    """Return the most valuable row like row k, which has span ``rack``, but of span ``cluster``.

    Return None if there is no such row. `values` (K,) are the values of rows.
    """
    j = int(table.job[k])
    own = np.arange(table.start[j], table.start[j + 1])
    same = (table.pool[own] == table.pool[k]) & (table.gpus[own] == table.gpus[k])
    like = own[same & (table.span[own] == CLUSTER) & (values[own] > 0)]
    return int(like[np.argmax(values[like])]) if len(like) else None
