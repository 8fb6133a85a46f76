"""Jobs: their submission, their truth, their allocations, and their state in a round."""

from collections.abc import Iterable
from math import floor, inf
from sys import float_info

from msgspec.structs import replace

from ronda.instances.base import Count, Index, Name, NonNegative, Positive, Record, Share
from ronda.instances.learning import LearningCurve, Losses, TrainingLog
from ronda.instances.profile import Mode, NoiseScale


class Estimate(Record, frozen=True, kw_only=True, gc=False):
    """The belief about a job's total work.

    Attributes
    ----------
    work
        Expected total work: seconds at the requested size (rigid), else samples at the base batch.
    sd
        Standard deviation of the belief, in the same unit.
    quantiles
        Total work that is not exceeded with probability (k + 1/2) / n, for k from 0 to n - 1,
        ascending; empty if not known.
    """

    work: Positive
    sd: NonNegative = 0.0
    quantiles: tuple[Positive, ...] = ()


class Truth(Record, frozen=True, kw_only=True, gc=False):
    """The future of a job; only the driver and the clairvoyant bounds read it.

    Attributes
    ----------
    work
        Total work: seconds at the requested size (rigid), else samples at the base batch.
    curve
        Name of the `NoiseCurve` in the instance that the job's gradient noise follows, or None.
    learning
        The development of its loss, by a formula, or as it was logged from before the first epoch
        on. None if its rounds show no log. It needs the job's `epoch`.
    throughput, power
        Factors of its speed, and of its power while it progresses, to those of its profile.
    failures
        Work, ascending, at which it fails once each and goes back to its last checkpoint.
    """

    work: Positive
    curve: Name | None = None
    learning: LearningCurve | Losses | None = None
    throughput: Positive = 1.0
    power: Positive = 1.0
    failures: tuple[Positive, ...] = ()

    def last_work(self, retries: int | None) -> float:
        """Return the work at which it ends: complete, or by a failure after `retries` retries."""
        ends = retries is not None and retries < len(self.failures)
        return self.failures[retries] if ends and retries is not None else self.work


class Costs(Record, frozen=True, kw_only=True, gc=False):
    """Seconds that a job holds its GPUs without progress.

    The rest of such a pause when the job is stopped is still owed when it resumes (the Helios
    artifact adds the overhead to the remaining time, with the same effect).

    Attributes
    ----------
    start_s
        Pause before its first progress.
    restart_s
        Pause after any later change of its allocation, or resumption after preemption.
    restart_by_gpus
        Pauses in place of `restart_s`, as pairs (up to this many GPUs, seconds), ascending; the
        last pair also serves larger jobs.
    scale_s
        Pause after a change of a running job that needs no checkpoint (elastic scaling in place);
        None if such a change is a restart like any other.
    checkpoint_s
        Seconds of progress on an allocation from one checkpoint to the next, which a failure can
        cost; a stop in good order saves all. 0 if no failure costs progress.
    """

    start_s: NonNegative = 0.0
    restart_s: NonNegative = 0.0
    restart_by_gpus: tuple[tuple[Count, NonNegative], ...] = ()
    scale_s: NonNegative | None = None
    checkpoint_s: NonNegative = 0.0

    def restart(self, gpus: int) -> float:
        """Return the pause in seconds for a restart on `gpus` GPUs."""
        for up_to, seconds in self.restart_by_gpus:
            if gpus <= up_to:
                return seconds
        return self.restart_by_gpus[-1][1] if self.restart_by_gpus else self.restart_s

    def pause(self, gpus: int, *, started: bool = True, running: bool = False) -> float:
        """Return the seconds before a job progresses on `gpus` GPUs that it does not hold yet.

        A job that has not `started` pays its start, a `running` one a change, any other a restart.
        """
        if not started:
            return self.start_s
        return self.scale_s if running and self.scale_s is not None else self.restart(gpus)

    def kept_s(self, seconds: float) -> float:
        """Return the seconds of progress up to the last checkpoint, of all on an allocation."""
        every = self.checkpoint_s
        saved = seconds / every if every else inf
        return floor(saved) * every if saved < 2**53 else seconds


class Job(Record, frozen=True, kw_only=True, gc=False):
    """A training job as it is submitted.

    Attributes
    ----------
    id
        Unique in the instance.
    submit_s
        Submission, in seconds from the instance's start.
    profile
        Name of its `Profile`.
    gpus
        Requested GPUs; policies for rigid jobs use exactly these.
    min_gpus
        Fewest GPUs that an elastic policy may give; None for `gpus`.
    max_gpus
        Most GPUs that an elastic policy may give; None for `gpus`.
    batch
        Requested global batch size; None for the profile's base batch.
    epoch
        Samples in one pass over its training set; None if not known.
    partition
        The partition whose nodes it may use.
    gpu_types
        Names of GPU types that it may use; empty for all that its profile knows.
    preemptible
        Whether it may be stopped or changed once it runs.
    weight
        Importance in weighted objectives.
    deadline_s
        Time by which it should be complete, in seconds from the instance's start.
    user
        The user who submitted it.
    name
        Its name for its user; jobs of like names are alike.
    sweep
        The search for hyper-parameters whose trial it is, by its name in ``sweeps``.
    estimate
        The belief about its work; None for none.
    truth
        Its future. Every job of an instance needs it; no job of a round may have it.
    costs
        Its own pauses, in place of those of the instance.
    fusible
        Fusion class: jobs of one class, profile and batch may share a GPU as one array; None if it
        runs alone.
    """

    id: Name
    submit_s: NonNegative
    profile: Name
    gpus: Count = 1
    min_gpus: Count | None = None
    max_gpus: Count | None = None
    batch: Positive | None = None
    epoch: Positive | None = None
    partition: Name = "default"
    gpu_types: tuple[Name, ...] = ()
    preemptible: bool = True
    weight: Positive = 1.0
    deadline_s: NonNegative | None = None
    user: str | None = None
    name: str | None = None
    sweep: Name | None = None
    estimate: Estimate | None = None
    truth: Truth | None = None
    costs: Costs | None = None
    fusible: Name | None = None


class Option(Record, frozen=True, kw_only=True, gc=False):
    """One way to run one job.

    Attributes
    ----------
    pool
        Index of the pool: pools are numbered from 0 in order of first appearance of their
        (partition, GPU type) in ``cluster.node_groups``.
    gpus
        GPUs.
    span
        Reach of the placement: "node", "rack" or "cluster".
    clock
        Clock as a fraction of the maximum.
    batch
        Global batch size.
    width
        Number of jobs in its array.
    mode
        The way in which these share their GPU; "exclusive" for an array of one.
    rate
        Work per second that the scheduler expects.
    power_w
        Power in watts of all its GPUs together while it progresses; in an array its even share.
    teardown_s
        Seconds that the job still holds its GPUs, at full power, after its last work.
    """

    pool: Index
    gpus: Count
    span: str = "cluster"
    clock: Share = 1.0
    batch: Positive = 1.0
    width: Count = 1
    mode: Mode = "exclusive"
    rate: Positive = 1.0
    power_w: NonNegative = 0.0
    teardown_s: NonNegative = 0.0

    def same_way(self, other: "Option") -> bool:
        """Return whether both options are equal but for expected rate, power and teardown."""
        return self is other or (
            self.pool == other.pool
            and self.gpus == other.gpus
            and self.span == other.span
            and self.clock == other.clock
            and self.batch == other.batch
            and self.width == other.width
            and self.mode == other.mode
        )

    @property
    def own_gpus(self) -> float:
        """Its GPUs, or in an array its even share of them; these add up to the GPUs in use."""
        return self.gpus / self.width


class Allocation(Record, frozen=True, kw_only=True, gc=False):
    """An option together with the nodes that realise it.

    Attributes
    ----------
    option
        The option of the job.
    placement
        Pairs (node index, GPUs there). Nodes are numbered from 0, group by group.
    array
        Name of the array that the job is in; None if it has its GPUs for itself.
    """

    option: Option
    placement: tuple[tuple[Index, Count], ...]
    array: Name | None = None

    def goes_on(self, then: "Allocation") -> bool:
        """Return whether a job goes on with the same option on the same nodes."""
        return (
            self.option.same_way(then.option)
            and self.array == then.array
            and same_nodes(self.placement, then.placement)
        )

    def narrows_to(self, then: "Allocation") -> bool:
        """Return whether a job goes on in its array while others leave it, without a pause.

        The last job is in no array any more.
        """
        one, other = self.option, then.option
        alone = other.width == 1 and other.mode == "exclusive" and then.array is None
        return (
            self.array is not None
            and other.width < one.width
            and (alone or (then.array == self.array and other.mode == one.mode))
            and replace(other, width=one.width, mode=one.mode).same_way(one)
            and same_nodes(self.placement, then.placement)
        )


def same_nodes(one: tuple[tuple[int, int], ...], other: tuple[tuple[int, int], ...]) -> bool:
    """Return whether two placements have as many GPUs on the same nodes, in any order."""
    return one == other or sorted(one) == sorted(other)


def used_nodes(allocations: Iterable[Allocation]) -> set[int]:
    """Return the nodes of allocations."""
    return {node for held in allocations for node, _ in held.placement}


class JobState(Record, frozen=True, kw_only=True, gc=False):
    """A live job in a round, which stays the same object until the job changes.

    Attributes
    ----------
    job
        The job, with ``truth`` taken out.
    done
        Work done by `since_s`.
    since_s
        Time from which the running allocation progresses (after its restart delay); for a waiting
        job the time since when it waits.
    gpu_s
        GPU-seconds held before the running allocation began.
    held_s
        Time at which the running allocation began.
    restarts
        Changes and resumptions so far.
    started
        Whether it has ever run.
    allocation
        Its current allocation; None if it waits.
    owed_s
        For a waiting job, the rest of a pause that a stop cut short.
    pause_s
        For a running job, the pause with which its allocation began, perhaps only when its nodes
        were awake; None if all of the time until `since_s` is pause.
    noise
        Gradient noise scale as measured now, for jobs whose batch may change.
    log
        Loss and accuracy at the last evaluation; None if not observed, or not yet.
    """

    job: Job
    since_s: NonNegative
    done: NonNegative = 0.0
    gpu_s: NonNegative = 0.0
    held_s: NonNegative = 0.0
    restarts: Index = 0
    started: bool = False
    allocation: Allocation | None = None
    owed_s: NonNegative = 0.0
    pause_s: NonNegative | None = None
    noise: NoiseScale | None = None
    log: TrainingLog | None = None

    def rest_at(self, now_s: float) -> float:
        """Return the seconds until a running job progresses, 0 for a waiting one."""
        return 0.0 if self.allocation is None else max(0.0, self.since_s - now_s)

    def owed_at(self, now_s: float) -> float:
        """Return the rest of the job's pause in seconds, which a change or a stop makes a debt.

        A job that waits for its nodes to wake owes no more than the pause after that.
        """
        if self.allocation is None:
            return self.owed_s
        left_s = self.rest_at(now_s)
        return left_s if self.pause_s is None else min(self.pause_s, left_s)

    def pause_at(self, now_s: float, gpus: int, usual: Costs) -> float:
        """Return the seconds without progress if the job is given `gpus` other GPUs at `now_s`.

        Its costs are the `usual` ones if it has none of its own. Waking nodes come on top.
        """
        costs = self.job.costs or usual
        running = self.allocation is not None
        return costs.pause(gpus, started=self.started, running=running) + self.owed_at(now_s)

    def gpu_s_at(self, now_s: float) -> float:
        """Return the GPU-seconds held by `now_s`, in an array the job's own share."""
        if self.allocation is None:
            return self.gpu_s
        return self.gpu_s + self.allocation.option.own_gpus * max(0.0, now_s - self.held_s)

    def stopped(self, now_s: float, done: float) -> "JobState":
        """Return the state of the job after it stops, with some work done."""
        if self.allocation is None:
            return self
        return replace(
            self,
            allocation=None,
            since_s=now_s,
            done=done,
            gpu_s=self.gpu_s_at(now_s),
            owed_s=self.owed_at(now_s),
            pause_s=None,
        )

    def holding(
        self,
        allocation: Allocation,
        now_s: float,
        pause_s: float | None,
        ready_s: float = 0.0,
        together_s: float = 0.0,
    ) -> "JobState":
        """Return the state of a waiting job that holds an allocation.

        It progresses once its nodes are awake, at `ready_s`, and its pause is over, but not before
        the others of its array are ready, at `together_s`. `pause_s` as among the attributes.
        """
        return replace(
            self,
            allocation=allocation,
            since_s=max(max(now_s, ready_s) + (pause_s or 0.0), together_s),
            held_s=now_s,
            restarts=self.restarts + self.started,
            started=True,
            owed_s=0.0,
            pause_s=pause_s,
        )

    def narrowed(self, allocation: Allocation, now_s: float, done: float) -> "JobState":
        """Return the state of a job that goes on in a narrower array, without a pause."""
        return replace(
            self,
            allocation=allocation,
            since_s=max(now_s, self.since_s),
            done=done,
            held_s=now_s,
            gpu_s=self.gpu_s_at(now_s),
        )

    def done_at(self, now_s: float) -> float:
        """Return the work done by `now_s` at the expected rate."""
        if self.allocation is None:
            return self.done
        return self.done + self.allocation.option.rate * max(0.0, now_s - self.since_s)

    def remaining_at(self, now_s: float) -> float | None:
        """Return the expected work left at `now_s`, or None if the job's size is not known.

        A job that outlives its estimate is expected to need a further 1 % of it.
        """
        estimate = self.job.estimate
        if estimate is None:
            return None
        left = estimate.work - self.done_at(now_s)
        return left if left > 0 else max(0.01 * estimate.work, float_info.min)
