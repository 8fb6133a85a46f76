"""The sign of a log that is a sample: jobs waited although most of the GPUs were never in use."""

from collections.abc import Sequence

from ronda.instances.traces.audit.pools import WAITED_S, PoolUse, pools_of
from ronda.instances.traces.logs.instance import ReadLog

FULL = 0.25
"""The share of the GPUs below which the most in use at once shows that others are missing."""

PART = "a part of a GPU"


def sample_of(read: ReadLog, pools: Sequence[PoolUse] = ()) -> str | None:
    """Return the reason for which a log is a sample, or None.

    Machines are known, jobs waited, and of no pool whose jobs waited more than a quarter was in use
    at any time: others, which the log does not have, held it, or what jobs waited for is not in the
    log, whose pools are `pools`. Machines that are only seen in the log itself cannot show this.
    """
    whole, *others = pools or pools_of(read)
    crowded = [pool for pool in others or [whole] if pool.waited]
    if read.machines != "given" or not whole.waited or not whole.gpus:
        return None
    if any((pool.most_held or 0) > FULL * (pool.gpus or 0) for pool in crowded):
        return None
    parts = read.dropped[PART]
    more = f" (not counting {parts:,} rows with {PART})" if parts else ""
    return (
        f"at most {whole.most_held:,} of {whole.gpus:,} GPUs are in use at once, yet "
        f"{whole.waited:,} jobs waited more than {WAITED_S:g} s: most of what ran is not in the "
        f"log{more}"
    )
