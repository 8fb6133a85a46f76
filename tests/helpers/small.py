"""Small instances and rounds that tests of several folders make."""

import time

import pytest
from msgspec.structs import replace

from ronda.instances import clock
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.instance import Instance
from ronda.instances.job import Allocation, Costs, Estimate, Job, JobState, Option, Truth
from ronda.instances.profile import Parametric, PowerCurve, Profile, Rigid
from ronda.instances.round import Round


def make_instance(jobs, *, nodes=1, gpus_per_node=4, **fields):
    """Return an instance of rigid jobs given as (id, submit_s, gpus, duration_s)."""
    cluster = Cluster(
        gpu_types=(GpuType(name="V100", memory_gib=32, idle_w=50.0),),
        node_groups=(
            NodeGroup(
                name="nodes",
                count=nodes,
                gpus_per_node=gpus_per_node,
                gpu_type="V100",
                host_idle_w=200.0,
                sleep_w=10.0,
                wake_s=100.0,
            ),
        ),
    )
    profile = Profile(
        name="rigid", throughput={"V100": Rigid()}, power={"V100": PowerCurve(a_w=250.0)}
    )
    made = tuple(
        Job(
            id=name,
            submit_s=submit_s,
            profile="rigid",
            gpus=gpus,
            estimate=Estimate(work=duration_s),
            truth=Truth(work=duration_s),
        )
        for name, submit_s, gpus, duration_s in jobs
    )
    fields.setdefault("costs", Costs())
    return Instance(name="made", cluster=cluster, profiles={"rigid": profile}, jobs=made, **fields)


@pytest.fixture(scope="session", name="make_instance")
def _make_instance():
    """Give tests the maker."""
    return make_instance


def elastic_round(*states, nodes=1, gpus_per_node=8, clocks=(1.0,), **fields):
    """Return a round on one pool of equal nodes with two applications of batch 8, in samples.

    ``linear``: n GPUs take 8/n s a step: rate n. ``bend`` also synchronises for n - 1 s in a node:
    steps of 8, 4 + 1, 8/3 + 2, 2 + 3 s: rates 1, 1.6, 12/7, 1.6 for 1 to 4 GPUs.
    A GPU draws 20 W idle and 50 + 50 + 400 (1 - 1/8) = 450 W at full clock, 100 W at half.
    """
    curve = {"G": PowerCurve(a_w=50.0, b_w=100.0, c_w=400.0, s0=0.5)}

    def profile(name, **model):
        return Profile(
            name=name, throughput={"G": Parametric(**model)}, power=curve, base_batch=8.0
        )

    step = {"alpha_c_s": 0.0, "beta_c_s": 1.0}
    sync = {"alpha_r_s": 1.0, "beta_r_s": 1.0, "alpha_n_s": 1.0, "beta_n_s": 1.0}
    return Round(
        cluster=Cluster(
            gpu_types=(GpuType(name="G", memory_gib=16.0, idle_w=20.0, clocks=clocks),),
            node_groups=(
                NodeGroup(name="n", count=nodes, gpus_per_node=gpus_per_node, gpu_type="G"),
            ),
        ),
        profiles={
            "linear": profile("linear", **step),
            "bend": profile("bend", **step, **sync),
            "half-bound": profile("half-bound", **step, phi=0.5),
        },
        waiting=tuple(s for s in states if s.allocation is None),
        running=tuple(s for s in states if s.allocation is not None),
        **fields,
    )


def live_job(name, profile, work, *, held=None, gpus=1, **fields):
    """Return a live job of 1 to 8 GPUs; `held`: (GPUs, rate) that it runs with on node 0."""
    job_fields = {k: fields.pop(k) for k in ("deadline_s", "submit_s") if k in fields}
    job = Job(
        id=name,
        profile=profile,
        gpus=gpus,
        min_gpus=1,
        max_gpus=8,
        estimate=Estimate(work=work),
        **{"submit_s": 0.0} | job_fields,
    )
    allocation = None
    if held is not None:
        option = Option(
            pool=0, gpus=held[0], span="node", batch=8.0, rate=held[1], power_w=450.0 * held[0]
        )
        allocation = Allocation(option=option, placement=((0, held[0]),))
        fields = {"started": True} | fields
    return JobState(job=job, **{"since_s": job.submit_s} | fields, allocation=allocation)


@pytest.fixture(scope="session", name="elastic_round")
def _elastic_round():
    """Give tests the maker of rounds."""
    return elastic_round


@pytest.fixture(scope="session", name="live_job")
def _live_job():
    """Give tests the maker of live jobs."""
    return live_job


def make_clocked(jobs, *, nodes=1, wake_w=0.0, **fields):
    """Return an instance like that of `make_instance`, of jobs that can be slowed down.

    At clock s a job makes ``s`` of its work a second on any number of GPUs, and each of its GPUs
    draws ``50 + 200 s`` watts: 250, 200 and 150 W at the clocks 1, 0.75 and 0.5.
    """
    rigid = make_instance(jobs, nodes=nodes, **fields)
    (gpu_type,), (group,) = rigid.cluster.gpu_types, rigid.cluster.node_groups
    profile = Profile(
        name="rigid",
        throughput={"V100": Parametric(alpha_c_s=1.0, beta_c_s=0.0)},
        power={"V100": PowerCurve(a_w=50.0, b_w=200.0)},
    )
    cluster = Cluster(
        gpu_types=(replace(gpu_type, clocks=(0.5, 0.75, 1.0)),),
        node_groups=(replace(group, wake_w=wake_w),),
    )
    return replace(rigid, cluster=cluster, profiles={"rigid": profile})


@pytest.fixture(scope="session", name="make_clocked")
def _make_clocked():
    """Give tests the maker."""
    return make_clocked


class ProcessorTime:
    """A clock that stands still while other processes have the processor."""

    perf_counter = staticmethod(time.process_time)


@pytest.fixture
def processor_time(monkeypatch):
    """Let deadlines count this thread's processor time: test machines are busy."""
    monkeypatch.setattr(clock, "time", ProcessorTime)
