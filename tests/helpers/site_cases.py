"""Rounds of rigid jobs on nodes of 8 GPUs, written out by hand for the rules of a site."""

from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.job import Allocation, Costs, Estimate, Job, JobState, Option
from ronda.instances.profile import Profile, Rigid
from ronda.instances.round import Round
from ronda.instances.site import NO_SITE

NOW_S = 3600.0


def rigid(name, gpus, weight=1.0, **fields):
    """Return a job of an hour that is worth its weight, over ten times its seconds."""
    return Job(
        id=name,
        submit_s=0.0,
        profile="rigid",
        gpus=gpus,
        weight=weight,
        estimate=Estimate(work=3600.0),
        **fields,
    )


def round_of(*jobs, nodes=1, site=NO_SITE, since_s=0.0, **fields):
    """Return a round of jobs that wait, or of pairs (job, placement) that run since `since_s`."""
    states = []
    for each in jobs:
        job, placement = each if isinstance(each, tuple) else (each, ())
        if not placement:
            states.append(JobState(job=job, since_s=0.0))
            continue
        option = Option(pool=0, gpus=job.gpus, span="node" if len(placement) == 1 else "cluster")
        held = Allocation(option=option, placement=placement)
        states.append(
            JobState(job=job, since_s=since_s, held_s=since_s, started=True, allocation=held)
        )
    fields.setdefault("costs", Costs())
    fields.setdefault(
        "cluster",
        Cluster(
            gpu_types=(GpuType(name="A", memory_gib=16.0),),
            node_groups=(NodeGroup(name="n", count=nodes, gpus_per_node=8, gpu_type="A"),),
        ),
    )
    return Round(
        now_s=NOW_S,
        profiles={"rigid": Profile(name="rigid", throughput={"A": Rigid()})},
        running=tuple(s for s in states if s.allocation is not None),
        waiting=tuple(s for s in states if s.allocation is None),
        site=site,
        **fields,
    )


def disturbed(round_, plan):
    """Return the running jobs that do not go on under a plan, in order of their names."""
    then = plan.allocations
    return sorted(i for i, a in round_.held.items() if i not in then or not a.goes_on(then[i]))
