"""Schedules, the answers to instances: segments of all jobs, and a record of every round."""

from typing import TYPE_CHECKING, Any, Literal

from ronda.instances.base import Record
from ronda.instances.job import Allocation, Option
from ronda.instances.plan import SolutionStatus, StopReason

if TYPE_CHECKING:
    from pandas import DataFrame


class Segment(Record, frozen=True, kw_only=True, array_like=True):
    """A stretch of time in which a job held one allocation.

    Attributes
    ----------
    start_s, end_s
        Time in which it held the GPUs.
    resume_s
        Time at which progress began (start or restart delay over); ``end_s`` if it never did.
    done
        Work that it completed in this segment, less the loss by a failure at its end.
    option
        Option with which it ran.
    placement
        Pairs (node index, GPUs there).
    array
        Name of the array that it ran in, which does not change in the segment; None if alone.
    """

    start_s: float
    resume_s: float
    end_s: float
    done: float
    option: Option
    placement: tuple[tuple[int, int], ...]
    array: str | None = None

    @property
    def held(self) -> Allocation:
        """What the job held."""
        return Allocation(option=self.option, placement=self.placement, array=self.array)


class JobOutcome(Record, frozen=True, kw_only=True):
    """A job's history.

    Attributes
    ----------
    id, submit_s
        As in the instance.
    end_s
        Time at which it was complete, or discarded; None if the run was cut before.
    segments
        Segments in which it held GPUs, in order of time.
    failed
        Whether a failure ended it for good, with work left.
    discarded
        Whether the policy gave it up, as a trial of a sweep with work left.
    """

    id: str
    submit_s: float
    end_s: float | None
    segments: tuple[Segment, ...]
    failed: bool = False
    discarded: bool = False

    @property
    def state(self) -> str:
        """The end of the job: completed, failed, discarded, or unfinished."""
        if self.failed or self.discarded:
            return "failed" if self.failed else "discarded"
        return "unfinished" if self.end_s is None else "completed"


class Failure(Record, frozen=True, kw_only=True, array_like=True):
    """A failure of a job, which stopped and went back to its last checkpoint.

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
    """A belief about a job before it was observed, and the observation.

    Attributes
    ----------
    what
        "size" for its work, believed when a size was first known, and observed once complete;
        "rate" for its work per second on an allocation, believed when that began.
    time_s
        Time of the belief.
    job
        Id of the job.
    believed, real
        Believed and observed number.
    share
        For sizes, the believed probability of one that is not larger (half for equal ones); None
        for rates.
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
        Number of jobs that it stopped.
    changed
        Number of jobs that it gave another allocation.
    objective, bound, stop, status
        As in the `Plan`.
    solve_s
        Seconds that the policy took.
    overhead_s
        The driver's own seconds for the round, all but `solve_s`.
    overrun
        Whether the policy exceeded its time limit.
    power_w
        Power of the cluster after the decision.
    violations
        Violations of the proposed plan (a plan with any never runs).
    prices
        As in the `Plan`; empty if it has none.
    slowed_jobs, stopped_jobs
        Jobs that the driver, not the policy, gave a lower clock or stopped to keep a limit.
    restored_jobs
        Jobs to which the driver gave back their clock.
    pinned_jobs
        Jobs that the driver did not let the policy stop or change, as they had lost 250 allocations
        in a row before they made any progress.
    conflicts
        Limits that gave way to jobs which may not be stopped, in words.
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
    """The joules of a whole run by use; `total_j` is the integral of cluster power.

    Attributes
    ----------
    busy_j
        GPUs of jobs that progress.
    paused_j
        GPUs held by a job that starts or restarts.
    idle_gpu_j
        GPUs of awake nodes that no job holds.
    host_j
        Awake nodes without their GPUs.
    sleep_j
        Sleeping nodes.
    wake_j
        Power of waking nodes on top of their idle power, which is in the parts above.
    """

    busy_j: float = 0.0
    paused_j: float = 0.0
    idle_gpu_j: float = 0.0
    host_j: float = 0.0
    sleep_j: float = 0.0
    wake_j: float = 0.0

    @property
    def total_j(self) -> float:
        """Sum of all parts."""
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
        Hash of the instance.
    policy
        Name of the policy that decided.
    config
        Parameters of the policy and of the driver.
    seed
        Seed of everything random.
    jobs
        Histories of the jobs, in the order of the instance.
    rounds
        Records of all rounds, in order of time.
    sleeps
        Triples (node, start, end) of the times that nodes slept.
    failures
        Failures of jobs, in order of time.
    forecasts
        Beliefs about jobs where they were learnt, in the order of the observations.
    energy
        Joules by use.
    energy_cost
        Cost of the joules by the instance's price series; None without one.
    carbon_g
        Grams of CO2 equivalent by the instance's carbon intensity; None without one.
    end_s
        Time at which the last job ended; energy is counted from 0 to here.
    versions
        Versions of ronda and of the packages that decided, by name.
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
        """Return a data frame of pandas: a row for each job, with times, GPU-seconds, restarts."""
        from ronda.instances.tables.frames import schedule_frame

        return schedule_frame(self)

    def _repr_html_(self) -> str:
        from ronda.instances.tables.documents import schedule_table

        return schedule_table(self).html()
