"""The rules of a site: tenants and their quotas, priority classes, and how much may be disrupted.

They hold for all rounds of an instance. What changes from round to round (what tenants have used,
which nodes leave) stands in the `Round`.
"""

from collections.abc import Iterable
from typing import Literal

from msgspec.structs import replace

from ronda.instances.base import Count, Index, Name, NonNegative, Positive, Record

GPUS = "gpus"
"""The resource that counts GPUs of every type."""


class Quota(Record, frozen=True, kw_only=True):
    """What a tenant may hold of one resource, together with all tenants below it.

    Attributes
    ----------
    of
        The resource: ``gpus`` (of any type), the name of a GPU type, or a resource of hosts such as
        ``cpu``.
    guaranteed
        Amount that belongs to the tenant whenever it asks for it (Kueue: nominal quota; KAI:
        quota). None if nothing is guaranteed and nothing is kept for others.
    limit
        Most that the tenant may hold in all, borrowed or not. None for no limit.
    borrow
        Most that it may hold above what is guaranteed to it and to the tenants below it. None for
        no limit.
    lend
        Most of this guaranteed amount that others may use while the tenant does not. None for all.
    """

    of: Name = GPUS
    guaranteed: NonNegative | None = None
    limit: NonNegative | None = None
    borrow: NonNegative | None = None
    lend: NonNegative | None = None


class Disruption(Record, frozen=True, kw_only=True):
    """How much of what runs a decision may stop, move, or change with a restart.

    Jobs that end, faults, nodes that leave, and changes without a checkpoint do not count.

    Attributes
    ----------
    gpus
        Most GPUs that such jobs hold. None for no limit.
    jobs
        Most such jobs. None for no limit.
    """

    gpus: Index | None = None
    jobs: Index | None = None


class Tenant(Record, frozen=True, kw_only=True):
    """A user, team or department that shares the cluster; tenants form a tree.

    Attributes
    ----------
    name
        The name that jobs and other tenants refer to.
    parent
        Name of the tenant above it, or None.
    quotas
        What it may hold, at most one entry per resource.
    weight
        Its share, relative to its siblings, of what is left when all guarantees are met.
    surplus_order
        Siblings of a higher number get what is left before others do.
    max_jobs
        Most jobs of it, and of tenants below it, that may run at once. None for no limit.
    max_gpu_s
        Most GPU-seconds that its running jobs may still hold until their time limits (Slurm's
        GrpTRESRunMins). None for no limit.
    min_run_s
        Seconds for which a job that has started is not stopped or changed.
    disruption
        How much of what it runs a decision may disrupt.
    """

    name: Name
    parent: Name | None = None
    quotas: tuple[Quota, ...] = ()
    weight: NonNegative = 1.0
    surplus_order: int = 0
    max_jobs: Index | None = None
    max_gpu_s: NonNegative | None = None
    min_run_s: NonNegative = 0.0
    disruption: Disruption = Disruption()


class LimitGroup(Record, frozen=True, kw_only=True):
    """Jobs that share limits (Slurm: a QOS, or a partition): those with one of each label given.

    Attributes
    ----------
    name
        Name of the group.
    users, classes, partitions, tenants
        Users, priority classes, partitions, and tenants (with all below them) of its jobs; empty
        for all.
    per
        Whether all jobs of the group share the limits, those of each user or each tenant do, or
        each job has them to itself.
    most
        Most that they may hold at once, by resource as in `Quota.of`.
    max_jobs, max_gpu_s
        As for a `Tenant`.
    max_limit_s
        Longest time limit with which one of its jobs may start (Slurm: MaxTime of a partition,
        MaxWall of an association). None for any.
    """

    name: Name
    users: tuple[Name, ...] = ()
    classes: tuple[Name, ...] = ()
    partitions: tuple[Name, ...] = ()
    tenants: tuple[Name, ...] = ()
    per: Literal["group", "user", "tenant", "job"] = "group"
    most: dict[str, NonNegative] = {}
    max_jobs: Index | None = None
    max_gpu_s: NonNegative | None = None
    max_limit_s: Positive | None = None


class PriorityClass(Record, frozen=True, kw_only=True):
    """A class of jobs by importance.

    Attributes
    ----------
    name
        The name that jobs refer to.
    rank
        Classes of higher rank are more important.
    worth
        Factor on the worth of each of its jobs.
    strict
        Whether its jobs are served before all of lower rank, at the size they ask for, whatever it
        costs the others. At most three classes are strict.
    min_run_s
        Seconds for which a job that has started is not stopped or changed.
    """

    name: Name
    rank: int
    worth: Positive = 1.0
    strict: bool = False
    min_run_s: NonNegative = 0.0


class Neighbourhood(Record, frozen=True, kw_only=True):
    """Jobs that run together on one node or in one rack, or apart from each other.

    Attributes
    ----------
    name
        The name that jobs refer to.
    rule
        Whether they run together or apart.
    within
        ``node``, or a level of racks (`Rack.level`).
    """

    name: Name
    rule: Literal["together", "apart"]
    within: Name = "node"


class Site(Record, frozen=True, kw_only=True):
    """The rules of a site, by default none.

    Attributes
    ----------
    tenants
        The tenants, each after its parent.
    groups
        Groups of jobs that share limits.
    classes
        The priority classes.
    neighbourhoods
        Groups of jobs that run together or apart.
    job_arrays
        Most tasks of each job array that may run at once.
    disruption
        How much of what runs a decision may disrupt.
    firm_within_guarantee
        Whether jobs that may not be stopped must fit into the guarantees of their tenant and of all
        tenants above it (KAI).
    reclaim
        How tenants get what is guaranteed to them: ``weighted`` values a guaranteed GPU above any
        borrowed one; ``strict`` serves guarantees before all else; ``never`` stops nobody for it.
    fair_shares
        Whether shares of what is left when all guarantees are met follow weights and past use.
    usage_half_life_s
        Seconds in which the memory of what tenants have held halves. None if past use does not
        count.
    kills_at_limit
        Whether a job ends at its time limit, complete or not.
    """

    tenants: tuple[Tenant, ...] = ()
    groups: tuple[LimitGroup, ...] = ()
    classes: tuple[PriorityClass, ...] = ()
    neighbourhoods: tuple[Neighbourhood, ...] = ()
    job_arrays: dict[str, Count] = {}
    disruption: Disruption = Disruption()
    firm_within_guarantee: bool = False
    reclaim: Literal["weighted", "strict", "never"] = "weighted"
    fair_shares: bool = False
    usage_half_life_s: Positive | None = None
    kills_at_limit: bool = True


NO_SITE = Site()
"""The site without rules."""

OWN = "/own"
"""The end of the name of a tenant for the jobs of a tenant that has others below it."""


def with_named(site: Site, tenants: Iterable[str | None], classes: Iterable[str | None]) -> Site:
    """Return a site with the tenants, and the classes of rank 0, that jobs name besides its own."""
    known, ranked = ({each.name for each in own} for own in (site.tenants, site.classes))
    above = {name: name.removesuffix(OWN) for name in tenants if name and name not in known}
    more = [Tenant(name=k, parent=of if of in known else None) for k, of in above.items()]
    ranks = {name: 0 for name in classes if name and name not in ranked}
    others = [PriorityClass(name=name, rank=rank) for name, rank in ranks.items()]
    return replace(site, tenants=(*site.tenants, *more), classes=(*site.classes, *others))
