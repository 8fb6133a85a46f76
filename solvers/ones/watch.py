"""What ONES sees of its jobs since the last tick: samples, epochs, speeds, losses."""

from math import log

from ronda.formulations.prediction.progress import MAX_INITIAL_LOSS
from ronda.instances.job import JobState
from ronda.solvers.ones.memory import Member, Memory
from ronda.solvers.ones.ways import Ways

PAST = 256
"""Finished jobs that are remembered, the last ones: a process may run for months."""


def look(
    memory: Memory,
    states: dict[str, JobState],
    ways: dict[str, Ways],
    epochs: dict[str, float],
    now_s: float,
) -> None:
    """Bring the memory, as the last tick left it, up to date with the round's live jobs.

    `epochs` are the samples of an epoch of each job.
    """
    _bury(memory, states)
    passed_s = now_s - memory.now_s
    for job_id, state in states.items():
        if job_id not in memory.members:
            size = ways[job_id].sizes()
            least = int(size[size > 0].min(initial=1))
            held = state.allocation.option.gpus if state.allocation is not None else 0
            done = _done(state, ways[job_id], now_s)
            memory.members[job_id] = Member(limit=max(least, held), samples=done, done=done)
        elif state.allocation is not None:
            _progress(memory, state, ways[job_id], epochs[job_id], now_s, passed_s)
    memory.now_s = now_s


def _bury(memory: Memory, states: dict[str, JobState]) -> None:
    """Turn the logs of jobs that are gone into history."""
    for job_id in [i for i in memory.members if i not in states]:
        member = memory.members.pop(job_id)
        memory.speeds.pop(job_id, None)
        rows = memory.rows.pop(job_id, [])
        total = member.samples
        shares = [samples / total for *_, samples in rows if samples < total]
        if shares:
            memory.ended += 1
            kept = [row[:-1] for row in rows[: len(shares)]]
            memory.past[job_id] = {"number": memory.ended, "rows": kept, "done": shares}
    for job_id in list(memory.past)[:-PAST]:
        del memory.past[job_id]


def _done(state: JobState, ways: Ways, now_s: float) -> float:
    """Return the work done by now, at the speed on the nodes that the job really has."""
    held = state.allocation
    if held is None:
        return state.done
    option = held.option
    speed = ways.samples_per_s(option.gpus, len(held.placement), option.batch)
    return state.done + speed * ways.worth(option.batch) * max(0.0, now_s - state.since_s)


def _progress(
    memory: Memory, state: JobState, ways: Ways, epoch: float, now_s: float, passed_s: float
) -> None:
    """Count the samples of a running job, and log the epoch that it may have completed."""
    job_id, held = state.job.id, state.allocation
    assert held is not None
    member, option = memory.members[job_id], held.option
    done = max(member.done, _done(state, ways, now_s))
    before = member.epochs(epoch)
    samples = member.samples + (done - member.done) / ways.worth(option.batch)
    memory.change(job_id, samples=samples, done=done, ran_s=member.ran_s + passed_s)
    if memory.members[job_id].epochs(epoch) > before:
        speed = ways.samples_per_s(option.gpus, len(held.placement), option.batch)
        memory.measure(job_id, option.gpus, speed)
        row = [*features(state, epoch, samples), samples]
        memory.rows[job_id] = [*memory.rows.get(job_id, []), row]


def features(state: JobState, epoch: float, samples: float) -> list[float]:
    """Return a job's features, see `ronda.formulations.prediction.progress.FEATURES`.

    A job whose losses are not observed has the same constants for them as all such jobs.
    """
    seen = state.log
    initial = 1.0 if seen is None else min(seen.initial_loss, MAX_INITIAL_LOSS)
    loss = initial if seen is None else seen.loss
    accuracy = 0.0 if seen is None else seen.accuracy
    return [log(epoch), initial, samples / epoch, 1.0 - loss / initial, accuracy]
