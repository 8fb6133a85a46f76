"""The base class of all records in ronda's files (strict and frozen), number ranges, and arrays."""

from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Real numbers."""

Ints = NDArray[np.int64]
"""Whole numbers: counts, sizes, codes."""

Rows = NDArray[np.int64]
"""Whole numbers that index the rows of a table."""

Mask = NDArray[np.bool_]
"""A truth value for each element."""

Positive = Annotated[float, msgspec.Meta(gt=0)]
NonNegative = Annotated[float, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
Count = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Index = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Name = Annotated[str, msgspec.Meta(min_length=1)]


class Record(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """A frozen record in a ronda file, with unknown fields refused when it is read.

    Records that occur thousands of times in a round form no reference cycles. They are hidden from
    the garbage collector (``gc=False``), which saves up to a tenth of the time of a large decision.
    """
