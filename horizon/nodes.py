"""The driver's view of nodes: which nodes sleep, wake up or are off, and their draw."""

from collections.abc import Collection, Mapping, Sequence

from ronda.horizon.energy import Meter
from ronda.instances.check.sharing import distinct
from ronda.instances.cluster import Topology
from ronda.instances.job import Allocation


class NodeStates:
    """The nodes that sleep, wake up or are off, with start times; all other nodes are awake.

    Attributes
    ----------
    asleep, off
        The start times by node. Nodes that are off are out of service and draw nothing.
    waking
        The start and the end of the wake-up, by node.
    draining
        Nodes that accept no more jobs.
    leaving
        The times at which nodes go out of service that accept jobs until then.
    ready_s
        The time from which each node could run jobs after it last woke or went off.
    sleeps
        Finished sleeps: node, start and end.
    meter
        The energy used so far, and the current draw.
    """

    def __init__(self, topology: Topology) -> None:
        self.meter = Meter(topology)
        self.asleep: dict[int, float] = {}
        self.off: dict[int, float] = {}
        self.waking: dict[int, tuple[float, float]] = {}
        self.draining: set[int] = set()
        self.leaving: dict[int, float] = {}
        self.ready_s = [0.0] * len(topology.node_gpus)
        self.sleeps: list[tuple[int, float, float]] = []
        self._wake_s: list[float] = topology.wake_s.tolist()
        self._gpus: list[int] = topology.node_gpus.tolist()

    def advance(self, now_s: float) -> None:
        """End the wake-ups that are over."""
        for node, (_, ready_s) in list(self.waking.items()):
            if ready_s <= now_s:
                self._end_waking(node, now_s)

    def sleep(self, target: set[int], now_s: float) -> None:
        """Put the `target` nodes to sleep, and wake all other sleeping nodes."""
        for node in sorted(self.asleep.keys() - target):
            self._end_sleep(node, now_s)
            self.ready_s[node] = now_s + self._wake_s[node]
            if self.ready_s[node] > now_s and self.meter.wake_w[node]:
                self.waking[node] = (now_s, self.ready_s[node])
        for node in sorted(target - self.asleep.keys()):
            if node in self.waking:
                self._end_waking(node, now_s)
            self.asleep[node] = now_s
            self.meter.watts -= self.meter.saved_w(node)

    def go_off(self, node: int, now_s: float) -> None:
        """Take a node without jobs out of service, so that it draws nothing."""
        if node in self.asleep:
            self._end_sleep(node, now_s)
        if node in self.waking:
            self._end_waking(node, now_s)
        self.ready_s[node] = now_s
        self.off[node] = now_s
        self.meter.watts -= self.meter.idle_w(node)

    def come_back(self, node: int, now_s: float) -> None:
        """Return a node to service, so that it draws power and can run jobs again."""
        self.meter.off(node, self.off.pop(node), now_s)
        self.meter.watts += self.meter.idle_w(node)

    def close(self, now_s: float) -> None:
        """End all open sleeps, wake-ups and times out of service."""
        for node in sorted(self.off):
            self.come_back(node, now_s)
        for node in sorted(self.asleep):
            self._end_sleep(node, now_s)
        for node in sorted(self.waking):
            self._end_waking(node, now_s)

    def _end_sleep(self, node: int, now_s: float) -> None:
        since_s = self.asleep.pop(node)
        self.meter.watts += self.meter.saved_w(node)
        if now_s > since_s:
            self.meter.sleep(node, since_s, now_s)
            self.sleeps.append((node, since_s, now_s))

    def _end_waking(self, node: int, now_s: float) -> None:
        since_s, ready_s = self.waking.pop(node)
        self.meter.wake(node, min(ready_s, now_s) - since_s)

    def hold_from_s(self, allocation: Allocation, now_s: float) -> float:
        """Return the time from which all nodes of an allocation are awake, but not before now."""
        return max(now_s, *(self.ready_s[node] for node, _ in allocation.placement))

    def out(self, held: Mapping[str, Allocation]) -> tuple[tuple[int, int], ...]:
        """Return the GPUs out of service by node (see `out_of_service`)."""
        return out_of_service(self._gpus, self.off, self.draining, held)

    def waking_w(self) -> float:
        """Return the draw of waking nodes on top of their idle power."""
        return sum(self.meter.wake_w[node] for node in self.waking)

    def owed_j(self, now_s: float) -> float:
        """Return the energy that current wake-ups will still use."""
        return sum(
            self.meter.wake_w[node] * (ready_s - now_s)
            for node, (_, ready_s) in self.waking.items()
        )

    def used_j(self, time_s: float) -> float:
        """Return the energy used by `time_s`, which is between now and the next event."""
        waking = [(node, *times) for node, times in self.waking.items()]
        return self.meter.used_j(time_s, self.asleep.items(), waking, self.off.items())


def out_of_service(
    gpus: Sequence[int],
    off: Collection[int],
    draining: Collection[int],
    held: Mapping[str, Allocation],
) -> tuple[tuple[int, int], ...]:
    """Return the GPUs out of service by node: all if it is off, unheld ones if it is draining."""
    left = {node: 0 for node in draining if node not in off}
    for allocation in distinct(held.values()) if left else ():
        for node, n in allocation.placement:
            if node in left:
                left[node] += n
    gone = {node: gpus[node] - left.get(node, 0) for node in {*off, *left}}
    return tuple(sorted((node, n) for node, n in gone.items() if n))
