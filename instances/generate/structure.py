"""The structure of generated rounds and horizons: all properties apart from their severity.

Every parameter has its own random numbers, so that changing one parameter does not affect what the
others draw.
"""

from typing import NamedTuple

import numpy as np

from ronda.instances.errors import refuse_beyond
from ronda.instances.generate.applications import GPU_TYPES
from ronda.instances.generate.common import Parameters


class Structure(Parameters, frozen=True, kw_only=True):
    """The structure of a generated cluster and its jobs; by default one rack of equal nodes.

    Attributes
    ----------
    types
        Number of GPU types, 1 to 3 of A100, V100 and T4, each with an equal share of the nodes. A
        rigid job runs on one of them, an elastic job on any.
    partitions
        Number of virtual clusters, each with an equal share of the nodes. A job belongs to one of
        them.
    pods
        Number of pods; jobs are slower across racks and pods.
    racks
        Number of racks in each pod; every pool has nodes in every rack.
    deadlines
        Fraction of jobs with a deadline: 1.5 to 4 times the run time of the job alone as requested.
    gangs
        Fraction of jobs that run only on exactly 1/2, 3/4 or all GPUs of a pool. They take about as
        long as they would if they were small.
    restart_s
        Cost of a change or a resumption in seconds; try 0 to 600.
    error
        Error of the estimates: standard deviation of log(estimate / truth). With 0, sizes are
        known.
    """

    types: int = 1
    partitions: int = 1
    pods: int = 1
    racks: int = 1
    deadlines: float = 0.0
    gangs: float = 0.0
    restart_s: float = 30.0
    error: float = 0.4

    def __post_init__(self) -> None:
        """Refuse parameters that are out of range."""
        for name, most in (("types", len(GPU_TYPES)), ("partitions", 0), ("pods", 0), ("racks", 0)):
            refuse_beyond(name, getattr(self, name), 1, most or float("inf"))
        for name, most in (("deadlines", 1), ("gangs", 1), ("restart_s", 3600), ("error", 2)):
            refuse_beyond(name, getattr(self, name), 0, most)


PLAIN = Structure()


class Traits(NamedTuple):
    """The traits of one job, drawn for a structure.

    They are its partition, the GPU type of a rigid job, the share of a pool that a gang requests (0
    for any other job), and the ratio of its deadline to its run time alone (infinite without a
    deadline).
    """

    partition: str
    gpu_type: str
    gang: float
    slack: float


def traits(structure: Structure, jobs: int, seed: int) -> list[Traits]:
    """Return the traits of every job."""
    draws = np.random.default_rng([seed, 4]).random((6, jobs))
    names = partition_names(structure)
    return [
        Traits(
            partition=names[int(owner * len(names))],
            gpu_type=GPU_TYPES[int(kind * structure.types)].gpu.name,
            gang=(0.5, 0.75, 1.0)[int(width * 3)] if gang < structure.gangs else 0.0,
            slack=1.5 + slack * 2.5 if due < structure.deadlines else float("inf"),
        )
        for owner, kind, gang, width, due, slack in draws.T.tolist()
    ]


def partition_names(structure: Structure) -> list[str]:
    """Return the names of the partitions; a single one is the default partition."""
    if structure.partitions == 1:
        return ["default"]
    return [f"vc{k}" for k in range(structure.partitions)]
