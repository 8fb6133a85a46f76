"""Rounds of rigid jobs that belong to tenants, on one node or some."""

import ronda
from ronda.instances.cluster import GpuType
from ronda.instances.job import Allocation, Estimate, Job, JobState, Option
from ronda.instances.profile import Profile, Rigid
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate
from ronda.instances.site import Quota, Site, Tenant

NOW_S = 3600.0


def quota(guaranteed=None, **fields):
    """Return the quotas of a tenant for GPUs alone."""
    return (Quota(guaranteed=guaranteed, **fields),)


def tree(**tenants):
    """Return tenants given as name=(parent, quotas), or name=quotas below the tenant root."""
    given = {n: t if t and isinstance(t[0], str) else ("root", t) for n, t in tenants.items()}
    below = tuple(Tenant(name=n, parent=parent, quotas=own) for n, (parent, own) in given.items())
    return (Tenant(name="root"), *below)


def tenant_round(gpus, tenants, waiting=(), running=(), *, fields=None, shared=False, **site):
    """Return a round with jobs given as (tenant, GPUs), worth as much as their GPUs.

    A job is named after its tenant and its place in the list; what runs is on the first GPUs.
    `fields` are more fields of a job, by id; jobs may share GPUs if `shared`.
    """
    cluster = ronda.uniform_cluster(GpuType(name="A100", memory_gib=40), 1, gpus, shared=shared)
    profile = Profile(name="rigid", throughput={"A100": Rigid()})
    states = []
    for k, (tenant, n) in enumerate([*running, *waiting]):
        name = f"{tenant}{k}"
        job = Job(
            id=name,
            submit_s=0.0,
            profile="rigid",
            gpus=n,
            tenant=tenant,
            estimate=Estimate(work=7200.0),
            **{"weight": float(n)} | (fields or {}).get(name, {}),
        )
        state = JobState(job=job, since_s=0.0)
        if k < len(running):
            option = Option(pool=0, gpus=n, span="node")
            held = Allocation(option=option, placement=((0, n),))
            state = JobState(job=job, since_s=0.0, started=True, allocation=held)
        states.append(state)
    made = Round(
        now_s=NOW_S,
        cluster=cluster,
        profiles={"rigid": profile},
        running=tuple(states[: len(running)]),
        waiting=tuple(states[len(running) :]),
        site=Site(tenants=tenants, **site),
    )
    return validate(made)


def held(round_, plan):
    """Return the GPUs of each tenant under a plan."""
    found = {}
    for state in round_.jobs:
        given = plan.allocations.get(state.job.id)
        if given is not None:
            found[state.job.tenant] = found.get(state.job.tenant, 0) + given.option.gpus
    return found
