"""A separable problem in units of its own, so that the user's units cannot change the answer.

Watts or kilowatts, GPUs or thousands of them: the numbers differ by a factor and, in the last bits,
by rounding. Solvers branch on such bits. Here every resource is measured in its smallest use, or in
the part of it of which all uses are multiples (a GPU, say), and values in the largest one; the
quotients keep 30 bits, which rounding does not reach. So whole numbers stay exact.
"""

import sys
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ronda.formulations.allocation.separable import Separable
from ronda.instances.arrays import Floats

Numbers = TypeVar("Numbers", float, Floats)

BITS = 30
"""Bits of precision that are kept: one part in 10^9."""

SPLIT = 2.0 ** (sys.float_info.mant_dig - BITS) + 1.0
"""The factor that moves all bits but these out of sight."""

MOST_PARTS, SAMPLE = 30, 1000
"""Parts of the smallest use that are tried as a unit, and amounts to try them on before all."""


@dataclass(frozen=True, slots=True)
class Units:
    """The units of a normalised problem in the user's: of value, and (R,) of each resource."""

    value: float
    use: Floats

    def prices(self, normalised: Floats) -> Floats:
        """Return prices in the user's units."""
        return np.asarray(normalised * self.value / self.use)

    def normalised_prices(self, prices: Floats) -> Floats:
        """Return the user's prices in these units."""
        return np.asarray(prices * self.use / self.value)


def normalise(problem: Separable) -> tuple[Separable, Units]:
    """Return a problem in units of its own, and these units."""
    options = len(problem.value)
    parts = (problem.use, problem.block_use, problem.capacity[:, None])
    amounts = np.concatenate(parts, axis=1)
    units = Units(
        value=max(_largest(problem.value), _largest(problem.block_value)) or 1.0,
        use=np.array([_unit(row) for row in amounts]),
    )
    amounts = kept(amounts / units.use[:, None])
    own = Separable(
        start=problem.start,
        value=kept(problem.value / units.value),
        use=amounts[:, :options],
        capacity=amounts[:, -1],
        names=problem.names,
        must=problem.must,
        block_value=kept(problem.block_value / units.value),
        block_use=amounts[:, options:-1],
        block_count=problem.block_count,
        block_integer=problem.block_integer,
    )
    return own, units


def _largest(values: Floats) -> float:
    return float(np.abs(values).max()) if len(values) else 0.0


def _unit(amounts: Floats) -> float:
    """Return the unit of a resource: all amounts are whole in it, or the smallest one is 1."""
    sizes = np.abs(amounts[amounts != 0])
    if not len(sizes):
        return 1.0
    smallest = float(sizes.min())
    for parts in range(1, MOST_PARTS + 1):
        factor = parts / smallest
        if _whole(sizes[:SAMPLE] * factor) and (len(sizes) <= SAMPLE or _whole(sizes * factor)):
            return smallest / parts
    return smallest


def _whole(numbers: Floats) -> bool:
    """Tell whether numbers are whole but for rounding."""
    return not np.count_nonzero(np.abs(numbers - np.rint(numbers)) > 1e-12 * numbers)


def kept(values: Numbers) -> Numbers:
    """Round to `BITS` bits (G. W. Veltkamp's splitting: T. J. Dekker, Numer. Math. 18, 1971)."""
    scaled = values * SPLIT
    return scaled - (scaled - values)
