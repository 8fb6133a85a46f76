"""The site of a snapshot's round, and the labels by which its limits find their jobs."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from ronda.instances.job import Job
from ronda.instances.site import OWN, LimitGroup, Site, with_named
from ronda.instances.snapshots.snapshot import SeenJob, Snapshot


class Labels:
    """The tenants and classes of the jobs of a round.

    Jobs of a round belong to tenants without tenants below them. Where partitions overlap, a round
    has only one; limits of partitions are then limits of classes, one for each class and each set
    of partitions that jobs name.
    """

    def __init__(self, seen: Snapshot, jobs: Sequence[SeenJob], *, apart: bool) -> None:
        self._seen, self._jobs = seen, jobs
        self._split = not apart and any(group.partitions for group in seen.groups)
        self._inner = {tenant.parent for tenant in seen.tenants}

    def tenant(self, job: SeenJob) -> str | None:
        """Return the tenant of a job in a round."""
        return f"{job.tenant}{OWN}" if job.tenant in self._inner and job.tenant else job.tenant

    def priority(self, job: SeenJob) -> str | None:
        """Return the class of a job in a round."""
        if not self._split:
            return job.priority
        return f"{job.priority or ''}@{'|'.join(sorted(job.partitions))}"

    def site(self, kept: Iterable[Job]) -> Site:
        """Return the site of the jobs that a round keeps."""
        classes = known = {each.name: each for each in self._seen.classes}
        if self._split:
            split = {self.priority(job) or "": job.priority for job in self._jobs}
            classes = {k: replace(known[of], name=k) for k, of in split.items() if of in known}
        arrays = {job.id: (job.job_array, job.array_most) for job in self._jobs}
        tasks = [arrays[job.id] for job in kept if job.job_array is not None]
        site = Site(
            tenants=self._seen.tenants,
            groups=tuple(group for each in self._seen.groups for group in self._group(each)),
            classes=tuple(classes.values()),
            job_arrays={array: most for array, most in tasks if array and most},
            **dict(self._seen.rules),  # type: ignore[arg-type]
        )
        return with_named(site, map(self.tenant, self._jobs), map(self.priority, self._jobs))

    def _group(self, group: LimitGroup) -> Iterable[LimitGroup]:
        """Yield a group by classes in place of partitions, unless no job is in it."""
        if not self._split:
            yield group
            return
        whole = {*group.partitions}
        classes = {
            self.priority(job): None
            for job in self._jobs
            if (not group.classes or job.priority in group.classes)
            and (not group.partitions or (job.partitions and {*job.partitions} <= whole))
        }
        if classes:
            names = tuple(name for name in classes if name is not None)
            yield replace(group, classes=names, partitions=())
