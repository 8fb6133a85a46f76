"""A separable problem in units of its own, so that the user's units cannot change the answer.

Watts or kilowatts, GPUs or thousands of them: the numbers differ by a factor and, in the last bits,
by rounding. Solvers branch on such bits. Here every resource is measured in its smallest use, or in
the part of it of which all uses are multiples (a GPU, say), and values in the largest one; the
quotients keep 30 bits, which rounding does not reach. So whole numbers stay exact.
"""

from dataclasses import dataclass, replace

import numpy as np

from ronda.formulations.separable import Floats, Separable

BITS = 30
"""Bits of precision that are kept: one part in 10^9."""

MOST_PARTS, SAMPLE = 30, 1000
"""Parts of the smallest use that are tried as a unit, on so many amounts before on all."""


@dataclass(frozen=True, slots=True)
class Units:
    """The units of a normalised problem.

    Attributes
    ----------
    value
        What one unit of value is in the user's.
    use
        (R,) what one unit of each resource is.
    """

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
    units = Units(
        value=max(_largest(problem.value), _largest(problem.block_value)) or 1.0,
        use=np.array(
            [
                _unit(np.concatenate([use, block_use, [capacity]]))
                for use, block_use, capacity in zip(
                    problem.use, problem.block_use, problem.capacity, strict=True
                )
            ]
        ),
    )
    own = replace(
        problem,
        value=_kept(problem.value / units.value),
        use=_kept(problem.use / units.use[:, None]),
        capacity=_kept(problem.capacity / units.use),
    )
    if len(problem.block_value):
        own = replace(
            own,
            block_value=_kept(problem.block_value / units.value),
            block_use=_kept(problem.block_use / units.use[:, None]),
        )
    return own, units


def _largest(values: Floats) -> float:
    return float(np.abs(values).max(initial=0.0))


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
    return bool((np.abs(numbers - np.rint(numbers)) <= 1e-12 * numbers).all())


def _kept(values: Floats) -> Floats:
    """Round to `BITS` bits."""
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.rint(mantissa * 2.0**BITS), exponent - BITS))
