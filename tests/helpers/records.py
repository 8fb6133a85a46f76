"""Records of rounds in which nothing happens but what a test says."""

from ronda.instances.plan import SolutionStatus, StopReason
from ronda.instances.schedule import RoundRecord


def record(now_s=0.0, **fields):
    """Return the record of a round; `fields` are those that differ."""
    quiet = {
        "waiting": 0,
        "running": 0,
        "started": 0,
        "stopped": 0,
        "changed": 0,
        "objective": None,
        "bound": None,
        "stop": StopReason.COMPLETE,
        "status": SolutionStatus.FEASIBLE,
        "solve_s": 0.0,
        "overhead_s": 0.0,
        "overrun": False,
        "power_w": 0.0,
    }
    return RoundRecord(now_s=now_s, **quiet | fields)
