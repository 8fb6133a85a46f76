"""News for a façade from hosts that name all machines and live jobs at every decision."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ronda.hosts.embedding.embedded import Embedded
from ronda.instances.cluster import Cluster
from ronda.solvers.contract import Policy
from ronda.solvers.registry import as_policy


class Hosted:
    """A façade that is made with some settings once the machines of its host are known.

    `host` is the façade and `cluster` its cluster, from the first call of `meet` on.
    """

    host: Embedded
    cluster: Cluster

    def __init__(self, policy: Policy | str, **settings: Any) -> None:
        self._make = partial(Embedded, policy=as_policy(policy), **settings)
        self._names: Sequence[str] | None = None

    def meet(self, cluster: Cluster, names: Sequence[str]) -> bool:
        """Make the façade, or report other machines; return whether there were others before."""
        changed = self._names is not None and (self.cluster, self._names) != (cluster, names)
        if self._names is None:
            self.host = self._make(cluster=cluster, node_names=names)
        elif changed:
            self.host.update(cluster=cluster, node_names=names)
        self.cluster, self._names = cluster, names
        return changed


def tell(
    host: Embedded,
    rows: Mapping[str, Mapping[str, Any]],
    running: Mapping[str, Sequence[int]],
    now_s: float,
) -> None:
    """Update a façade with the rows of all live jobs of a host, keyed by id.

    A job that is no longer included is complete. `running` has the nodes of running jobs, one per
    GPU; a job that is not included there does not run.
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
