"""The judgement of a queue: what was waited, which part of it had which cause, and how certain.

The causes telescope. Let W be what was waited; same(P), policy(P) and best(P) the waiting of
replays in the proven space P in the recorded order, under a policy that sees no run times, and in
the best order tried; best(F) that of the best order in the full space F; and bound(F) a lower
bound in F. Then

    W = (W - same(P)) + (same(P) - policy(P)) + (policy(P) - best(P)) + (best(P) - best(F))
        + (best(F) - bound(F)) + bound(F).

A single difference may be negative, such as that of a scheduler that knew better than the policy.
"""

from collections.abc import Mapping
from dataclasses import dataclass

GAP, UNAVOIDABLE, TOPOLOGY = "gap of the bound", "unavoidable", "topology"
CAUSES = ("delay", "known order", "foresight", "unproven capacity", GAP, UNAVOIDABLE)
"""The causes that add up to what was waited, in order; `TOPOLOGY` is a part of them."""

PROVEN, FULL, POOLED = "proven", "full", "pooled"
"""The spaces of replays: what the log proves to be free, all of the cluster in service, and the
proven space as if it was on one node."""


@dataclass(frozen=True, slots=True)
class WaitCause:
    """A cause of waiting, one of `CAUSES` or `TOPOLOGY`, and a sentence on what it rests.

    `wait_s` are weighted seconds of all jobs together; they are negative if the cluster did better
    than this cause would have it.
    """

    name: str
    wait_s: float
    certain: str


@dataclass(frozen=True, slots=True)
class ReplayedQueue:
    """The jobs of a queue, started once more by an order or a policy in a space.

    With `foresight` the order follows from run times that nobody knew. `starts` has the start in
    seconds from the instance's start and the nodes of each job that was placed; `wait_s` is
    infinite, and the replay does not count, if these are not all.
    """

    name: str
    space: str
    foresight: bool
    wait_s: float
    starts: Mapping[str, tuple[float, tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class QueueSeen:
    """A queue that can be judged: its jobs that started after the log's beginning, and its nodes.

    It is a partition, several that share nodes as in ``a+b``, or a partition and an account as in
    ``a/physics``.
    """

    name: str
    jobs: int
    nodes: int
    waited_s: float


@dataclass(frozen=True)
class Judgement:
    """The causes of the waiting of a queue.

    Times are seconds from the instance's start. A wait counts from the moment from which the job
    could start, or from the beginning of the window if that is later.

    Attributes
    ----------
    jobs, window_s, trusted_why
        The number of jobs, all that started within the window, its ends, and a sentence on why it
        ends there.
    causes
        The causes of `CAUSES`, which add up to `waited_s`, and `TOPOLOGY` where it was asked for.
    hindsight, same_knowledge
        The least and the most that could have been spared by whoever knew all run times, and by
        whoever knew what the scheduler knew.
    energy_j
        Joules that the nodes of the jobs drew for them. None if the log does not tell it of all.
    rests_on, unknown
        What is counted in which way, and what the log does not tell, one sentence each.
    """

    queue: str
    jobs: int
    window_s: tuple[float, float]
    trusted_why: str
    waited_s: float
    causes: tuple[WaitCause, ...]
    hindsight: tuple[float, float]
    same_knowledge: tuple[float, float]
    replays: tuple[ReplayedQueue, ...]
    energy_j: float | None
    rests_on: tuple[str, ...]
    unknown: tuple[str, ...]
