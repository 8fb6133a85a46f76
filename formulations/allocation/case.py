"""What the allocation model of a round is made from: the options that matter, nodes and limits."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.allocation.dual_functions import node_shares, tightening
from ronda.formulations.allocation.racks import ANYWHERE, copies, reach
from ronda.formulations.options.dominance import unbeaten
from ronda.formulations.options.table import OptionTable
from ronda.formulations.watts.nodes import NodeClass, RackCap, may_sleep, node_classes, rack_caps
from ronda.instances.arrays import Floats, Rows
from ronda.instances.round import Round


@dataclass(frozen=True, slots=True)
class Waking:
    """Which options wait for nodes to wake (see `ronda.formulations.allocation.waking`).

    Attributes
    ----------
    late
        (n,) whether the option begins when nodes have woken, or now.
    use
        (n,) the GPUs that it takes of those that are ready.
    gpus
        (P,) the GPUs of each pool on nodes that are ready; infinite: all nodes are.
    """

    late: NDArray[np.bool_]
    use: Floats
    gpus: Floats


@dataclass(frozen=True, slots=True)
class Case:
    """What the model of a round is made from.

    Attributes
    ----------
    round, table
        What is to be decided.
    rows
        (n,) the options that get a variable, ascending rows of the table.
    rack
        (n,) the rack that each must be in, if racks are chosen with the options; else -1.
    value
        (n,) what each is worth.
    scale
        The largest value: one unit of the model's objective.
    classes, sleeps
        The nodes, and whether the model may put some to sleep.
    racks
        The racks with a power cap.
    joint
        Whether racks are chosen with the options.
    waking
        Options now and after waking, of which each has a variable
        (`ronda.formulations.allocation.waking`); None: waking takes no time.
    """

    round: Round
    table: OptionTable
    rows: Rows
    rack: Rows
    value: Floats
    scale: float
    classes: tuple[NodeClass, ...]
    sleeps: bool
    racks: tuple[RackCap, ...]
    joint: bool = False
    waking: Waking | None = None

    @property
    def job(self) -> Rows:
        """(n,) the job of each variable."""
        return self.table.job[self.rows]

    @property
    def pool(self) -> Rows:
        """(n,) the pool of each variable."""
        return self.table.pool[self.rows]

    @property
    def gpus(self) -> Rows:
        """(n,) the GPUs of each variable."""
        return self.table.gpus[self.rows]

    @property
    def extra_w(self) -> Floats:
        """(n,) watts that each variable adds to those of its GPUs idle."""
        return self.table.extra_w[self.rows]

    def node_shares(self, pool: int, gpus: Rows) -> dict[int, Floats]:
        """Return what jobs of so many GPUs take of whole nodes, by number of the dual function.

        A job of n GPUs on nodes of G takes ``floor(n/G) + f_k((n mod G)/G)`` of them. Empty where
        counting GPUs says it all, and in pools of unequal nodes.
        """
        size = self.table.pools[pool].gpus_per_node
        if any(c.pool == pool and c.gpus_per_node != size for c in self.classes):
            return {}
        rest = gpus % size
        return {
            k: gpus // size + node_shares(rest, size, k)
            for k in tightening(rest[rest > 0].tolist(), size)
        }


def restrict(case: Case, kept: NDArray[np.bool_]) -> Case:
    """Return the case with some of its options only; `kept` (n,) tells which."""
    columns = {name: getattr(case, name)[kept] for name in ("rows", "rack", "value")}
    waking = case.waking
    if waking is not None:
        waking = replace(waking, late=waking.late[kept], use=waking.use[kept])
    return replace(case, waking=waking, **columns)


def make_case(round: Round, table: OptionTable, values: Floats, *, joint: bool = False) -> Case:
    """Gather what the model of a round is made from.

    Options that cannot be in a best allocation get no variable: those worth no more than not to
    run, and those that another one of the same job beats (`unbeaten`). Only options of jobs
    that must run stay in any case.

    Parameters
    ----------
    round, table
        What is to be decided.
    values
        (K,) what each option is worth; not to run is worth 0.
    joint
        Whether racks are chosen with the options: those of span ``rack`` then get a variable for
        each rack (`ronda.formulations.allocation.racks`), and are compared only with their like.
    """
    rigid = bool(table.must_run.any())
    good = np.isfinite(values) & (values > 0)
    if rigid:
        must = table.must_run[table.job]
        good &= ~must
    rows = good.nonzero()[0]
    racks = rack_caps(round.cluster)
    if racks:
        rows = rows[table.extra_w[rows] <= _room_w(round, table, racks)[rows]]
    costs = [table.gpus[rows].astype(float)]
    if round.watts is not None or racks:
        costs.append(table.extra_w[rows])
    group = table.job[rows] * len(table.pools) + table.pool[rows]
    if joint:
        group = 3 * group + reach(table, rows)
    rows = rows[unbeaten(group, values[rows], np.array(costs))]
    if rigid:
        rows = np.sort(np.concatenate([rows, must.nonzero()[0]]))
    rack = np.full(len(rows), ANYWHERE)
    if joint:
        of, rack = copies(round.cluster.topology, table, rows)
        rows = rows[of]
    value = values[rows]
    largest = float(np.abs(value).max(initial=0.0))
    return Case(
        round=round,
        table=table,
        rows=rows,
        rack=rack,
        value=value,
        scale=largest if 0 < largest < np.inf else 1.0,
        classes=node_classes(round.cluster, round.asleep),
        sleeps=may_sleep(round),
        racks=racks,
        joint=joint,
    )


def most_extra_w(case: Case) -> dict[tuple[str, str], float]:
    """Return the most watts that jobs can add, by pool and rack; the rest of a pool is one rack."""
    racks = (*case.round.cluster.topology.racks, "elsewhere")
    each = case.extra_w / np.maximum(case.gpus, 1)
    most: dict[tuple[str, str], float] = {}
    for kind in case.classes:
        pair = (case.table.pools[kind.pool].name, racks[kind.rack])
        densest = float(each[case.pool == kind.pool].max(initial=0.0))
        there = kind.count * kind.gpus_per_node
        most[pair] = most.get(pair, 0.0) + max(0.0, densest) * there
    return most


def _room_w(round: Round, table: OptionTable, racks: tuple[RackCap, ...]) -> Floats:
    """Return (K,) the most watts that each option may add so that some rack could bear it alone.

    Infinite for options of several nodes, which may spread over racks.
    """
    classes, sleeps = node_classes(round.cluster, round.asleep), may_sleep(round)
    most = np.full(len(table.pools), -np.inf)
    for kind in classes:
        room = np.inf
        for cap in racks:
            if kind.rack not in cap.racks:
                continue
            below = [c for c in classes if c.rack in cap.racks]
            idle_w = sum(c.count * (c.sleep_w if sleeps else c.awake_w) for c in below)
            room = min(room, cap.cap_w - idle_w - (kind.saves_w if sleeps else 0.0))
        most[kind.pool] = max(most[kind.pool], room)
    sizes = np.array([pool.gpus_per_node for pool in table.pools])
    one_node = table.gpus <= sizes[table.pool]
    return np.where(one_node, most[table.pool] * (1 + 1e-9), np.inf)
