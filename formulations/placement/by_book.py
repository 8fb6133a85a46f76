"""The placement of jobs by a `NodeBook`, for rounds in which some rule concerns nodes.

Running jobs stay where they can. The others follow in descending order of the scarcest share of a
node that they need, whole nodes first. If a job finds no room, the fewest GPUs of running jobs on a
single node each move out of its way to where they fit. If jobs are still left out, they follow in
order of importance, and at last all jobs on single nodes are placed anew, several times if they are
few, first those that were left out before. If jobs are in slices, all jobs are placed anew where
that pays. The attempt is kept that leaves out the least important jobs. It is a heuristic, so a
choice may find no room although some placement exists; `ronda.formulations.positions` decides that.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations, islice
from time import perf_counter
from typing import NamedTuple, Self

import numpy as np

from ronda.formulations.node_rules.best_fit import in_racks
from ronda.formulations.placement.book import NodeBook
from ronda.formulations.placement.nodes import Placement
from ronda.formulations.placement.rack_power import RackPower
from ronda.formulations.topology import regions
from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.clock import checkpoint, left_s, watched
from ronda.instances.job import Allocation, JobState, Option, Slices, same_nodes
from ronda.instances.round import Round
from ronda.instances.violation import ROUNDING

TRIES, IN_ALL = 32, 256
"""The number of ways to make room that are tried for a job, and for all jobs in all attempts."""

TOGETHER = 3
"""The number of jobs of a node that move together to make room for one block."""

ANEW, FEW = 8, 64
"""The number of times that few jobs are placed anew, each time those first that were left out."""


class SeatedJob(NamedTuple):
    """A job that wants nodes; `order` is 0 for the most important one.

    `held` are the nodes on which it runs now, if it prefers to stay there; if it is `pinned`, it
    must stay. `rack` is the rack that a job of span "rack" prefers (-1: any).
    """

    order: int
    state: JobState
    option: Option
    held: Placement = ()
    pinned: bool = False
    rack: int = -1


class TriesLeft:
    """The tries that are left to place jobs, which take at most a third of the time that is left.

    An answer without further tries takes less than they do.
    """

    def __init__(self, tries: int) -> None:
        self._tries, self._began = tries, perf_counter()

    def allows(self) -> bool:
        """Return whether there may be one more try, and count it."""
        self._tries -= 1
        return self.left()

    def left(self) -> bool:
        """Return whether there was time and a try for the last one that was counted."""
        return self._tries >= 0 and left_s() > 2 * (perf_counter() - self._began)


class Seating:
    """Seats of jobs by order, while they are placed; `at` has their placements."""

    def __init__(self, book: NodeBook, power: RackPower | None, effort: "TriesLeft") -> None:
        self.book, self.power, self._effort = book, power, effort
        self.at: dict[int, Placement] = {}
        self.failed: list[int] = []
        self._movable: dict[int, dict[int, SeatedJob]] = {}  # by node, then by order
        self._amounts: dict[int, Floats] = {}  # what movable jobs need of hosts, (D,)

    def run(self, seats: Sequence[SeatedJob], later: Sequence[SeatedJob]) -> Self:
        """Place jobs, first those that stay and then others in turn.

        Those that do not run first try nodes to which nobody may come back.
        """
        for seat in watched(seats):
            if seat.pinned or (seat.held and self._may_stay(seat)):
                self._sit(seat, seat.held)
        back = np.zeros(len(self.book.size), dtype=np.int64)
        for seat in later:
            if seat.order not in self.at:
                back[[node for node, _ in seat.held]] += 1
        wary = bool(back.any())
        for seat in later:
            if seat.order in self.at:
                continue
            back[[node for node, _ in seat.held]] -= 1
            if wary and not seat.held and self._settle(seat, back == 0):
                continue
            if not self._settle(seat) and not self._make_room(seat):
                self.failed.append(seat.order)
        self.failed.sort()
        return self

    def _may_stay(self, seat: SeatedJob) -> bool:
        book = self.book
        if seat.option.share is not None:
            return book.holds(seat.state, _given(seat, seat.held))
        if not all(book.usable[node] and book.free[node] >= gpus for node, gpus in seat.held):
            return False
        return self.power is None or self.power.bears(seat.option, seat.held)

    def _settle(self, seat: SeatedJob, among: Mask | None = None) -> bool:
        checkpoint()
        back = seat.held and among is None and self._may_stay(seat)
        if back and self.book.holds(seat.state, _given(seat, seat.held)):
            self._sit(seat, seat.held)
            return True
        found = self.book.fit(
            seat.state, seat.option, power=self.power, among=among, rack=seat.rack
        )
        if found is not None:
            self._sit(seat, found)
        return found is not None

    def _sit(self, seat: SeatedJob, placement: Placement) -> None:
        self.book.take(seat.state, _given(seat, placement))
        self.at[seat.order] = placement
        if len(placement) == 1 and not seat.pinned:
            self._movable.setdefault(placement[0][0], {})[seat.order] = seat
            needs = self.book.needs(seat.state)
            self._amounts[seat.order] = needs.piece(placement[0][1]) + needs.flat
        if self.power is not None and not seat.pinned:  # pinned jobs count from the start
            self.power.take(seat.option, placement)

    def _leave(self, seat: SeatedJob) -> Placement:
        placement = self.at.pop(seat.order)
        self.book.give(seat.state, _given(seat, placement))
        self._movable.get(placement[0][0], {}).pop(seat.order, None)
        if self.power is not None:
            self.power.take(seat.option, placement, -1)
        return placement

    # -- moves --------------------------------------------------------------------------------

    def _make_room(self, seat: SeatedJob) -> bool:
        """Place a job after the cheapest jobs have moved out of its way; return whether it has."""
        if not self._effort.left():  # the nodes to clear are found at a cost
            return False
        for group, nodes in islice(self._clearings(seat), TRIES):
            if not self._effort.allows():
                return False
            power = self.power.copy() if self.power is not None else None
            before = [(each, self._leave(each)) for each in group]
            placed = list[SeatedJob]()
            for each in [seat, *sorted(group, key=self.scarcest)]:
                if not self._settle(each, nodes if each is seat else None):
                    break
                placed.append(each)
            if len(placed) > len(group):
                return True
            for each in placed:
                self._leave(each)
            for each, placement in before:
                self._sit(each, placement)
            self.power = power
        return False

    def _clearings(self, seat: SeatedJob) -> Iterator[tuple[tuple[SeatedJob, ...], Mask | None]]:
        """Yield groups of jobs whose moves may make room for a job, the fewest GPUs first.

        Also yield the nodes (N,) that the job may then have, None for all.
        """
        book = self.book
        able = book.open_to(seat.state, seat.option)
        size = int(book.size[able].max(initial=0))
        if seat.option.gpus >= size > 0:
            yield from self._emptied(seat, able, size)
            return
        needs, gpus = book.needs(seat.state), seat.option.gpus
        needed = needs.piece(gpus) + needs.flat
        found, on = list[tuple[int, int, int, int]](), dict[int, list[SeatedJob]]()
        for node in self._movable.keys() & set(np.flatnonzero(able).tolist()):
            there = [*self._movable[node].values()]
            held = np.array([each.option.gpus for each in there])
            if not there or book.free[node] + held.sum() < gpus:
                continue
            costs = np.array([_moved([each]) for each in there])
            amounts = np.array([self._amounts[each.order] for each in there])
            some = _subsets(len(there))
            left = book.left[:, node] + some @ amounts
            enough = (book.free[node] + some @ held >= gpus) & (
                (left >= needed) | (needed <= 0)
            ).all(axis=1)
            ways = np.flatnonzero(enough)
            cheap = ways[np.argsort((some @ costs)[ways], kind="stable")[:TRIES]]
            for k, cost, many in zip(
                cheap.tolist(), (some @ costs)[cheap].tolist(), some.sum(axis=1)[cheap], strict=True
            ):
                found.append((cost, int(many), node, k))
            on[node] = there
        for _, _, node, k in sorted(found):
            chosen = _subsets(len(on[node]))[k].tolist()
            group = tuple(each for each, goes in zip(on[node], chosen, strict=True) if goes)
            yield group, np.arange(len(able)) == node

    def _emptied(
        self, seat: SeatedJob, able: Mask, size: int
    ) -> Iterator[tuple[tuple[SeatedJob, ...], Mask | None]]:
        """Yield the jobs on the nodes that are cheapest to empty, more and more of them."""
        book, cost = self.book, list[tuple[int, int, int]]()
        for node in np.flatnonzero(able & (book.size == size)).tolist():
            there = self._movable.get(node, {}).values()
            if len(there) == book.pieces[node]:
                cost.append((_moved(there), len(there), node))
        count = -(-seat.option.gpus // size)
        groups = [[n for *_, n in sorted(cost)]]
        if seat.state.job.slices is not None:
            groups = [*self._in_slices(seat.state.job.slices, count, groups[0])]
        elif seat.option.span == "rack":
            racks = sorted({int(book.rack[n]) for n in groups[0]})
            groups = [[n for n in groups[0] if book.rack[n] == r] for r in racks]
        for nodes in groups:
            for most in (count, count + 1, 2 * count):
                some = [n for n in nodes[:most] if self._movable.get(n)]
                if some and len(nodes) >= count:
                    yield tuple(s for n in some for s in self._movable[n].values()), None

    def _in_slices(self, slices: Slices, count: int, cheap: list[int]) -> Iterator[list[int]]:
        """Yield `count` nodes in slices, from each place that holds all of them."""
        cluster = self.book.round.cluster
        within = regions(cluster, slices.within).tolist()
        wide = [0] * len(within)
        if slices.together is not None:
            wide = regions(cluster, slices.together).tolist()
        for place in sorted({wide[n] for n in cheap} - {-1}):
            racks: dict[int, list[int]] = {}
            for n in cheap:
                if wide[n] == place and within[n] >= 0:
                    racks.setdefault(within[n], []).append(n)
            taken = in_racks(slices, count, [len(nodes) for nodes in racks.values()])
            if taken is not None:
                pairs = zip(racks.values(), taken, strict=True)
                yield [n for nodes, most in pairs for n in nodes[:most]]

    def scarcest(self, seat: SeatedJob) -> tuple[float, ...]:
        """Return a key by which jobs that need more of the scarcest resource of a node come first.

        Jobs on whole nodes come before all others, those of the largest slices within a rack first,
        and then the largest.
        """
        book, gpus = self.book, seat.option.gpus
        own = book.pool == seat.option.pool
        size = int(book.size[own].max(initial=1))
        needs = book.needs(seat.state)
        most = book.left[:, own].max(axis=1, initial=0.0)
        needed = needs.piece(min(gpus, size)) + needs.flat
        shares = needed[needed > 0] / np.maximum(most[needed > 0], 1e-300)
        slices, nodes = seat.state.job.slices, 0 if seat.option.share is not None else gpus // size
        near = nodes if seat.option.span == "rack" else min(nodes, 1)
        if slices is not None and seat.option.span != "rack":
            near = max(slices.listed, default=slices.nodes or 1)
        part = _own(seat.option, book.memory(seat.option)) / size
        return (-near, -nodes, -max(part, *shares.tolist(), 0.0), seat.order)


def _given(seat: SeatedJob, placement: Placement) -> Allocation:
    held = seat.state.allocation
    parts = held.parts if held is not None and placement == seat.held else ()
    return Allocation(option=seat.option, placement=placement, parts=parts)


def _own(option: Option, least: float = 0.0) -> float:
    return option.gpus if option.share is None else max(option.share, least)


def _moved(group: Iterable[SeatedJob]) -> int:
    """Return the GPUs of running jobs in a group."""
    return sum(each.option.gpus for each in group if each.held)


@lru_cache(maxsize=64)
def _subsets(count: int) -> Rows:
    """Return which of `count` members each set of up to `TOGETHER` has, shape (S, count)."""
    sets = [each for n in range(1, TOGETHER + 1) for each in combinations(range(count), n)]
    found = np.zeros((len(sets), count), dtype=np.int64)
    for row, members in zip(found, sets, strict=True):
        row[list(members)] = 1
    return found


def seated(
    round: Round, seats: Sequence[SeatedJob], usable: Mapping[int, Mask], power: RackPower | None
) -> tuple[dict[int, Placement], NodeBook]:
    """Return the placements of jobs by order, and the book with them; jobs without room have none.

    Parameters
    ----------
    seats
        The jobs, the most important first.
    usable
        The nodes (N,) that may be used, for pools in which not all may be.
    power
        The watts that the caps of racks leave beside pinned jobs.
    """
    book = NodeBook(round)
    for pool, nodes in usable.items():
        book.usable &= nodes | (book.pool != pool)
    free = np.bincount(book.pool, book.size * book.usable).astype(int).tolist()
    admitted = list[SeatedJob]()
    for seat in sorted(seats, key=lambda each: not each.pinned):
        gpus = _own(seat.option)
        if seat.pinned or gpus <= free[seat.option.pool] + ROUNDING:
            free[seat.option.pool] -= gpus
            admitted.append(seat)

    def fresh() -> Seating:
        return Seating(book.copy(), power.copy() if power is not None else None, effort)

    effort = TriesLeft(IN_ALL)
    by_need = sorted(admitted, key=fresh().scarcest)
    best = fresh().run(admitted, by_need)
    if best.failed and effort.allows():
        best = min(best, fresh().run(admitted, admitted), key=_lost)
    tied = [seat for seat in admitted if seat.pinned or len(seat.held) > 1]
    for _ in range(ANEW if len(admitted) <= FEW else 1):
        if not best.failed or not effort.allows():
            break
        other = fresh().run(tied, by_need)
        best = min(best, other, key=_lost)
        left_out = set(other.failed)
        by_need.sort(key=lambda seat: seat.order not in left_out)
    if best.failed and effort.allows() and any(s.state.job.slices is not None for s in admitted):
        pinned, scarcest = [seat for seat in admitted if seat.pinned], fresh().scarcest
        other = fresh().run(pinned, sorted(admitted, key=scarcest))
        if _pays(round, admitted, best, other):
            best = min(best, other, key=_lost)
    return best.at, best.book


def _pays(round: Round, seats: Sequence[SeatedJob], best: Seating, other: Seating) -> bool:
    """Return whether moves lose fewer GPU-seconds than more jobs use until the next decision."""
    gained = lost = 0.0
    for seat in seats:
        gpus, there = seat.option.gpus, other.at.get(seat.order)
        gained += gpus * ((there is not None) - (seat.order in best.at))
        if seat.held and there is not None and not same_nodes(seat.held, there):
            costs = seat.state.job.costs or round.costs
            lost += gpus * costs.pause(gpus, running=True)
    return lost < gained * round.length_s


def _lost(seating: Seating) -> tuple[int, int]:
    """Return a key that is less if less important, and then fewer, jobs are left out."""
    failed = seating.failed
    return (-failed[0], len(failed)) if failed else (-1 << 62, 0)
