"""The outcome of a controller of sleep on a demand series: nodes, changes, waiting, energy."""

from dataclasses import dataclass

import numpy as np

from ronda.instances.arrays import Floats, Ints
from ronda.instances.demand import Demand
from ronda.instances.errors import InputError
from ronda.systems.helios.ces import WARM_UP


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDraw:
    """The power of a node without jobs, and the time that it takes to wake.

    No source measured them on Helios: idle servers of eight GPUs are known to draw 800 W, and to
    boot in five minutes; cooling is not counted.

    Attributes
    ----------
    idle_w
        Watts of a node awake without jobs.
    sleep_w
        Watts of a node asleep.
    wake_s
        Seconds that a wake-up takes. Jobs that need the node wait; decisions are the same.
    wake_w
        Watts of a node that wakes.
    """

    idle_w: float = 800.0
    sleep_w: float = 20.0
    wake_s: float = 300.0
    wake_w: float = 800.0

    def __post_init__(self) -> None:
        """Refuse powers and times that cannot be."""
        for name in ("idle_w", "sleep_w", "wake_s", "wake_w"):
            value = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise InputError(name.replace("_", "-"), f"{value:g}", "0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class SleepOutcome:
    """The figures of a controller, those of the artifact first.

    Attributes
    ----------
    mean_sleeping_nodes
        Mean number of nodes that are not awake.
    wakeups_per_day, nodes_per_wakeup
        Steps with more nodes awake than the one before, and how many more.
    changes_per_day, mean_change_nodes, median_change_nodes
        Steps with another number of nodes awake, and by how many.
    utilisation_before, utilisation_after
        Mean of needed over all nodes, and over those awake.
    lack_intervals, lack_node_intervals
        Steps at whose start fewer nodes were awake than the step needs, and how many fewer.
    waiting_intervals, waiting_node_s
        Steps in which a node is needed before it has woken, and for how long in all.
    idle_j, asleep_j, wake_j
        Energy of nodes awake without jobs, asleep, and while they wake.
    energy_j, saved_j
        Their sum, and how much less it is than without any sleep.
    """

    mean_sleeping_nodes: float
    wakeups_per_day: float
    nodes_per_wakeup: float
    changes_per_day: float
    mean_change_nodes: float
    median_change_nodes: float
    utilisation_before: float
    utilisation_after: float
    lack_intervals: int
    lack_node_intervals: int
    waiting_intervals: int
    waiting_node_s: float
    idle_j: float
    asleep_j: float
    wake_j: float
    energy_j: float
    saved_j: float


def outcome(series: Demand, active: Ints, draw: NodeDraw) -> SleepOutcome:
    """Return the outcome of (T,) nodes awake for a series.

    As in the artifact, changes of the first `WARM_UP` steps are not counted, and nodes wake at
    once; waiting and energy count the time that they take to wake.
    """
    needed, total = series.needed_nodes, series.total_nodes
    change = np.diff(active)[WARM_UP - 1 :]
    changes, wakes = np.abs(change[change != 0]), change[change > 0]
    lack = np.maximum(needed[WARM_UP:] - active[WARM_UP - 1 : -1], 0)
    waiting_s = _waiting(needed, active, draw.wake_s, series.step_s)
    idle_j = draw.idle_w * series.step_s * float(np.maximum(active - needed, 0).sum())
    asleep_j = draw.sleep_w * series.step_s * float((total - active).sum())
    wake_j = draw.wake_w * draw.wake_s * float(wakes.sum())
    never_j = draw.idle_w * series.step_s * float((total - needed).sum())
    return SleepOutcome(
        mean_sleeping_nodes=float((total - active).mean()),
        wakeups_per_day=len(wakes) / series.days,
        nodes_per_wakeup=_mean(wakes),
        changes_per_day=len(changes) / series.days,
        mean_change_nodes=_mean(changes),
        median_change_nodes=float(np.median(changes)) if len(changes) else 0.0,
        utilisation_before=_mean(_part(needed, total)),
        utilisation_after=_mean(_part(needed, active)),
        lack_intervals=int((lack > 0).sum()),
        lack_node_intervals=int(lack.sum()),
        waiting_intervals=int((waiting_s > 0).sum()),
        waiting_node_s=float(waiting_s.sum()),
        idle_j=idle_j,
        asleep_j=asleep_j,
        wake_j=wake_j,
        energy_j=idle_j + asleep_j + wake_j,
        saved_j=never_j - idle_j - asleep_j - wake_j,
    )


def _waiting(needed: Ints, active: Ints, wake_s: float, step_s: float) -> Floats:
    """Return (T,) the node-seconds of each step for which nodes are needed before they have woken.

    Nodes wake from the start of the step in which they become active. What is ready after a time
    is the least number that was active since a wake-up's length before: the nodes woken last go to
    sleep first.
    """
    whole, part = divmod(wake_s / step_s, 1.0)
    later = _least(active, int(whole))
    first = _least(active, int(whole) + 1)
    lack_first, lack_later = np.maximum(needed - first, 0), np.maximum(needed - later, 0)
    return np.asarray(step_s * (part * lack_first + (1 - part) * lack_later))


def _least(active: Ints, back: int) -> Ints:
    """Return (T,) the least of each step and the `back` before it, the first one going back."""
    padded = np.concatenate([np.full(back, active[0]), active])
    windows = np.lib.stride_tricks.sliding_window_view(padded, back + 1)
    return np.asarray(windows.min(axis=1))


def _part(needed: Ints, nodes: Ints) -> Floats:
    """Return needed over all nodes, at most 1; 1 where there is no node."""
    return np.asarray(np.minimum(needed, nodes) / np.maximum(nodes, 1) + (nodes == 0))


def _mean(values: Ints | Floats) -> float:
    return float(values.mean()) if len(values) else 0.0
