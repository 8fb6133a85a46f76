"""From chosen options to a plan's allocations: placement, sleeping nodes, and the loss of value."""

from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.allocation.model_data import charged_w, lasts_s
from ronda.formulations.allocation.racks import wider
from ronda.formulations.allocation.rows import gpus_by_pool
from ronda.formulations.objectives.switching_cost import loss_of_moves
from ronda.formulations.options.stated_rows import RowSums
from ronda.formulations.options.table import RACK, OptionTable, options, running_rows
from ronda.formulations.placement.moves import move_room
from ronda.formulations.placement.nodes import Placement
from ronda.formulations.placement.parts import Places
from ronda.formulations.placement.reasons import why_unplaced
from ronda.formulations.placement.requests import Placed, assemble, place, unchanged
from ronda.formulations.site.nodes import concerns_nodes
from ronda.formulations.watts import (
    TOLERANCE,
    awake_for,
    by_pool,
    idle_w,
    left_w,
    may_sleep,
    node_classes,
    rack_caps,
    wakes,
)
from ronda.instances.base import Floats, Rows
from ronda.instances.clock import checkpoint
from ronda.instances.job import Allocation, Option
from ronda.instances.round import Round
from ronda.instances.violation import ROUNDING
from ronda.solvers.greedy.room import Room

OVER = "the nodes that must be awake leave too little of the power limit"
"""The reason why a job that found a place is left out."""


DISRUPTS = "its room would cost running jobs more than the disruption budget allows"
"""The reason why a job finds no room if no more jobs may be stopped or moved for it."""


class Realised(NamedTuple):
    """A choice on nodes."""

    allocations: dict[str, Allocation]
    asleep: tuple[int, ...] | None
    objective: float  # value of the placed options
    lost: float  # value lost where placement differs from the choice
    unplaced: dict[str, str]  # reasons why chosen jobs found no room on nodes or in the power limit
    widened: tuple[str, ...]  # jobs in several racks that were chosen for one rack
    moved: tuple[str, ...]  # jobs that keep their option but change nodes
    moved_gpus: int


def realise(
    round: Round,
    table: OptionTable,
    values: Floats,
    chosen: Rows,
    *,
    watt_value: float,
    yielding: Collection[str] = (),
    racks: Rows | None = None,
    fill: bool = True,
) -> Realised:
    """Place a choice on nodes, and decide which nodes sleep.

    Nodes sleep only if power or energy is limited. As waking takes time, no more awake nodes go to
    sleep than the limit requires. If saved energy has a value later, all unused nodes sleep, and
    running jobs move together where that pays (`ronda.formulations.objectives.outlook`). If jobs
    need more awake nodes than their GPUs fill, the jobs of least value per watt are left out until
    the limit holds.

    Jobs that were not chosen go on, or start, on the free GPUs where that has a value. So no job
    stops, and no GPU is left free, for a job that found no room.

    Options within a rack are spread over racks if no rack has room and the spread option has a
    value.

    Parameters
    ----------
    values, chosen
        Values of the options, shape (K,), and row of each job, shape (J,), -1 for none.
    watt_value
        Value of saving a watt for the duration of the plan; 0 if energy cannot be saved.
    yielding
        Running jobs that give up their nodes first.
    racks
        Rack for each job's option, shape (J,), -1 for any rack. None: any rack for all jobs.
    fill
        Whether jobs that were not chosen go on, or start, on the free GPUs.
    """
    run = _Placing(round, table, values, watt_value, yielding, racks)
    kept = there = rows = run.ranked(chosen[chosen >= 0])
    placed = run.place(rows)
    if placed.unplaced or round.watts is not None:
        kept, there, placed = run.within_limits(rows, placed)
    lost = 0.0
    unplaced: dict[str, str] = {}
    widened: tuple[str, ...] = ()
    if kept is not rows or len(there) < len(rows):
        gone, instead = np.setdiff1d(rows, there), np.setdiff1d(there, rows)
        out = gone[~np.isin(table.job[gone], table.job[instead])]
        why = why_unplaced(round, run.options(kept), placed) if placed.unplaced else {}
        lost = table.worth(values, rows) - table.worth(values, there)
        unplaced = {job: why.get(job, OVER) for job in run.ids(out)}
        widened = tuple(run.ids(instead))
    before = table.worth(values, there)
    if fill:
        there, placed = run.beside(there, placed)
    objective, still = table.worth(values, there), running_rows(table)
    if not run.pays(there, placed) and not np.array_equal(chosen, still):
        safe = realise(round, table, values, still, watt_value=watt_value, fill=fill)
        return safe._replace(
            lost=table.worth(values, rows) - safe.objective,
            unplaced={job: DISRUPTS for job in run.ids(rows) if job not in safe.allocations},
        )
    return Realised(
        allocations=placed.allocations,
        asleep=placed.asleep,
        objective=objective,
        lost=lost - (objective - before),
        unplaced=unplaced,
        widened=widened,
        moved=placed.moved,
        moved_gpus=placed.moved_gpus,
    )


def realise_on(
    round: Round,
    table: OptionTable,
    values: Floats,
    chosen: Rows,
    placements: Mapping[str, Placement],
    parts: Mapping[str, Places] = MappingProxyType({}),
    *,
    watt_value: float,
) -> Realised:
    """Place a choice on given nodes for each job; idle nodes sleep as in `realise`.

    `parts` are those of GPUs of jobs that start on them.
    """
    run = _Placing(round, table, values, watt_value, (), None)
    rows = run.ranked(chosen[chosen >= 0])
    options, sleeps = run.options(rows), may_sleep(round)
    states = {state.job.id: state for state in round.jobs}
    held = {job: unchanged(states[job], way) for job, way in options.items()}
    idle = run.awake(rows, gpus_by_pool(table, rows)) if sleeps else {}
    placed = assemble(round, options, held, placements, parts, may_sleep=sleeps, awake=idle)
    if not run.keeps(placed, rows):  # more nodes are in use than the GPUs fill
        placed = assemble(round, options, held, placements, parts, may_sleep=sleeps, awake={})
    return Realised(
        allocations=placed.allocations,
        asleep=placed.asleep,
        objective=table.worth(values, rows),
        lost=0.0,
        unplaced={},
        widened=(),
        moved=placed.moved,
        moved_gpus=placed.moved_gpus,
    )


@dataclass(frozen=True)
class _Placing:
    """The arguments of `realise`, and its steps for placing rows of a table on nodes."""

    round: Round
    table: OptionTable
    values: Floats
    watt_value: float
    yielding: Collection[str]
    racks: Rows | None

    @cached_property
    def lasts_s(self) -> Floats:
        """The seconds for which rows draw power, shape (K,); 0 unless energy is limited."""
        if self.round.energy_j is None:
            return np.zeros(len(self.table))
        return lasts_s(self.round, self.table)

    def pays(self, rows: Rows, placed: Placed) -> bool:
        """Return whether rows, and the moves of their jobs, keep the rows that mind moves."""
        room = move_room(self.table, rows)
        return room is None or room.allows(placed.moved)

    def ids(self, rows: Rows) -> list[str]:
        """Return the ids of the jobs of rows."""
        return [self.table.jobs[j].job.id for j in self.table.job[rows].tolist()]

    def options(self, rows: Rows) -> dict[str, Option]:
        """Return rows as options, keyed by job."""
        return dict(zip(self.ids(rows), options(self.table, rows), strict=True))

    def ranked(self, rows: Rows) -> Rows:
        """Return rows in order of importance: jobs that must run first, then by value."""
        worst, table = -self.values[rows], self.table
        if np.count_nonzero(table.must_run):
            return rows[np.lexsort((worst, ~table.must_run[table.job[rows]]))]
        return rows[worst.argsort(kind="stable")]

    def within_limits(self, rows: Rows, placed: Placed) -> tuple[Rows, Rows, Placed]:
        """Change or leave out rows until the placed rows keep the power limit.

        Return the rows of the last attempt, the rows that found room, and their placement.
        """
        kept = rows
        while True:
            checkpoint()
            done = np.array([job in placed.allocations for job in self.ids(kept)], dtype=bool)
            there = kept[done]
            spread = self._spread(kept, done)
            if not np.array_equal(spread, kept):
                kept = spread
            else:
                fewer = self._shed(there, placed)
                if len(fewer) == len(there):
                    return kept, there, placed
                kept = fewer
            placed = self.place(kept)

    def place(self, rows: Rows) -> Placed:
        """Place rows in order of importance; jobs move if nodes must sleep or if a move pays."""
        round, table, chosen = self.round, self.table, self.options(rows)
        room, racks = move_room(table, rows), self._meant(rows)
        put = partial(place, round, chosen, yielding=self.yielding, racks=racks, room=room)
        if not may_sleep(round):
            return put()
        counts = gpus_by_pool(table, rows)
        awake = self.awake(rows, counts)
        packed = put(may_sleep=True, awake=awake)
        counted = not concerns_nodes(round) and not (table.span[rows] == RACK).any()
        if packed.unplaced and not counted:  # the choice did not count racks, or nodes
            packed = min(packed, put(may_sleep=True), key=lambda placed: len(placed.unplaced))
        if self.watt_value <= 0 or not packed.moved:
            return packed
        loose = put(may_sleep=True)
        if loose.unplaced or not self.keeps(loose, rows):
            return packed
        more_w = idle_w(round, loose.asleep) - idle_w(round, packed.asleep)
        loss = loss_of_moves(round, table, self.values, rows, packed.moved)
        loss -= loss_of_moves(round, table, self.values, rows, loose.moved)
        return packed if self.watt_value * more_w > loss else loose

    def _meant(self, rows: Rows) -> dict[str, int]:
        if self.racks is None:
            return {}
        racks = self.racks[self.table.job[rows]].tolist()
        return {job: rack for job, rack in zip(self.ids(rows), racks, strict=True) if rack >= 0}

    def beside(self, rows: Rows, placed: Placed) -> tuple[Rows, Placed]:
        """Return rows with additional rows of jobs that find room, and the placement of all.

        First, running jobs go on if no other job took their place. Then rows start on awake nodes,
        in descending order of value.
        """
        table, pools = self.table, self.table.pools
        free = np.array([pool.gpus for pool in pools])
        own = table.own_gpus
        free = free - np.bincount(table.pool[rows], own[rows], len(pools))
        left = (self.values >= 0) & (own <= free[table.pool] + ROUNDING)
        left &= ~np.isin(table.job, table.job[rows])
        if not left.any():
            return rows, placed
        states = {state.job.id: state for state in self.round.jobs}
        tally = None if table.own is None else RowSums.of(table.own, rows)

        def welcome(row: int, least: float) -> bool:
            """Return whether another row breaks no limit and adds a value of `least` or more."""
            value = float(self.values[row])
            return tally is None or tally.allows(tally.plus(row), value, least)

        room = Room(self.round, (), until_end=False)
        for job, there in placed.allocations.items():
            room.take(states[job], there)
        short = room.limited or bool(rack_caps(self.round.cluster))
        for row in self.ranked(np.flatnonzero(left & table.current)).tolist():
            state = table.jobs[table.job[row]]
            held = self.round.held[state.job.id]
            if not welcome(row, 0.0) or not room.keep(state, held):
                continue
            if (more := self._with(placed, rows, row, held)) is not None:
                placed, rows, tally = more, np.append(rows, row), tally and tally.plus(row)
                left &= table.job != table.job[row]
        left &= (self.values > 0) & ~table.current
        starting = np.flatnonzero(left)
        for row in starting[np.argsort(-self.values[starting], kind="stable")].tolist():
            if not left[row] or not welcome(row, np.finfo(float).tiny):
                continue
            state, (option,) = table.jobs[table.job[row]], options(table, np.array([row]))
            given = room.way(state, option)
            if (
                given is not None
                and given.option == option
                and (more := self._with(placed, rows, row, given, waking=False)) is not None
            ):
                room.take(state, given)
                placed, rows, tally = more, np.append(rows, row), tally and tally.plus(row)
                left &= table.job != table.job[row]
                continue
            if room.ruled:  # another job may have other needs, or another tenant
                continue
            alike = (table.pool == option.pool) & (table.gpus == option.gpus)
            alike &= table.span == table.span[row]
            left &= ~alike | (short & (table.extra_w < table.extra_w[row]))
        return rows, placed

    def _with(
        self, placed: Placed, rows: Rows, row: int, given: Allocation, *, waking: bool = True
    ) -> Placed | None:
        """Return the placement with one more row, or None if it breaks limits or wakes a node."""
        asleep = self.round.asleep if placed.asleep is None else placed.asleep
        still = tuple(node for node in asleep if node not in dict(given.placement))
        if len(still) < len(asleep) and not waking:
            return None
        job = self.table.jobs[self.table.job[row]].job.id
        more = placed._replace(
            allocations=placed.allocations | {job: given},
            asleep=placed.asleep if len(still) == len(asleep) else still,
        )
        return more if self.keeps(more, np.append(rows, row)) else None

    def _spread(self, rows: Rows, done: NDArray[np.bool_]) -> Rows:
        instead = rows.copy()
        for i in np.flatnonzero(~done & (self.table.span[rows] == RACK)).tolist():
            row = wider(self.table, self.values, int(rows[i]))
            instead[i] = rows[i] if row is None else row
        return instead

    def _left_w(self, rows: Rows, base: float, waking: tuple[Floats, Floats]) -> float:
        """Return the watts that rows leave within the round's limits.

        `base` are the watts without jobs. `waking` are the watts of waking nodes and their seconds.
        """
        watts, seconds = waking
        return left_w(
            self.round,
            base,
            np.append(self.table.extra_w[rows], watts),
            np.append(self.lasts_s[rows], seconds),
        )

    def keeps(self, placed: Placed, rows: Rows) -> bool:
        """Return whether placed rows keep the limits on power and energy, up to rounding."""
        watts = self.round.watts
        if watts is None:
            return True
        base, waking = idle_w(self.round, placed.asleep), wakes(self.round, placed.asleep)
        return self._left_w(rows, base, waking) >= -TOLERANCE * watts

    def _shed(self, rows: Rows, placed: Placed) -> Rows:
        """Return rows without those of least value per watt, so that the rest keeps the limits."""
        if self.keeps(placed, rows):
            return rows
        watts = charged_w(self.round, self.table)[rows]
        able = ~self.table.must_run[self.table.job[rows]] & (watts > 0)
        if self.table.own is not None and self.table.own.moves is not None:
            able &= ~np.asarray((self.table.own.use[:, rows] < 0).sum(axis=0) > 0)
        free = np.flatnonzero(able)
        ranked = free[np.argsort(self.values[rows][free] / watts[free], kind="stable")]

        def enough(count: int) -> bool:
            return self.keeps(placed, np.delete(rows, ranked[:count]))

        return np.delete(rows, ranked[: bisect_left(range(len(ranked)), True, key=enough)])

    def awake(self, rows: Rows, gpus: list[int]) -> dict[int, int]:
        """Return the number of nodes of each pool that stay awake: needed nodes, then idle ones.

        Only nodes that are awake now stay awake without a job, as far as the limits allow. If the
        power of racks is capped, placement decides the number, as the racks determine which nodes
        can take a job.
        """
        round = self.round
        if rack_caps(round.cluster):
            return {}
        classes = node_classes(round)
        counts = awake_for(classes, gpus)
        awake = dict(enumerate(by_pool(classes, counts, len(gpus))))
        if self.watt_value > 0 or round.watts is None:
            return awake
        nodes = list(zip(counts, classes, strict=True))
        base = sum(c.count * c.sleep_w + n * (c.awake_w - c.sleep_w) for n, c in nodes)
        wake_w = np.array([n * c.wake_w for n, c in nodes])
        spare_w = self._left_w(rows, base, (wake_w, np.array([c.wake_s for c in classes])))
        now = round.cluster.topology.node_gpus > 0
        now[list(round.asleep)] = False
        for pool in sorted(awake):
            idle = int((now & (round.cluster.topology.node_pool == pool)).sum()) - awake[pool]
            own = [c.awake_w - c.sleep_w for c in classes if c.pool == pool]
            each_w = max(own, default=0.0)
            if each_w > 0:
                idle = min(idle, int(max(0.0, spare_w) // each_w))
            if idle > 0:
                awake[pool] += idle
                spare_w -= idle * each_w
        return awake
