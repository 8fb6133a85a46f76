"""Exact energy of a run: the cluster's power is constant between events."""

from collections.abc import Iterable

import numpy as np

from ronda.instances.budget import StepSeries
from ronda.instances.cluster import Topology
from ronda.instances.job import Option
from ronda.instances.schedule import Energy, Segment


class Meter:
    """The watts drawn now and the joules used so far.

    Joules are added up when a segment or a sleep ends. A reading adds the open ones, with jobs in
    the order of submission.

    Attributes
    ----------
    watts
        The draw of all nodes with their jobs, once every pause and wake-up is over.
    """

    def __init__(self, topology: Topology) -> None:
        self._idle_w = [pool.gpu_type.idle_w for pool in topology.pools]
        self._host_w: list[float] = topology.host_idle_w.tolist()
        self._sleep_w: list[float] = topology.sleep_w.tolist()
        self.wake_w: list[float] = topology.wake_w.tolist()  # on top of idle power
        self._node_gpus_w: list[float] = (topology.node_gpus * topology.gpu_idle_w).tolist()
        self._all_host_w = float(sum(self._host_w))
        self._all_gpus_w = float(sum(self._node_gpus_w))
        self.watts = self.awake_w = self._all_host_w + self._all_gpus_w  # all GPUs idle
        self._open = np.zeros((3, 0))  # rows: a job's place, watts beyond idle, start of progress
        self.busy_j = self.paused_j = self.held_idle_j = 0.0
        self.slept_host_j = self.slept_gpus_j = self.sleep_j = self.wake_j = 0.0

    def begin(self, place: int, option: Option, since_s: float, power: float = 1.0) -> None:
        """Begin a segment of a job that progresses from `since_s` on at `power` times its watts.

        `place` is the job's position in the order of submission.
        """
        watts = power * option.power_w - option.own_gpus * self._idle_w[option.pool]
        at = self._open[0].searchsorted(place)
        self._open = np.insert(self._open, at, (place, watts, since_s), axis=1)
        self.watts += watts

    def end(self, place: int, segment: Segment, power: float = 1.0) -> None:
        """End the segment of the job at the given position."""
        option = segment.option
        at = self._open[0].searchsorted(place)
        self.watts -= self._open.item(1, int(at))
        self._open = np.delete(self._open, at, axis=1)
        idle_w = option.own_gpus * self._idle_w[option.pool]
        self.busy_j += power * option.power_w * (segment.end_s - segment.resume_s)
        self.paused_j += idle_w * (segment.resume_s - segment.start_s)
        self.held_idle_j += idle_w * (segment.end_s - segment.start_s)

    def sleep(self, node: int, start_s: float, end_s: float) -> None:
        """Account for a finished sleep of a node."""
        self.sleep_j += self._sleep_w[node] * (end_s - start_s)
        self.off(node, start_s, end_s)

    def off(self, node: int, start_s: float, end_s: float) -> None:
        """Account for an interval in which a node was out of service."""
        self.slept_host_j += self._host_w[node] * (end_s - start_s)
        self.slept_gpus_j += self._node_gpus_w[node] * (end_s - start_s)

    def wake(self, node: int, seconds: float) -> None:
        """Account for a wake-up of a node that lasted `seconds`."""
        self.wake_j += self.wake_w[node] * seconds

    def saved_w(self, node: int) -> float:
        """Return the watts that a sleeping node saves."""
        return self._host_w[node] + self._node_gpus_w[node] - self._sleep_w[node]

    def idle_w(self, node: int) -> float:
        """Return the draw of a node without jobs."""
        return self._host_w[node] + self._node_gpus_w[node]

    def used_j(
        self,
        now_s: float,
        sleeping: Iterable[tuple[int, float]] = (),
        waking: Iterable[tuple[int, float, float]] = (),
        off: Iterable[tuple[int, float]] = (),
    ) -> float:
        """Return the joules that the cluster has used by `now_s` if nothing changes until then.

        `sleeping` and `off` are pairs (node, start), and `waking` are triples (node, start, end).
        """
        closed = self.busy_j + self.paused_j - self.held_idle_j
        closed += self.sleep_j - self.slept_host_j - self.slept_gpus_j
        _, watts, since_s = self._open
        extra = np.append(0.0, watts * np.maximum(0.0, now_s - since_s)).cumsum()[-1]
        saved = sum(self.saved_w(node) * (now_s - since) for node, since in sleeping)
        saved += sum(self.idle_w(node) * (now_s - since) for node, since in off)
        woken = sum(self.wake_w[k] * (min(now_s, ready) - since) for k, since, ready in waking)
        return float(self.awake_w * now_s + closed + self.wake_j + extra - saved + woken)

    def total(self, end_s: float) -> Energy:
        """Return the energy of the run from 0 to `end_s` by use; all segments must have ended."""
        return Energy(
            busy_j=self.busy_j,
            paused_j=self.paused_j,
            idle_gpu_j=self._all_gpus_w * end_s - self.held_idle_j - self.slept_gpus_j,
            host_j=self._all_host_w * end_s - self.slept_host_j,
            sleep_j=self.sleep_j,
            wake_j=self.wake_j,
        )


class Tally:
    """The integral of cluster power times a series per joule: the cost of energy, or its carbon."""

    def __init__(self, series: StepSeries) -> None:
        self.series = series
        self.total = 0.0
        self._until_s = self._used_j = 0.0

    def changes(self, until_s: float) -> list[float]:
        """Return the times up to `until_s` at which `advance` needs the energy used, ascending."""
        times, at = [], self._until_s
        while (change := self.series.next_change(at)) is not None and change < until_s:
            times.append(change)
            at = change
        return [*times, until_s]

    def advance(self, now_s: float, used_j: float) -> None:
        """Account for the energy since the last call; the series must be constant in between."""
        self.total += self.series.at(self._until_s) * (used_j - self._used_j)
        self._until_s, self._used_j = now_s, used_j
