"""The jobs that ronda may touch, and what it may do with each: by the operator and by its owner.

The operator names partitions, QOS and accounts: no other job is touched. Their jobs may be ordered
by priorities. Whoever submits a job lets ronda do more by the job's comment::

    sbatch --comment=ronda …                            # choose its nodes, and its start
    sbatch --comment=ronda:requeue …                    # stop it as well; it starts again later
    sbatch --comment=ronda:gpus=1:1/2:1.9/4:3.5 …       # and on other numbers of GPUs of a node

with the speed on each number of GPUs. The operator may name QOS whose jobs have agreed to be
stopped. If the operator names nothing, only jobs that have agreed are touched.
"""

import re
from typing import NamedTuple

from ronda.instances.base import Count, Index, NonNegative, Record
from ronda.instances.models.power import NodeDraw
from ronda.instances.snapshots.snapshot import SeenJob, SeenNode, Snapshot

_JOB = re.compile(r"\d{1,10}(?:_\d{1,10})?", re.ASCII)
_GPUS = r"[1-9]\d{0,3}:[\d.]{1,12}"
_COMMENT = re.compile(rf"ronda(?::(requeue|gpus=({_GPUS}(?:/{_GPUS}){{0,31}})))?", re.ASCII)


class Scope(Record, frozen=True, kw_only=True):
    """What ronda may touch, and how often.

    Attributes
    ----------
    partitions, qos, accounts
        Names of those whose jobs it may touch; a job must be in one of each list that is not empty,
        with all of its partitions.
    opt_in_qos
        QOS whose jobs have agreed, as by the comment ``ronda:requeue``.
    min_run_s
        Seconds for which a job runs, once started, before ronda stops it.
    actions_per_minute
        The most commands that it gives in a minute.
    lease_s
        Seconds after which a job that ronda lets wait is free, if ronda does not say so again.
    restart_s
        Seconds that a job which is stopped and started again is believed to lose.
    power
        Whether it powers nodes of `partitions` down and up, if the policy lets nodes sleep.
    awake
        Nodes that it leaves powered up at least.
    wake_s
        Seconds that a node is believed to take to wake.
    """

    partitions: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    opt_in_qos: tuple[str, ...] = ()
    min_run_s: NonNegative = 600.0
    actions_per_minute: Count = 60
    lease_s: Count = 300
    restart_s: NonNegative = 60.0
    power: bool = False
    awake: Index = 1
    wake_s: NonNegative = NodeDraw().wake_s

    def terms(self, job: SeenJob) -> "JobTerms":
        """Return what ronda may do with a job."""
        if _JOB.fullmatch(job.id) is None:  # a part of a heterogeneous job, say
            return UNTOUCHED
        allowed = (
            (self.partitions, job.partitions),
            (self.qos, (job.priority,)),
            (self.accounts, (job.tenant,)),
        )
        if any(names and not (own and {*own} <= {*names}) for names, own in allowed):
            return UNTOUCHED
        own = opted_in(job.comment) if job.told else None
        if own is None and job.told and job.priority in self.opt_in_qos:
            own = JobTerms(rank=True, place=True, stop=True)
        if own is None:
            return JobTerms(rank=any(names for names, _ in allowed))
        by_node = job.own_nodes and not job.exclusive and job.count == 1
        if not by_node or job.per_gpu:
            own = own._replace(speeds={})
        return own if job.preemptible else own._replace(stop=False, speeds={})

    def powered(self, found: Snapshot) -> list[SeenNode]:
        """Return the nodes that ronda may power down: in service, and in no other partitions."""
        own = {*self.partitions} if self.power else set[str]()
        return [n for n in found.nodes if n.out is None and n.partitions and own >= {*n.partitions}]


class JobTerms(NamedTuple):
    """What ronda may do with a job.

    Attributes
    ----------
    rank
        Set its priority while it waits.
    place
        Choose its nodes and its start.
    stop
        Stop it by a requeue.
    speeds
        Let it have other numbers of GPUs of one node, with its speed on each.
    """

    rank: bool = False
    place: bool = False
    stop: bool = False
    speeds: dict[int, float] = {}


UNTOUCHED = JobTerms()


def opted_in(comment: str | None) -> JobTerms | None:
    """Return what a job's comment lets ronda do; None if it says nothing that is understood."""
    found = _COMMENT.fullmatch((comment or "").strip())
    if found is None:
        return None
    if found[2] is None:
        return JobTerms(rank=True, place=True, stop=found[1] is not None)
    speeds = dict[int, float]()
    for entry in found[2].split("/"):
        gpus, _, speed = entry.partition(":")
        try:
            speeds[int(gpus)] = float(speed)
        except ValueError:
            return None
    if len(speeds) <= found[2].count("/") or min(speeds.values()) <= 0:
        return None
    return JobTerms(rank=True, place=True, stop=True, speeds=speeds)
