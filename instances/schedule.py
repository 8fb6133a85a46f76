"""The answer to an instance: what ran where and when, and a record of every round."""

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
        When it held the GPUs.
    resume_s
        When progress began (start or restart delay over); ``end_s`` if it never did.
    done
        Work that it completed in this segment, but what a failure at its end lost.
    option
        How it ran.
    placement
        Pairs (node index, GPUs there).
    array
        Name of the array that it ran in, which stays as it is for the segment; None: alone.
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
        When it was complete, or discarded; None if the run was cut before.
    segments
        When it held GPUs, in order of time.
    failed
        Whether it ended for good by a failure, its work not done.
    discarded
        Whether the policy gave it up: a trial of a sweep, its work not done.
    """

    id: str
    submit_s: float
    end_s: float | None
    segments: tuple[Segment, ...]
    failed: bool = False
    discarded: bool = False

    @property
    def state(self) -> str:
        """How it ended: completed, failed, discarded, or unfinished."""
        if self.failed or self.discarded:
            return "failed" if self.failed else "discarded"
        return "unfinished" if self.end_s is None else "completed"


class Failure(Record, frozen=True, kw_only=True, array_like=True):
    """A job that failed: it stopped, and went back to its last checkpoint.

    Attributes
    ----------
    time_s, job
        When which job.
    node
        The node whose failure it was; None: its own.
    lost
        Work to do again.
    lost_s
        Seconds that it took.
    """

    time_s: float
    job: str
    node: int | None
    lost: float
    lost_s: float


class Forecast(Record, frozen=True, kw_only=True, array_like=True):
    """What was believed of a job before it was seen, and what came.

    Attributes
    ----------
    what
        "size": its work, believed when a size was first told of it, once it is complete; "rate":
        its work per second on an allocation, believed when that began.
    time_s
        When it was believed.
    job
        Its id.
    believed, real
        Both numbers.
    share
        Of sizes: the probability, as believed, of one that is not larger (half of it for equal
        ones); of rates None.
    """

    what: Literal["size", "rate"]
    time_s: float
    job: str
    believed: float
    real: float
    share: float | None = None


class RoundRecord(Record, frozen=True, kw_only=True, array_like=True):
    """One decision: when, over what, how good, how long it took.

    Attributes
    ----------
    now_s
        When, in the instance's time.
    waiting
        Jobs that waited before the decision.
    running
        Jobs that ran before the decision.
    started
        Jobs that the decision started or resumed.
    stopped
        Jobs that it stopped.
    changed
        Jobs that it gave another allocation.
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
        Those of the plan that the policy proposed (a plan with any never runs).
    prices
        As in the `Plan`; empty where it has none.
    slowed_jobs, stopped_jobs
        Jobs that the driver, not the policy, gave a lower clock or stopped to keep to a limit.
    restored_jobs
        Jobs that it gave back the clock that it had taken from them.
    pinned_jobs
        Jobs that it did not let the policy stop or change, as they had lost 250 allocations in a
        row before they made any progress.
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
    """Joules of a whole run by where they went; `total_j` is the integral of cluster power.

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
        What waking nodes draw on top of their idle power, which is in the parts above.
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
        Its parameters and the driver's.
    seed
        Seed of everything random.
    jobs
        In the instance's order.
    rounds
        In order of time.
    sleeps
        Triples (node, start, end) of the times that nodes slept.
    failures
        What jobs lost by failures, in order of time.
    forecasts
        What was believed of jobs, and what came, where it was learnt; in order of its coming.
    energy
        Where the joules went.
    energy_cost
        What the joules cost by the instance's price series; None without one.
    carbon_g
        Grams of CO2 equivalent by the instance's carbon intensity; None without one.
    end_s
        When the last job ended; energy is counted from 0 to here.
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
        """Return what a notebook shows."""
        from ronda.instances.tables.documents import schedule_table

        return schedule_table(self).html()
