"""The runs of jobs as a log recorded them, beside the instance that is made of the log."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One run of a job: from its start to its end, a requeue or a stop.

    Attributes
    ----------
    start_s, end_s
        Start and end, in seconds from the instance's start; a run may have started before it. The
        end is None if the job ran when the log ended.
    held
        Number of GPUs by node index, as in the instance's cluster. It is empty if the log does not
        name the nodes, or names others than the cluster has.
    state
        State in which the log says that the run ended, such as ``COMPLETED`` or ``NODE_FAIL``.
    suspended_s
        Seconds of the run in which the job was suspended: it held its GPUs without progress.
    energy_j
        Joules that its nodes drew for it; None if the log does not say.
    """

    start_s: float
    end_s: float | None
    held: Mapping[int, int]
    state: str
    suspended_s: float = 0.0
    energy_j: float | None = None


@dataclass(frozen=True)
class Recorded:
    """The recorded runs of all jobs of an instance.

    Attributes
    ----------
    runs
        The runs of each job in order of time, by id; the instance has a job for each id.
    until_s
        The last moment that the log tells of, in seconds from the instance's start.
    nodes
        Names of the cluster's nodes by index, as in the log; empty if they are not known.
    """

    runs: Mapping[str, tuple[RecordedRun, ...]]
    until_s: float
    nodes: Mapping[int, str] = field(default_factory=dict)
