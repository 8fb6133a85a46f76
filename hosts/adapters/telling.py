"""News for a façade from hosts that name all live jobs at every decision."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ronda.hosts.embedding.embedded import Embedded


def tell(
    host: Embedded,
    rows: Mapping[str, Mapping[str, Any]],
    running: Mapping[str, Sequence[int]],
    now_s: float,
) -> None:
    """Update a façade with the live jobs of a host.

    Parameters
    ----------
    rows
        Rows of all live jobs, keyed by id. A job that is no longer included is complete.
    running
        Nodes of running jobs, one per GPU. A job that is not included does not run.
    """
    known = set(host.jobs)
    held = {job: tuple(sorted(given.placement)) for job, given in host.running.items()}
    rates = {job: row["rates"] for job, row in rows.items() if job in known and row.get("rates")}
    host.update(
        now_s=now_s,
        completed=[job for job in host.jobs if job not in rows],
        added=[row for job, row in rows.items() if job not in known],
        measured=rates,
        running={
            job: running.get(job)
            for job in rows
            if placement_of(running.get(job, ())) != held.get(job, ())
        },
    )


def placement_of(nodes: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return pairs (node, GPUs) from a list with one node per GPU."""
    return tuple(sorted(Counter(nodes).items()))
