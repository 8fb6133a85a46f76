"""The sign of a log that is a sample: jobs waited although most of the GPUs were never in use."""

import numpy as np

from ronda.instances.base import Floats
from ronda.instances.traces.audit.pools import able, pools_of
from ronda.instances.traces.logs.instance import ReadLog

FULL = 0.25
"""The share of the GPUs below which the most in use at once shows that others are missing."""

PART = "a part of a GPU"

WAITED_S = 60.0
"""A wait above this is one for room, not a cycle of the scheduler."""


def waits(read: ReadLog) -> Floats:
    """Return the seconds from when each recorded job could start until it first did."""
    runs = read.recorded.runs
    told = ((job, runs[job.id][0].start_s) for job in read.instance.jobs if job.id in runs)
    return np.array([max(0.0, start_s - able(job)) for job, start_s in told])


def sample_of(read: ReadLog) -> str | None:
    """Return the reason for which a log is a sample, or None.

    Of a log whose machines are known, jobs waited although at no time more than a quarter of the
    GPUs was in use: others, which the log does not have, held them, or what jobs waited for is not
    in it. Machines that are only seen in the log itself cannot show this.
    """
    waited = int((waits(read) > WAITED_S).sum())
    if read.machines != "given" or not waited:
        return None
    held, gpus = pools_of(read)[0].most_held or 0, read.instance.cluster.gpus
    if held > FULL * gpus:
        return None
    parts = read.dropped[PART]
    more = f" (not counting {parts:,} rows with {PART})" if parts else ""
    return (
        f"at most {held:,} of {gpus:,} GPUs are in use at once, yet {waited:,} jobs waited more "
        f"than {WAITED_S:g} s: most of what ran is not in the log{more}"
    )
