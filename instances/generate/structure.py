"""The structure of generated rounds and horizons: what differs apart from how hard limits bind.

Every parameter has draws of its own, so that one changes nothing that another decides.
"""

from typing import NamedTuple

import numpy as np

from ronda.instances.errors import InputError
from ronda.instances.generate.applications import GPU_TYPES
from ronda.instances.generate.common import Parameters


def _within(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        expected = f"{least:g} or more" if most == float("inf") else f"{least:g} to {most:g}"
        raise InputError(name, f"{value:g}", expected)


class Structure(Parameters, frozen=True, kw_only=True):
    """The structure of a generated cluster and its jobs; by default one rack of equal nodes.

    Attributes
    ----------
    types
        GPU types, 1 to 3, an equal share of the nodes each: A100, V100 and T4. A rigid job runs on
        one of them, an elastic one on any.
    partitions
        Virtual clusters, an equal share of the nodes each; a job belongs to one.
    pods
        Pods; jobs are slower across racks and pods.
    racks
        Racks in each pod; every pool has nodes in all of them.
    deadlines
        Share of jobs with a deadline: 1.5 to 4 times what they take alone as they ask.
    gangs
        Share of jobs that run on 1/2, 3/4 or all GPUs of a pool and no other number; they take
        about as long as if they were small.
    restart_s
        Seconds that a change or a resumption costs; try 0 to 600.
    error
        How wrong estimates are: standard deviation of log(estimate / truth); 0: sizes are known.
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
        """Refuse what is out of range."""
        for name, most in (("types", len(GPU_TYPES)), ("partitions", 0), ("pods", 0), ("racks", 0)):
            _within(name, getattr(self, name), 1, most or float("inf"))
        for name, most in (("deadlines", 1), ("gangs", 1), ("restart_s", 3600), ("error", 2)):
            _within(name, getattr(self, name), 0, most)


PLAIN = Structure()


class Traits(NamedTuple):
    """The traits of one job, drawn for a structure.

    Its partition; the GPU type of a rigid one; the share of a pool that it wants as a gang (0: it
    is none); its deadline over the time that it takes alone (infinite: it has none).
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
