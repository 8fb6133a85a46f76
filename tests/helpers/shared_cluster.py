"""Rounds of tenants who share one pool of equal nodes, and the rounds that follow from plans."""

from msgspec.structs import replace

from ronda.instances.check.checker import check
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.job import Allocation, Estimate, Job, JobState, Option
from ronda.instances.profile import Profile, Rigid
from ronda.instances.round import Round
from ronda.instances.site import Quota, Site, Tenant
from ronda.solvers.registry import policy


def tenant(name, guaranteed=None, parent=None, *, of="gpus", **fields):
    """Return a tenant with one quota, whose other fields may be given, or with none."""
    quota = {key: fields.pop(key) for key in ("limit", "borrow", "lend") if key in fields}
    quotas = (Quota(of=of, guaranteed=guaranteed, **quota),) if guaranteed is not None else ()
    return Tenant(name=name, parent=parent, quotas=quotas, **fields)


def job(name, gpus, *, on=None, work=3600.0, since_s=0.0, **fields):
    """Return a live job; `on`: the nodes on which it runs, since a time, or None."""
    fields = {"submit_s": 0.0, "profile": "rigid", "estimate": Estimate(work=work)} | fields
    made = Job(id=name, gpus=gpus, **fields)
    if on is None:
        return JobState(job=made, since_s=made.submit_s)
    each = gpus // len(on)
    held = Allocation(
        option=Option(pool=0, gpus=gpus, span="node" if len(on) == 1 else "cluster"),
        placement=tuple((node, each) for node in on),
    )
    return JobState(job=made, since_s=since_s, held_s=since_s, started=True, allocation=held)


def shared(*jobs, nodes=1, gpus_per_node=8, has=None, now_s=100.0, tenants=(), classes=(), **site):
    """Return a round of such jobs."""
    group = NodeGroup(
        name="nodes", count=nodes, gpus_per_node=gpus_per_node, gpu_type="G", has=has or {}
    )
    return Round(
        now_s=now_s,
        cluster=Cluster(gpu_types=(GpuType(name="G", memory_gib=80),), node_groups=(group,)),
        profiles={"rigid": Profile(name="rigid", throughput={"G": Rigid()})},
        running=tuple(state for state in jobs if state.allocation is not None),
        waiting=tuple(state for state in jobs if state.allocation is None),
        site=Site(tenants=tuple(tenants), classes=tuple(classes), **site),
    )


def decided(round_, spec, initial=None):
    """Return the plan of a policy, which the checker accepts."""
    plan = policy(spec).plan(round_, initial=initial)
    assert check(round_, plan) == []
    return plan


def after(round_, plan, seconds=60.0, *new):
    """Return the round in which a plan has been carried out, and other jobs have come."""
    now_s = round_.now_s + seconds
    states = []
    for state in round_.jobs:
        given, held = plan.allocations.get(state.job.id), state.allocation
        if held is not None and given is not None and held.goes_on(given):
            states.append(state)
            continue
        state = state.stopped(round_.now_s, state.done)
        if given is not None:
            state = replace(
                state, allocation=given, started=True, held_s=round_.now_s, since_s=round_.now_s
            )
        states.append(state)
    states += new
    return replace(
        round_,
        now_s=now_s,
        running=tuple(s for s in states if s.allocation is not None),
        waiting=tuple(
            sorted((s for s in states if s.allocation is None), key=lambda s: s.job.submit_s)
        ),
    )
