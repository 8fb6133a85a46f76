"""The constraint families of a round, each stated once.

A family is a function of the `Case` that yields its rows. The Pyomo model, the arrays of the price
engine, the limits of populations and the words for what cannot be met all read them; names and
formulas are those of ``docs/formulations.md``. Decisions: x_k is 1 if option k is chosen, a_c the
number of nodes of class c that are awake, y_pr the kilowatts that jobs of pool p add in rack r.
What nodes hold together is in `ronda.formulations.allocation.buddy`.
"""

from collections.abc import Iterator

import numpy as np

from ronda.formulations.allocation.buddy import buddy, whole_nodes
from ronda.formulations.allocation.case import Case
from ronda.formulations.allocation.racks import ANYWHERE, held_gpus, rack_gpus
from ronda.formulations.allocation.row import Row
from ronda.formulations.allocation.separable import Separable

UNNAMED = "(unnamed)"
"""How the rack of nodes without one is called."""

KILO = 1e3
"""Watts in a unit of y_pr."""


def gpus(case: Case) -> Iterator[Row]:
    """Σ_{k in p} GPUs_k x_k ≤ Σ_{c in p} GPUs_c a_c."""
    pools, asked = case.pool, case.gpus
    for p, pool in enumerate(case.table.pools):
        nodes = tuple(-float(c.gpus_per_node) * (c.pool == p) for c in case.classes)
        yield Row(f"gpus[{pool.name}]", np.where(pools == p, asked, 0.0), 0.0, nodes)


def gpus_in_racks(case: Case) -> Iterator[Row]:
    """Σ_{k in p, tied to r} GPUs_k x_k + Σ_{k stays} GPUs_kr x_k ≤ GPUs of p in rack r.

    Only where racks are chosen with the options. Nodes that may sleep count: those that are awake
    may be any, and the pool's row counts them.
    """
    if not case.joint:
        return
    topology, tied = case.round.cluster.topology, case.rack != ANYWHERE
    there, held = rack_gpus(topology), held_gpus(topology, case.table, case.rows)
    for p in np.unique(case.pool[tied]).tolist():
        for r in np.flatnonzero(there[p]).tolist():
            use = np.where(case.rack == r, case.gpus, held[:, r]) * (case.pool == p)
            name = f"gpus[{case.table.pools[p].name},{topology.racks[r] or UNNAMED}]"
            yield Row(name, use.astype(float), float(there[p, r]))


def ready_gpus(case: Case) -> Iterator[Row]:
    """Σ_{k in p} ready_k x_k ≤ GPUs of p that are ready; ready_k = 0 for what waits for nodes."""
    if case.waking is None:
        return
    for p in np.flatnonzero(np.isfinite(case.waking.gpus)).tolist():
        use = np.where(case.pool == p, case.waking.use, 0.0)
        yield Row(f"ready_gpus[{case.table.pools[p].name}]", use, float(case.waking.gpus[p]))


def power(case: Case) -> Iterator[Row]:
    """Σ_k extra_k x_k + Σ_c (awake_c − asleep_c) a_c ≤ cap − Σ_c asleep_c nodes_c, in watts.

    `energy_window` is the same with what options are charged on average over the window
    (`ronda.formulations.energy`), times the window, in joules. The lower limit comes first.
    """
    round_, window_s = case.round, case.round.window_s
    limits = []
    if round_.power_cap_w is not None:
        limits.append((round_.power_cap_w, 1.0, "power_cap", case.extra_w))
    if round_.energy_j is not None:
        limits.append((round_.energy_j / window_s, window_s, "energy_window", case.charged_w))
    asleep_w = sum(c.idle_w(0) for c in case.classes)
    for watts, scale, name, use in sorted(limits, key=lambda limit: limit[0]):
        nodes = tuple(c.saves_w * scale for c in case.classes)
        yield Row(name, use * scale, (watts - asleep_w) * scale, nodes)


def implied(case: Case) -> bool:
    """Tell whether the lower limit on power is kept only if the other one is kept as well."""
    energy_j, cap_w = case.round.energy_j, case.round.power_cap_w
    if energy_j is None or cap_w is None:
        return False
    uses = [case.extra_w, case.charged_w]
    if energy_j / case.round.window_s < cap_w:
        uses.reverse()
    return bool((uses[1] <= uses[0]).all())


def rack_share(case: Case) -> Iterator[Row]:
    """Σ_{k in p} extra_k x_k ≤ Σ_r y_pr: jobs draw their power in the racks of their pool."""
    pools, extra_w = case.pool, case.extra_w
    for p, pool in enumerate(case.table.pools) if case.racks else ():
        shares = {pair: -KILO for pair in case.most_rack_kw if pair[0] == pool.name}
        yield Row(f"rack_share[{pool.name}]", np.where(pools == p, extra_w, 0.0), 0.0, (), shares)


def rack_power(case: Case) -> Iterator[Row]:
    """Σ_{p, r below R} y_pr + Σ_{c below R} (power of nodes) ≤ cap of R, for each capped rack R.

    Necessary only: a job is not tied to the racks that its power is counted in. Placement decides.
    """
    names = case.round.cluster.topology.racks
    for cap in case.racks:
        below = [c.rack in cap.racks for c in case.classes]
        nodes = tuple(c.saves_w * inside for c, inside in zip(case.classes, below, strict=True))
        racks = {names[r] for r in cap.racks}
        shares = {pair: KILO for pair in case.most_rack_kw if pair[1] in racks}
        asleep_w = sum(c.idle_w(0) for c, inside in zip(case.classes, below, strict=True) if inside)
        none = np.zeros(len(case.rows))
        yield Row(f"rack_power[{cap.name}]", none, cap.cap_w - asleep_w, nodes, shares)


FAMILIES = (gpus, whole_nodes, buddy, gpus_in_racks, ready_gpus, power, rack_share, rack_power)


def separable(case: Case, *, both_limits: bool = False) -> Separable:
    """Return all rows of a round as arrays, but for those that nothing can break.

    Option k of the problem is the table's row ``case.rows[k]``; its blocks are the classes of nodes
    if some may sleep, and the kilowatts of pools in racks. Of ``power_cap`` and ``energy_window``
    only the tighter one has a row if it implies the other, unless `both_limits` is set.
    """
    found = [row for family in FAMILIES for row in family(case)]
    if not both_limits and implied(case):
        looser = [row.name for row in found if row.name in ("power_cap", "energy_window")][1:]
        found = [row for row in found if row.name not in looser]
    counts = np.array([c.count for c in case.classes], dtype=float)
    most_kw = case.most_rack_kw if case.racks else {}
    rows = []
    for row in found:
        nodes = np.array(row.nodes or np.zeros(len(counts)))
        capacity = row.capacity if case.sleeps else row.capacity - float(nodes @ counts)
        blocks = [*(nodes if case.sleeps else ()), *(row.racks.get(pair, 0.0) for pair in most_kw)]
        if capacity < 0 or max(blocks, default=0.0) > 0 or (row.use > 0).any():
            rows.append((row, capacity, blocks))
    counts = np.array([*(counts if case.sleeps else ()), *most_kw.values()])
    shape = len(rows), len(case.rows)
    return Separable(
        start=np.searchsorted(case.rows, case.table.start),
        value=case.value,
        use=np.array([row.use for row, _, _ in rows]).reshape(shape),
        capacity=np.array([capacity for _, capacity, _ in rows], dtype=float),
        names=tuple(row.name for row, _, _ in rows),
        must=case.table.must_run,
        block_value=np.zeros(len(counts)),
        block_use=np.array([blocks for _, _, blocks in rows]).reshape(len(rows), len(counts)),
        block_count=counts,
        block_integer=np.arange(len(counts)) < len(counts) - len(most_kw),
    )
