"""The outcome of a sleep controller on a demand series: nodes, changes, waiting and energy."""

from dataclasses import dataclass

import numpy as np

from ronda.instances.base import Floats, Ints
from ronda.instances.demand import Demand
from ronda.instances.models.power import NodeDraw
from ronda.systems.helios.ces import WARM_UP


@dataclass(frozen=True, slots=True, kw_only=True)
class SleepOutcome:
    """The figures of a controller, beginning with those of the artifact.

    Attributes
    ----------
    mean_sleeping_nodes
        Mean number of sleeping nodes.
    wakeups_per_day, nodes_per_wakeup
        Number of steps per day with more awake nodes than the step before, and how many more.
    changes_per_day, mean_change_nodes, median_change_nodes
        Number of steps per day that change the number of awake nodes, and by how many nodes.
    utilisation_before, utilisation_after
        Mean ratio of needed to all nodes, and of needed to awake nodes.
    lack_intervals, lack_node_intervals
        Number of steps that begin with too few awake nodes, and how many nodes are missing in all.
    waiting_intervals, waiting_node_s
        Number of steps that need a node before it has woken, and the total node-seconds of waiting.
    idle_j, asleep_j, wake_j
        Energy of awake nodes without jobs, of sleeping nodes, and of waking nodes.
    energy_j, saved_j
        Sum of these energies, and the energy saved compared with no sleep.
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
    """Return the outcome for a series of keeping `active` (T,) nodes awake.

    As in the artifact, changes in the first `WARM_UP` steps do not count, and nodes wake at once.
    Only waiting and energy account for the time that nodes take to wake.
    """
    needed, total = series.needed_nodes, series.total_nodes
    change = np.diff(active)[WARM_UP - 1 :]
    changes, wakes = np.abs(change[change != 0]), change[change > 0]
    lack = np.maximum(needed[WARM_UP:] - active[WARM_UP - 1 : -1], 0)
    # Nodes begin to wake at the start of the step in which they become active. The nodes woken last
    # go to sleep first, so those ready are the least of `active` over the last `wake_s`.
    whole, part = divmod(draw.wake_s / series.step_s, 1.0)
    later = _least(active, int(whole))
    first = _least(active, int(whole) + 1)
    lack_first, lack_later = np.maximum(needed - first, 0), np.maximum(needed - later, 0)
    waiting_s = np.asarray(series.step_s * (part * lack_first + (1 - part) * lack_later))
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


def _least(active: Ints, back: int) -> Ints:
    """Return the minimum of each step and the `back` steps before it, shape (T,)."""
    padded = np.concatenate([np.full(back, active[0]), active])
    windows = np.lib.stride_tricks.sliding_window_view(padded, back + 1)
    return np.asarray(windows.min(axis=1))


def _part(needed: Ints, nodes: Ints) -> Floats:
    """Return needed nodes divided by `nodes`, at most 1; the result is 1 where there is no node."""
    return np.asarray(np.minimum(needed, nodes) / np.maximum(nodes, 1) + (nodes == 0))


def _mean(values: Ints | Floats) -> float:
    return float(values.mean()) if len(values) else 0.0
