"""The judgement of a queue: what was waited, which part of it had which cause, and how certain.

The causes telescope. Let W be what was waited; same(P), policy(P) and best(P) the waiting of
replays in the proven space P in the recorded order, under a policy that sees no run times, and in
the best order found; best(F) that of the best order in the full space F; and bound(F) a lower
bound in F. Then

    W = (W - same(P)) + (same(P) - policy(P)) + (policy(P) - best(P)) + (best(P) - best(F))
        + (best(F) - bound(F)) + bound(F).

A single difference may be negative, such as that of a scheduler that knew better than the policy.
"""

from collections.abc import Mapping
from dataclasses import dataclass

DELAY = "delay"
KNOWN_ORDER = "known order"
FORESIGHT = "foresight"
UNPROVEN = "unproven capacity"
GAP = "gap of the bound"
UNAVOIDABLE = "unavoidable"
TOPOLOGY = "topology"
CAUSES = (DELAY, KNOWN_ORDER, FORESIGHT, UNPROVEN, GAP, UNAVOIDABLE)
"""The causes that add up to what was waited, in order; `TOPOLOGY` is a part of them."""

PROVEN, FULL, POOLED = "proven", "full", "pooled"
"""The spaces of replays: what the log proves to be free, all of the cluster in service, and the
proven space as if it was on one node."""


@dataclass(frozen=True, slots=True)
class WaitCause:
    """A cause of waiting.

    Attributes
    ----------
    name
        One of `CAUSES`, or `TOPOLOGY`.
    wait_s
        Weighted seconds of all jobs together; negative if the cluster did better than this cause
        would have it.
    certain
        One sentence on what makes it certain, or on what it rests.
    """

    name: str
    wait_s: float
    certain: str


@dataclass(frozen=True, slots=True)
class ReplayedQueue:
    """The jobs of a queue, started once more in some order.

    Attributes
    ----------
    name
        Name of the order or the policy, such as ``same order`` or ``shortest first``.
    space
        `PROVEN`, `FULL` or `POOLED`.
    foresight
        Whether the order follows from run times that nobody knew.
    wait_s
        What the jobs waited; None if not all of them could be placed, and the replay does not
        count.
    placed
        Number of jobs placed.
    starts
        Start in seconds from the instance's start, and indices of the nodes, by job.
    """

    name: str
    space: str
    foresight: bool
    wait_s: float | None
    placed: int
    starts: Mapping[str, tuple[float, tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class QueueSeen:
    """A queue of a log that can be judged.

    Attributes
    ----------
    name
        A partition, several that share nodes as in ``a+b``, or a partition and an account as in
        ``a/physics``.
    jobs
        Number of its jobs that started after the log's beginning.
    nodes
        Number of nodes on which they ran.
    waited_s
        What they waited.
    """

    name: str
    jobs: int
    nodes: int
    waited_s: float


@dataclass(frozen=True)
class Judgement:
    """What the waiting of a queue was due to.

    Times are seconds from the instance's start. A wait counts from the moment from which the job
    could start, or from the beginning of the window if that is later.

    Attributes
    ----------
    queue
        Name of the queue.
    jobs
        Number of jobs judged: those that started within the window.
    window_s
        The first and the last second of the window.
    trusted_why
        One sentence on why the window ends there.
    proven
        The share of the queue's nodes that is proven to be free or in use, from each of some times
        on.
    waited_s
        What the jobs waited.
    causes
        The causes of `CAUSES`, which add up to `waited_s`, and `TOPOLOGY` where it was asked for.
    hindsight
        The least and the most that could have been spared by whoever knew all run times.
    same_knowledge
        The least and the most that could have been spared by whoever knew what the scheduler knew.
    replays
        All replays.
    energy_j
        Energy of the judged jobs; None if the log does not have it.
    unknown
        What the log does not tell, one sentence each.
    """

    queue: str
    jobs: int
    window_s: tuple[float, float]
    trusted_why: str
    proven: tuple[tuple[float, float], ...]
    waited_s: float
    causes: tuple[WaitCause, ...]
    hindsight: tuple[float, float]
    same_knowledge: tuple[float, float]
    replays: tuple[ReplayedQueue, ...]
    energy_j: float | None
    unknown: tuple[str, ...]

    @property
    def best(self) -> ReplayedQueue:
        """The replay in proven space that waits the least; the search places every job."""
        own = [each for each in self.replays if each.space == PROVEN and each.wait_s is not None]
        return min(own, key=lambda each: each.wait_s or 0.0)
