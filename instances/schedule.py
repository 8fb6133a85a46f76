"""Schedules, the answers to instances: the segments of all jobs and a record of every round."""

from typing import TYPE_CHECKING, Any, Literal

from ronda.instances.base import Record
from ronda.instances.job import Allocation, Option
from ronda.instances.plan import SolutionStatus, StopReason

if TYPE_CHECKING:
    from pandas import DataFrame

RECORDED = "recorded"
"""The policy of a schedule that a log tells of: nobody decided it by the rules of the instance."""


class Segment(Record, frozen=True, kw_only=True, array_like=True):
    """A period in which a job held one allocation.

    Attributes
    ----------
    start_s, end_s
        Start and end of the segment.
    resume_s
        Time at which progress began, after the start or restart pause; ``end_s`` if it never began.
    done
        Work done in the segment, less the loss by a failure at its end.
    option
        Option with which the job ran.
    placement
        Pairs (node index, number of GPUs on the node).
    array
        Name of the array in which the job ran, which does not change in the segment; None if alone.
    parts
        The part of a GPU that the job held, as in `Allocation`.
    """

    start_s: float
    resume_s: float
    end_s: float
    done: float
    option: Option
    placement: tuple[tuple[int, int], ...]
    array: str | None = None
    parts: tuple[tuple[int, int, int], ...] = ()

    @property
    def held(self) -> Allocation:
        """The allocation that the job held."""
        return Allocation(
            option=self.option, placement=self.placement, array=self.array, parts=self.parts
        )


class JobOutcome(Record, frozen=True, kw_only=True):
    """The history of a job.

    Attributes
    ----------
    id, submit_s
        As in the instance.
    end_s
        Time at which it completed, or at which it was discarded or ended by a rule; None if the run
        was cut off before.
    segments
        Segments in which it held GPUs, in order of time.
    failed
        Whether a failure ended it for good with work left.
    discarded
        Whether the policy gave it up as a trial of a sweep with work left.
    ended_by
        The rule that ended it with work left: its time limit, or a dependency that can no longer be
        met, so that it never ran. None if no rule did.
    eligible_s
        Time from which it could start; None if it could from its submission on.
    """

    id: str
    submit_s: float
    end_s: float | None
    segments: tuple[Segment, ...]
    failed: bool = False
    discarded: bool = False
    ended_by: Literal["time limit", "dependency failed"] | None = None
    eligible_s: float | None = None

    @property
    def state(self) -> str:
        """The final state of the job: completed, failed, discarded, unfinished, or `ended_by`."""
        if self.failed or self.discarded:
            return "failed" if self.failed else "discarded"
        if self.ended_by is not None:
            return self.ended_by
        return "unfinished" if self.end_s is None else "completed"


class Failure(Record, frozen=True, kw_only=True, array_like=True):
    """A failure of a job, at which the job stopped and went back to its last checkpoint.

    Attributes
    ----------
    time_s, job
        Time of the failure, and the job.
    node
        The node that failed; None if the job itself did.
    lost
        Work lost.
    lost_s
        Seconds that the lost work took.
    """

    time_s: float
    job: str
    node: int | None
    lost: float
    lost_s: float


class Forecast(Record, frozen=True, kw_only=True, array_like=True):
    """A prediction about a job, and the observation that followed.

    Attributes
    ----------
    what
        "size" for the job's work, predicted when a size was first known and observed at completion.
        "rate" for its work per second on an allocation, predicted when the allocation began.
    time_s
        Time of the prediction.
    job
        Id of the job.
    believed, real
        Predicted and observed number.
    share
        For sizes, the predicted probability of a size no larger than the observed one (equal sizes
        count half). None for rates.
    """

    what: Literal["size", "rate"]
    time_s: float
    job: str
    believed: float
    real: float
    share: float | None = None


class RoundRecord(Record, frozen=True, kw_only=True, array_like=True):
    """The record of one decision.

    Attributes
    ----------
    now_s
        Time of the decision.
    waiting
        Number of jobs that waited before the decision.
    running
        Number of jobs that ran before the decision.
    started
        Number of jobs that the decision started or resumed.
    stopped
        Number of jobs that the decision stopped.
    changed
        Number of jobs that the decision gave another allocation.
    objective, bound, stop, status
        As in the `Plan`.
    solve_s
        Seconds that the policy took.
    overhead_s
        Seconds that the driver took for the round, without `solve_s`.
    overrun
        Whether the policy exceeded its time limit.
    power_w
        Power of the cluster after the decision.
    violations
        Violations of the proposed plan. A plan with violations never runs.
    prices
        As in the `Plan`; empty if the plan has none.
    slowed_jobs, stopped_jobs
        Jobs whose clock the driver lowered, or which it stopped, to keep a limit.
    restored_jobs
        Jobs whose clock the driver restored.
    pinned_jobs
        Jobs that the driver did not let the policy stop or change, because they had lost 250
        allocations in a row without progress.
    conflicts
        Limits that were relaxed for jobs which may not be stopped, in words.
    """

    now_s: float
    waiting: int
    running: int
    started: int
    stopped: int
    changed: int
    objective: float | None
    bound: float | None
    stop: StopReason
    status: SolutionStatus
    solve_s: float
    overhead_s: float
    overrun: bool
    power_w: float
    violations: tuple[str, ...] = ()
    prices: dict[str, float] = {}
    slowed_jobs: tuple[str, ...] = ()
    stopped_jobs: tuple[str, ...] = ()
    restored_jobs: tuple[str, ...] = ()
    pinned_jobs: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


class Energy(Record, frozen=True, kw_only=True):
    """The energy of a whole run by use; `total_j` is the integral of the cluster's power.

    Attributes
    ----------
    busy_j
        Joules of GPUs whose jobs progress.
    paused_j
        Joules of GPUs whose jobs start or restart.
    idle_gpu_j
        Joules of GPUs on awake nodes that no job holds.
    host_j
        Joules of awake nodes without their GPUs.
    sleep_j
        Joules of sleeping nodes.
    wake_j
        Joules of waking nodes on top of their idle energy, which is part of the values above.
    """

    busy_j: float = 0.0
    paused_j: float = 0.0
    idle_gpu_j: float = 0.0
    host_j: float = 0.0
    sleep_j: float = 0.0
    wake_j: float = 0.0

    @property
    def total_j(self) -> float:
        """The sum of all parts."""
        idle_j = self.idle_gpu_j + self.host_j + self.sleep_j + self.wake_j
        return self.busy_j + self.paused_j + idle_j


class Schedule(Record, frozen=True, kw_only=True):
    """The answer to an `Instance`.

    Attributes
    ----------
    format
        Version of the file format.
    instance
        Name of the instance.
    fingerprint
        Fingerprint of the instance.
    policy
        Name of the policy that made the decisions, or "recorded" if a log tells of them.
    config
        Parameters of the policy and of the driver; of a record, the ``notes`` of how it was read.
    seed
        Seed of all random numbers.
    jobs
        Histories of the jobs, in the order of the instance.
    rounds
        Records of all rounds, in order of time.
    sleeps
        Triples (node, start, end) of the periods in which nodes slept.
    failures
        Failures of jobs, in order of time.
    forecasts
        Predictions about jobs, if they were learnt, in the order of the observations.
    energy
        Joules by use.
    energy_cost
        Cost of the energy at the instance's prices; None without prices.
    carbon_g
        Grams of CO2 equivalent at the instance's carbon intensity; None without such a series.
    end_s
        Time at which the last job ended. Energy is counted from 0 to this time.
    versions
        Versions of ronda and of the packages that the policy used, by name.
    """

    format: Literal["ronda/schedule/1"] = "ronda/schedule/1"
    instance: str
    fingerprint: str
    policy: str
    config: dict[str, Any] = {}
    seed: int = 0
    jobs: tuple[JobOutcome, ...]
    rounds: tuple[RoundRecord, ...] = ()
    sleeps: tuple[tuple[int, float, float], ...] = ()
    failures: tuple[Failure, ...] = ()
    forecasts: tuple[Forecast, ...] = ()
    energy: Energy = Energy()
    energy_cost: float | None = None
    carbon_g: float | None = None
    end_s: float = 0.0
    versions: dict[str, str] = {}

    def to_frame(self) -> "DataFrame":
        """Return a pandas data frame with times, GPU-seconds and restarts in a row for each job."""
        from ronda.instances.tables.frames import schedule_frame

        return schedule_frame(self)

    def _repr_html_(self) -> str:
        from ronda.instances.tables.documents import schedule_table

        return schedule_table(self).html()
