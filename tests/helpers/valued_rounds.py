"""Rounds of jobs on one big node, for what values options."""

import msgspec

from ronda.formulations.objectives.by_name import minds_power, values
from ronda.formulations.options.build import build
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.job import Allocation, Costs, Estimate, Job, JobState, Option
from ronda.instances.profile import Profile, Tabular, rigid_profile
from ronda.instances.round import Round


def cluster(gpus=64, partitions=("default",)):
    """Return one big node in each partition."""
    return Cluster(
        gpu_types=(GpuType(name="V100", memory_gib=16, idle_w=30.0, clocks=(0.5, 1.0)),),
        node_groups=tuple(
            NodeGroup(name=p, count=1, gpus_per_node=gpus, gpu_type="V100", partition=p)
            for p in partitions
        ),
    )


def power_law(p, gpus=(1, 2, 4, 8, 16, 32, 64)):
    """Return a profile whose rate with n GPUs is n^p: a batch of 1 in n^-p seconds."""
    model = Tabular(
        gpus=gpus,
        nodes=(1,) * len(gpus),
        local_batch=tuple(1 / n for n in gpus),
        step_s=tuple(n**-p for n in gpus),
        sync_s=(0.0,) * len(gpus),
    )
    return Profile(name=f"p{p}", throughput={"V100": model})


PROFILES = {f"p{p}": power_law(p) for p in (0.3, 0.5, 0.9)} | {"rigid": rigid_profile("V100")}
COSTS = Costs(start_s=20.0, restart_s=60.0)


def job(name, work=100.0, profile="p0.5", done=0.0, **fields):
    """Return a waiting job that an elastic policy may give 1 to 64 GPUs."""
    estimate = None if work is None else Estimate(work=work)
    given = {"submit_s": 0.0, "min_gpus": 1, "max_gpus": 64, "estimate": estimate} | fields
    return JobState(job=Job(id=name, profile=profile, **given), since_s=0.0, done=done)


def rigid(name, seconds, gpus=1, **fields):
    """Return a waiting rigid job."""
    return job(name, seconds, "rigid", gpus=gpus, min_gpus=None, max_gpus=None, **fields)


def run(state, gpus, rate, since_s=0.0, batch=1.0):
    """Return the job running on some GPUs of node 0."""
    held = Option(pool=0, gpus=gpus, span="node", batch=batch, rate=rate)
    allocation = Allocation(option=held, placement=((0, gpus),))
    return msgspec.structs.replace(state, allocation=allocation, started=True, since_s=since_s)


def snapshot(*states, on=None, **fields):
    """Return a round of these jobs."""
    fields = {"cluster": on or cluster(), "profiles": PROFILES} | fields
    return Round(
        running=tuple(s for s in states if s.allocation is not None),
        waiting=tuple(s for s in states if s.allocation is None),
        **fields,
    )


def value_of(round, objective="rank", **params):
    """Return the table and its values."""
    table = build(round, mind_power=minds_power(objective))
    return table, values(round, table, objective, **params)
