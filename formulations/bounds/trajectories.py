"""The least cost of each job alone under prices, found exactly, with its pauses.

This is the bound of `ronda.formulations.bounds.price_bound` with a better least cost of each job.
In f(C) = C + nu w - G(C), the gain G(C) is the most that the job earns until C, at nu for each unit
of work, beyond the prices of the resources that it holds. Here a job that enters a mode loses the
earnings of its pause. A dynamic programme over intervals and modes finds G, because with constant
prices it is best to change modes at an end of an interval. On each interval G is a maximum of
linear functions of C, so the least f is at an end. Stages of the work are in any order: mode n
works at the pace b_n = max_s y_s a_sn for multipliers y_s >= 0, and w = sum_s y_s w_s.

**Pauses.** Entering mode n costs nu b_n r_n, with the least pause r_n that any job of the kind
needs for it. A pause that is cut short earns nothing and is paid for, so that a job without it is
no worse off. Before its first progress, a job pauses for s in all, but perhaps for some of it in
another mode, after which it pauses for min(s, r_n) more. So the first entry costs nu b_n s if no
r_n is less than s, or if there is one mode. Other jobs are released s after their submission, and
so are arrays on one GPU, which others can join, and jobs that may end at a time limit, whose pauses
count towards it. These two have no other pauses either.

Any prices, y and nu >= 0 give a valid bound. y follows from `stage_prices` as y_s = min_n (1 +
c_n)/a_sn, and all inputs are rounded to the side that keeps the bound valid.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.bounds.least_needs import Alike, Needs
from ronda.formulations.bounds.price_bound import Unbeaten, product, unbeaten_modes
from ronda.formulations.bounds.resources import Resource, rounded
from ronda.instances.base import Floats
from ronda.instances.instance import Instance

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Rows = NDArray[np.int64]

PAIRS = 600
"""The pairs of job and mode that are looked at together; their values fit into a cache."""

WIDTHS = (0.06, 0.015, 0.004)
"""How far apart multipliers are that are tried near the best one, in turns."""

FACTORS = (0.98, 0.995, 1.005, 1.02)
"""The factors of the best multiplier with which paths are found that do less work and more."""


class Cheapest(NamedTuple):
    """Cheapest trajectories of the jobs under some prices.

    `least_s` (J,) are lower bounds on completion time plus cost, and `nu` (J, Q) are multipliers
    that prove them. One trajectory of each job completes at `end_s` (J,), uses `use` (J, M x K),
    and sees the mean prices `seen` (J, M) while it runs.
    """

    least_s: Floats
    nu: Floats
    end_s: Floats
    seen: Floats
    use: "csr_matrix"


class Trajectories:
    """The least costs of the jobs of an instance under prices on the intervals between `times`."""

    def __init__(
        self, instance: Instance, need: Needs, resources: Sequence[Resource], times: Floats
    ) -> None:
        self.times = times
        jobs = len(need.submit_s)
        self.earliest = need.submit_s + rounded(need.seconds, -1)
        self.release = need.submit_s + need.start_s
        self.start_s = np.zeros(jobs)
        self.kinds: list[Unbeaten] = []
        self.kind = np.zeros(jobs, dtype=np.int64)
        self.share: list[Floats] = [np.zeros(0)] * jobs
        for k, alike in enumerate(need.kinds):
            found, pauses = _kind_of(instance, alike, resources)
            most_s = np.inf if len(found.pause_s) == 1 else found.pause_s.min()
            whole = alike.rows[pauses & (need.start_s[alike.rows] <= most_s)]
            self.release[whole], self.start_s[whole] = need.submit_s[whole], need.start_s[whole]
            self.kinds.append(found)
            for j, share in zip(alike.rows.tolist(), found.share, strict=True):
                self.kind[j], self.share[j] = k, share
        self.first = np.searchsorted(times, self.release, side="right") - 1
        self.stage_prices = np.zeros((jobs, len(resources)))

    def least(self, prices: Floats, nu: Floats, until_s: Floats) -> Floats:
        """Return lower bounds (J,) on each job's completion time plus its cost.

        Parameters
        ----------
        prices
            The prices (M, K) of the resources, per unit and second.
        nu
            Multipliers (J, Q) of the work, and some others are tried. For each time of completion
            the best counts.
        until_s
            Times (J,) after which completions are not looked at; later ones cost as much at least.
        """
        found = np.empty(len(nu))
        for chunk in self._chunks(until_s):
            tried = np.concatenate([chunk.wide(8), nu[chunk.jobs]], axis=1)
            table, flat = chunk.tried(chunk.costs(prices), tried)
            found[chunk.jobs] = chunk.values(table[0], flat)[0]
        return found

    def cheapest(
        self, prices: Floats, nu: Floats | None, until_s: Floats, picks: int = 0
    ) -> Cheapest:
        """Return the cheapest trajectories that a search of the multipliers finds.

        `nu` (J, Q) are multipliers that were good under similar prices. With `picks`, as many of
        the multipliers are returned as prove the bound together.
        """
        chunks = self._chunks(until_s)
        order = np.argsort(np.concatenate([chunk.jobs for chunk in chunks]))
        found = [
            chunk.cheapest(prices, None if nu is None else nu[chunk.jobs], picks)
            for chunk in chunks
        ]
        least_s, best, end_s, seen = (
            np.concatenate([getattr(part, name) for part in found])[order]
            for name in ("least_s", "nu", "end_s", "seen")
        )
        from scipy.sparse import csr_matrix, vstack  # slow to import

        use = vstack([part.use for part in found], format="csr")[order]
        return Cheapest(least_s, best, end_s, seen, csr_matrix(use))

    def _chunks(self, until_s: Floats) -> "list[_Chunk]":
        last = np.searchsorted(self.times, until_s, side="right") - 1
        last = np.clip(last, self.first, len(self.times) - 2)
        order = np.lexsort((last, self.first))
        sizes = [max(8, len(self.kinds[k].pause_s)) for k in self.kind[order].tolist()]
        size = np.cumsum(sizes)
        parts = np.flatnonzero(np.diff(size // PAIRS)) + 1
        return [_Chunk(self, own, last[own]) for own in np.split(order, parts)]


def _kind_of(
    instance: Instance, alike: Alike, resources: Sequence[Resource]
) -> tuple[Unbeaten, bool]:
    """Return the unbeaten modes of a kind, and whether its pauses count."""
    jobs = [instance.jobs[j] for j in alike.rows.tolist()]
    ends = instance.site.kills_at_limit and any(job.limit_s is not None for job in jobs)
    pauses = not ends and all(job.fusible is None for job in jobs)
    if not pauses:
        return unbeaten_modes(alike, resources), False
    costs = {job.costs or instance.costs for job in jobs}
    least = {
        gpus: min(c.pause(int(gpus), running=on) for c in costs for on in (False, True))
        for gpus in np.unique(alike.modes.gpus).tolist()
    }
    pause_s = np.array([least[gpus] for gpus in alike.modes.gpus.tolist()])
    return unbeaten_modes(alike, resources, pause_s), True


class _Chunk:
    """Some jobs, and their modes as rows (P,), in the intervals from `at` up to `last` (j,)."""

    def __init__(self, whole: Trajectories, jobs: Rows, last: Rows) -> None:
        self.jobs, self.at = jobs, int(whole.first[jobs].min())
        self.times = whole.times[self.at : int(last.max()) + 2]
        self.complete = int(last.max()) + 2 == len(whole.times)
        self.all_times = whole.times
        self.first, self.last = whole.first[jobs] - self.at, last - self.at
        self.release, self.earliest = whole.release[jobs], whole.earliest[jobs]
        kinds = [whole.kinds[k] for k in whole.kind[jobs].tolist()]
        self.owner = np.repeat(np.arange(len(jobs)), [len(kind.pause_s) for kind in kinds])
        self.heads = np.searchsorted(self.owner, np.arange(len(jobs)))
        self.use = np.concatenate([kind.use for kind in kinds], axis=1)
        pause_s = np.concatenate([kind.pause_s for kind in kinds])
        pace, self.work = [], np.empty(len(jobs))
        for j, (job, kind) in enumerate(zip(jobs.tolist(), kinds, strict=True)):
            cost, share = 1.0 + product(whole.stage_prices[job], kind.use), whole.share[job]
            rate = kind.rate[share > 0]
            worth = (cost / np.maximum(rate, 1e-300)).min(axis=1)
            pace.append((worth[:, None] * rate).max(axis=0, initial=1e-300))
            self.work[j] = (share[share > 0] * worth).sum()
        self.pace = np.concatenate(pace)
        self.again = pause_s * self.pace
        self.enter = self.pace * whole.start_s[jobs][self.owner]
        self.lowest = 1.0 / self._of_jobs(np.maximum, self.pace)
        self.length = np.clip(
            self.times[1:, None] - np.maximum(self.times[:-1, None], self.release), 0.0, None
        )

    def _of_jobs(self, pick: np.ufunc, values: Floats) -> Floats:
        return np.asarray(pick.reduceat(values, self.heads, axis=0))

    def costs(self, prices: Floats) -> Floats:
        """Return the price of a second in each mode, shape (k, P)."""
        some = prices[:, self.at : self.at + len(self.length)]
        return product(some.T, self.use)

    def tried(self, costs: Floats, nu: Floats) -> tuple[Floats, Floats]:
        """Try multipliers (j, Q), and the lowest that makes sense.

        The first array (3, k, j) has the best f on each interval, the multiplier that gives it, and
        the interval after which the job then completes; the second, (j,), f after the horizon.
        """
        nu = np.concatenate([self.lowest[:, None], nu], axis=1)
        after = self._after(costs, nu)  # (k, j, Q)
        start = self.release[:, None] + nu * self.work[:, None]
        before = np.concatenate([start[None], after[:-1]])
        low = np.minimum(before, after)
        which = low.argmax(axis=2)[..., None]
        best, early, late = (
            np.take_along_axis(f, which, axis=2)[..., 0] for f in (low, before, after)
        )
        stop = np.arange(len(low))[:, None] - (early < late)
        return np.stack([best, nu[np.arange(len(nu)), which[..., 0]], stop]), after[-1, :, 0]

    def values(self, best: Floats, flat: Floats) -> tuple[Floats, Rows]:
        """Return the bound on each job, and the interval that gives it, (j,) each."""
        jobs, every = np.arange(len(self.jobs)), np.arange(len(best))[:, None]
        within = np.where((every < self.first) | (every > self.last), np.inf, best)
        end = within.argmin(axis=0)
        later = self.times[self.last + 1]
        if self.complete:  # beyond the horizon f never falls for the lowest multiplier
            later = np.where(self.last == len(best) - 1, np.maximum(later, flat), later)
        return np.maximum(np.minimum(within[end, jobs], later), self.earliest), end

    def wide(self, count: int) -> Floats:
        """Return multipliers (j, Q) from low to high."""
        return np.asarray(self.lowest[:, None] * np.geomspace(1.02, 60.0, count))

    def cheapest(self, prices: Floats, nu: Floats | None, picks: int) -> Cheapest:
        """Return the cheapest trajectories of these jobs."""
        costs, jobs = self.costs(prices), np.arange(len(self.jobs))
        tried = self.wide(24) if nu is None else np.concatenate([self.wide(12), nu], axis=1)
        table, flat = self.tried(costs, tried)
        picked = [table[1, self.values(table[0], flat)[1], jobs]]
        for width in WIDTHS * (6 if picks else 1):
            other, _ = self.tried(costs, around(picked[-1], width))
            table = np.where(other[0] > table[0], other, table)
            picked.append(table[1, self.values(table[0], flat)[1], jobs])
        _, end = self.values(table[0], flat)
        stop = table[2, end, jobs].astype(np.int64)
        paths = [self._trace(costs, picked[-1] * factor, stop) for factor in FACTORS]
        low, high, cross = self._bracket(costs, paths)
        crossed = np.where(low < high, cross, picked[-1])
        other, _ = self.tried(costs, around(crossed, 0.0004))
        table = np.where(other[0] > table[0], other, table)
        value, end = self.values(table[0], flat)
        picked.append(table[1, end, jobs])
        if picks:
            picked = picked[-1:]
            held, flat = self.tried(costs, picked[0][:, None])
            for _ in range(picks - 1):
                picked.append(table[1, self.values(held[0], flat)[1], jobs])
                held = np.maximum(held, self.tried(costs, picked[-1][:, None])[0])
        return Cheapest(
            value, np.stack(picked, axis=1), *self._used(prices, stop, paths, low, high)
        )

    def _after(self, costs: Floats, nu: Floats) -> Floats:
        """Return f at the end of each interval, shape (k, j, Q)."""
        earn = nu[self.owner] * self.pace[:, None]
        enter = -nu[self.owner] * self.enter[:, None]
        again = nu[self.owner] * self.again[:, None]
        gain, most = np.full_like(earn, -np.inf), np.full_like(nu, -np.inf)
        gained = np.empty((len(costs), *nu.shape))
        for k, cost in enumerate(costs):
            entry = most[self.owner]
            entry -= again
            np.maximum(entry, enter, out=entry)
            np.maximum(gain, entry, out=gain)
            np.subtract(earn, cost[:, None], out=entry)
            entry *= self.length[k][self.owner, None]
            gain += entry
            most = np.maximum(most, self._of_jobs(np.maximum, gain), out=gained[k])
        ends = np.maximum(self.times[1:, None], self.release)[..., None]
        return np.asarray(ends + nu * self.work[:, None] - np.maximum(gained, 0.0))

    def _trace(self, costs: Floats, nu: Floats, end: Rows) -> tuple[Rows, Floats]:
        """Return the modes by which each job earns most until an interval ends, and what it loses.

        Both are (k, j): the row of the mode in an interval, -1 while the job waits, and the work
        that its pauses cost.
        """
        earn = nu[self.owner] * self.pace
        enter, again = -nu[self.owner] * self.enter, nu[self.owner] * self.again
        gain, most = np.full(len(earn), -np.inf), np.full(len(nu), -np.inf)
        came = np.empty((len(costs), len(earn)), dtype=np.int8)  # 0 stays, 1 changes, 2 starts
        source = np.full((len(costs) + 1, len(nu)), -1)
        idle = np.empty((len(costs), len(nu)), dtype=bool)
        for k, cost in enumerate(costs):
            change = most[self.owner] - again
            came[k] = np.where(enter > np.maximum(gain, change), 2, change > gain)
            gain = np.maximum(np.maximum(gain, change), enter)
            gain += (earn - cost) * self.length[k][self.owner]
            top = self._of_jobs(np.maximum, gain)
            first = np.where(gain == top[self.owner], np.arange(len(gain)), len(gain))
            source[k + 1] = np.where(top > most, self._of_jobs(np.minimum, first), -1)
            most = np.maximum(top, most)
            idle[k] = most <= 0
        mode, lost = np.full((len(costs), len(nu)), -1), np.zeros((len(costs), len(nu)))
        state, runs = np.full(len(nu), -1), np.zeros(len(nu), dtype=bool)
        for k in range(len(costs) - 1, -1, -1):
            ends = end == k
            state = np.where(ends, source[k + 1], state)
            runs |= ends & ~idle[k]
            on = runs & (state >= 0)
            mode[k, on] = state[on]
            how = np.where(on, came[k, state], 1)
            lost[k] = np.choose(how, [0.0, self.again[state], self.enter[state]]) * on
            runs &= how < 2
            state = np.where(how == 1, source[k], state)
        return mode, lost

    def _bracket(
        self, costs: Floats, paths: list[tuple[Rows, Floats]]
    ) -> tuple[Rows, Rows, Floats]:
        """Return the path that does too little work, the next, which does not, and a multiplier.

        With this multiplier both are as good. If all do too little, or all too much, the two are
        the path that is closest.
        """
        jobs, every = np.arange(len(self.jobs)), np.arange(len(costs))[:, None]
        works = np.maximum.accumulate(np.stack([self._done(path)[-1] for path in paths]), axis=0)
        paid = [costs[every, mode] * self.length * (mode >= 0) for mode, _ in paths]
        spent = np.stack([each.sum(axis=0) for each in paid])
        first = (works < self.work).sum(axis=0)  # the first path that does all the work
        low, high = np.maximum(first - 1, 0), np.minimum(first, len(paths) - 1)
        more = works[high, jobs] - works[low, jobs]
        cross = (spent[high, jobs] - spent[low, jobs]) / np.maximum(more, 1e-300)
        usable = (more > 1e-9 * self.work) & (cross > 0)
        return low, np.where(usable, high, low), np.where(usable, cross, 1.0)

    def _done(self, path: tuple[Rows, Floats]) -> Floats:
        mode, lost = path
        return np.cumsum(self.length * self.pace[mode] * (mode >= 0) - lost, axis=0)

    def _used(
        self,
        prices: Floats,
        stop: Rows,
        paths: list[tuple[Rows, Floats]],
        low: Rows,
        high: Rows,
    ) -> "tuple[Floats, Floats, csr_matrix]":
        """Return when trajectories complete, the mean prices that they see, and their use.

        A trajectory is the mean of the paths `low` and `high` that does just enough work. If they
        are one, it is cut off where its work is complete, or longer in its last mode.
        """
        jobs, all_k = np.arange(len(self.jobs)), prices.shape[1]
        done, mixed = [self._done(path) for path in paths], low < high
        works = np.stack([so_far[-1] for so_far in done])
        few, many = works[low, jobs], works[high, jobs]
        part = np.where(mixed, (self.work - few) / np.where(mixed, many - few, 1.0), 1.0)
        weight = np.zeros((len(paths), len(jobs)))
        weight[low, jobs] = 1.0 - np.clip(part, 0.0, 1.0)
        weight[high, jobs] += np.clip(part, 0.0, 1.0)
        end_s = np.where(mixed, self.times[stop + 1], 0.0)
        entries = []
        for (mode, _), so_far, share in zip(paths, done, weight, strict=True):
            pace = self.pace[mode] * (mode >= 0)
            left = self.work - so_far + self.length * pace
            over = np.maximum.accumulate(so_far, axis=0) >= self.work * (1 - 1e-12)
            ended = np.concatenate([np.zeros((1, len(jobs)), dtype=bool), over[:-1]])
            alone = np.clip(left / np.maximum(pace, 1e-300), 0.0, self.length) * ~ended
            busy = np.where(mode >= 0, np.where(mixed, self.length, alone), 0.0)
            begin = np.maximum(self.times[:-1, None], self.release)
            own_s = np.where(busy > 0, begin + busy, self.release).max(axis=0)
            k, j = np.nonzero(busy * share)
            entries.append((j, k + self.at, mode[k, j], busy[k, j] * share[j]))
            for job in np.flatnonzero(~over[-1] & ~mixed & (share > 0)).tolist():
                last = np.flatnonzero(mode[:, job] >= 0)
                block = np.flatnonzero(self.owner == job)
                row = mode[last[-1], job] if len(last) else block[self.pace[block].argmax()]
                need = self.work[job] - so_far[-1, job] + (0.0 if len(last) else self.enter[row])
                until_s = own_s[job] + need / self.pace[row]
                begin, end = self.all_times[:-1], self.all_times[1:]
                more = np.minimum(end, until_s) - np.maximum(begin, own_s[job])
                k = np.flatnonzero(more > 0)
                entries.append((np.full(len(k), job), k, np.full(len(k), row), more[k]))
                own_s[job] = until_s
            end_s = np.where(~mixed & (share > 0), own_s, end_s)
        j, k, row, seconds = (np.concatenate(column) for column in zip(*entries, strict=True))
        seen = np.zeros((len(jobs), len(prices)))
        np.add.at(seen, j, seconds[:, None] * prices[:, k].T)
        total = np.bincount(j, seconds, len(jobs))
        amount = (self.use[:, row] * seconds).ravel()
        columns = (np.arange(len(prices))[:, None] * all_k + k).ravel()
        shape = (len(jobs), len(prices) * all_k)
        from scipy.sparse import csr_matrix  # slow to import

        use = csr_matrix((amount, (np.tile(j, len(prices)), columns)), shape=shape)
        return np.maximum(end_s, self.earliest), seen / np.maximum(total, 1e-300)[:, None], use


def around(nu: Floats, width: float) -> Floats:
    """Return multipliers (J, 7) around some (J,)."""
    return nu[:, None] * (1.0 + width * np.array([-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.5]))
