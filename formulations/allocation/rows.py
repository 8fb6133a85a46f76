"""From a round's case to the separable problem that the price engine solves.

Row by row the same constraints, under the same names, as the Pyomo model in
`ronda.formulations.allocation.pyomo_model`; a test holds the two together.
"""

from dataclasses import dataclass, field

import numpy as np

from ronda.formulations.allocation.case import Case, most_extra_w
from ronda.formulations.allocation.racks import ANYWHERE, held_gpus, rack_gpus
from ronda.formulations.allocation.separable import Separable
from ronda.formulations.watts.nodes import NodeClass
from ronda.instances.arrays import Floats

UNNAMED = "(unnamed)"
"""How the rack of nodes without one is called."""


def separable(case: Case) -> Separable:
    """Return the separable problem of a round.

    Parameters
    ----------
    case
        Options, values and nodes, as for the model. Option k of the problem is the table's row
        ``case.rows[k]``.

    Returns
    -------
    Separable
        Resources ``gpus[pool]``, ``whole_nodes[pool,k]``, ``power_cap`` or ``energy_window`` (the
        tighter of the two: they are multiples of each other), ``ready_gpus[pool]`` where nodes
        take time to wake, ``rack_share[pool]`` and
        ``rack_power[rack]``, and ``gpus[pool,rack]`` of pools whose options are tied to racks;
        blocks are the nodes that may be awake and the power of racks.
    """
    made = _Rows(case)
    _gpu_rows(made)
    _in_rack_rows(made)
    _ready_rows(made)
    _power_row(made)
    _rack_rows(made)
    awake = [float(c.count) for c in case.classes] if case.sleeps else []
    counts = np.array([*awake, *made.racks.values()])
    block_use = np.zeros((len(made.names), len(counts)))
    for (row, block), amount in made.block_use.items():
        block_use[row, block] = amount
    return Separable(
        start=np.searchsorted(case.rows, case.table.start),
        value=case.value,
        use=np.array(made.use) if made.use else np.zeros((0, len(case.rows))),
        capacity=np.array(made.capacity),
        names=tuple(made.names),
        must=case.table.must_run,
        block_value=np.zeros(len(counts)),
        block_use=block_use,
        block_count=counts,
        block_integer=np.arange(len(counts)) < len(awake),
    )


@dataclass(slots=True)
class _Rows:
    """Rows under construction."""

    case: Case
    names: list[str] = field(default_factory=list)
    use: list[Floats] = field(default_factory=list)
    capacity: list[float] = field(default_factory=list)
    block_use: dict[tuple[int, int], float] = field(default_factory=dict)
    racks: dict[tuple[str, str], float] = field(default_factory=dict)  # watts, at most

    def add(self, name: str, use: Floats, capacity: float) -> int:
        """Add a row; returns its index."""
        self.names.append(name)
        self.use.append(use)
        self.capacity.append(capacity)
        return len(self.names) - 1

    def provide(self, row: int, weights: list[tuple[int, float]]) -> None:
        """Let nodes provide for a row: those that are awake, or all if none may sleep."""
        for c, weight in weights:
            if self.case.sleeps:
                self.block_use[row, c] = -weight
            else:
                self.capacity[row] += weight * self.case.classes[c].count

    def draw(self, row: int, kinds: list[tuple[int, NodeClass]], scale: float = 1.0) -> None:
        """Let nodes use a power row: asleep at the least, and more awake."""
        for c, kind in kinds:
            if self.case.sleeps:
                self.block_use[row, c] = kind.saves_w * scale
                self.capacity[row] -= kind.count * kind.sleep_w * scale
            else:
                self.capacity[row] -= kind.count * kind.awake_w * scale


def _gpu_rows(made: _Rows) -> None:
    """Add the GPUs of each pool, and its whole nodes where that says more."""
    case = made.case
    pools, gpus = case.pool, case.gpus
    for p, pool in enumerate(case.table.pools):
        own = pools == p
        asked = gpus[own]
        if not len(asked):
            continue
        classes = [(c, kind) for c, kind in enumerate(case.classes) if kind.pool == p]
        row = made.add(f"gpus[{pool.name}]", np.where(own, gpus, 0.0), 0.0)
        made.provide(row, [(c, float(kind.gpus_per_node)) for c, kind in classes])
        for k, shares in case.node_shares(p, asked).items():
            use = np.zeros(len(case.rows))
            use[own] = shares
            row = made.add(f"whole_nodes[{pool.name},{k}]", use, 0.0)
            made.provide(row, [(c, 1.0) for c, _ in classes])


def _in_rack_rows(made: _Rows) -> None:
    """Add the GPUs in each rack of the pools where options are tied to racks.

    Nodes that may sleep count: those that are awake may be any, and the pool's row counts them.
    """
    case, topology = made.case, made.case.round.cluster.topology
    if not case.joint:
        return
    tied = case.rack != ANYWHERE
    there, held = rack_gpus(topology), held_gpus(topology, case.table, case.rows)
    for p in np.unique(case.pool[tied]).tolist():
        for r in np.flatnonzero(there[p]).tolist():
            use = np.where(case.rack == r, case.gpus, held[:, r]) * (case.pool == p)
            name = f"gpus[{case.table.pools[p].name},{topology.racks[r] or UNNAMED}]"
            made.add(name, use.astype(float), float(there[p, r]))


def _ready_rows(made: _Rows) -> None:
    """Add the GPUs of nodes that are ready, in pools where some are not."""
    case = made.case
    if case.waking is None:
        return
    for p in np.flatnonzero(np.isfinite(case.waking.gpus)).tolist():
        use = np.where(case.pool == p, case.waking.use, 0.0)
        made.add(f"ready_gpus[{case.table.pools[p].name}]", use, float(case.waking.gpus[p]))


def _power_row(made: _Rows) -> None:
    """Add the tighter of power cap and energy window, in watts or joules."""
    round_ = made.case.round
    if round_.watts is None:
        return
    cap, energy_j = round_.power_cap_w, round_.energy_j
    by_cap = energy_j is None or (cap is not None and cap <= energy_j / round_.window_s)
    name, scale = ("power_cap", 1.0) if by_cap else ("energy_window", round_.window_s)
    row = made.add(name, made.case.extra_w * scale, round_.watts * scale)
    made.draw(row, list(enumerate(made.case.classes)), scale)


def _rack_rows(made: _Rows) -> None:
    """Let jobs draw in the racks of their pool; each capped rack bounds what is drawn below it."""
    case = made.case
    if not case.racks:
        return
    made.racks = most_extra_w(case)
    first = len(case.classes) if case.sleeps else 0
    blocks = {pair: first + b for b, pair in enumerate(made.racks)}
    for p in np.unique(case.pool).tolist():
        name = case.table.pools[p].name
        row = made.add(f"rack_share[{name}]", np.where(case.pool == p, case.extra_w, 0.0), 0.0)
        for (pool, _), block in blocks.items():
            if pool == name:
                made.block_use[row, block] = -1.0
    racks = case.round.cluster.topology.racks
    for cap in case.racks:
        row = made.add(f"rack_power[{cap.name}]", np.zeros(len(case.rows)), cap.cap_w)
        below = {racks[r] for r in cap.racks}
        for (_, rack), block in blocks.items():
            if rack in below:
                made.block_use[row, block] = 1.0
        made.draw(row, [(c, kind) for c, kind in enumerate(case.classes) if kind.rack in cap.racks])
