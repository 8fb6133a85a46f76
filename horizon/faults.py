"""What breaks while an instance is driven: which nodes are out of service or slow, and when next.

The driver's alone: rounds show the GPUs that are out of service (`Cluster.out`) and what has been
measured, no more.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from ronda.instances.instance import Faults, Outage, Straggler
from ronda.instances.job import Allocation

Kind = Literal["repaired", "at speed", "drains", "out", "slow"]
ORDER: tuple[Kind, ...] = ("repaired", "at speed", "drains", "out", "slow")
"""In which order what happens at the same time happens."""


class Event(NamedTuple):
    """Something happens to a node."""

    time_s: float
    rank: int  # of the kind, in `ORDER`
    node: int
    fault: Outage | Straggler

    @property
    def kind(self) -> Kind:
        """What happens."""
        return ORDER[self.rank]


class FaultState:
    """The faults of an instance as time goes by, and the speeds of nodes that are slow now."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.speed: dict[int, float] = {}
        events = [event for fault in faults.outages for event in _outage(fault)]
        events += [event for fault in faults.stragglers for event in _straggler(fault)]
        self._events = sorted(events, key=lambda e: e[:3])
        self._next = 0

    @property
    def next_s(self) -> float:
        """When something happens to a node next."""
        left = self._next < len(self._events)
        return self._events[self._next].time_s if left else float("inf")

    def until(self, now_s: float) -> Iterable[Event]:
        """Yield what has happened by now, in order, and pass on."""
        while self.next_s <= now_s:
            self._next += 1
            yield self._events[self._next - 1]

    def silent(self, now_s: float) -> bool:
        """Return whether nothing is measured now."""
        return any(start_s <= now_s < end_s for start_s, end_s in self.faults.silences)

    def speed_of(self, allocation: Allocation) -> float:
        """Return the speed of a job now as a fraction of the usual: that of its slowest node."""
        if not self.speed:
            return 1.0
        return min(self.speed.get(node, 1.0) for node, _ in allocation.placement)


def _outage(fault: Outage) -> Iterable[Event]:
    if fault.notice_s is not None:
        yield Event(fault.known_s, ORDER.index("drains"), fault.node, fault)
    yield Event(fault.start_s, ORDER.index("out"), fault.node, fault)
    yield Event(fault.end_s, ORDER.index("repaired"), fault.node, fault)


def _straggler(fault: Straggler) -> Iterable[Event]:
    yield Event(fault.start_s, ORDER.index("slow"), fault.node, fault)
    yield Event(fault.end_s, ORDER.index("at speed"), fault.node, fault)
