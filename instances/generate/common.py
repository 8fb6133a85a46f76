"""Shared parts of the generators: severities, sizes, estimates, and jobs that run as requested."""

from dataclasses import dataclass

import numpy as np
from msgspec.structs import asdict, replace

from ronda.instances.base import Record
from ronda.instances.cluster import Cluster
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation, Estimate, JobState, Option
from ronda.instances.models.power import gpu_power_w
from ronda.instances.models.throughput import plain_speed
from ronda.instances.profile import Profile
from ronda.instances.rules.problem import limits, one_of, show, too_many


class Parameters(Record, frozen=True, kw_only=True):
    """The parameters of a generator."""

    @property
    def changed(self) -> dict[str, float]:
        """The parameters with values other than their defaults, by name."""
        return {k: v for k, v in asdict(self).items() if v != getattr(type(self)(), k)}


@dataclass(frozen=True, slots=True)
class Severity:
    """The severity of an instance: how hard its limits bind.

    `demand` is the number of GPUs requested by the live jobs of a round, per GPU of the cluster.
    `load` is the number of GPU-seconds that the jobs of a horizon bring, per GPU-second of the
    cluster. `cap` is the power cap, and `energy` the mean power that the energy budget allows. Both
    are fractions between the power of all GPUs idle (0) and all GPUs busy at full clock with the
    most power-hungry application (1).
    """

    demand: float
    load: float
    cap: float
    energy: float


SEVERITIES = {
    "loose": Severity(demand=0.6, load=0.5, cap=1.0, energy=1.0),
    "balanced": Severity(demand=1.5, load=0.8, cap=0.8, energy=0.65),
    "tight": Severity(demand=4.0, load=1.1, cap=0.55, energy=0.4),
}
"""The severities by name, from loose to tight."""

START_S = 10.0  # a restart from a checkpoint takes 30 to 60 s in the artifact of ElasticFlow

SIZES = (1, 2, 4, 8, 16)
SIZE_SHARES = (0.5, 0.15, 0.15, 0.15, 0.05)  # most jobs in public traces request one GPU


def check(jobs: int, gpus: int | None, severity: str, seed: int) -> Severity:
    """Refuse arguments that are out of range, and return the named severity."""
    for name, value in (("jobs", jobs), ("gpus", gpus)):
        if value is not None and value < 1:
            raise InputError(name, str(value), "at least 1")
        if value is not None and too_many(name, name, value):
            raise InputError(name, show(value), limits().at_most(name))
    if seed < 0:
        raise InputError("seed", str(seed), "0 or more")
    if severity not in SEVERITIES:
        raise InputError("severity", show(severity), one_of(SEVERITIES))
    return SEVERITIES[severity]


def job_id(k: int, jobs: int) -> str:
    """Return the id of job k; ids sort in the order of the jobs."""
    return f"j{k:0{len(str(jobs - 1))}d}"


def estimate(rng: np.random.Generator, work: float, error: float) -> Estimate:
    """Return an unbiased estimate with a lognormal error, and its standard deviation."""
    believed = work * float(rng.lognormal(-(error**2) / 2, error))
    return Estimate(work=float(np.round(believed, 3)), sd=float(np.round(error * believed, 3)))


def started(
    state: JobState,
    placement: tuple[tuple[int, int], ...],
    cluster: Cluster,
    profile: Profile,
    began_s: float,
) -> JobState:
    """Return the job running on a placement since `began_s`, at full clock and base batch."""
    job, topology = state.job, cluster.topology
    index = int(topology.node_pool[placement[0][0]])
    pool, racks = topology.pools[index], topology.racks_of(node for node, _ in placement)
    gpu_type, batch = pool.gpu_type.name, profile.base_batch
    one_rack = pool.racks > 1 and racks == 1
    option = Option(
        pool=index,
        gpus=job.gpus,
        span="node" if len(placement) == 1 else "rack" if one_rack else "cluster",
        batch=batch,
        rate=plain_speed(profile, gpu_type, job.gpus, len(placement), batch, racks),
        power_w=job.gpus * float(gpu_power_w(profile.power[gpu_type])),
    )
    allocation = Allocation(option=option, placement=placement)
    return replace(state, since_s=began_s, held_s=began_s, started=True, allocation=allocation)
