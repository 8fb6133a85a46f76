"""The changes that a decision makes, its record for metrics, and its log entry."""

import logging
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ronda.instances.cluster import Cluster
from ronda.instances.job import Allocation, Option, same_nodes
from ronda.instances.plan import Plan, SolutionStatus, StopReason
from ronda.instances.round import Round

LOG = logging.getLogger("ronda.embedding")
logging.getLogger("ronda").addHandler(logging.NullHandler())


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The new `Allocation` of a job, with the names of its nodes.

    Attributes
    ----------
    option
        Option of the job: GPUs, clock, batch and rate.
    placement
        Number of GPUs on each node, keyed by the name of the node.
    gpu_type
        Name of the GPU type.
    array
        Name of the array of fused jobs that share these GPUs; None if the job is alone.
    parts
        The part of a GPU that it has, as in `Allocation`; none for whole GPUs.
    """

    option: Option
    placement: dict[str, int]
    gpu_type: str
    array: str | None = None
    parts: tuple[tuple[int, int, int], ...] = ()


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """The differences between a plan and the running jobs; unnamed jobs go on or wait.

    If some jobs leave an array, the others go on in it at a higher speed and are not named.

    Attributes
    ----------
    start
        Jobs that start or resume.
    stop
        Jobs that give up their GPUs.
    resize
        Running jobs that change their GPUs, nodes or array.
    retune
        Running jobs that keep their GPUs and change their clock or batch.
    asleep
        Names of the nodes that are to be asleep; None leaves all nodes as they are.
    cancelled
        Whether the decision was cancelled, in which case nothing changes.
    plan
        Whole plan, with its objective, bound, status, prices and problems.
    """

    start: dict[str, Place] = {}
    stop: tuple[str, ...] = ()
    resize: dict[str, Place] = {}
    retune: dict[str, Place] = {}
    asleep: tuple[str, ...] | None = None
    cancelled: bool = False
    plan: Plan = Plan()


def node_names(cluster: Cluster) -> list[str]:
    """Return the names of all nodes: the name of the group and a number within it."""
    return [f"{g.name}-{k}" for g in cluster.node_groups for k in range(g.count)]


def changes(
    cluster: Cluster,
    names: Sequence[str],
    held: Mapping[str, Allocation],
    plan: Plan,
) -> Changes:
    """Return the changes from the held allocations to a plan."""

    def place(given: Allocation) -> Place:
        return Place(
            option=given.option,
            placement={names[node]: gpus for node, gpus in given.placement},
            gpu_type=cluster.topology.pools[given.option.pool].gpu_type.name,
            array=given.array,
            parts=given.parts,
        )

    start, resize, retune = dict[str, Place](), dict[str, Place](), dict[str, Place]()
    for job, given in plan.allocations.items():
        before = held.get(job)
        if before is None:
            start[job] = place(given)
        elif not before.goes_on(given) and not before.narrows_to(given):
            stays = before.array == given.array and before.parts == given.parts
            stays &= same_nodes(before.placement, given.placement)
            (retune if stays else resize)[job] = place(given)
    return Changes(
        start=start,
        stop=tuple(job for job in held if job not in plan.allocations),
        resize=resize,
        retune=retune,
        asleep=None if plan.asleep is None else tuple(names[node] for node in plan.asleep),
        plan=plan,
    )


class DecisionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A decision in numbers.

    Attributes
    ----------
    now_s
        Time of the host.
    jobs, running
        Number of live jobs, and of jobs that run after the decision.
    started, stopped, resized, retuned
        Numbers of jobs that change.
    status, stop, gap
        Status of the plan, reason for the end of its search, and largest distance from the optimum.
    cancelled
        Whether the decision was cancelled.
    seconds
        Wall-clock seconds: ``wait`` for other decisions of the process, ``round`` to make the
        round, ``build``, ``solve`` and ``extract`` in the policy, ``check`` with all safeguards,
        ``carry_out``, and ``total``.
    """

    now_s: float
    jobs: int
    running: int
    started: int
    stopped: int
    resized: int
    retuned: int
    status: SolutionStatus
    stop: StopReason
    gap: float | None
    cancelled: bool
    seconds: dict[str, float]


Hook = Callable[[DecisionRecord], object]


def tell(round: Round, changes: Changes, at_s: Sequence[float], hook: Hook | None) -> None:
    """Log a decision and pass its record to a hook; errors of the hook are logged.

    `at_s` are the seconds from entry until the wait is over, the round is made, the plan is found
    and everything is done. If there was no time to decide, only the first and the last are given.
    """
    plan, record = changes.plan, changes.plan.record
    waited_s, done_s = at_s[0], at_s[-1]
    made_s, planned_s = at_s[1:3] if len(at_s) > 2 else (done_s, done_s)
    decided_s, found_s = planned_s - made_s, record.solve_s + record.extract_s
    # A policy's clock starts at entry: what it calls building has the wait and the round in it.
    build_s = min(record.build_s, max(0.0, decided_s - found_s))
    found = DecisionRecord(
        now_s=round.now_s,
        jobs=len(round.jobs),
        running=len(plan.allocations),
        started=len(changes.start),
        stopped=len(changes.stop),
        resized=len(changes.resize),
        retuned=len(changes.retune),
        status=plan.status,
        stop=plan.stop,
        gap=plan.gap,
        cancelled=changes.cancelled,
        seconds={
            "wait": waited_s,
            "round": made_s - waited_s,
            "build": build_s,
            "solve": record.solve_s,
            "extract": record.extract_s,
            "check": max(0.0, decided_s - found_s - build_s),
            "carry_out": done_s - planned_s,
            "total": done_s,
        },
    )
    LOG.info(
        "decided at %g s: %d jobs, %d run, %d start, %d stop, %d change; %s, %s, gap %s; %.3f s",
        *(found.now_s, found.jobs, found.running, found.started, found.stopped),
        *(found.resized + found.retuned, found.status.value, found.stop.value, found.gap, done_s),
    )
    if plan.status in (SolutionStatus.FALLBACK, SolutionStatus.NONE) and not found.cancelled:
        why = record.message or "no time was left"
        LOG.warning("what runs goes on (%s): %s", plan.status.value, why)
    elif plan.details.conflicts:
        LOG.warning("limits gave way: %s", record.message)
    if hook is not None:
        try:
            hook(found)
        except Exception:
            LOG.exception("on_decision failed; the decision stands")
