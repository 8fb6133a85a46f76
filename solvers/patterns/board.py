"""Jobs on nodes that are all different: where each is, and steps that place or exchange many."""

import numpy as np

from ronda.formulations.patterns.held import Running
from ronda.formulations.patterns.model import TOLERANCE, NodeModel
from ronda.instances.base import Floats, Ints, Mask, Rows
from ronda.instances.clock import checkpoint

LIKE = 0.02
"""The share of a job's value that full likeness between its slot and a node's room is worth."""

SMALLER, NEAR, EXIT = 0.75, 8, 0.01
"""Jobs at most so much smaller than another make room for it; nodes tried per job that lacks room;
and the share of its price that a job's exit costs."""

REFILLS, COPIES, DEPTH = 3, 8, 0.02
"""Kinds of slots that refill a node, the most of each, and the share of the nodes whose jobs are
taken to be spent when refills are compared."""

LEAST = 1e-9
"""The least gain, as a share of the value of a job."""


class Board:
    """The places of jobs of a model (J,), of which some run on nodes now.

    Attributes
    ----------
    node
        Node of each seat, -1 for none, shape (A,). Job j has the seats ``begin[j]`` to
        ``begin[j + 1]``.
    way
        Way of each job elsewhere, -1 for none; 0 if it stays (`stays`).
    worth, size
        Value of each job where it is, and what each of its seats takes, shapes (J,) and (J, R).
    free
        Free room of nodes, shape (N, R).
    """

    def __init__(
        self, model: NodeModel, now: Running, prices: Floats, unit: Floats, tight: Floats
    ) -> None:
        """Start with empty nodes, at prices of slots (Q,) and of resources (K, R).

        `tight` (K, R) is how much of its resources a class uses, up to 1.
        """
        jobs, self.model, self.now = len(model.group), model, now
        self.unit, self.tight = unit, tight**16
        self.owner = model.owner
        self.free = model.capacity[self.owner] * (1 + TOLERANCE)
        self._scale = np.where(model.capacity > 0, model.capacity, 1.0)
        seats, self.out = np.ones(jobs, dtype=np.int64), np.zeros(jobs)
        self.nets = [form.net(prices) for form in model.forms]
        for form, net in zip(model.forms, self.nets, strict=True):
            seats[form.jobs] = form.times.sum(axis=1).max()
            self.out[form.jobs] = net.max(axis=1)  # what a job gains elsewhere at the prices
        seats = np.maximum(seats, np.bincount(now.job, minlength=jobs))
        self.begin = np.concatenate([[0], np.cumsum(seats)])
        self.job = np.arange(jobs).repeat(seats)
        self.node = np.full(len(self.job), -1)
        self.way, self.stays = np.full(jobs, -1), np.zeros(jobs, dtype=bool)
        self.worth, self.size = np.zeros(jobs), np.zeros((jobs, model.size.shape[1]))
        self.fixed = np.zeros(jobs, dtype=bool)  # jobs that make no room for others
        group = model.group[self.job]
        grouped = np.flatnonzero(group >= 0)
        self._members = grouped[np.argsort(group[grouped], kind="stable")]
        numbers = np.arange(model.group.max(initial=-1) + 2)
        self._first = np.searchsorted(group[self._members], numbers)

    def large(self, size: Floats) -> Floats:
        """Return the largest share of any class's largest amount that sizes (n, R) take."""
        return np.asarray((size / self._scale.max(axis=0)).max(axis=-1))

    def take(self, jobs: Rows, nodes: Rows, way: int, size: Floats, worth: Floats) -> None:
        """Put jobs on nodes (n, m), a row each."""
        for seat, own in enumerate(nodes.T):
            self.node[self.begin[jobs] + seat] = own
            np.subtract.at(self.free, own, size)
        self.way[jobs], self.worth[jobs], self.size[jobs] = way, worth, size
        self.fixed[jobs] |= nodes.shape[1] > 1

    def stay(self, jobs: Rows, fixed: bool) -> None:
        """Leave jobs where they run; if `fixed`, they make no room for others."""
        number = np.bincount(self.now.job, minlength=len(self.way))[jobs]
        for n in np.unique(number):
            some = number == n
            at = np.searchsorted(self.now.job, jobs[some])
            nodes = self.now.node[at[:, None] + np.arange(n)]
            self.take(jobs[some], nodes, 0, self.now.size[jobs[some]], self.now.worth[jobs[some]])
        self.stays[jobs] = True
        self.fixed[jobs] |= fixed

    def leave(self, jobs: Rows) -> None:
        """Take jobs with one seat each off their nodes."""
        seats = self.begin[jobs]
        np.add.at(self.free, self.node[seats], self.size[jobs])
        self.node[seats], self.way[jobs], self.stays[jobs] = -1, -1, False

    def clashing(self, jobs: Rows, nodes: Rows) -> Mask:
        """Return whether another of a job's group is, or is to be, on one of its nodes (n, m)."""
        group, bad = self.model.group[jobs], np.zeros(len(jobs), dtype=bool)
        some = np.flatnonzero(group >= 0)
        own = np.unique(group[some])
        seats = self._members[_spans(self._first[own], self._first[own + 1])]
        seats = seats[self.node[seats] >= 0]
        number = len(self.owner)
        taken = self.model.group[self.job[seats]] * number + self.node[seats]
        key = group[some, None] * number + nodes[some]
        again = np.ones(key.size, dtype=bool)
        again[np.unique(key, return_index=True)[1]] = False
        bad[some] = (again.reshape(key.shape) | np.isin(key, taken)).any(axis=1)
        return bad

    def index(self) -> None:
        """Note which seats are on each node, for steps in which jobs leave."""
        on = np.flatnonzero(self.node >= 0)
        self.on = on[np.argsort(self.node[on], kind="stable")]
        self.on_first = np.searchsorted(self.node[self.on], np.arange(len(self.owner) + 1))

    def place(self, f: int, w: int, jobs: Rows, classes: Rows, push: bool) -> int:
        """Place jobs of form f, the best first, in way w on nodes of classes; return how many.

        A node gets one slot, and those whose free room is most like the slot come first. If `push`
        is true, jobs that are much smaller and worth less than the room at its price make room.
        """
        checkpoint()
        model, form = self.model, self.model.forms[f]
        q, times = int(form.slot[w, 0]), int(form.times[w, 0])
        size, value = model.size[q], form.value[np.searchsorted(form.jobs, jobs), w]
        nodes = np.concatenate([np.arange(*model.first[k : k + 2]) for k in classes])
        missing = size - self.free[nodes]
        short = (missing > 0).any(axis=1)
        if push and short.any():
            lack = (missing / self._scale[self.owner[nodes]]).max(axis=1)
            most = min(int(np.count_nonzero(short)), NEAR * times * len(jobs))
            near = np.argpartition(np.where(short, lack, np.inf), most - 1)[:most]
            kept = np.sort(np.append(np.flatnonzero(~short), near))
        else:
            kept = np.flatnonzero(~short)
        nodes, missing, short, cost = nodes[kept], missing[kept], short[kept], np.zeros(len(kept))
        cost[short], seats, first, end = self._exits(nodes[short], missing[short], q)
        k = self.owner[nodes]
        room, like = self.free[nodes] / self._scale[k], size / self._scale[k]
        length = (self.tight[k] * room**2).sum(axis=1) * (self.tight[k] * like**2).sum(axis=1)
        like = (self.tight[k] * room * like).sum(axis=1) / np.sqrt(np.maximum(length, 1e-30))
        paid = self.unit[k] @ size + cost
        best = np.argsort(times * paid - LIKE * np.median(value) * like, kind="stable")
        best = best[np.isfinite(paid[best])]
        n = min(len(jobs), len(best) // times)
        best, jobs, value = best[: n * times].reshape(n, times), jobs[:n], value[:n]
        good = value - paid[best].sum(axis=1) > LEAST * value
        good &= ~self.clashing(jobs, nodes[best])
        best, jobs, value = best[good], jobs[good], value[good]
        pushed = (np.cumsum(short) - 1)[best[short[best]]]
        self.leave(self.job[seats[_spans(first[pushed], end[pushed])]])
        self.take(jobs, nodes[best], w, size, value)
        return len(jobs)

    def _exits(self, nodes: Rows, missing: Floats, q: int) -> tuple[Floats, Rows, Rows, Rows]:
        """Return the cost of the missing room on each node, and the seats (first to end) to free.

        Jobs leave that lose least for the missing room that they give. The cost is infinite where
        they are not enough.
        """
        none = np.zeros(0, dtype=np.int64)
        if not len(nodes):
            return np.zeros(0), none, none, none
        first, last = self.on_first[nodes], self.on_first[nodes + 1]
        at, seats = np.arange(len(nodes)).repeat(last - first), self.on[_spans(first, last)]
        job, need = self.job[seats], np.maximum(missing[at], 0.0)
        help_ = np.where(need > 0, np.minimum(self.size[job], need) / np.maximum(need, 1e-9), 0.0)
        share = help_.max(axis=1)
        small = self.large(self.size[job]) < SMALLER * self.large(self.model.size[q])
        some = (self.node[seats] == nodes[at]) & ~self.fixed[job] & small & (share > 0)
        at, seats, job, share = at[some], seats[some], job[some], share[some]
        paid = (self.unit[self.owner[nodes[at]]] * self.size[job]).sum(axis=1)
        loss = np.maximum(0.0, self.worth[job] - paid - self.out[job]) + EXIT * paid
        order = np.lexsort((loss / share, at))
        at, seats, loss, size = at[order], seats[order], loss[order], self.size[job[order]]
        start = np.searchsorted(at, np.arange(len(nodes)))
        total = np.cumsum(size, axis=0)
        given = total - (total - size)[start[at]]
        enough = np.flatnonzero((given >= missing[at]).all(axis=1))
        who, hit = np.unique(at[enough], return_index=True)
        end, cost, summed = start.copy(), np.full(len(nodes), np.inf), np.append(0, np.cumsum(loss))
        end[who] = enough[hit] + 1
        cost[who] = summed[end[who]] - summed[start[who]]
        return cost, seats, start, end

    def exchange(self, nodes: Rows) -> None:
        """Let one job or none leave each of some nodes for what fills it best.

        Jobs that have no place fill nodes, by their value for the shares of the room that they
        take. Only exchanges that gain value are made.
        """
        checkpoint()
        books = self._books(DEPTH * len(nodes))
        if not books:
            return
        ways, jobs, values, tops = zip(*books, strict=True)
        top, deep = np.array(tops), np.array([len(own) for own in jobs])
        slot = np.array([int(self.model.forms[f].slot[w, 0]) for f, w in ways])
        self.index()
        seats = self.on[_spans(self.on_first[nodes], self.on_first[nodes + 1])]
        seats = seats[~self.fixed[self.job[seats]]]
        job, node = self.job[seats], np.append(self.node[seats], nodes)
        none = np.zeros(len(nodes))
        lost = np.append(self.worth[job], none)
        room = self.free[node] + np.vstack([self.size[job], none[:, None] * self.unit[:1]])
        filled, many = self._refills(node, room, slot, top, deep)
        gain = (np.append(top, 0.0)[filled] * many).sum(axis=1) - lost
        order = np.lexsort((-gain, node))
        case = order[np.flatnonzero(np.diff(node[order], prepend=-1))]
        case = case[gain[case] > LEAST * lost[case]]
        case = case[np.argsort(-gain[case], kind="stable")]
        each = many[case].ravel()
        book, which = filled[case].ravel().repeat(each), np.arange(len(case)).repeat(REFILLS)
        which, got, value = which.repeat(each), np.full(len(book), -1), np.zeros(len(book))
        for b in np.unique(book):
            at = np.flatnonzero(book == b)[: deep[b]]
            got[at], value[at] = jobs[b][: len(at)], values[b][: len(at)]
        good = np.zeros(len(got), dtype=bool)
        good[np.unique(got, return_index=True)[1]] = True
        good &= got >= 0
        target = node[case][which]
        good[good] = ~self.clashing(got[good], target[good, None])
        won = np.bincount(which, value * good, len(case)) - lost[case]
        fine = won > LEAST * lost[case]
        out = case[fine & (case < len(seats))]
        self.leave(job[out])
        good &= fine[which]
        for b in np.unique(book[good]):
            at = np.flatnonzero(good & (book == b))
            self.take(got[at], target[at, None], ways[b][1], self.model.size[slot[b]], value[at])

    def _books(self, depth: float) -> list[tuple[tuple[int, int], Rows, Floats, float]]:
        """Return (form, way), jobs without a place, the best first, values, and that at a depth."""
        books = []
        for f, form in enumerate(self.model.forms):
            rows = np.flatnonzero(self.way[form.jobs] < 0)
            for w in np.flatnonzero(form.times.sum(axis=1) == 1).tolist():
                own = rows[form.value[rows, w] > 0]
                if len(own):
                    own = own[np.argsort(-form.value[own, w], kind="stable")]
                    value = form.value[own, w]
                    top = float(value[min(len(own) - 1, int(depth))])
                    books.append(((f, w), form.jobs[own], value, top))
        return books

    def _refills(
        self, node: Rows, room: Floats, slot: Rows, top: Floats, deep: Ints
    ) -> tuple[Rows, Ints]:
        """Return the books that fill the room (n, R) on nodes and how many of each, (n, REFILLS).

        Books are of slots (B,), of the worth `top`, and `deep` jobs long; -1 for none.
        """
        filled = np.full((len(node), REFILLS), -1)
        many, size, k = np.zeros_like(filled), self.model.size[slot], self.owner[node]
        for one in np.unique(k):
            books, mine = np.flatnonzero(self.model.supplied[slot, one]), np.flatnonzero(k == one)
            for rows in np.array_split(mine, 1 + len(mine) * len(books) // 2_000_000):
                left = room[rows]
                for step in range(REFILLS if len(books) else 0):
                    load = np.full((len(rows), len(books)), 1e-12)
                    fits = np.ones(load.shape, dtype=bool)
                    for r, has in enumerate(left.T):
                        fits &= size[books, r] <= has[:, None]
                        load += size[books, r] / np.maximum(has[:, None], 1e-9)
                    best = np.where(fits, top[books] / load, 0.0).argmax(axis=1)
                    good = np.flatnonzero(fits[np.arange(len(rows)), best])
                    b = books[best[good]]
                    with np.errstate(divide="ignore", invalid="ignore"):
                        room_for = np.where(size[b] > 0, left[good] / size[b], np.inf).min(axis=1)
                    n = np.clip(np.floor(room_for), 1, np.minimum(deep[b], COPIES)).astype(int)
                    filled[rows[good], step], many[rows[good], step] = b, n
                    left[good] -= n[:, None] * size[b]
        return filled, many


def _spans(first: Rows, last: Rows) -> Rows:
    """Return the numbers from each first to each last one, the last one excluded."""
    length = last - first
    return np.asarray(np.arange(length.sum()) + (first - np.cumsum(length) + length).repeat(length))
