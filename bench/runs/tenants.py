"""How tenants fare in a run: the slowdown of their jobs, and what they got of their guarantees."""

from collections import defaultdict
from math import nan
from statistics import fmean
from typing import Any

import numpy as np

from ronda.formulations.options.application import Requested
from ronda.instances.instance import Instance
from ronda.instances.job import JobState
from ronda.instances.outcome.usage import steps
from ronda.instances.round import Round
from ronda.instances.schedule import Schedule
from ronda.instances.site import GPUS


def tenant_figures(instance: Instance, schedule: Schedule) -> dict[str, Any]:
    """Return the figures of tenants, or nothing for an instance without tenants.

    * `slowdown_by_tenant`: mean over a tenant's jobs that ended of the time from submission to the
      end, over the time that the job takes alone on the GPUs that it asks for; `mean_slowdown` and
      `worst_slowdown` are the mean and the largest of these;
    * `owed_met`: GPUs that tenants hold, at most those guaranteed to them that they ask for, over
      these, as integrals over time. What a job holds beyond the GPUs that it asks for does not
      count, nor does a job that asks for more than all that is guaranteed.
    """
    if not instance.site.tenants:
        return {}
    found = defaultdict[str, list[float]](list)
    requested = Requested(
        Round(cluster=instance.cluster, profiles=instance.profiles, costs=instance.costs)
    )
    for job, outcome in zip(instance.jobs, schedule.jobs, strict=True):
        if job.tenant is None or job.truth is None or outcome.state != "completed":
            continue
        rate = requested.rate(JobState(job=job, since_s=job.submit_s))
        if rate and outcome.end_s is not None:
            alone_s = job.truth.work / (rate * job.truth.throughput)
            found[job.tenant].append((outcome.end_s - outcome.submit_s) / alone_s)
    slowdowns = {tenant: fmean(each) for tenant, each in sorted(found.items())}
    pairs = [
        _owed(instance, schedule, tenant.name, quota.of, quota.guaranteed)
        for tenant in instance.site.tenants
        for quota in tenant.quotas
        if quota.guaranteed
    ]
    owed, met = sum(each for each, _ in pairs), sum(each for _, each in pairs)
    return {
        "slowdown_by_tenant": slowdowns,
        "mean_slowdown": fmean(slowdowns.values()) if slowdowns else nan,
        "worst_slowdown": max(slowdowns.values(), default=nan),
        "owed_met": met / owed if owed else nan,
    }


def _owed(
    instance: Instance, schedule: Schedule, tenant: str, of: str, guaranteed: float
) -> tuple[float, float]:
    """Return the GPU-seconds that a tenant is owed of a resource, and those that it got."""
    names = [pool.gpu_type.name for pool in instance.cluster.topology.pools]
    times, asked, held = [0.0, schedule.end_s], [0.0, 0.0], [0.0, 0.0]
    for job, outcome in zip(instance.jobs, schedule.jobs, strict=True):
        able = of == GPUS or (of in names and of in (job.gpu_types or names))  # else one of hosts
        if job.tenant != tenant or job.gpus > guaranteed or not able:
            continue
        end_s = schedule.end_s if outcome.end_s is None else outcome.end_s
        times += [min(end_s, outcome.eligible_s or outcome.submit_s), end_s]
        asked += [job.gpus, -job.gpus]
        held += [0.0, 0.0]
        for segment in outcome.segments:
            if of in (GPUS, names[segment.option.pool]):
                gpus = min(segment.option.own_gpus, job.gpus)
                times += [segment.start_s, segment.end_s]
                asked += [0.0, 0.0]
                held += [gpus, -gpus]
    at_s, wants, has = steps(np.array(times), np.array(asked), np.array(held))
    owed = np.minimum(wants, guaranteed)[:-1]
    lasts_s = np.diff(at_s)
    return float(owed @ lasts_s), float(np.minimum(has[:-1], owed) @ lasts_s)
