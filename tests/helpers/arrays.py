"""Jobs that may share GPUs, small enough to follow by hand; a policy that does as it is told."""

from msgspec.structs import replace

from ronda.formulations.options.application import application_of
from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.instance import Instance
from ronda.instances.job import Allocation, Costs, Estimate, Job, Truth
from ronda.instances.models.sharing import member
from ronda.instances.plan import Plan
from ronda.instances.profile import (
    AffineTime,
    MeasuredTime,
    Memory,
    Parametric,
    PowerCurve,
    Profile,
    Sharing,
)
from ronda.solvers.contract import Capability

# Alone a step takes 1 s; fused 1 + k/4, packed 0.8 k or at least 1, slices 1, 1.25 or 2.5 s.
SHARING = (
    Sharing(mode="exclusive", time=AffineTime(alpha_s=1.0, beta_s=0.0)),
    Sharing(mode="fused", time=AffineTime(alpha_s=1.0, beta_s=0.25)),
    Sharing(mode="packed", time=AffineTime(alpha_s=0.0, beta_s=0.8, floor_s=1.0)),
    Sharing(mode="slices", time=MeasuredTime(models=(1, 2, 4), step_s=(1.0, 1.25, 2.5))),
)
# 16 GiB hold 1 + k 2 for k up to 7 fused, k (1 + 2) for 5 packed, 3 in each of 2 slices.
NET = Profile(
    name="net",
    throughput={"A": Parametric(alpha_c_s=1.0, beta_c_s=0.0)},
    power={"A": PowerCurve(a_w=40, b_w=160)},
    memory=Memory(base_gib=1, model_gib=2),
    sharing={"A": SHARING},
)
COSTS = Costs(start_s=2, restart_s=3)


def instance(works, *, gpus=2, nodes=1, costs=COSTS, classes=None, submit_s=None, **fields):
    """Return an instance of jobs of one GPU each, by default all of one class."""
    jobs = tuple(
        Job(
            id=f"j{k}",
            submit_s=0.0 if submit_s is None else submit_s[k],
            profile="net",
            fusible="c" if classes is None else classes[k],
            estimate=Estimate(work=work),
            truth=Truth(work=work),
        )
        for k, work in enumerate(works)
    )
    gpu = GpuType(name="A", memory_gib=16, idle_w=50, clocks=(0.5, 1.0))
    cluster = uniform_cluster(gpu, nodes, gpus, host_idle_w=100)
    return Instance(
        name="arrays", cluster=cluster, profiles={"net": NET}, jobs=jobs, costs=costs, **fields
    )


def array(round, ids, mode, node, name):
    """Return the allocations of jobs as one array on a GPU of a node; of one job alone."""
    states = {state.job.id: state for state in round.jobs}
    found = {}
    for job_id in ids:
        state = states[job_id]
        of = application_of(round, state, 0)
        alone = of.option(1, of.batch(state.job), state.noise)
        if len(ids) == 1:
            found[job_id] = Allocation(option=alone, placement=((node, 1),))
            continue
        option = member(alone, of.profile, "A", mode, len(ids))
        found[job_id] = Allocation(option=option, placement=((node, 1),), array=name)
    return found


def standing(round, held, *, firm=(), **fields):
    """Return a round at 10 s in which the jobs that hold something run, and the others wait.

    Those in `firm` may not be stopped; `fields` are of every job's state.
    """
    states = [
        replace(
            state,
            job=replace(state.job, preemptible=state.job.id not in firm),
            allocation=held.get(state.job.id),
            started=state.job.id in held,
            **fields,
        )
        for state in round.waiting
    ]
    return replace(
        round,
        now_s=10.0,
        running=tuple(s for s in states if s.allocation is not None),
        waiting=tuple(s for s in states if s.allocation is None),
    )


class Told:
    """A policy that does in each round what a function of the round tells it."""

    name = "told"
    capabilities = Capability.ELASTIC | Capability.PREEMPTS | Capability.ARRAYS

    def __init__(self, tell):
        self.tell = tell

    def plan(self, round, *, deadline, seed, initial=None):
        """Return the plan that it is told."""
        return Plan(policy=self.name, allocations=self.tell(round))
