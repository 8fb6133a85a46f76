"""A round as a separable problem, with independent choices that only a few resources couple.

These are the arrays of the allocation model (`ronda.formulations.allocation.pyomo_model`), in the
form that the price engine works on::

    max  sum_k value[k] x[k] + sum_b block_value[b] z[b]
    s.t. sum_k use[r, k] x[k] + sum_b block_use[r, b] z[b] <= capacity[r]     for each resource r
         sum_{k of job j} x[k] <= 1   (= 1 where must[j])                     for each job j
         x binary, 0 <= z[b] <= block_count[b], integer where block_integer[b]

Blocks are identical items that may be taken more than once and belong to no job: a node that is
woken uses power and provides GPUs (a negative use).

**Units.** A normalised problem has units of its own, so that the user's units cannot change the
answer. If the user counts kilowatts and not watts, the numbers differ by a factor and, in the last
bits, by rounding. Solvers branch on such bits. So every resource is measured in its smallest use,
or in a fraction of it that divides all uses (a GPU, say), and values are measured in the largest
value; the quotients keep 30 bits, which rounding does not reach. Whole numbers stay exact. Other
capacities grow by the rounding of all uses, so that a choice that just fits still fits. A use far
below the largest use counts as none, and a capacity far beyond all possible use is lowered to it,
so that no number leaves a solver's range.

**Surplus and regret.** At prices p the surplus of option k is its value less the price of its use,
``s_k = v_k - p.a_k``; a job that does not run has surplus 0. A job's regret is the surplus of its
choice less that of the best alternative, which may be not to run. It is the loss, at these prices,
if the job had to choose again, and is negative if the job did not get its favourite. Options that
another option of the job beats (as valuable, with no more use of any resource) do not count.

**Parts.** Jobs and blocks are linked by the resources that both use. A resource never binds if it
is enough for the most that all jobs and blocks could take; it links nothing, and no part has a row
for it. The parts are the connected components of this graph. With few resources and many jobs, it
is faster to widen a component until it stops growing than to load a library for graphs. The best
answer joins the best answers of all parts, and the sum of their bounds bounds it.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from ronda.formulations.allocation.resource_use import CHUNK, Uses
from ronda.instances.base import Floats, Mask, Rows
from ronda.instances.errors import InputError


@dataclass(frozen=True, slots=True)
class Separable:
    """The arrays of a separable problem.

    ``start`` (J + 1,) are the offsets of each job's options; ``must`` (J,) tells whether the job
    must get an option. Options have a finite ``value`` (K,) and ``use`` (R by K). Resources have
    ``capacity`` and ``names`` (R,), which are the keys of prices and the constraint names in the
    model. Blocks have ``block_value`` (B,), ``block_use`` (R, B) and ``block_count`` (B,). They are
    taken in whole numbers where ``block_integer`` (B,) is true, else in any amount up to the count.
    """

    start: Rows
    value: Floats
    use: Uses
    capacity: Floats
    names: tuple[str, ...]
    must: Mask
    block_value: Floats
    block_use: Floats
    block_count: Floats
    block_integer: Mask

    @classmethod
    def without_blocks(
        cls,
        start: Rows,
        value: Floats,
        use: Uses | Floats,
        capacity: Floats,
        names: tuple[str, ...],
        *,
        must: bool = False,
    ) -> "Separable":
        """Return a problem without blocks; with `must`, all jobs must run, else none must."""
        every, none = np.full(len(start) - 1, must), np.zeros(0)
        empty = (none, np.zeros((len(names), 0)), none, none.astype(np.bool_))
        return cls(start, value, Uses.of(use), capacity, names, every, *empty)

    def named(self, prices: Floats) -> dict[str, float]:
        """Return the `prices` (R,) by the names of resources, per GPU, node, watt or joule."""
        return dict(zip(self.names, prices.tolist(), strict=True))

    @property
    def jobs(self) -> int:
        """The number of jobs."""
        return len(self.start) - 1

    def validate(self) -> None:
        """Raise InputError for numbers and shapes that no solver can read.

        These are NaN or infinite values, offsets or shapes that do not match, and a job that must
        run but has no option.
        """
        place = "round"
        for name in ("value", "use", "capacity", "block_value", "block_use"):
            array = self.use.amount if name == "use" else getattr(self, name)
            if np.count_nonzero(np.isfinite(array)) < array.size:
                where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
                raise InputError(
                    f"{place}: {name}{list(where)}", f"{array[where]}", "a finite number"
                )
        shapes = (len(self.names), len(self.value))
        shape = (self.use.resources, self.use.options)
        if shape != shapes or self.capacity.shape != shapes[:1]:
            raise InputError(place, f"use of shape {shape}", f"shape {shapes}")
        counts = self.start[1:] - self.start[:-1]
        covered = self.start[0] == 0 and self.start[-1] == len(self.value)
        if not covered or np.count_nonzero(counts < 0):
            raise InputError(place, "offsets that do not cover the options", "ascending offsets")
        empty = (self.must & (counts == 0)).nonzero()[0]
        if len(empty):
            raise InputError(
                f"{place}: job {int(empty[0])}", "no option", "at least one: it must run"
            )

    def answer(self, x: Floats) -> tuple[Rows, Floats]:
        """Return the option of each job (J,), -1 for none, and the blocks (B,) at `x` (K + B,)."""
        options = np.flatnonzero(x[: len(self.value)] > 0.5)
        chosen = np.full(self.jobs, -1, dtype=np.int64)
        chosen[np.searchsorted(self.start, options, side="right") - 1] = options
        return chosen, x[len(self.value) :]

    def objective(self, chosen: Rows, blocks: Floats) -> float:
        """Return the value of an answer, with options `chosen` (J,), -1 for none, and `blocks`."""
        rows = chosen[chosen >= 0]
        return float(self.value[rows].sum() + self.block_value @ blocks)

    def excess(self, chosen: Rows, blocks: Floats) -> Floats:
        """Return an answer's excess over each capacity, negative below the capacity, shape (R,)."""
        rows = chosen[chosen >= 0]
        used: Floats = self.use.total(rows) + self.block_use @ blocks - self.capacity
        return used


Numbers = TypeVar("Numbers", float, Floats)


@dataclass(frozen=True, slots=True)
class Units:
    """The units of a normalised problem, for values and for the ``use`` (R,) of each resource."""

    value: float
    use: Floats

    def prices(self, normalised: Floats) -> Floats:
        """Return normalised prices in the user's units."""
        return np.asarray(normalised * self.value / self.use)

    def normalised_prices(self, prices: Floats) -> Floats:
        """Return the user's prices in these units."""
        return np.asarray(prices * self.use / self.value)


def normalise(problem: Separable) -> tuple[Separable, Units]:
    """Return the problem in normalised units, and these units."""
    use, block_use, capacity = _in_range(problem)
    units = Units(
        value=max(largest(problem.value), largest(problem.block_value)) or 1.0,
        use=_units(use, block_use, capacity),
    )
    amount = use.amount / use.scaled(units.use)
    block_use, capacity = block_use / units.use[:, None], capacity / units.use
    rounded = use.reduced(np.maximum, _rounds(amount).astype(float), 0.0) > 0
    rounded |= _rounds(block_use).any(axis=1) | _rounds(capacity)
    use, block_use, capacity = (
        replace(use, amount=round_bits(amount)),
        round_bits(block_use),
        round_bits(capacity),
    )
    by_blocks = np.abs(block_use) @ problem.block_count
    grown = capacity + 2.0**-29 * np.maximum(np.abs(capacity), by_blocks)
    own = Separable(
        start=problem.start,
        value=_in_unit(problem.value, units.value),
        use=use,
        capacity=np.where(rounded, grown, capacity),
        names=problem.names,
        must=problem.must,
        block_value=round_bits(problem.block_value / units.value),
        block_use=block_use,
        block_count=problem.block_count,
        block_integer=problem.block_integer,
    )
    return own, units


def _in_range(problem: Separable) -> tuple[Uses, Floats, Floats]:
    """Return the uses, the uses of blocks and the capacities, scaled to a range for solvers."""
    use, largest = problem.use, problem.use.largest()
    largest = np.maximum(largest, np.abs(problem.block_use).max(axis=1, initial=0.0))
    largest = np.where(largest > 0, largest, 1.0)
    least = 1e-12 * largest
    use = replace(use, amount=_without(use.amount, use.scaled(least)))
    blocks = _without(problem.block_use, least[:, None])
    capacity = _without(problem.capacity, least)
    most = problem.jobs * largest + np.abs(blocks) @ problem.block_count
    beyond = np.abs(capacity) > 1e6 * most
    return use, blocks, np.where(beyond, np.sign(capacity) * 2.0 * most, capacity)


def _without(amounts: Floats, least: Floats) -> Floats:
    return np.where(np.abs(amounts) < least, 0.0, amounts)


def _units(use: Uses, block_use: Floats, capacity: Floats) -> Floats:
    """Return units in which each resource's amounts are whole, or the smallest is 1, shape (R,)."""
    others = np.abs(np.column_stack([block_use, capacity]))
    sizes = np.where(use.amount == 0, np.inf, np.abs(use.amount))
    smallest = np.where(others > 0, others, np.inf).min(axis=1)
    smallest = np.minimum(smallest, use.reduced(np.minimum, sizes, np.inf))
    smallest = np.where(np.isfinite(smallest), smallest, 1.0)
    unit, undecided = smallest.copy(), np.ones(len(smallest), dtype=bool)
    some = use.picked(slice(None, None, max(1, use.options // 1000))).plain()
    for parts in range(1, 31):
        factor = parts / smallest
        whole = np.flatnonzero(undecided & _whole(some, others, factor))
        if len(whole):
            whole = whole[_whole(use.only(whole), others[whole], factor[whole])]
            unit[whole] /= parts
            undecided[whole] = False
        if not undecided.any():
            break
    return unit


def _whole(use: Uses, others: Floats, factor: Floats) -> Mask:
    """Return whether all amounts times `factor` (R,) are whole up to rounding, shape (R,)."""
    broken = use.reduced(np.maximum, _broken(use.amount * use.scaled(factor)).astype(float), 0.0)
    return np.asarray((broken == 0) & ~_broken(others * factor[:, None]).any(axis=1))


def _broken(numbers: Floats) -> Mask:
    return np.asarray(np.abs(numbers - np.rint(numbers)) > 1e-12 * np.abs(numbers))


def _rounds(amounts: Floats) -> Mask:
    """Return whether `round_bits` changes more than the last bits of each number."""
    return np.asarray(np.abs(round_bits(amounts) - amounts) > 1e-14 * np.abs(amounts))


def _in_unit(values: Floats, unit: float) -> Floats:
    """Return the values divided by `unit` and rounded, without temporary copies of them all."""
    found = np.empty_like(values)
    for k in range(0, len(values), CHUNK):
        found[k : k + CHUNK] = round_bits(values[k : k + CHUNK] / unit)
    return found


def largest(values: Floats) -> float:
    """Return the largest absolute value, 0 for an empty array."""
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def round_bits(values: Numbers) -> Numbers:
    """Return the values rounded to 30 bits, one part in 10^9.

    This is G. W. Veltkamp's splitting (T. J. Dekker, Numer. Math. 18, 1971).
    """
    scaled = values * (2.0**23 + 1.0)  # of the 53 bits of a float
    scaled -= scaled - values
    return scaled


def with_share(problem: Separable, jobs: Rows) -> "Part":
    """Return a part of the given jobs (n,), with their share of all capacities and blocks."""
    share = len(jobs) / max(1, problem.jobs)
    own = subset(problem, jobs, np.arange(len(problem.names)), np.arange(len(problem.block_value)))
    capacity, count = problem.capacity * share, problem.block_count * share
    return replace(own, problem=replace(own.problem, capacity=capacity, block_count=count))


def random_parts(problem: Separable, number: int, seed: int) -> list["Part"]:
    """Return a number of parts with random jobs and equal shares of all resources.

    POP splits large allocations in this way (Narayanan et al., *Solving large-scale granular
    resource allocation problems efficiently with POP*, SOSP 2021).
    """
    order = np.random.default_rng(seed).permutation(problem.jobs)
    groups = np.array_split(order, max(1, min(number, problem.jobs)))
    return [with_share(problem, np.sort(jobs)) for jobs in groups]


def surpluses(problem: Separable, prices: Floats) -> Floats:
    """Return each option's value less its cost at `prices` (R,) per unit, shape (K,)."""
    return problem.use.net(problem.value, prices)


def regrets(start: Rows, surplus: Floats, must: Mask, chosen: Rows) -> Floats:
    """Return the regret of every job, infinite for a job without an alternative, shape (J,).

    `start` (J + 1,) are the offsets of each job's options. `surplus` (K,) is -inf for impossible
    options. A job must run where `must` (J,) is true. `chosen` (J,) is the row of each job's
    choice, -1 if the job does not run.
    """
    others = np.empty(len(surplus) + 1)  # -1 points to the last entry, which is not to run
    others[:-1] = surplus
    others[-1] = 0.0
    own = others[chosen]
    others[chosen] = others[-1] = -np.inf
    best = np.maximum.reduceat(others, start[:-1])
    bare = start[1:] == start[:-1]
    if np.count_nonzero(bare):
        best[bare] = -np.inf
    may_stop = chosen >= 0
    if np.count_nonzero(must):
        own[must & ~may_stop] = -np.inf
        may_stop &= ~must
        own[must & (best == -np.inf)] = 0.0  # no other choice, whatever its own
    np.maximum(best, 0.0, out=best, where=may_stop)
    return np.subtract(own, best)


FREE = -1
"""The component of jobs and blocks that use no resource which can bind."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a problem, with the indices of its jobs, options and so on in the whole problem."""

    problem: Separable
    jobs: Rows
    options: Rows
    resources: Rows
    blocks: Rows


def independent(problem: Separable) -> list[Part]:
    """Return the independent parts of a problem, or an empty list if it does not split."""
    if len(problem.names) < 2:
        return []
    filled = np.flatnonzero(np.diff(problem.start))
    use, at = problem.use, problem.start[filled]
    most = use.most(use.amount, at)
    by_blocks = (np.maximum(problem.block_use, 0.0) * problem.block_count).sum(axis=1)
    binds = most.sum(axis=1) + by_blocks > problem.capacity
    some = (use.amount != 0).astype(float)
    used = (most if (use.amount >= 0).all() else use.most(some, at)) > 0
    uses = np.concatenate([used, problem.block_use != 0], axis=1)[binds]
    component = _components(uses)
    owner = np.where(uses.any(axis=0), component[uses.argmax(axis=0)] if len(uses) else FREE, FREE)
    kinds = sorted({*component.tolist(), *owner.tolist()})
    if len(kinds) < 2:
        return []
    rows, job, block = np.flatnonzero(binds), owner[: len(filled)], owner[len(filled) :]
    return [
        subset(problem, filled[job == kind], rows[component == kind], np.flatnonzero(block == kind))
        for kind in kinds
    ]


def _components(uses: Mask) -> Rows:
    """Return the component of each resource, given as the first resource of the component."""
    component = np.full(len(uses), -1)
    for r in range(len(uses)):
        linked = np.arange(len(uses)) == r
        while component[r] < 0:
            wider = uses[:, uses[linked].any(axis=0)].any(axis=1) | linked
            if (wider == linked).all():
                component[linked] = r
            linked = wider
    return component


def subset(problem: Separable, jobs: Rows, resources: Rows, blocks: Rows) -> Part:
    """Return the part of a problem with some of its jobs, resources and blocks."""
    counts = np.diff(problem.start)[jobs]
    start = np.concatenate([[0], np.cumsum(counts)])
    options = np.arange(start[-1]) + (problem.start[jobs] - start[:-1]).repeat(counts)
    own = Separable(
        start=start,
        value=problem.value[options],
        use=problem.use.picked(options).only(resources),
        capacity=problem.capacity[resources],
        names=tuple(problem.names[r] for r in resources.tolist()),
        must=problem.must[jobs],
        block_value=problem.block_value[blocks],
        block_use=problem.block_use[np.ix_(resources, blocks)],
        block_count=problem.block_count[blocks],
        block_integer=problem.block_integer[blocks],
    )
    return Part(own, jobs, options, resources, blocks)
