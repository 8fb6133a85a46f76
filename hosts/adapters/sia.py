"""An adapter for Sia's simulator with the interface of its policies.

    from ronda.hosts.adapters.sia import Sia

    policy = Sia("prices", interval_s=60.0)
    placements = policy.optimize(jobs, nodes, prev_allocations)

The simulator tests for its own class, so inherit from both (from this one first)::

    class Ronda(Sia, SiaPolicy): ...

`nodes` is keyed by cluster (GPU type) and node, with ``resources["nvidia.com/gpu"]``. A job has a
``speedup_fn`` for each cluster, or None if it is unknown, and ``min_replicas`` and ``max_replicas``
for each cluster or for all. `prev_allocations` and the result give, for each job, the cluster and
the node of each GPU. The name of a job gives its application, about which its functions teach as in
`ronda.hosts.adapters.believing`. For functions other than AdaptDL's, ``cluster_throughput_ratios``
convert them to clusters on which the job has not run.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ronda.hosts.adapters.believing import ApplicationOf, Believing, HostJob, by_name, now_of
from ronda.hosts.adapters.goodput import goodput_of
from ronda.hosts.adapters.machines import cluster_of
from ronda.instances.arguments import checked
from ronda.instances.base import NonNegative, Positive
from ronda.instances.job import Costs
from ronda.solvers.contract import Policy

GPU = "nvidia.com/gpu"
RESTARTS_S = {"bert": 120, "cifar": 30, "deepspeech": 25, "imagenet": 250, "yolov3": 45}
"""Seconds of a restart in Sia's own policy, keyed by the start of the application's name."""

Key = Any
Placed = tuple[str | None, Sequence[Key]]


class Sia:
    """A policy for Sia's simulator (Jayaram Subramanya et al., SOSP 2023).

    Parameters
    ----------
    policy
        Policy that decides.
    application
        Function from the key of a job to its application; jobs of one application are similar.
    interval_s
        Time between decisions in seconds.
    restart_s
        Time that a start or a change costs a job, in seconds, for all jobs or keyed by application
        (30 for others). The default is the values of Sia's own policy.
    deadline_s
        Time limit of a decision in seconds.
    beliefs
        Whether beliefs are used in addition to a job's own goodputs.
    """

    @checked
    def __init__(
        self,
        policy: Policy | str = "prices",
        *,
        application: ApplicationOf = by_name,
        interval_s: Positive = 60.0,
        restart_s: NonNegative | Mapping[str, NonNegative] | None = None,
        deadline_s: Positive | None = None,
        beliefs: bool = True,
    ) -> None:
        self.application, self.deadline_s = application, deadline_s
        self.interval_s, self.restart_s = interval_s, restart_s
        costs = self._costs("")
        self._host = Believing(policy, length_s=interval_s, costs=costs, beliefs=beliefs)
        self._now_s = 0.0

    def populate_valid_configs(self, *_: object) -> None:
        """Do nothing, because the nodes already show all possible configurations."""

    def optimize(
        self,
        jobs: Mapping[Key, Any],
        nodes: Mapping[str, Mapping[Key, Any]],
        prev_allocations: Mapping[Key, Any],
    ) -> dict[Key, Placed]:
        """Return the cluster of every job and the nodes of its GPUs; (None, ()) if it waits."""
        layout = [
            (cluster, key, int(node.resources[GPU]))
            for cluster, own in nodes.items()
            for key, node in own.items()
            if node.resources[GPU] > 0
        ]
        machines = cluster_of([(cluster, n) for cluster, _, n in layout])
        names = [f"{cluster}/{key}" for cluster, key, _ in layout]
        ages = [now for job in jobs.values() if (now := now_of(job)) is not None]
        self._now_s = max([*ages, self._now_s + (0.0 if ages else self.interval_s)])
        index = {(cluster, key): k for k, (cluster, key, _) in enumerate(layout)}
        ids = {str(key): key for key in jobs}
        told = {}
        for name, key in ids.items():
            cluster, places = prev_allocations.get(key) or (None, ())
            held = [index[cluster, place] for place in places] if cluster is not None else []
            told[name] = self._told(jobs[key], self.application(key), held)
        self._host.decide(self._now_s, told, machines, names, self.deadline_s)
        found: dict[Key, Placed] = dict.fromkeys(jobs, (None, ()))
        for name, given in self._host.host.running.items():
            on = [layout[node][1] for node, n in given.placement for _ in range(n)]
            found[ids[name]] = layout[given.placement[0][0]][0], on
        return found

    def _told(self, job: Any, application: str, held: Sequence[int]) -> HostJob:
        """Return a job as described to the façade."""
        age_s = float(getattr(job, "age", 0.0))
        return HostJob(
            application=application,
            submit_s=max(0.0, self._now_s - age_s),
            low=max(1, min(_each(job.min_replicas))),
            high=max(_each(job.max_replicas)),
            speedups=_functions(job),
            nodes=held,
            costs=self._costs(application),
        )

    def _costs(self, application: str) -> Costs:
        told = RESTARTS_S if self.restart_s is None else self.restart_s
        table = told if isinstance(told, Mapping) else {"": told}
        found = [s for name, s in table.items() if application.startswith(name)]
        restart_s = found[0] if found else 30.0
        return Costs(start_s=restart_s, restart_s=restart_s)


def _each(replicas: Any) -> list[int]:
    return list(replicas.values()) if isinstance(replicas, Mapping) else [replicas]


def _functions(job: Any) -> dict[str, Any]:
    """Return a job's goodputs keyed by cluster, by ratios for clusters on which it has not run."""
    known = {cluster: of for cluster, of in job.speedup_fn.items() if of is not None}
    if not known or any(goodput_of(of) is not None for of in known.values()):
        return known
    found = {cluster: partial(_goodput, 1.0, of) for cluster, of in known.items()}
    source, of = next(iter(known.items()))
    ratios = getattr(job, "cluster_throughput_ratios", None) or {}
    for cluster in job.speedup_fn.keys() - known.keys():
        by = ratios.get(cluster) or {}
        if source in by:
            found[cluster] = partial(_goodput, float(by[source]), of)
    return found


def _goodput(by: float, of: Any, nodes: Any, gpus: Any) -> Any:
    """Return the goodputs of another cluster, multiplied by a ratio."""
    asked = (np.asarray(each, dtype=float) for each in (nodes, gpus))  # it takes no integers
    return by * np.asarray(getattr(of, "get_goodput", of)(*asked), dtype=float)
