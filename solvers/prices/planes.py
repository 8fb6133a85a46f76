"""The lower model of a convex function: the highest of its cutting planes, and where it is lowest.

With one variable two planes say all: those at the ends of the bracket around the minimum. With
more a small LP in HiGHS finds the lowest point.
"""

import highspy
import numpy as np

from ronda.instances.arrays import Floats


class Line:
    """The lower model of a function of one variable, without a solver.

    Of the points so far, ``left`` is the rightmost one where the function falls and ``right`` the
    leftmost one where it does not. Between them no other plane is above both of theirs: these
    are tangents of a convex function. Outside, theirs are still below the function.
    """

    def __init__(self) -> None:
        self._left: tuple[float, float, float] | None = None  # point, value, slope
        self._right: tuple[float, float, float] | None = None

    def add(self, point: Floats, value: float, slope: Floats) -> None:
        """Add the tangent ``value + slope (p - point)``."""
        tangent = (float(point[0]), value, float(slope[0]))
        if tangent[2] < 0:
            if self._left is None or tangent[0] >= self._left[0]:
                self._left = tangent
        elif self._right is None or tangent[0] <= self._right[0]:
            self._right = tangent

    def lowest(self, low: Floats, high: Floats) -> tuple[float, Floats]:
        """Return the least value of the model in an interval, and where."""
        left, right, least, most = self._left, self._right, float(low[0]), float(high[0])
        if left is None or right is None:
            at = most if right is None else least
        else:
            rise, fall = right[2], left[2]
            at = (left[1] - fall * left[0] - right[1] + rise * right[0]) / (rise - fall)
        at = min(max(at, least), most)
        value = max(v + s * (at - p) for p, v, s in filter(None, (left, right)))
        return value, np.array([at])


class Planes:
    """The lower model of a function of several variables, as a small LP in HiGHS.

    Values are divided by the ceiling, the greatest value that any variable may take, so that the LP
    is well scaled whatever the unit of value.
    """

    def __init__(self, variables: int, ceiling: float) -> None:
        self._n, self._unit = variables, ceiling
        self._lp = highspy.Highs()  # type: ignore[no-untyped-call]
        self._lp.setOptionValue("output_flag", False)
        self._lp.setOptionValue("threads", 1)
        self._lp.setOptionValue("primal_feasibility_tolerance", 1e-10)
        self._lp.setOptionValue("dual_feasibility_tolerance", 1e-10)
        for _ in range(variables):
            self._lp.addVar(0.0, 1.0)
        self._lp.addVar(-highspy.kHighsInf, highspy.kHighsInf)
        self._lp.changeColCost(variables, 1.0)

    def add(self, point: Floats, value: float, slope: Floats) -> None:
        """Add the plane ``value + slope . (p - point)``."""
        offset = (value - float(slope @ point)) / self._unit
        columns = np.arange(self._n + 1, dtype=np.int32)
        row = np.append(-slope, 1.0)
        self._lp.addRow(offset, highspy.kHighsInf, self._n + 1, columns, row)

    def lowest(self, low: Floats, high: Floats) -> tuple[float, Floats]:
        """Return the least value of the model in a box, and where."""
        unit, columns = self._unit, np.arange(self._n, dtype=np.int32)
        self._lp.changeColsBounds(self._n, columns, low / unit, high / unit)
        self._lp.run()
        solution = np.array(self._lp.getSolution().col_value)
        return float(solution[-1]) * self._unit, np.clip(solution[:-1] * self._unit, low, high)
