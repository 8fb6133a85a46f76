"""Aliases of the array types that all layers use."""

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
