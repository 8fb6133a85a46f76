"""Speed of placement: options on nodes, from scratch and again after a tenth of them changed.

The jobs' GPU counts are powers of two and together take the whole cluster, so that nothing may be
lost to fragmentation. The second time the first placement runs, but a tenth of the jobs, drawn at
random, have ended, and new jobs want the GPUs that these have left here and there: as whole nodes.
So other jobs must move, as few as may be.
"""

import statistics
import time
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ronda.bench.speed.cases import tell
from ronda.formulations.placement.answer import Placed
from ronda.formulations.placement.placer import place
from ronda.instances import generate
from ronda.instances.arrays import Ints, Mask
from ronda.instances.job import JobState, Option
from ronda.instances.round import Round

NODE_GPUS = 8
"""GPUs of a node."""

LARGEST = 64
"""Most GPUs of a job."""

ENDED = 10
"""One job in ten has ended the second time."""

REPEATS = 7


class Timed(NamedTuple):
    """A placement, and the median seconds that it takes: by the clock, and of this process."""

    placed: Placed
    wall_s: float
    cpu_s: float


def measure_placement(jobs: int, seed: int) -> dict[str, Any]:
    """Time both placements on the smallest power of two of GPUs that gives each job two."""
    rng = np.random.default_rng([seed, 5])
    gpus = max(NODE_GPUS, 1 << (2 * jobs - 1).bit_length())
    tell(f"placement: {jobs:,} jobs on {gpus:,} GPUs ...")
    round_ = _waiting(generate.round(jobs, gpus, "loose", seed))
    sizes = drawn_sizes(jobs, gpus, rng)
    first = _timed(round_, sizes)
    ended = rng.permutation(jobs)[: jobs // ENDED]
    wanted = sizes.copy()
    wanted[ended] = 0
    new = ended[: int(sizes[ended].sum()) // NODE_GPUS]
    wanted[new] = NODE_GPUS
    again = _timed(_running(round_, first.placed, sizes == wanted), wanted)
    tell(f"placement: {jobs:,} jobs: {first.wall_s:.3f} s, again {again.wall_s:.3f} s")
    return {
        "gpus": gpus,
        "total_s": first.wall_s,
        "seed": seed,
        "cpu_s": first.cpu_s,
        "unplaced": len(first.placed.unplaced),
        "again_s": again.wall_s,
        "again_cpu_s": again.cpu_s,
        "again_ended": len(ended),
        "again_new": len(new),
        "again_moved": len(again.placed.moved),
        "again_unplaced": len(again.placed.unplaced),
    }


def drawn_sizes(jobs: int, gpus: int, rng: np.random.Generator) -> Ints:
    """Return (J,) GPU counts, powers of two up to `LARGEST`, that add up to `gpus`.

    All begin with one GPU. The job of a GPU drawn at random doubles if it fits, so that the large
    ones grow faster: most jobs are small, and a few have several nodes.
    """
    sizes, owners = [1] * jobs, list(range(jobs))
    while len(owners) < gpus:
        job = owners[rng.integers(len(owners))]
        if sizes[job] <= min(gpus - len(owners), LARGEST // 2):
            owners += [job] * sizes[job]
            sizes[job] *= 2
    return np.array(sizes, dtype=np.int64)


def _waiting(round_: Round) -> Round:
    """Return a round in which no job runs."""
    jobs = sorted(round_.jobs, key=lambda state: state.job.id)
    states = tuple(msgspec.structs.replace(state, allocation=None) for state in jobs)
    return msgspec.structs.replace(round_, running=(), waiting=states)


def _running(round_: Round, placed: Placed, stays: Mask) -> Round:
    """Return the round in which the jobs that stay run where they have been placed."""
    running: list[JobState] = []
    waiting: list[JobState] = []
    for state, kept in zip(round_.waiting, stays.tolist(), strict=True):
        allocation = placed.allocations.get(state.job.id) if kept else None
        into = waiting if allocation is None else running
        into.append(msgspec.structs.replace(state, allocation=allocation))
    return msgspec.structs.replace(round_, running=tuple(running), waiting=tuple(waiting))


def _timed(round_: Round, sizes: Ints) -> Timed:
    """Place the jobs with GPUs `REPEATS` times and return the medians."""
    options = {
        gpus: Option(pool=0, gpus=gpus, span="node" if gpus <= NODE_GPUS else "cluster")
        for gpus in set(sizes.tolist()) - {0}
    }
    ids = sorted(state.job.id for state in round_.jobs)
    chosen = {job: options[n] for job, n in zip(ids, sizes.tolist(), strict=True) if n}
    wall_s, cpu_s = [], []
    for _ in range(REPEATS):
        began, began_cpu = time.perf_counter(), time.process_time()
        placed = place(round_, chosen)
        wall_s.append(time.perf_counter() - began)
        cpu_s.append(time.process_time() - began_cpu)
    return Timed(placed, statistics.median(wall_s), statistics.median(cpu_s))
