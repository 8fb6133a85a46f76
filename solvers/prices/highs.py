"""HiGHS as the engine uses it: silent, on one thread, and within the time that is left."""

from typing import Any

import highspy


def silent(**options: Any) -> highspy.Highs:
    """Return a solver on one thread that prints nothing, with options by HiGHS's names."""
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in {"output_flag": False, "threads": 1, **options}.items():
        solver.setOptionValue(name, value)
    return solver


def run(solver: highspy.Highs, seconds: float) -> highspy.HighsModelStatus:
    """Let a solver go on for some seconds at most; returns why it stopped."""
    # HiGHS counts the time of all runs together.
    solver.setOptionValue("time_limit", solver.getRunTime() + seconds)
    solver.run()
    return solver.getModelStatus()
