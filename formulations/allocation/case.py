"""What the allocation model of a round is made from: the options that matter, nodes and limits."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ronda.formulations.allocation.racks import ANYWHERE, copies, reach
from ronda.formulations.clock import checkpoint
from ronda.formulations.objectives.outlook import work_ahead
from ronda.formulations.options.table import RACK, OptionTable, unbeaten
from ronda.formulations.watts import NodeClass, RackCap, may_sleep, node_classes, rack_caps, share
from ronda.instances.arrays import Floats, Mask, Rows
from ronda.instances.round import Round


@dataclass(frozen=True, slots=True)
class Waking:
    """Which options wait for nodes to wake (see `ronda.formulations.allocation.waking`).

    ``late`` (n,) tells whether the option begins when nodes have woken, or now; ``use`` (n,) is
    the GPUs that it takes of those that are ready; ``gpus`` (P,) those of each pool that are ready,
    infinite if all are.
    """

    late: Mask
    use: Floats
    gpus: Floats


@dataclass(frozen=True)
class Case:
    """What the model of a round is made from.

    Variables are the options ``rows`` (n,), ascending rows of the table, with their ``value`` (n,)
    and, if racks are chosen with the options (``joint``), the ``rack`` (n,) that each must be in,
    else -1. ``sleeps`` tells whether the model may put nodes to sleep, ``most_rack_kw`` the
    kilowatts that jobs can add at most by pool and rack, of those with a cap (``racks``). With
    ``waking`` options now and after waking have a variable each; None: waking takes no time.
    ``awake`` (P,) are the most nodes of each pool that may be awake, where they may sleep; None:
    all. ``charges`` (K,) are the mean watts over the energy window that the table's rows are
    charged (`charged_w`).
    """

    round: Round
    table: OptionTable
    rows: Rows
    rack: Rows
    value: Floats
    charges: Floats
    classes: tuple[NodeClass, ...]
    sleeps: bool
    racks: tuple[RackCap, ...] = ()
    most_rack_kw: dict[tuple[str, str], float] = field(default_factory=dict)
    joint: bool = False
    waking: Waking | None = None
    awake: tuple[int, ...] | None = None

    @cached_property
    def scale(self) -> float:
        """The largest value: one unit of the model's objective."""
        return float(np.abs(self.value).max(initial=0.0)) or 1.0

    @cached_property
    def job(self) -> Rows:
        """(n,) the job of each variable."""
        return self.table.job[self.rows]

    @cached_property
    def pool(self) -> Rows:
        """(n,) the pool of each variable."""
        return self.table.pool[self.rows]

    @cached_property
    def gpus(self) -> Rows:
        """(n,) the GPUs of each variable."""
        return self.table.gpus[self.rows]

    @cached_property
    def extra_w(self) -> Floats:
        """(n,) watts that each variable adds to those of its GPUs idle."""
        return self.table.extra_w[self.rows]

    @cached_property
    def charged_w(self) -> Floats:
        """(n,) mean watts over the energy window that each variable is charged."""
        return self.charges[self.rows]


def lasts_s(round: Round, table: OptionTable, rows: Rows) -> Floats:
    """Return for how long options of `rows` draw their power; infinite for jobs of unknown size.

    A running job that was measured to be slower than its profile goes on for longer.
    """
    checkpoint()
    work, job, rate = work_ahead(round), table.job[rows], table.rate[rows]
    running = np.flatnonzero(table.current[rows])
    held = [table.jobs[j].allocation for j in job[running].tolist()]
    claimed = [np.inf if each is None else each.option.rate for each in held]
    rate[running] = np.minimum(rate[running], np.array(claimed, dtype=float))
    return np.asarray(work[job] / rate)


def charged_w(round: Round, table: OptionTable) -> Floats:
    """Return (K,) the watts that options are charged throughout the window (`share`)."""
    if round.energy_j is None:
        return table.extra_w
    return np.asarray(table.extra_w * share(round, lasts_s(round, table, np.arange(len(table)))))


def restrict(case: Case, kept: Mask) -> Case:
    """Return the case with some of its options only; `kept` (n,) tells which."""
    columns = {name: getattr(case, name)[kept] for name in ("rows", "rack", "value")}
    waking = case.waking
    if waking is not None:
        waking = replace(waking, late=waking.late[kept], use=waking.use[kept])
    return replace(case, waking=waking, **columns)


def case_of(round: Round, table: OptionTable, rows: Rows, charges: Floats | None = None) -> Case:
    """Return the case of some rows, ascending and worth nothing, on nodes without rack caps."""
    return Case(
        round=round,
        table=table,
        rows=rows,
        rack=np.full(len(rows), ANYWHERE),
        value=np.zeros(len(rows)),
        charges=charged_w(round, table) if charges is None else charges,
        classes=node_classes(round.cluster, round.asleep),
        sleeps=may_sleep(round),
    )


def make_case(
    round: Round,
    table: OptionTable,
    values: Floats,
    *,
    joint: bool = False,
    positions: bool = False,
    awake: tuple[int, ...] | None = None,
) -> Case:
    """Gather what the model of a round is made from; `values` (K,), not to run is worth 0.

    Options that cannot be in a best allocation get no variable: those worth no more than not to
    run, and those that another one of the same job beats (`unbeaten`). Only options of jobs
    that must run stay in any case. By their rates, options of a table hardly ever beat each other:
    they are compared only where values mind watts, or where spans no longer count. With `joint`,
    racks are chosen with the options: those of span ``rack`` get a variable for each rack
    (`ronda.formulations.allocation.racks`), and are compared only with their like. So they are with
    `positions`, where what runs is compared with nothing: it needs no other nodes
    (`ronda.formulations.positions`). `awake` is as in `Case`.
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
    charges = charged_w(round, table)
    by_span = joint or positions or not (table.span == RACK).any()
    if table.minds_power or not by_span:
        costs = [table.gpus[rows].astype(float)]
        if round.power_cap_w is not None or racks:
            costs.append(table.extra_w[rows])
        if round.energy_j is not None:
            costs.append(charges[rows])
        group = table.job[rows] * len(table.pools) + table.pool[rows]
        if joint:
            group = 3 * group + reach(table, rows)
        elif positions:
            group = 3 * group + np.where(table.current[rows], 2, table.span[rows] == RACK)
        rows = rows[unbeaten(group, values[rows], np.array(costs))]
    if rigid:
        rows = np.sort(np.concatenate([rows, must.nonzero()[0]]))
    rack = np.full(len(rows), ANYWHERE)
    if joint:
        of, rack = copies(round.cluster.topology, table, rows)
        rows = rows[of]
    case = replace(
        case_of(round, table, rows, charges),
        rack=rack,
        value=values[rows],
        joint=joint,
        awake=awake,
    )
    return replace(case, racks=racks, most_rack_kw=_most_rack_kw(case)) if racks else case


def _most_rack_kw(case: Case) -> dict[tuple[str, str], float]:
    """Return the most that jobs can add, by pool and rack; racks without a cap are one."""
    racks = (*case.round.cluster.topology.racks, "elsewhere")
    each_kw = case.extra_w / np.maximum(case.gpus, 1) / 1e3
    most: dict[tuple[str, str], float] = {}
    for kind in case.classes:
        pair = (case.table.pools[kind.pool].name, racks[kind.rack])
        densest = float(each_kw[case.pool == kind.pool].max(initial=0.0))
        most[pair] = most.get(pair, 0.0) + densest * kind.count * kind.gpus_per_node
    return most


def _room_w(round: Round, table: OptionTable, racks: tuple[RackCap, ...]) -> Floats:
    """Return (K,) the most watts that each option may add so that some rack could bear it alone.

    Infinite for options of several nodes, which may spread over racks.
    """
    classes, sleeps = node_classes(round.cluster, round.asleep), may_sleep(round)
    idle_w = [c.idle_w(0 if sleeps else c.count) for c in classes]
    most = np.full(len(table.pools), -np.inf)
    for kind in classes:
        room = np.inf
        for cap in racks:
            if kind.rack in cap.racks:
                below = (w for w, c in zip(idle_w, classes, strict=True) if c.rack in cap.racks)
                room = min(room, cap.cap_w - sum(below) - (kind.saves_w if sleeps else 0.0))
        most[kind.pool] = max(most[kind.pool], room)
    sizes = np.array([pool.gpus_per_node for pool in table.pools])
    one_node = table.gpus <= sizes[table.pool]
    return np.where(one_node, most[table.pool] * (1 + 1e-9), np.inf)
