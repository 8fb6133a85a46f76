"""The resources that options use, where resources are many and each option uses few.

A slot holds an amount of one resource. A resource that most options use has a slot of its own; the
others share the remaining slots. Options with equal uses form one kind, and the slots of a kind are
stored once. So the memory grows with the uses and not with the number of resources: 16,520 jobs
that may have four sizes on each of 456 GPU types have 30 million options, but these form only
1,824 kinds with one slot.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ronda.instances.base import Floats, Mask, Rows

if TYPE_CHECKING:
    from scipy.sparse import csc_array, csr_array

Number = TypeVar("Number", bound=np.generic)

CHUNK = 2**20
"""The number of options that are handled together, to avoid temporary arrays of all options."""

Kinds = NDArray[np.integer[Any]]
"""The number of the kind of each option."""


@dataclass(frozen=True)
class Uses:
    """Amounts of R resources that K options of P kinds use.

    ``resource`` (W, P) and ``amount`` (W, P) are the resource and the amount of each slot of each
    kind; an unused slot has the amount 0. No kind has two slots of one resource. ``kind`` (K,) is
    the kind of each option; if it is None, option k is of kind k.
    """

    resources: int
    resource: NDArray[np.int32]
    amount: Floats
    kind: Kinds | None = None

    @classmethod
    def of(cls, use: "Floats | list[Floats] | csr_array | Uses") -> "Uses":
        """Return the uses of a matrix (R, K).

        The slots of resources that most options use come first, in the order of the rows.
        """
        if isinstance(use, Uses):
            return use
        if isinstance(use, list | np.ndarray):
            dense = np.asarray(use, dtype=float)
            option, row = np.nonzero(dense.T)
            amount = dense[row, option]
            resources, options = dense.shape
        else:
            few = use.tocsc()
            few.sum_duplicates()  # and sorts the rows of each option
            few.eliminate_zeros()
            resources, options = few.shape
            option = np.repeat(np.arange(options), np.diff(few.indptr))
            row = few.indices.astype(np.int64)
            amount = few.data
        used = np.bincount(row, minlength=resources)
        shared = used <= options / 2
        own = np.flatnonzero(~shared)
        place = np.cumsum(~shared) - 1
        whole = np.zeros((len(own), options))
        first = ~shared[row]
        whole[place[row[first]], option[first]] = amount[first]
        option, row, amount = option[~first], row[~first], amount[~first]
        taken = np.bincount(option, minlength=options)  # shared slots of each option
        slot = np.arange(len(option)) - (np.cumsum(taken) - taken)[option]
        shape = int(taken.max(initial=0)), options
        resource, amounts = np.zeros(shape, dtype=np.int32), np.zeros(shape)
        for w in range(len(resource)):  # where an option has no such slot, whatever the resource
            resource[w] = row[slot == w].min()
        resource[slot, option], amounts[slot, option] = row, amount
        every = np.repeat(own.astype(np.int32)[:, None], options, axis=1)
        return cls(resources, np.concatenate([every, resource]), np.concatenate([whole, amounts]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        """Return the matrix (R, K), for numpy and SciPy."""
        return self.dense().astype(dtype or float, copy=False)

    @property
    def options(self) -> int:
        """The number of options."""
        return int(self.amount.shape[1]) if self.kind is None else len(self.kind)

    def by_kinds(self) -> "Uses":
        """Return the same uses with equal options joined into kinds, if this gives few kinds."""
        if self.kind is not None or not self.amount.size:
            return self
        slots = np.vstack([self.resource, self.amount])
        sums, factors = np.zeros(self.options), np.random.default_rng(0).random(len(slots))
        for factor, row in zip(factors, slots, strict=True):
            sums += factor * row
        _, first, kind = np.unique(sums, return_index=True, return_inverse=True)
        few = slots[:, first]
        if len(first) > self.options / 4 or (few[:, kind] != slots).any():
            return self
        numbers = kind.astype(np.min_scalar_type(len(first)))
        return Uses(self.resources, self.resource[:, first], self.amount[:, first], numbers)

    def each(self, of_kinds: NDArray[Number], rows: Rows | slice = slice(None)) -> NDArray[Number]:
        """Return the `of_kinds` (.., P) of the given options, by default of all, shape (.., n)."""
        return of_kinds[..., rows if self.kind is None else self.kind[rows]]

    def plain(self) -> "Uses":
        """Return the same uses with each option as a kind of its own."""
        return Uses(self.resources, self.each(self.resource), self.each(self.amount))

    @cached_property
    def single(self) -> tuple[int | None, ...]:
        """The resource of each slot, None if several resources share the slot."""
        if not self.options:
            return (None,) * len(self.resource)
        return tuple(int(row[0]) if (row == row[0]).all() else None for row in self.resource)

    def net(self, value: Floats, prices: Floats, among: Mask | None = None) -> Floats:
        """Return the value of each option less its cost at `prices` (R,), shape (K,).

        The result is -infinity for options of kinds outside `among` (P,).
        """
        left = value.copy()
        if self.kind is not None:
            cost = self.kind_costs(prices)
            left -= self.each(cost if among is None else np.where(among, cost, np.inf))
            return left
        for r, resource, amount in zip(self.single, self.resource, self.amount, strict=True):
            if r is None:
                left -= prices[resource] * amount
            elif prices[r]:
                left -= prices[r] * amount
        if among is not None:
            left[~among] = -np.inf
        return left

    def kind_costs(self, prices: Floats) -> Floats:
        """Return the cost of an option of each kind at `prices` (R,), shape (P,)."""
        return Uses(self.resources, self.resource, self.amount).cost(prices)

    def cost(self, prices: Floats) -> Floats:
        """Return the cost of each option at `prices` (R,), shape (K,)."""
        return -self.net(np.zeros(self.options), prices)

    def column(self, row: int) -> Floats:
        """Return the amount of each resource that one option uses, shape (R,)."""
        return self.total(np.array([row]))

    def total(self, rows: Rows) -> Floats:
        """Return the amount of each resource that the given options use together, shape (R,)."""
        total = np.zeros(self.resources)
        for r, resource, amount in zip(self.single, self.resource, self.amount, strict=True):
            what = self.each(amount, rows)
            if r is None:
                total += np.bincount(self.each(resource, rows), what, minlength=self.resources)
            else:
                total[r] += what.sum()
        return total

    def dense(self, rows: Rows | slice = slice(None)) -> Floats:
        """Return the matrix of the given options, by default of all, shape (R, n)."""
        resource, amount = self.each(self.resource, rows), self.each(self.amount, rows)
        matrix, column = np.zeros((self.resources, amount.shape[1])), np.arange(amount.shape[1])
        for r, where, what in zip(self.single, resource, amount, strict=True):
            matrix[where if r is None else r, column] += what
        return matrix

    def sparse(self) -> "csc_array":
        """Return the matrix (R, K) without its zeros."""
        return self.plain().of_kinds()

    def of_kinds(self) -> "csc_array":
        """Return the matrix (R, P) of kinds, without its zeros."""
        from scipy.sparse import csc_array

        kind = np.broadcast_to(np.arange(self.amount.shape[1]), self.amount.shape)
        entries = self.amount.ravel(), (self.resource.ravel(), kind.ravel())
        matrix = csc_array(entries, shape=(self.resources, self.amount.shape[1]))
        matrix.eliminate_zeros()
        return matrix

    def of_resource(self, r: int) -> Floats:
        """Return the use of one resource by each option, shape (K,)."""
        return np.asarray(self.each(np.where(self.resource == r, self.amount, 0.0).sum(axis=0)))

    def largest(self) -> Floats:
        """Return the largest absolute amount of each resource that an option uses, shape (R,)."""
        return self.reduced(np.maximum, np.abs(self.amount), 0.0)

    def reduced(self, by: np.ufunc, numbers: Floats, start: float) -> Floats:
        """Return the `numbers` (W, P) of slots reduced per resource from `start`, shape (R,)."""
        found = np.full(self.resources, start)
        for r, resource, what in zip(self.single, self.resource, numbers, strict=True):
            if r is None:
                by.at(found, resource, what)
            else:
                found[r] = by.reduce(what, initial=found[r])
        return found

    def most(self, numbers: Floats, first: Rows) -> Floats:
        """Return the largest number of each resource among the options of each job, shape (R, J).

        The largest is at least 0. `numbers` (W, P) belong to slots. `first` (J,) are the ascending
        first options of the jobs that have options.
        """
        found = np.zeros((self.resources, len(first)))
        if not len(first):
            return found
        at, ends = found.ravel(), np.append(first[1:], self.options)
        step = max(1, CHUNK * len(first) // max(1, self.options))
        for r, resource, what in zip(self.single, self.resource, numbers, strict=True):
            if r is not None:
                np.maximum(found[r], np.maximum.reduceat(self.each(what), first), out=found[r])
                continue
            for j in range(0, len(first), step):
                jobs = np.arange(j, min(j + step, len(first)))
                rows = slice(int(first[j]), int(ends[jobs[-1]]))
                job = jobs.repeat(ends[jobs] - first[jobs])
                where = self.each(resource, rows).astype(np.int64) * len(first) + job
                np.maximum.at(at, where, self.each(what, rows))
        return found

    def scaled(self, by: Floats) -> Floats:
        """Return the number in `by` (R,) of the resource of each slot, shape (W, P)."""
        return by[self.resource]

    def picked(self, rows: Rows | slice) -> "Uses":
        """Return the uses of the given options."""
        if self.kind is None:
            return Uses(self.resources, self.resource[:, rows], self.amount[:, rows])
        return replace(self, kind=self.kind[rows])

    def only(self, resources: Rows) -> "Uses":
        """Return the uses of the given resources, numbered anew in the given order."""
        if len(resources) == self.resources and (np.diff(resources) == 1).all():
            return self
        number = np.full(self.resources, -1, dtype=np.int32)
        number[resources] = np.arange(len(resources))
        new = number[self.resource]
        kept = new >= 0
        slots = np.flatnonzero(kept.any(axis=1))
        return Uses(
            len(resources),
            np.where(kept, new, 0)[slots],
            np.where(kept, self.amount, 0.0)[slots],
            self.kind,
        )

    def below(self, room: Floats) -> Mask:
        """Return whether each kind uses at most `room` (R,) of every resource, shape (P,)."""
        return np.asarray((self.amount <= room[self.resource]).all(axis=0))

    def fits(self, rows: Rows, instead: Rows, room: Floats) -> Mask:
        """Return whether each option of `rows` (n,) fits into `room` (R,), shape (n,).

        Each option replaces the option in `instead` (n,), -1 for none.
        """
        fits, replaces = np.ones(len(rows), dtype=bool), instead >= 0
        new, old = self.picked(rows).plain(), self.picked(instead).plain()
        for r, resource, amount in zip(self.single, new.resource, new.amount, strict=True):
            where = resource if r is None else r
            there = room[where]
            for s, other, given in zip(self.single, old.resource, old.amount, strict=True):
                if r is None or s is None:
                    there = there + np.where(replaces & (other == where), given, 0.0)
                elif r == s:
                    there = there + np.where(replaces, given, 0.0)
            fits &= amount <= there
        return fits
