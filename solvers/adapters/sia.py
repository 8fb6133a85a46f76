"""Sia's simulator asks ronda: the face of its policies (Jayaram Subramanya et al., SOSP 2023).

    from ronda.solvers.adapters.sia import Sia

    policy = Sia("prices", interval_s=60.0)
    placements = policy.optimize(jobs, nodes, prev_allocations)

`nodes` are nodes by cluster (GPU type) and key, with ``resources["nvidia.com/gpu"]``; a job has a
``speedup_fn`` for each cluster, or None where nothing is known, and ``min_replicas`` and
``max_replicas``, of each cluster or of all; `prev_allocations` and the answer say, by job, the
cluster and the node of each GPU. Goodputs are asked for once a decision, on powers of two in a node
and on whole nodes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ronda.instances.job import Costs
from ronda.solvers.adapters.machines import cluster_of
from ronda.solvers.adapters.telling import tell
from ronda.solvers.contract import Policy
from ronda.solvers.embedding import Embedded

GPU = "nvidia.com/gpu"
Key = Any
Placed = tuple[str | None, Sequence[Key]]


class Sia:
    """Stands where Sia's simulator has a policy.

    Parameters
    ----------
    policy
        Who decides.
    interval_s
        Seconds between decisions.
    restart_s
        Seconds that a change costs a job.
    deadline_s
        Seconds for a decision.
    """

    def __init__(
        self,
        policy: Policy | str = "prices",
        *,
        interval_s: float = 60.0,
        restart_s: float = 30.0,
        deadline_s: float | None = None,
    ) -> None:
        self.policy, self.interval_s, self.deadline_s = policy, interval_s, deadline_s
        self._costs = Costs(restart_s=restart_s)
        self._host: Embedded | None = None
        self._layout: list[tuple[str, Key, int]] = []
        self._now_s = 0.0

    def populate_valid_configs(self, *_: object) -> None:
        """Take note of nothing: what can be had is asked from the nodes."""

    def optimize(
        self,
        jobs: Mapping[Key, Any],
        nodes: Mapping[str, Mapping[Key, Any]],
        prev_allocations: Mapping[Key, Any],
    ) -> dict[Key, Placed]:
        """Return the cluster of every job, and the node of each of its GPUs; (None, ()) if none."""
        layout = [
            (cluster, key, int(node.resources[GPU]))
            for cluster, own in nodes.items()
            for key, node in own.items()
            if node.resources[GPU] > 0
        ]
        if self._host is None or layout != self._layout:
            self._layout = layout
            self._host = Embedded(
                self.policy,
                cluster_of([(cluster, n) for cluster, _, n in layout]),
                costs=self._costs,
                length_s=self.interval_s,
            )
        index = {(cluster, key): k for k, (cluster, key, _) in enumerate(layout)}
        ids = {str(key): key for key in jobs}
        running: dict[str, list[int]] = {}
        for name, key in ids.items():
            cluster, places = prev_allocations.get(key) or (None, ())
            if cluster is not None and len(places):
                running[name] = [index[cluster, place] for place in places]
        rows = {n: _row(n, jobs[key], layout, running.get(n, [])) for n, key in ids.items()}
        tell(self._host, rows, running, self._now_s)
        self._host.decide(self.deadline_s)
        self._now_s += self.interval_s
        found: dict[Key, Placed] = dict.fromkeys(jobs, (None, ()))
        for name, given in self._host.running.items():
            places = [layout[node][1] for node, n in given.placement for _ in range(n)]
            found[ids[name]] = layout[given.placement[0][0]][0], places
        return found


def _row(
    name: str, job: Any, layout: Sequence[tuple[str, Key, int]], places: Sequence[int]
) -> dict[str, Any]:
    """Return a job for the façade, with the goodputs of its clusters."""
    low = max(1, min(_each(job.min_replicas)))
    now = {(layout[places[0]][0], len(places), len(set(places)))} if places else set()
    rates = {
        cluster: table
        for cluster in dict.fromkeys(cluster for cluster, _, _ in layout)
        if (
            table := _table(
                job,
                cluster,
                [n for c, _, n in layout if c == cluster],
                low,
                {(gpus, nodes) for c, gpus, nodes in now if c == cluster},
            )
        )
    }
    row = {"id": name, "gpus": low, "rates": rates or None}
    application = getattr(job, "application", None)
    return row if application is None else row | {"application": str(application)}


def _each(replicas: Any) -> list[int]:
    """Return limits of all clusters."""
    return list(replicas.values()) if isinstance(replicas, Mapping) else [replicas]


def _table(
    job: Any, cluster: str, sizes: Sequence[int], low: int, held: set[tuple[int, int]]
) -> dict[str, Any] | None:
    """Return goodputs on a cluster's nodes; None if nothing is known, or nothing fits."""
    speed = job.speedup_fn.get(cluster)
    most = job.max_replicas
    high = min(most[cluster] if isinstance(most, Mapping) else most, sum(sizes))
    size = max(sizes)
    counts = {2**k for k in range(size.bit_length()) if 2**k < size} | {low}
    counts |= set(range(size, high + 1, size))
    counts = {n for n in counts if low <= n <= high} | {n for n, _ in held}
    if speed is None or not counts:
        return None
    gpus, nodes = np.array(sorted({(n, -(-n // size)) for n in counts} | held)).T
    goodput = getattr(speed, "get_goodput", speed)(nodes, gpus)
    return {"gpus": gpus, "nodes": nodes, "rate": np.asarray(goodput, dtype=float)}
