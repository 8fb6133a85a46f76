"""The faults while an instance is driven: nodes out of service or slow, and the next event.

Only the driver knows them. Rounds show only the GPUs that are out of service (`Cluster.out`) and
the measurements.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from ronda.instances.instance import Faults, Outage, Straggler
from ronda.instances.job import Allocation

Kind = Literal["repaired", "at speed", "drains", "out", "slow"]
ORDER: tuple[Kind, ...] = ("repaired", "at speed", "drains", "out", "slow")
"""The order of events that happen at the same time."""


class Event(NamedTuple):
    """An event on a node."""

    time_s: float
    rank: int  # of the kind, in `ORDER`
    node: int
    fault: Outage | Straggler

    @property
    def kind(self) -> Kind:
        """The kind of the event."""
        return ORDER[self.rank]


class FaultState:
    """The faults of an instance over time, and the speeds of nodes that are slow now."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.speed: dict[int, float] = {}
        events = [event for fault in faults.outages for event in _outage(fault)]
        for slow in faults.stragglers:
            events += [Event(slow.start_s, ORDER.index("slow"), slow.node, slow)]
            events += [Event(slow.end_s, ORDER.index("at speed"), slow.node, slow)]
        self._events = sorted(events, key=lambda e: e[:3])
        self._next = 0

    @property
    def next_s(self) -> float:
        """The time of the next event on a node; infinity if there is none."""
        left = self._next < len(self._events)
        return self._events[self._next].time_s if left else float("inf")

    def until(self, now_s: float) -> Iterable[Event]:
        """Yield the events up to `now_s` in order, and move past them."""
        while self.next_s <= now_s:
            self._next += 1
            yield self._events[self._next - 1]

    def silent(self, now_s: float) -> bool:
        """Return whether no measurements are available now."""
        return any(start_s <= now_s < end_s for start_s, end_s in self.faults.silences)

    def speed_of(self, allocation: Allocation) -> float:
        """Return a job's current fraction of its usual speed, which its slowest node determines."""
        if not self.speed:
            return 1.0
        return min(self.speed.get(node, 1.0) for node, _ in allocation.placement)


def _outage(fault: Outage) -> Iterable[Event]:
    if fault.notice_s is not None:
        yield Event(fault.known_s, ORDER.index("drains"), fault.node, fault)
    yield Event(fault.start_s, ORDER.index("out"), fault.node, fault)
    yield Event(fault.end_s, ORDER.index("repaired"), fault.node, fault)
