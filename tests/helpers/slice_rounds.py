"""Rounds of racks of equal nodes, with jobs of whole nodes in slices."""

from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.job import Allocation, Job, JobState, Option, Slices
from ronda.instances.profile import Profile, Rigid
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate
from ronda.instances.site import NO_SITE

GPUS = 4
PROFILES = {"p": Profile(name="p", throughput={"B": Rigid()}, power={})}


def cluster(*nodes, out=()):
    """Return racks of the given numbers of nodes, two in each block."""
    return Cluster(
        gpu_types=(GpuType(name="B", memory_gib=186),),
        node_groups=tuple(
            NodeGroup(name=f"g{r}", count=n, gpus_per_node=GPUS, gpu_type="B", rack=f"r{r}")
            for r, n in enumerate(nodes)
        ),
        racks=(
            *(Rack(name=f"b{b}", level="block") for b in range(-(-len(nodes) // 2))),
            *(Rack(name=f"r{r}", parent=f"b{r // 2}") for r in range(len(nodes))),
        ),
        out=tuple((n, GPUS) for n in out),
    )


def job(name, nodes, slices=None, **fields):
    """Return a job of whole nodes, by default one slice."""
    if isinstance(slices, int):
        slices = Slices(nodes=slices)
    return Job(
        id=name, submit_s=0.0, profile="p", gpus=nodes * GPUS, slices=slices, weight=nodes, **fields
    )


def asked(where, waiting, running=(), site=NO_SITE):
    """Return a round; `running` are pairs of a job and its nodes."""
    held = tuple(
        JobState(
            job=each,
            since_s=0.0,
            started=True,
            allocation=Allocation(
                option=Option(
                    pool=0, gpus=each.gpus, span="node" if len(nodes) == 1 else "cluster"
                ),
                placement=tuple((n, each.gpus // len(nodes)) for n in nodes),
            ),
        )
        for each, nodes in running
    )
    states = tuple(JobState(job=each, since_s=0.0) for each in waiting)
    return validate(
        Round(cluster=where, profiles=PROFILES, waiting=states, running=held, site=site)
    )


def racks(round_, plan, name):
    """Return the numbers of nodes of a job in racks, descending."""
    topology = round_.cluster.topology
    at = [int(topology.node_rack[n]) for n, _ in plan.allocations[name].placement]
    return sorted((at.count(r) for r in set(at)), reverse=True)
