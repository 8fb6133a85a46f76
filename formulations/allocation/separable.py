"""A round as a separable problem: independent choices that only a few resources couple.

This is the allocation model (`ronda.formulations.allocation.pyomo_model`) as arrays, in the form
that the price engine works on::

    max  sum_k value[k] x[k] + sum_b block_value[b] z[b]
    s.t. sum_k use[r, k] x[k] + sum_b block_use[r, b] z[b] <= capacity[r]     for each resource r
         sum_{k of job j} x[k] <= 1   (= 1 where must[j])                     for each job j
         x binary, 0 <= z[b] <= block_count[b], integer where block_integer[b]

Blocks are identical things that may be taken more than once without belonging to a job: a node
that is woken uses power and provides GPUs (a negative use).
"""

from dataclasses import dataclass

import numpy as np

from ronda.instances.arrays import Floats, Mask, Rows
from ronda.instances.errors import InputError


@dataclass(frozen=True, slots=True)
class Separable:
    """The arrays of a separable problem.

    ``start`` (J + 1,) are the offsets of each job's options; ``must`` (J,) tells whether the job
    must get one. ``value`` (K,) and ``use`` (R, K) are of the options, finite; ``capacity`` and
    ``names`` (R,) of the resources: keys of prices, and constraint names in the model. Blocks have
    ``block_value`` (B,), ``block_use`` (R, B) and ``block_count`` (B,), and are taken in whole
    numbers where ``block_integer`` (B,), else in any amount up to their count.
    """

    start: Rows
    value: Floats
    use: Floats
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
        use: Floats,
        capacity: Floats,
        names: tuple[str, ...],
        *,
        must: bool = False,
    ) -> "Separable":
        """Return a problem of jobs alone, all of which must run or none."""
        every, none = np.full(len(start) - 1, must), np.zeros(0)
        empty = (none, np.zeros((len(names), 0)), none, none.astype(np.bool_))
        return cls(start, value, use, capacity, names, every, *empty)

    @property
    def jobs(self) -> int:
        """Number of jobs."""
        return len(self.start) - 1

    def validate(self) -> None:
        """Refuse numbers and shapes that no solver can read.

        InputError for values that are NaN or infinite, offsets or shapes that do not fit, or a job
        that must run and has no option.
        """
        place = "round"
        for name in ("value", "use", "capacity", "block_value", "block_use"):
            array = getattr(self, name)
            if np.count_nonzero(np.isfinite(array)) < array.size:
                where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
                raise InputError(
                    f"{place}: {name}{list(where)}", f"{array[where]}", "a finite number"
                )
        shapes = (len(self.names), len(self.value))
        if self.use.shape != shapes or self.capacity.shape != shapes[:1]:
            raise InputError(place, f"use of shape {self.use.shape}", f"shape {shapes}")
        counts = self.start[1:] - self.start[:-1]
        covered = self.start[0] == 0 and self.start[-1] == len(self.value)
        if not covered or np.count_nonzero(counts < 0):
            raise InputError(place, "offsets that do not cover the options", "ascending offsets")
        empty = (self.must & (counts == 0)).nonzero()[0]
        if len(empty):
            raise InputError(
                f"{place}: job {int(empty[0])}", "no option", "at least one: it must run"
            )

    def objective(self, chosen: Rows, blocks: Floats) -> float:
        """Return the value of an answer: (J,) each job's option, -1 for none, and (B,) blocks."""
        rows = chosen[chosen >= 0]
        return float(self.value[rows].sum() + self.block_value @ blocks)

    def excess(self, chosen: Rows, blocks: Floats) -> Floats:
        """Return (R,) by how much an answer exceeds each capacity (negative: what is left)."""
        rows = chosen[chosen >= 0]
        used: Floats = self.use[:, rows].sum(axis=1) + self.block_use @ blocks - self.capacity
        return used
