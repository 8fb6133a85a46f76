"""Why a job that waits does not start in another place: a GPU model, a partition or a node.

This is a question of a cluster as it is, about the earliest start. What it would cost others if a
plan of a round had the job there, is the question of `ronda.questions.not_there`.
"""

import difflib
from dataclasses import dataclass
from math import inf

from msgspec.structs import replace

from ronda.instances.errors import InputError
from ronda.instances.snapshots.snapshot import SeenJob, Snapshot
from ronda.questions.why.earliest import WaitingJob
from ronda.questions.why.reason import Dominant, dominant
from ronda.questions.why.replay import Replay, delayed, replay


@dataclass(frozen=True)
class Elsewhere:
    """A job in another place, in words: a GPU model, a partition or a node.

    Its reason, starts and delays are those of `ronda.questions.why.answer.Why`, and the delays are
    of a start there at `start_s`.
    """

    place: str
    reason: Dominant
    start_s: float
    replay: Replay
    delays: list[tuple[str, float]] | None


def elsewhere(waiting: WaitingJob, name: str, seconds: float = 1.0) -> Elsewhere:
    """Return what would hold a job back in another place, and when it could start there.

    Raise InputError if the cluster has no model, partition or node of that name.
    """
    room = waiting.outlook
    job, place = _moved(room.snapshot, waiting.job, name)
    there = WaitingJob(room, job)
    rule, start_s = replay(room, job, seconds), there.start()
    late = delayed(room, job, start_s, rule, seconds) if start_s < inf else None
    return Elsewhere(place, dominant(there), start_s, rule, late)


def _moved(snapshot: Snapshot, job: SeenJob, name: str) -> tuple[SeenJob, str]:
    """Return a job as it would ask for another place, and the place in words."""
    models = {node.gpu_type for node in snapshot.nodes if node.gpu_type is not None}
    partitions = {one for node in snapshot.nodes for one in node.partitions}
    for model in models:
        if model.lower() == name.lower():
            return replace(job, gpu_types=(model,)), f"on {model} GPUs"
    if name in partitions:
        return replace(job, partitions=(name,), nodes=()), f"in partition {name}"
    if any(node.name == name for node in snapshot.nodes):
        return replace(job, nodes=(name,), not_nodes=()), f"on node {name}"
    known = sorted(models | partitions)
    near = difflib.get_close_matches(name, known, 3) or known[:5]
    expected = f"a GPU model, partition or node, such as {', '.join(near)}"
    raise InputError("--not", repr(name), expected)
