"""The data of the allocation model of a round: the useful options, the nodes and the limits."""

from dataclasses import dataclass, field, replace
from enum import Enum, auto
from functools import cached_property

import numpy as np

from ronda.formulations.allocation.racks import copies, reach
from ronda.formulations.objectives.remaining_work import work_ahead
from ronda.formulations.options.table import ANYWHERE, RACK, OptionTable, unbeaten
from ronda.formulations.watts import (
    TOLERANCE,
    NodeClass,
    RackCap,
    may_sleep,
    node_classes,
    rack_caps,
    seconds_left,
    share,
)
from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.clock import checkpoint
from ronda.instances.errors import InputError
from ronda.instances.round import Round


@dataclass(frozen=True, slots=True)
class Waking:
    """The options that wait for nodes to wake (see `ronda.formulations.allocation.waking`).

    ``late`` (n,) tells whether an option begins only when nodes have woken. ``use`` (n,) is the
    number of ready GPUs that the option takes. ``gpus`` (P,) is the number of ready GPUs of each
    pool, infinite if all its GPUs are ready.
    """

    late: Mask
    use: Floats
    gpus: Floats


@dataclass(frozen=True)
class Case:
    """The data of the model of a round.

    The variables are the options ``rows`` (n,), ascending rows of the table, with their ``value``
    (n,). ``rack`` (n,) is the rack that each option must be in if the model chooses racks together
    with options (``joint``), else -1. ``sleeps`` tells whether the model may put nodes to sleep.
    ``most_rack_kw`` holds the most kilowatts that jobs can add per pool and rack, among the racks
    with a cap (``racks``). With ``waking``, options have separate variables for now and for after
    waking; without it (None), waking takes no time. Where nodes may sleep, ``awake`` (P,) limits
    the number of awake nodes in each pool; None means no limit. ``lasts_s`` (K,) is the time in
    seconds for which the rows of the table draw power (`lasts_s`). ``times_s`` are the ascending
    times from now at which the used energy is counted; the last one is the end of the window.
    ``moved`` (n,) tells which variables are current options on other nodes than now; without it
    (None), current options stay.
    """

    round: Round
    table: OptionTable
    rows: Rows
    rack: Rows
    value: Floats
    lasts_s: Floats
    classes: tuple[NodeClass, ...]
    sleeps: bool
    racks: tuple[RackCap, ...] = ()
    most_rack_kw: dict[tuple[str, str], float] = field(default_factory=dict)
    joint: bool = False
    waking: Waking | None = None
    awake: tuple[int, ...] | None = None
    times_s: tuple[float, ...] = ()
    moved: Mask | None = None

    @cached_property
    def scale(self) -> float:
        """The largest value."""
        return float(np.abs(self.value).max(initial=0.0)) or 1.0

    @cached_property
    def unit(self) -> float:
        """The largest value or penalty of a soft limit, which is the unit of a normalised model."""
        own = self.table.own
        return self.scale if own is None else max([self.scale, *own.penalty[own.soft].tolist()])

    @cached_property
    def job(self) -> Rows:
        """The job of each variable, shape (n,)."""
        return self.table.job[self.rows]

    @cached_property
    def pool(self) -> Rows:
        """The pool of each variable, shape (n,)."""
        return self.table.pool[self.rows]

    @cached_property
    def gpus(self) -> Rows:
        """The number of GPUs of each variable, shape (n,)."""
        return self.table.gpus[self.rows]

    @property
    def whole_gpus(self) -> Rows:
        """The number of whole GPUs of each variable, 0 for one on a part of a GPU, shape (n,)."""
        if self.table.slices is None:
            return self.gpus
        cut = [s.job.part is not None or s.job.share is not None for s in self.table.jobs]
        return np.where(np.array(cut)[self.job], 0, self.gpus)

    @cached_property
    def extra_w(self) -> Floats:
        """The watts that each variable draws beyond its idle GPUs, shape (n,)."""
        return self.table.extra_w[self.rows]

    def used_j(self, seconds: float) -> Floats:
        """Return the joules that each variable uses beyond its idle GPUs in `seconds`, shape (n,).

        Where no energy is banked, power must never exceed the accrual, so that the end of an option
        saves nothing.
        """
        if self.round.banked_j == 0:
            return self.extra_w * seconds
        return self.extra_w * np.minimum(self.lasts_s[self.rows], seconds)


def lasts_s(round: Round, table: OptionTable) -> Floats:
    """Return the seconds for which options draw power, shape (K,).

    They are infinite for jobs of unknown size without a time limit. A running job continues at its
    measured rate.
    """
    checkpoint()
    found = work_ahead(round)[table.job] / table.rate
    if any(state.job.limit_s is not None for state in table.jobs):
        found = np.minimum(found, np.array([*map(round.may_hold_s, table.jobs)])[table.job])
    for k in np.flatnonzero(table.current).tolist():
        state = table.jobs[int(table.job[k])]
        if state.allocation is not None:
            found[k] = seconds_left(round, state, state.allocation.option)
    return np.asarray(found)


def charged_w(round: Round, table: OptionTable) -> Floats:
    """Return the watts that the energy window charges for options (`share`), shape (K,)."""
    if round.energy_j is None:
        return table.extra_w
    return np.asarray(table.extra_w * share(round, lasts_s(round, table)))


def restrict(case: Case, kept: Mask) -> Case:
    """Return the case with only the options for which `kept` (n,) is true."""
    columns = {name: getattr(case, name)[kept] for name in ("rows", "rack", "value")}
    if case.moved is not None:
        columns["moved"] = case.moved[kept]
    waking = case.waking
    if waking is not None:
        waking = replace(waking, late=waking.late[kept], use=waking.use[kept])
    return replace(case, waking=waking, **columns)


def case_of(round: Round, table: OptionTable, rows: Rows) -> Case:
    """Return the case of the given ascending rows, with values of 0 and without rack caps."""
    metered = round.energy_j is not None
    return Case(
        round=round,
        table=table,
        rows=rows,
        rack=np.full(len(rows), ANYWHERE),
        value=np.zeros(len(rows)),
        lasts_s=lasts_s(round, table) if metered else np.full(len(table), np.inf),
        classes=node_classes(round),
        sleeps=may_sleep(round),
        times_s=(round.window_s,) if metered else (),
    )


class Fidelity(Enum):
    """The detail in which a case knows the places of options, which decides what it compares."""

    COUNTS = auto()  # GPUs of pools, by their number
    RACKS = auto()  # racks, chosen with options: span "rack" has a variable for each rack
    NODES = auto()  # as pieces on nodes, current options apart (`ronda.formulations.positions`)

    def groups(self, table: OptionTable, rows: Rows) -> Rows:
        """Return the groups within which rows may beat each other, shape (n,).

        The current option of a job on several nodes has a group of its own, as it may take other
        pieces of nodes than a new option with no more GPUs would.
        """
        group = 2 * (table.job[rows] * len(table.pools) + table.pool[rows])
        for i in np.flatnonzero(table.current[rows]).tolist():
            held = table.jobs[int(table.job[rows[i]])].allocation
            group[i] += held is not None and len(held.placement) > 1
        match self:
            case Fidelity.COUNTS:
                return group
            case Fidelity.RACKS:
                return 3 * group + reach(table, rows)
            case Fidelity.NODES:  # a current option needs no other nodes, so nothing beats it
                group = 3 * group + np.where(table.current[rows], 2, table.span[rows] == RACK)
                rack = np.full(len(table), ANYWHERE) if table.rack is None else table.rack
                return group * (int(rack.max(initial=0)) + 3) + rack[rows] + 2


def make_case(
    round: Round,
    table: OptionTable,
    values: Floats,
    fidelity: Fidelity = Fidelity.COUNTS,
    *,
    awake: tuple[int, ...] | None = None,
) -> Case:
    """Return the data of the model of a round, where `values` (K,) are the values of options.

    Options that cannot be in a best allocation get no variable: options without value, options that
    break a limit even alone (`unbearable`), and options that another option of the same job beats
    (`unbeaten`). An option that helps to meet a limit of the user may have no value. Options of
    jobs that must run always stay. The options of a table hardly ever beat each other by their
    rates, so they are compared only where values count watts, or where spans no longer matter.
    `awake` is as in `Case`. InputError if rules read racks and the model does not choose nodes.
    """
    # Rows are made of cases.
    from ronda.formulations.allocation.rows import unbearable

    if table.rack is not None and fidelity is not Fidelity.NODES:
        found, expected = "a model of options alone", "the nodes too: milp(placement=exact)"
        raise InputError("rules that see racks", found, expected)
    rigid = bool(table.must_run.any())
    good, own = np.isfinite(values) & (values > 0), table.own
    if own is not None:  # a limit may need options without value
        good |= np.isfinite(values) & np.asarray((own.use < 0).sum(axis=0) > 0)
    if rigid:
        must = table.must_run[table.job]
        good &= ~must
    rows = good.nonzero()[0]
    racks = rack_caps(round.cluster)
    if racks:
        rows = rows[table.extra_w[rows] <= _room_w(round, table, racks)[rows]]
    if round.watts is not None:
        rows = rows[~unbearable(case_of(round, table, rows))]
    if table.minds_power or (fidelity is Fidelity.COUNTS and (table.span == RACK).any()):
        costs = [table.gpus[rows].astype(float)]
        if round.watts is not None or racks:  # watts and the next cost bound energy at any time
            costs.append(table.extra_w[rows])
        if round.energy_j is not None:
            lasting = np.minimum(lasts_s(round, table)[rows], round.window_s)
            costs.append(table.extra_w[rows] * lasting)
        if own is not None:
            costs += [*own.dense(rows)]
        rows = rows[unbeaten(fidelity.groups(table, rows), values[rows], np.array(costs))]
    if rigid:
        rows = np.sort(np.concatenate([rows, must.nonzero()[0]]))
    rack = np.full(len(rows), ANYWHERE)
    if fidelity is Fidelity.RACKS:
        of, rack = copies(round.cluster.topology, table, rows)
        rows = rows[of]
    elif table.rack is not None:
        rack = table.rack[rows]
    case = replace(
        case_of(round, table, rows),
        rack=rack,
        value=values[rows],
        joint=fidelity is Fidelity.RACKS,
        awake=awake,
    )
    return replace(case, racks=racks, most_rack_kw=_most_rack_kw(case)) if racks else case


def _most_rack_kw(case: Case) -> dict[tuple[str, str], float]:
    """Return the most kilowatts that jobs can add, per pool and rack.

    Racks without a cap count as one rack. A margin of a millionth is added, because the rounding of
    solvers would cut off a choice that meets the bound exactly.
    """
    racks = (*case.round.cluster.topology.racks, "elsewhere")
    each_kw = case.extra_w / np.maximum(case.table.own_gpus[case.rows], 1e-9) / 1e3
    most: dict[tuple[str, str], float] = {}
    for kind in case.classes:
        pair = (case.table.pools[kind.pool].name, racks[kind.rack])
        densest = float(each_kw[case.pool == kind.pool].max(initial=0.0))
        gpus = kind.count * kind.gpus_per_node
        most[pair] = most.get(pair, 0.0) + densest * gpus * (1 + 1e-6)
    return most


def _room_w(round: Round, table: OptionTable, racks: tuple[RackCap, ...]) -> Floats:
    """Return the most watts that each option may add if one rack must bear it alone, shape (K,).

    The limit is infinite for options on several nodes, which may spread over racks.
    """
    classes, sleeps = node_classes(round), may_sleep(round)
    idle_w = [
        c.count * (c.sleep_w + (min(0.0, c.more_in_rack_w) if sleeps else c.more_in_rack_w))
        for c in classes
    ]
    most = np.full(len(table.pools), -np.inf)
    for kind in classes:
        room = np.inf
        for cap in racks:
            if kind.rack in cap.racks:
                below = (w for w, c in zip(idle_w, classes, strict=True) if c.rack in cap.racks)
                woken_w = max(0.0, kind.more_in_rack_w) if sleeps else 0.0
                room = min(room, cap.cap_w * (1 + TOLERANCE) - sum(below) - woken_w)
        most[kind.pool] = max(most[kind.pool], room)
    sizes = np.array([pool.gpus_per_node for pool in table.pools])
    one_node = table.gpus <= sizes[table.pool]
    return np.where(one_node, most[table.pool], np.inf)


def case_of_all(round: Round, table: OptionTable, rows: Rows) -> Case:
    """Return the case of given rows under every limit of the round, with values of 0."""
    case, racks = case_of(round, table, rows), rack_caps(round.cluster)
    if racks:
        case = replace(case, racks=racks)
        case = replace(case, most_rack_kw=_most_rack_kw(case))
    return replace(case, times_s=_ends(case)) if case.times_s and round.banked_j != 0 else case


def whole_case(round: Round, table: OptionTable, values: Floats) -> Case:
    """Return the case of a whole model; if energy is banked, it is counted when options end."""
    case = make_case(round, table, values)
    if case.times_s and round.banked_j != 0:
        return replace(case, times_s=_ends(case))
    return case


def _ends(case: Case) -> tuple[float, ...]:
    """Return at most 50 times within the energy window at which options end, and its end."""
    window_s = case.round.window_s
    ends = np.unique(np.append(case.lasts_s[case.rows], window_s))
    ends = ends[(ends > 0) & (ends <= window_s)]
    few = np.linspace(0, len(ends) - 1, min(50, len(ends))).round().astype(int)
    return tuple(ends[few].tolist())
