"""Speed of placement: options on nodes, from scratch and again after a tenth of them changed."""

from typing import Any

import numpy as np
from msgspec.structs import replace

from lab.speed.cases import case, timed
from ronda.formulations.placement.requests import Placed, place
from ronda.instances import generate
from ronda.instances.base import Ints, Mask
from ronda.instances.job import Option
from ronda.instances.round import Round

NODE_GPUS, LARGEST = 8, 64
"""GPUs of a node, and most GPUs of a job."""


@case("1000")
def measure_placement(jobs: int, seed: int = 0) -> dict[str, Any]:
    """Time placing given options on the least power of two of GPUs that is 2 a job.

    Median of 7. GPU counts are powers of two and together take the whole cluster, so that nothing
    may be lost to fragmentation. again_s: the first placement runs, but a tenth of the jobs, drawn
    at random, have ended, and new jobs want the GPUs that these have left here and there: as whole
    nodes. So other jobs must move, as few as may be.
    """
    rng = np.random.default_rng([seed, 5])
    gpus = max(NODE_GPUS, 1 << (2 * jobs - 1).bit_length())
    made = generate.round(jobs, gpus, "loose", seed)
    states = sorted(made.jobs, key=lambda state: state.job.id)
    waiting = tuple(replace(state, allocation=None) for state in states)
    round_ = replace(made, running=(), waiting=waiting)
    sizes = drawn_sizes(jobs, gpus, rng)
    first, total_s, cpu_s = _placed(round_, sizes)
    ended = rng.permutation(jobs)[: jobs // 10]
    wanted = sizes.copy()
    wanted[ended] = 0
    new = ended[: int(sizes[ended].sum()) // NODE_GPUS]
    wanted[new] = NODE_GPUS
    again, again_s, again_cpu_s = _placed(_running(round_, first, sizes == wanted), wanted)
    return {
        "gpus": gpus,
        "total_s": total_s,
        "cpu_s": cpu_s,
        "unplaced": len(first.unplaced),
        "again_s": again_s,
        "again_cpu_s": again_cpu_s,
        "again_ended": len(ended),
        "again_new": len(new),
        "again_moved": len(again.moved),
        "again_unplaced": len(again.unplaced),
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


def _running(round_: Round, placed: Placed, stays: Mask) -> Round:
    held = [placed.allocations.get(state.job.id) for state in round_.waiting]
    kept = [a if stay else None for a, stay in zip(held, stays.tolist(), strict=True)]
    states = [replace(s, allocation=a) for s, a in zip(round_.waiting, kept, strict=True)]
    running, waiting = (tuple(s for s in states if bool(s.allocation) is b) for b in (True, False))
    return replace(round_, running=running, waiting=waiting)


def _placed(round_: Round, sizes: Ints) -> tuple[Placed, float, float]:
    """Place the jobs with GPUs several times; return the median seconds, too."""
    options = {
        gpus: Option(pool=0, gpus=gpus, span="node" if gpus <= NODE_GPUS else "cluster")
        for gpus in set(sizes.tolist()) - {0}
    }
    ids = sorted(state.job.id for state in round_.jobs)
    chosen = {job: options[n] for job, n in zip(ids, sizes.tolist(), strict=True) if n}
    return timed(lambda: place(round_, chosen), repeats=7)
