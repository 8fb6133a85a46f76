"""Jobs: their submission, true future, allocations, and state in a round."""

from collections.abc import Iterable
from math import ceil, floor, inf
from sys import float_info
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec.structs import replace

from ronda.instances.base import Count, Index, Name, NonNegative, Positive, Record, Share
from ronda.instances.learning import LearningCurve, Losses, TrainingLog
from ronda.instances.profile import Mode, NoiseScale

if TYPE_CHECKING:
    from ronda.instances.cluster import Pool


class Estimate(Record, frozen=True, kw_only=True, gc=False):
    """An estimate of a job's total work, with its uncertainty.

    Attributes
    ----------
    work
        Expected total work: seconds at the requested size for a rigid job, else samples at the base
        batch.
    sd
        Standard deviation of the estimate, in the same unit.
    quantiles
        Quantiles of the total work at the probabilities (k + 1/2) / n, for k from 0 to n - 1,
        ascending; empty if unknown.
    """

    work: Positive
    sd: NonNegative = 0.0
    quantiles: tuple[Positive, ...] = ()


class Truth(Record, frozen=True, kw_only=True, gc=False):
    """The true future of a job, which only the driver and the clairvoyant bounds read.

    Attributes
    ----------
    work
        Total work: seconds at the requested size for a rigid job, else samples at the base batch.
    curve
        Name of the instance's `NoiseCurve` that the job's gradient noise follows, or None.
    learning
        Its loss over the training, either as a formula or as logged, starting before the first
        epoch. None if rounds show no log of the job. The job must have an `epoch`.
    throughput, power
        Ratios of its true speed, and of its true power while it progresses, to those of its
        profile.
    failures
        Amounts of work, ascending, at each of which the job fails once and goes back to its last
        checkpoint.
    """

    work: Positive
    curve: Name | None = None
    learning: LearningCurve | Losses | None = None
    throughput: Positive = 1.0
    power: Positive = 1.0
    failures: tuple[Positive, ...] = ()

    def last_work(self, retries: int | None) -> float:
        """Return the work at which the job ends, complete or by a failure after all retries."""
        ends = retries is not None and retries < len(self.failures)
        return self.failures[retries] if ends and retries is not None else self.work


class Costs(Record, frozen=True, kw_only=True, gc=False):
    """The pauses, in seconds, in which a job holds its GPUs without progress.

    If a job is stopped during a pause, it still owes the rest when it resumes. (The Helios artifact
    adds the overhead to the remaining time, with the same effect.)

    Attributes
    ----------
    start_s
        Pause before the job's first progress.
    restart_s
        Pause after any later change of its allocation, or after a resumption from preemption.
    restart_by_gpus
        Pauses that replace `restart_s`, as ascending pairs (maximum number of GPUs, seconds). The
        last pair also applies to larger jobs.
    scale_s
        Pause after a change of a running job without a checkpoint (elastic scaling in place). None
        if such a change is an ordinary restart.
    checkpoint_s
        Seconds of progress on an allocation from one checkpoint to the next, which a failure can
        lose. A clean stop saves all progress. 0 if failures cost no progress.
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
        """Return the pause in seconds before a job progresses on `gpus` newly allocated GPUs.

        A job that has never `started` pays for a start, a `running` job for a change, and any other
        job for a restart.
        """
        if not started:
            return self.start_s
        return self.scale_s if running and self.scale_s is not None else self.restart(gpus)

    def kept_s(self, seconds: float) -> float:
        """Return how many of the seconds of progress on an allocation the last checkpoint saved."""
        every = self.checkpoint_s
        saved = seconds / every if every else inf
        return floor(saved) * every if saved < 2**53 else seconds


class Need(Record, frozen=True, kw_only=True, gc=False):
    """What a job needs of one resource of hosts; the jobs of an array count as one.

    Attributes
    ----------
    per_gpu
        Amount on a node for each of the job's GPUs there.
    per_node
        Amount on each of its nodes.
    flat
        Amount on one of its nodes: the one with the fewest of its GPUs, the first of these in the
        placement.
    """

    per_gpu: NonNegative = 0.0
    per_node: NonNegative = 0.0
    flat: NonNegative = 0.0


class Slices(Record, frozen=True, kw_only=True):
    """Nodes of a job in slices, each within one rack.

    Attributes
    ----------
    nodes
        Nodes of each slice. None for listed or balanced slices.
    listed
        Nodes of each slice, one by one.
    balanced
        Whether the job's nodes are shared out evenly over as few racks as can hold them.
    within
        Level of the racks (`Rack.level`) that hold a slice each.
    spread
        Whether no two slices may share a rack.
    together
        Level of the racks one of which holds all slices, or None.
    """

    nodes: Count | None = None
    listed: tuple[Count, ...] = ()
    balanced: bool = False
    within: Name = "rack"
    spread: bool = False
    together: Name | None = None


class Pieces(Record, frozen=True, kw_only=True, gc=False):
    """The equal pieces that a job was submitted as: its pods, or what it has on each node.

    Schedulers place each piece wholly on one node. ronda's plans place the GPUs of a job as its
    options say. Whoever asks why a job waits asks for the pieces.

    Attributes
    ----------
    count
        Number of pieces, which divides the job's GPUs.
    own_nodes
        Whether no two of them may share a node.
    """

    count: Count
    own_nodes: bool = False


class After(Record, frozen=True, kw_only=True, gc=False):
    """A job that must come first.

    Attributes
    ----------
    job
        Its id.
    when
        The event to wait for: ``ok`` (it has ended well), ``notok`` (it has failed for good),
        ``any`` (it has ended), or ``start`` (it has started, or was given up).
    delay_s
        Seconds to wait after the event.
    """

    job: Name
    when: Literal["ok", "notok", "any", "start"] = "ok"
    delay_s: NonNegative = 0.0


class Job(Record, frozen=True, kw_only=True, gc=False):
    """A training job as submitted.

    Attributes
    ----------
    id
        Id, which is unique in the instance.
    submit_s
        Submission time, in seconds from the instance's start.
    profile
        Name of its `Profile`.
    gpus
        Requested number of GPUs; policies for rigid jobs use exactly this number.
    min_gpus
        Fewest GPUs that an elastic policy may give; None for `gpus`.
    max_gpus
        Most GPUs that an elastic policy may give; None for `gpus`.
    batch
        Requested global batch size; None for the profile's base batch.
    epoch
        Samples in one pass over its training set; None if unknown.
    partition
        The partition whose nodes it may use.
    gpu_types
        Names of the GPU types that it may use; empty for all types in its profile.
    preemptible
        Whether it may be stopped or changed while it runs.
    weight
        Importance in weighted objectives.
    deadline_s
        Time by which it should finish, in seconds from the instance's start.
    user
        The user who submitted it.
    name
        The user's name for it; jobs with similar names are similar.
    sweep
        Name in ``sweeps`` of the hyper-parameter search that it is a trial of.
    estimate
        Estimate of its work, or None.
    truth
        Its true future. Every job of an instance must have it, and no job of a round may have it.
    costs
        Its own pauses, which replace those of the instance.
    fusible
        Fusion class. Jobs with the same class, profile and batch may share a GPU as one array. None
        if the job shares no GPU.
    tenant
        The tenant that it belongs to, which has no tenants below it.
    priority
        Its priority class, or None.
    limit_s
        Seconds for which it may hold GPUs in all. None for no limit.
    min_run_s
        Seconds for which it is not stopped or changed once it has started.
    eligible_s
        Time before which it may not start, in seconds from the instance's start; None for
        `submit_s`.
    after
        Jobs that must come first.
    after_all
        Whether all of `after` must have happened, or one of them.
    job_array
        The job array that it is a task of.
    sizes
        The numbers of GPUs that it may have; empty for those between `min_gpus` and `max_gpus`.
    slices
        How its nodes are grouped by racks, or None.
    one_node
        Whether all its GPUs must be on one node.
    exclusive
        Whether it has its nodes to itself. It then holds, and is charged for, all their GPUs.
    nodes
        Indices of the nodes that it may use; empty for all.
    features
        Labels that its nodes must have.
    neighbourhoods
        The neighbourhoods that it is in.
    needs
        What it needs of the resources of hosts.
    licences
        Licences that it holds while it runs.
    part
        Name of the part of a GPU that it asks for in place of a whole one.
    share
        Fraction of a GPU that it asks for in place of a whole one.
    pieces
        The equal pieces that it was submitted as; None if its GPUs may be anywhere.
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
    tenant: Name | None = None
    priority: Name | None = None
    limit_s: Positive | None = None
    min_run_s: NonNegative = 0.0
    eligible_s: NonNegative | None = None
    after: tuple[After, ...] = ()
    after_all: bool = True
    job_array: Name | None = None
    sizes: tuple[Count, ...] = ()
    slices: Slices | None = None
    one_node: bool = False
    exclusive: bool = False
    nodes: tuple[Index, ...] = ()
    features: tuple[Name, ...] = ()
    neighbourhoods: tuple[Name, ...] = ()
    needs: dict[str, Need] = {}
    licences: dict[str, Count] = {}
    part: Name | None = None
    share: Annotated[float, msgspec.Meta(gt=0, lt=1)] | None = None
    pieces: Pieces | None = None

    def may_use(self, pool: "Pool") -> bool:
        """Return whether the job's partition and GPU types let it use a pool."""
        return self.partition == pool.partition and (
            not self.gpu_types or pool.gpu_type.name in self.gpu_types
        )


class Option(Record, frozen=True, kw_only=True, gc=False):
    """A configuration in which a job can run.

    Attributes
    ----------
    pool
        Index of the pool. Pools are numbered from 0 in the order in which their (partition, GPU
        type) first appears in ``cluster.node_groups``.
    gpus
        GPUs.
    span
        Extent of the placement: "node", "rack" or "cluster".
    clock
        Clock as a fraction of the maximum.
    batch
        Global batch size.
    width
        Number of jobs in the job's array.
    mode
        How the jobs of the array share their GPU; "exclusive" for an array of one.
    rate
        Work per second that the scheduler expects.
    power_w
        Power in watts of all its GPUs together while it progresses. A job in an array has an even
        share of its GPU's power, and a job on a fraction of a GPU has that fraction.
    teardown_s
        Seconds for which the job still holds its GPUs, at full power, after its work is done.
    asked
        GPUs that compute, if the job also holds others to have its nodes to itself; None for all.
    part
        Name of the part of a GPU, or None.
    share
        Fraction of its GPU that the job counts for: of the compute slices for a part. None if it
        has whole GPUs.
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
    asked: Count | None = None
    part: Name | None = None
    share: Share | None = None

    def same_way(self, other: "Option") -> bool:
        """Return whether both options are equal except for expected rate, power and teardown."""
        return self is other or (
            self.pool == other.pool
            and self.gpus == other.gpus
            and self.span == other.span
            and self.clock == other.clock
            and self.batch == other.batch
            and self.width == other.width
            and self.mode == other.mode
            and self.asked == other.asked
            and self.part == other.part
            and self.share == other.share
        )

    @property
    def computing(self) -> int:
        """The GPUs that compute; the others are held only to have nodes alone."""
        return self.gpus if self.asked is None else self.asked

    @property
    def own_gpus(self) -> float:
        """The job's GPUs, its even share of them in an array, or its fraction of one."""
        return self.gpus / self.width if self.share is None else self.share


class Allocation(Record, frozen=True, kw_only=True, gc=False):
    """An option of a job together with the nodes on which it runs.

    Attributes
    ----------
    option
        The option of the job.
    placement
        Pairs (node index, number of GPUs on the node). Nodes are numbered from 0, group by group.
    array
        Name of the job's array; None if the job has its GPUs to itself.
    parts
        The GPU of the node, and the first memory slice there, of each part of a GPU that it holds:
        a triple (node, GPU, start). A fraction of a GPU has the start 0.
    """

    option: Option
    placement: tuple[tuple[Index, Count], ...]
    array: Name | None = None
    parts: tuple[tuple[Index, Index, Index], ...] = ()

    def goes_on(self, then: "Allocation") -> bool:
        """Return whether a job continues with the same option on the same nodes."""
        return (
            self.option.same_way(then.option)
            and self.array == then.array
            and self.parts == then.parts
            and same_nodes(self.placement, then.placement)
        )

    def narrows_to(self, then: "Allocation") -> bool:
        """Return whether a job continues in its array without a pause while others leave it.

        The last remaining job is no longer in an array.
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
    """Return whether two placements have equal numbers of GPUs on the same nodes, in any order."""
    return one == other or sorted(one) == sorted(other)


def used_nodes(allocations: Iterable[Allocation]) -> set[int]:
    """Return the nodes that some allocations use."""
    return {node for held in allocations for node, _ in held.placement}


class JobState(Record, frozen=True, kw_only=True, gc=False):
    """The state of a live job in a round, which stays the same object until the job changes.

    Attributes
    ----------
    job
        The job without its ``truth``.
    done
        Work done by `since_s`.
    since_s
        Time at which the running allocation begins to progress, after its pause. For a waiting job,
        the time at which it began to wait.
    gpu_s
        GPU-seconds held before the running allocation began.
    held_s
        Time at which the running allocation began.
    restarts
        Number of changes and resumptions so far.
    started
        Whether the job has ever run.
    allocation
        Its current allocation; None if it waits.
    owed_s
        For a waiting job, the rest of a pause that was interrupted by a stop.
    pause_s
        For a running job, the pause of its allocation, which starts only when its nodes are awake.
        None if all of the time until `since_s` is pause.
    noise
        Latest measured gradient noise scale, for jobs whose batch may change.
    log
        Loss and accuracy at the last evaluation; None if they are not observed, or not yet.
    ran_s
        Seconds for which a job with a time limit held GPUs before the running allocation began.
    blocked
        The reason why a waiting job may not start now, such as a job that must come first; None if
        it may.
    rank
        The number by which the host orders waiting jobs, higher first (the PRIORITY of Slurm's
        squeue); None if it is not known.
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
    ran_s: NonNegative = 0.0
    blocked: Name | None = None
    rank: float | None = None

    def rest_at(self, now_s: float) -> float:
        """Return the seconds until a running job progresses, or 0 for a waiting job."""
        return 0.0 if self.allocation is None else max(0.0, self.since_s - now_s)

    def owed_at(self, now_s: float) -> float:
        """Return the rest of the job's pause in seconds, which it owes after a change or a stop.

        While its nodes are still waking, a job owes only the pause that follows.
        """
        if self.allocation is None:
            return self.owed_s
        left_s = self.rest_at(now_s)
        return left_s if self.pause_s is None else min(self.pause_s, left_s)

    def pause_at(self, now_s: float, gpus: int, usual: Costs) -> float:
        """Return the seconds without progress if the job moves to `gpus` other GPUs at `now_s`.

        The `usual` costs apply if the job has no costs of its own. The time to wake nodes is not
        included.
        """
        costs = self.job.costs or usual
        running = self.allocation is not None
        return costs.pause(gpus, started=self.started, running=running) + self.owed_at(now_s)

    def gpu_s_at(self, now_s: float) -> float:
        """Return the GPU-seconds held by `now_s`; in an array only the job's own share counts."""
        if self.allocation is None:
            return self.gpu_s
        return self.gpu_s + self.allocation.option.own_gpus * max(0.0, now_s - self.held_s)

    def ran_at(self, now_s: float) -> float:
        """Return the seconds for which the job has held GPUs by `now_s`."""
        return self.ran_s + (0.0 if self.allocation is None else max(0.0, now_s - self.held_s))

    def may_hold_s(self, now_s: float) -> float:
        """Return the seconds that the job's time limit leaves it; infinite without a limit."""
        limit_s, held_s = self.job.limit_s, 0.0
        if limit_s is None:
            return inf
        if self.allocation is not None:
            held_s = max(0.0, now_s - self.held_s)
        return max(0.0, limit_s - self.ran_s - held_s)

    def stopped(self, now_s: float, done: float) -> "JobState":
        """Return the state of the job after it stops at `now_s` with the work `done`."""
        if self.allocation is None:
            return self
        return replace(
            self,
            allocation=None,
            since_s=now_s,
            done=done,
            gpu_s=self.gpu_s_at(now_s),
            ran_s=0.0 if self.job.limit_s is None else self.ran_at(now_s),
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
        """Return the state of a waiting job after it gets an allocation.

        The job progresses when its nodes are awake (at `ready_s`) and its pause is over, but not
        before the other jobs of its array are ready (at `together_s`). For `pause_s` see the
        attributes.
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
        """Return the state of a job that continues in a narrower array, without a pause."""
        return replace(
            self,
            allocation=allocation,
            since_s=max(now_s, self.since_s),
            done=done,
            held_s=now_s,
            gpu_s=self.gpu_s_at(now_s),
            ran_s=0.0 if self.job.limit_s is None else self.ran_at(now_s),
        )

    def done_at(self, now_s: float) -> float:
        """Return the work done by `now_s` at the expected rate."""
        if self.allocation is None:
            return self.done
        return self.done + self.allocation.option.rate * max(0.0, now_s - self.since_s)

    def remaining_at(self, now_s: float) -> float | None:
        """Return the expected work left at `now_s`, or None if the job's size is unknown.

        A job that has exceeded its estimate is expected to need another 1 % of it.
        """
        estimate = self.job.estimate
        if estimate is None:
            return None
        left = estimate.work - self.done_at(now_s)
        return left if left > 0 else max(0.01 * estimate.work, float_info.min)

    def mostly_left_at(self, now_s: float) -> float | None:
        """Return the work that is left with a probability of 90 %, or None for unknown size.

        Without quantiles of the estimate, it is the expected work.
        """
        work, estimate = self.remaining_at(now_s), self.job.estimate
        if work is None or estimate is None or not estimate.quantiles:
            return work
        n = len(estimate.quantiles)
        most = estimate.quantiles[min(n - 1, ceil(0.9 * n - 0.5))]
        return max(work, most - self.done_at(now_s))
