"""The judgement of one queue of a log, from the proof of its space to the causes of its waiting."""

from collections.abc import Callable

from ronda.instances.instance import Instance
from ronda.instances.traces.recorded import Recorded
from ronda.questions.judge.judgement import Judgement, QueueSeen


def queues_seen(instance: Instance, recorded: Recorded) -> tuple[QueueSeen, ...]:
    """Return the queues of a log, those that waited the most first."""
    raise NotImplementedError


def judge(
    instance: Instance,
    recorded: Recorded,
    *,
    cluster_known: bool,
    queue: str | None = None,
    since_s: float | None = None,
    trust: float = 0.9,
    steps: int = 2000,
    topology: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Judgement:
    """Return the judgement of a queue of a log.

    Parameters
    ----------
    instance, recorded
        The instance that is made of the log, and what ran.
    cluster_known
        Whether the instance's cluster was given, and not inferred from the log.
    queue
        Name of a `QueueSeen`; None for the partitions that waited the most.
    since_s
        The first second from which the log has every job that ended; None for the first end in it.
    trust
        The window ends where less than this share of the queue's nodes is proven; 0 judges all of
        the log.
    steps
        Number of steps of the search for a better order in hindsight.
    topology
        Whether the recorded order is replayed on one node as well.
    progress
        Is told in words how far the work is.

    Raises
    ------
    InputError
        If the queue is none of the log's, or if no job of it started in the window.
    """
    raise NotImplementedError
