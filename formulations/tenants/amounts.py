"""What options and jobs hold of a resource, for quotas.

A part of a GPU counts as its share of the GPU, a job in an array as its even share of the array's
GPU. What a job needs of hosts counts on the fewest nodes that hold its GPUs.
"""

import numpy as np

from ronda.formulations.options.table import OptionTable
from ronda.instances.base import Floats
from ronda.instances.cluster import Pool
from ronda.instances.job import Job, JobState, Need, Option
from ronda.instances.site import GPUS


def held(pool: Pool, job: Job, option: Option, of: str) -> float:
    """Return the amount of a resource that a job holds with an option in a pool."""
    if of in (GPUS, pool.gpu_type.name):
        return option.gpus / option.width * (pool.gpu_type.fraction(job.part, job.share) or 1.0)
    need, nodes = job.needs.get(of, Need()), -(-option.gpus // pool.gpus_per_node)
    whole = need.per_gpu * option.computing + need.per_node * nodes + need.flat
    return whole / option.width


def amounts(table: OptionTable, of: str) -> Floats:
    """Return the amount of a resource that each option holds, shape (K,)."""
    names = [pool.gpu_type.name for pool in table.pools]
    if of == GPUS or of in names:
        counted = np.array([of in (GPUS, name) for name in names], dtype=float)[table.pool]
        found = counted * table.gpus / table.width
        for j, state in enumerate(table.jobs):
            if state.job.part is not None or state.job.share is not None:
                own = slice(int(table.start[j]), int(table.start[j + 1]))
                part, share = state.job.part, state.job.share
                each = [pool.gpu_type.fraction(part, share) or 1.0 for pool in table.pools]
                found[own] *= np.array(each)[table.pool[own]]
        return np.asarray(found)
    found, computing = np.zeros(len(table)), table.gpus if table.asked is None else table.asked
    per_node = np.array([pool.gpus_per_node for pool in table.pools])
    for j, state in enumerate(table.jobs):
        need = state.job.needs.get(of)
        if need is not None:
            own = slice(int(table.start[j]), int(table.start[j + 1]))
            nodes = -(-table.gpus[own] // per_node[table.pool[own]])
            whole = need.per_gpu * computing[own] + need.per_node * nodes + need.flat
            found[own] = whole / table.width[own]
    return found


def left_s(state: JobState, now_s: float) -> float:
    """Return the seconds until a job's time limit, infinite without one."""
    limit_s = state.job.limit_s
    return np.inf if limit_s is None else max(0.0, limit_s - state.ran_at(now_s))
