"""The commands that ronda may give to Slurm: all that it can do, as words of ``scontrol``.

None of them holds a job for good or cancels it. A job that is to wait gets a later begin time,
which passes by itself if ronda dies (*a lease*); a job that is stopped is requeued, and Slurm
starts it again by itself.
"""

from collections.abc import Iterable, Sequence

from ronda.instances.base import Record

MOST_JOBS = 200
"""The most jobs that one command names."""


class SlurmCommand(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A command, and why it is given.

    Attributes
    ----------
    words
        The words behind ``scontrol``.
    names
        The jobs, or the nodes, that it changes.
    reason
        Why, as a sentence for the audit log.
    """

    words: tuple[str, ...]
    names: tuple[str, ...]
    reason: str

    @property
    def line(self) -> str:
        """The command as it is typed; no word of it needs quotes."""
        return " ".join(("scontrol", *self.words))


def ranks(jobs: Sequence[str], priority: int, reason: str) -> Iterable[SlurmCommand]:
    """Yield commands that give some waiting jobs one priority."""
    for at in range(0, len(jobs), MOST_JOBS):
        named = (*jobs[at : at + MOST_JOBS],)
        words = ("update", f"JobId={','.join(named)}", f"Priority={priority}")
        yield SlurmCommand(words=words, names=named, reason=reason)


def lease(job: str, seconds: int, reason: str) -> SlurmCommand:
    """Return the command that lets a waiting job wait for some more seconds, and no longer."""
    words = ("update", f"JobId={job}", f"StartTime=now+{seconds}")
    return SlurmCommand(words=words, names=(job,), reason=reason)


def ready(
    job: str,
    reason: str,
    *,
    nodes: Sequence[str] | None = None,
    gres: str | None = None,
    limit_min: int | None = None,
    now: bool = False,
) -> SlurmCommand:
    """Return the command that makes a waiting job ready to start.

    Parameters
    ----------
    nodes
        The nodes that it is to have, all of them; an empty list takes chosen ones back.
    gres
        The GPUs that it is to have on its node, such as ``gpu:a100:4``.
    limit_min
        Its time limit in minutes.
    now
        Whether its begin time is over.
    """
    words = ["update", f"JobId={job}"]
    words += [] if gres is None else [f"Gres={gres}"]
    words += [] if limit_min is None else [f"TimeLimit={limit_min}"]
    words += [] if nodes is None else [f"ReqNodeList={','.join(nodes)}"]
    words += ["StartTime=now"] if now else []
    return SlurmCommand(words=(*words,), names=(job,), reason=reason)


def requeue(job: str, reason: str) -> SlurmCommand:
    """Return the command that stops a running job, which Slurm starts again after a while.

    Without ``incomplete``, a job that has just ended would run once more.
    """
    return SlurmCommand(words=("requeue", "incomplete", job), names=(job,), reason=reason)


def release(job: str, reason: str) -> SlurmCommand:
    """Return the command by which Slurm works out the priority of a waiting job by itself again.

    It is given at the end alone, as it would also end a hold.
    """
    return SlurmCommand(words=("release", job), names=(job,), reason=reason)


def power(node: str, *, on: bool, reason: str) -> SlurmCommand:
    """Return the command that powers a node down or up."""
    words = ("update", f"NodeName={node}", f"State=POWER_{'UP' if on else 'DOWN'}")
    return SlurmCommand(words=words, names=(node,), reason=reason)
