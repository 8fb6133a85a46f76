"""What hosts that name all live jobs every time tell a façade: news, losses, and what runs."""

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
    """Bring a façade up to date.

    Parameters
    ----------
    rows
        All live jobs, by id; one that is not here any more is complete.
    running
        What jobs run on now, a node for each GPU; one that is not here does not run.
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
    """Return pairs (node, GPUs) of a node for each GPU."""
    return tuple(sorted(Counter(nodes).items()))
