"""The order in which the host looks at waiting jobs."""

from ronda.instances.snapshots.snapshot import SeenJob, Snapshot


def place(job: SeenJob) -> tuple[float, float, str]:
    """Return the place of a job in the queue: by the host's rank, then by submission."""
    return -(job.rank or 0.0), job.submit_s, job.id


def queue(snapshot: Snapshot) -> list[SeenJob]:
    """Return the waiting jobs in the order in which the host looks at them."""
    return sorted((job for job in snapshot.jobs if job.start_s is None), key=place)


def ahead(snapshot: Snapshot, job: SeenJob) -> list[SeenJob]:
    """Return the jobs that the host looks at before a job, in order."""
    return [one for one in queue(snapshot) if one.id != job.id and place(one) < place(job)]
