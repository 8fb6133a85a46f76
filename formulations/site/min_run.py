"""The minimum run time of jobs: until it ends, a job that runs counts as one that must run."""

from collections.abc import Collection

from msgspec.structs import replace

from ronda.instances.job import Job
from ronda.instances.round import Round
from ronda.instances.site import Site


def least_run_s(site: Site, job: Job) -> float:
    """Return the seconds for which a job runs on once it has started: the most that any rule says.

    These are the rules of the job, of its priority class, and of its tenant and all above it.
    """
    found = job.min_run_s
    if job.priority is not None:
        found = max([found, *(c.min_run_s for c in site.classes if c.name == job.priority)])
    tenants = {} if job.tenant is None else {t.name: t for t in site.tenants}
    at = tenants.get(job.tenant or "")
    while at is not None:
        found, at = max(found, at.min_run_s), tenants.get(at.parent or "")
    return found


def has_minimum(site: Site) -> bool:
    """Return whether a site's classes or tenants have a minimum run time."""
    return any(c.min_run_s for c in site.classes) or any(t.min_run_s for t in site.tenants)


def with_minimum_runs(round: Round) -> Round:
    """Return the round in which running jobs younger than their minimum may not be stopped."""
    if not round.has_rules:
        return round
    site, all_have = round.site, has_minimum(round.site)
    young = {
        state.job.id
        for state in round.running
        if (all_have or state.job.min_run_s)
        and state.job.preemptible
        and round.now_s < state.held_s + least_run_s(site, state.job)
    }
    return with_firm(round, young) if young else round


def with_firm(round: Round, jobs: Collection[str]) -> Round:
    """Return the round in which some of the running jobs may not be stopped."""
    running = (
        replace(s, job=replace(s.job, preemptible=False)) if s.job.id in jobs else s
        for s in round.running
    )
    return replace(round, running=tuple(running))
