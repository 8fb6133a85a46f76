"""The effects of faults: the effective run time of a job, and the times when nodes are off."""

from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ronda.instances.base import Floats, Ints
from ronda.instances.instance import Faults, Outage
from ronda.instances.job import Costs
from ronda.instances.schedule import Failure, Segment
from ronda.instances.violation import Fault, Violation


class World:
    """The faults of an instance per node, and the failures that a schedule claims per job."""

    def __init__(self, faults: Faults, failures: tuple[Failure, ...]) -> None:
        self.retries = faults.retries
        self._slow: defaultdict[int, list[tuple[float, float, float]]] = defaultdict(list)
        for slow in faults.stragglers:
            self._slow[slow.node].append((slow.start_s, slow.end_s, slow.speed))
        self._outages: defaultdict[int, dict[float, Outage]] = defaultdict(dict)
        for outage in faults.outages:
            self._outages[outage.node][outage.start_s] = outage
        self._claims: defaultdict[str, dict[float, Failure]] = defaultdict(dict)
        for failure in failures:
            self._claims[failure.job][failure.time_s] = failure

    def seconds(self, segment: Segment, until_s: float) -> float:
        """Return the seconds at full speed that give a segment's progress up to `until_s`.

        The result is the integral of the speed of the slowest node in the placement.
        """
        since_s = segment.resume_s
        slow = [s for node, _ in segment.placement for s in self._slow.get(node, ())]
        slow = [(a, b, v) for a, b, v in slow if a < until_s and b > since_s]
        if not slow:
            return until_s - since_s
        inside = {t for a, b, _ in slow for t in (a, b) if since_s < t < until_s}
        times = [since_s, *sorted(inside), until_s]
        total = 0.0
        for start_s, end_s in pairwise(times):
            speeds = [v for a, b, v in slow if a <= start_s < b]
            total += (end_s - start_s) * min(speeds, default=1.0)
        return total

    def claim(self, job: str, segment: Segment) -> Failure | None:
        """Return the failure that the schedule claims at the end of a job's segment."""
        return self._claims.get(job, {}).get(segment.end_s)

    def unmatched(self, ends: dict[str, set[float]]) -> list[Violation]:
        """Return the claimed failures at times when no segment of the job ends."""
        return [
            Violation("failure", f"job {job}", f"fails at {time_s:.9g} s, but runs on or not then")
            for job, claims in self._claims.items()
            for time_s in sorted(claims.keys() - ends.get(job, set()))
        ]

    def outage(self, segment: Segment) -> Outage | None:
        """Return an outage that begins on one of the segment's nodes at its end, failures first."""
        found = [self._outages.get(n, {}).get(segment.end_s) for n, _ in segment.placement]
        here = [outage for outage in found if outage is not None]
        return min(here, key=lambda o: o.notice_s is not None, default=None)

    def cause(self, segment: Segment, claim: Failure | None, *, own: bool) -> list[Fault]:
        """Return the faults in the claim that a segment ends in a failure, or in its absence.

        The job fails on its `own` if it has reached the work at which it is due to fail.
        """
        outage = self.outage(segment)
        broken = outage is not None and outage.notice_s is None
        if claim is None:
            why = "a node of it fails" if broken else "it fails" if own else ""
            message = f"goes on as if nothing had been at {segment.end_s:.9g} s, when {why}"
            return [Fault("failure", message)] if why else []
        if claim.node is None:
            message = f"fails at {segment.end_s:.9g} s, but not by itself"
            return [] if own else [Fault("failure", message)]
        nodes = [n for n, _ in segment.placement]
        hit = self._outages.get(claim.node, {}).get(segment.end_s)
        if claim.node in nodes and hit is not None and hit.notice_s is None:
            return []
        return [Fault("failure", f"node {claim.node} does not fail at {segment.end_s:.9g} s")]


def saved_s(costs: Costs, segment: Segment) -> float:
    """Return the seconds of progress up to the last checkpoint of a segment."""
    seconds = segment.end_s - segment.resume_s
    every = costs.checkpoint_s
    return float(np.floor(seconds / every)) * every if every else seconds


class Off(NamedTuple):
    """The F periods in which nodes are off, that is out of service with no GPU in use."""

    node: Ints
    start_s: Floats
    end_s: Floats


def off_times(
    faults: Faults, used: dict[int, list[tuple[float, int]]], end_s: float
) -> tuple[Off, list[Violation]]:
    """Return the periods in which nodes are off, and the violations of drains.

    Periods are cut at the end of the schedule. `used` maps each node to pairs (time, GPUs in use
    from that time on), ascending in time.
    """
    rows, found = [], []
    for outage in faults.outages:
        start_s = outage.start_s
        if outage.notice_s is not None and not outage.open:
            steps = used.get(outage.node, [])
            start_s, grown_s = _drained(outage, steps)
            if grown_s is not None:
                message = f"more GPUs in use from {grown_s:.9g} s, while it is drained"
                found.append(Violation("drain", f"node {outage.node}", message))
        if start_s < end_s:
            rows.append((outage.node, start_s, min(outage.end_s, end_s)))
    table = np.array(rows, dtype=float).reshape(-1, 3)
    return Off(table[:, 0].astype(np.int64), table[:, 1], table[:, 2]), found


def _drained(outage: Outage, steps: list[tuple[float, int]]) -> tuple[float, float | None]:
    """Return when a drained node goes off, and when more of its GPUs first come into use."""
    before = max((s for s in steps if s[0] < outage.known_s), default=(0.0, 0))[1]
    off_s = outage.known_s if before == 0 else outage.start_s
    for time_s, gpus in steps:
        if outage.known_s <= time_s < outage.start_s:
            if gpus > before:
                return outage.start_s, time_s
            if gpus == 0 and before > 0:
                off_s = time_s
            before = gpus
    return off_s, None
