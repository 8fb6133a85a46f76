"""Tiny rounds whose jobs ask for parts, fractions, or whole GPUs of one type."""

from msgspec.structs import replace

from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.job import Allocation, Estimate, Job, JobState, Option
from ronda.instances.profile import PowerCurve, Profile, Rigid
from ronda.instances.round import Round

GPU = GpuType(name="A100-40", memory_gib=40, idle_w=50)
"""A GPU that idles at 50 W, and draws 350 W when busy."""

PROFILE = Profile(
    name="rigid", throughput={GPU.name: Rigid()}, power={GPU.name: PowerCurve(a_w=350)}
)

PARTS = {
    "1g": "1g.5gb",
    "1g+me": "1g.5gb+me",
    "1g2": "1g.10gb",
    "2g": "2g.10gb",
    "3g": "3g.20gb",
    "4g": "4g.20gb",
    "7g": "7g.40gb",
}
"""Short names of the profiles of the GPU."""

Asked = str | float | int
"""A short name of a profile, a fraction of a GPU, or a number of whole GPUs."""


def cut_cluster(nodes=1, gpus=1, *, recut="free", gpu=GPU, **fields):
    """Return a cluster of equal nodes."""
    group = NodeGroup(
        name="g", count=nodes, gpus_per_node=gpus, gpu_type=gpu.name, recut=recut, **fields
    )
    return Cluster(gpu_types=(gpu,), node_groups=(group,))


def asking(job, asked: Asked, **fields):
    """Return a job that asks for a profile, a fraction of a GPU, or whole GPUs."""
    if isinstance(asked, str):
        fields["part"] = PARTS.get(asked, asked)
    elif isinstance(asked, float):
        fields["share"] = asked
    else:
        fields["gpus"] = asked
    fields = {"estimate": Estimate(work=3600.0)} | fields
    return Job(id=job, submit_s=0.0, profile="rigid", **fields)


def on(job, node=0, gpu=0, start=0, gpu_type=GPU):
    """Return the allocation of a job on a part or a fraction of a GPU, or on whole GPUs."""
    share = gpu_type.fraction(job.part, job.share)
    own = job.gpus if share is None else share
    option = Option(
        pool=0,
        gpus=job.gpus,
        span="node",
        rate=gpu_type.speed(job.part, job.share),
        power_w=350.0 * own,
        part=job.part,
        share=share,
    )
    parts = () if share is None else ((node, gpu, start),)
    return Allocation(option=option, placement=((node, job.gpus),), parts=parts)


def cut_round(waiting=None, running=None, *, cluster=None, jobs=None, **fields):
    """Return a round with jobs by name: what waiting ones ask for, and where others run.

    Running jobs are pairs of what they ask for and (node, GPU, start). `jobs` has further fields of
    jobs by name.
    """
    jobs = jobs or {}
    held = []
    for name, (asked, place) in (running or {}).items():
        job = asking(name, asked, **jobs.get(name, {}))
        held.append(JobState(job=job, since_s=0.0, started=True, allocation=on(job, *place)))
    waits = [
        JobState(job=asking(name, asked, **jobs.get(name, {})), since_s=0.0)
        for name, asked in (waiting or {}).items()
    ]
    cluster = cluster or cut_cluster()
    kind = cluster.gpu_types[0].name
    profile = replace(PROFILE, throughput={kind: Rigid()}, power={kind: PowerCurve(a_w=350)})
    return Round(
        cluster=cluster,
        profiles={"rigid": profile},
        running=tuple(held),
        waiting=tuple(waits),
        **fields,
    )
