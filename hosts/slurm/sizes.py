"""What is believed of the sizes of jobs, from jobs that have ended on the cluster.

Slurm knows a job's time limit, which its user guessed, often many times too long. **Ended jobs
teach** if they ran once, to their own end: a failure, a cancellation and a time limit say little of
a size, and nobody knows where a job that was started anew went on. Jobs of one user are alike;
those with one name, less a number at its end, are more so, and of these those on as many GPUs.
Compare the QSSF service of Helios (Hu et al., SC'21). **Live jobs** are believed to be no longer
than their limit, which Slurm enforces, and to go on if they run. Jobs of a user of whom none has
ended have the sizes of their limits.

Sizes are seconds on the GPUs that a job asked for, and the rounds those of
`ronda.instances.snapshots.rounds`, in which all jobs are rigid.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from ronda.horizon.beliefs import Beliefs, Level, SavedBeliefs
from ronda.hosts.adapters.believing import by_name
from ronda.instances.base import Record
from ronda.instances.errors import InputError
from ronda.instances.files.storage import label
from ronda.instances.job import Estimate, Job, JobState
from ronda.instances.round import Round
from ronda.instances.snapshots.snapshot import EndedJob
from ronda.instances.traces.door import log_runs

T = TypeVar("T")

KINDS, OF_EACH = 2000, 20
"""The number of kinds of jobs that are remembered, the last ones to end, and of jobs of each."""


class PastSizes(Record, frozen=True):
    """The GPUs and seconds of ended jobs, by kind and id, of the last ones to end."""

    kinds: dict[str, dict[str, tuple[int, float]]] = {}

    def told(self, ended: Iterable[EndedJob]) -> "PastSizes":
        """Return it with more ended jobs, each of them once however often it is told."""
        kinds = dict(self.kinds)
        for each in ended:
            if each.whole and each.gpus and each.ran_s > 0:
                known = kinds.pop(_kind(each), {})
                kinds[_kind(each)] = _last(known | {each.id: (each.gpus, each.ran_s)}, OF_EACH)
        return PastSizes(_last(kinds, KINDS))

    def believe(self, round: Round) -> Round:
        """Return a round with the sizes that are believed."""
        past: dict[str, list[tuple[Level, float]]] = {}
        live = {_kind(state.job) for state in round.jobs}
        for kind, known in sorted(self.kinds.items(), key=lambda item: item[0] in live):
            own = past.setdefault(_user(kind), [])
            own += [((_user(kind), kind, gpus), ran_s) for gpus, ran_s in known.values()]
        # of each user the last `REMEMBERED` of these count
        beliefs = Beliefs(history=True, alike=lambda job: _user(job.user), speeds=False)
        beliefs.restore(SavedBeliefs(past, measured=[], profiles={}, began={}, first={}))

        def unsized(states: Iterable[JobState]) -> tuple[JobState, ...]:
            known = [state for state in states if _user(_kind(state.job)) in past]
            return tuple(
                replace(s, job=replace(s.job, estimate=None, user=_kind(s.job))) for s in known
            )

        seen = replace(round, waiting=unsized(round.waiting), running=unsized(round.running))
        sizes = {state.job.id: state.job.estimate for state in beliefs.believe(seen).jobs}

        def sized(state: JobState) -> JobState:
            size, left_s = sizes.get(state.job.id), state.may_hold_s(round.now_s)
            if size is None or left_s <= 0:
                return state
            most = state.done_at(round.now_s) + left_s
            size = size if size.work < most else Estimate(work=most)
            return replace(state, job=replace(state.job, estimate=size))

        waiting, running = (tuple(map(sized, of)) for of in (round.waiting, round.running))
        return replace(round, waiting=waiting, running=running)


def ended_in_log(files: Sequence[Path]) -> list[EndedJob]:
    """Return the ended jobs of a log such as sacct's, the last one to end last.

    Raises
    ------
    InputError
        If the log cannot be read, or none of its jobs has a user.
    """
    found: dict[str, tuple[float, EndedJob]] = {}
    for run in log_runs(files).runs:
        if run.started and run.user:
            job = EndedJob(
                id=run.job,
                name=run.name or None,
                user=run.user,
                gpus=int(run.gpus),
                ran_s=run.ran_s,
                whole=run.state == "COMPLETED" and run.job not in found,
            )
            found[run.job] = run.end_s, job
    if not found:
        expected = "some, as of sacct -a -D -P with User and JobName in its --format"
        raise InputError(" ".join(map(label, files[:3])), "no job with a user", expected)
    return [job for _, job in sorted(found.values(), key=lambda pair: pair[0])]


def _kind(job: Job | EndedJob) -> str:
    """Return the user of a job, and its name without its number."""
    return f"{job.user or ''}/{by_name(job.name or '')}"


def _user(kind: str | None) -> str:
    return (kind or "").partition("/")[0]


def _last(known: dict[str, T], most: int) -> dict[str, T]:
    """Return the entries that came last."""
    return dict(list(known.items())[-most:])
