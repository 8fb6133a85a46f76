"""Gavel asks ronda: the face of its policies (Narayanan et al., OSDI 2020).

    from ronda.solvers.adapters.gavel import Gavel

    policy = Gavel("prices", leases=10)
    shares = policy.get_allocation(throughputs, scale_factors, priority_weights, cluster_spec)

Gavel's scheduler turns shares of time into leases of some minutes. Here leases are decided first,
one after another as they would follow if no job came or went, and a job's share of a worker type
is that of the leases that it had on it. So all shares fit the workers, with jobs as wide as they
are. The workers of a type are one node: Gavel's shares know no others.
"""

from collections.abc import Mapping
from typing import Any

from ronda.instances.job import Costs
from ronda.solvers.adapters.machines import cluster_of
from ronda.solvers.contract import Policy
from ronda.solvers.embedding import Embedded

Key = Any


class Gavel:
    """Stands where Gavel has a policy.

    Parameters
    ----------
    policy
        Who decides each lease. Where no sizes are known, jobs are served by what they have had.
    leases
        How many leases the shares are made of.
    lease_s
        Seconds of a lease.
    """

    name = "ronda"

    def __init__(
        self, policy: Policy | str = "prices", *, leases: int = 10, lease_s: float = 360.0
    ) -> None:
        self.policy, self.leases, self.lease_s = policy, leases, lease_s

    def get_allocation(
        self,
        unflattened_throughputs: Mapping[Key, Mapping[str, float]],
        scale_factors: Mapping[Key, int],
        priority_weights: Mapping[Key, float] | None,
        cluster_spec: Mapping[str, int],
        num_steps_remaining: Mapping[Key, float] | None = None,
    ) -> dict[Key, dict[str, float]] | None:
        """Return the share of time of each job on each worker type; None without jobs.

        Parameters
        ----------
        unflattened_throughputs
            Steps per second by job and worker type; 0: it cannot run there.
        scale_factors
            Workers that each job needs.
        priority_weights
            Importance of jobs; None: all alike.
        cluster_spec
            Workers by type.
        num_steps_remaining
            Steps that jobs have left; None: not known.
        """
        jobs = list(unflattened_throughputs)
        if not jobs:
            return None
        host = Embedded(
            self.policy,
            cluster_of([(kind, n) for kind, n in cluster_spec.items() if n]),
            costs=Costs(),
            length_s=self.lease_s,
        )
        ids = {str(place): key for place, key in enumerate(jobs)}
        weights, steps = priority_weights or {}, num_steps_remaining or {}
        rows = []
        for name, key in ids.items():
            width = scale_factors[key]
            rates = {
                kind: {width: rate}
                for kind, rate in unflattened_throughputs[key].items()
                if rate > 0 and cluster_spec.get(kind, 0) >= width
            }
            if rates:
                weight = weights.get(key, 1.0)
                row = {"id": name, "gpus": width, "weight": weight, "rates": rates}
                rows.append(row | ({"work": steps[key]} if key in steps else {}))
        host.update(added=rows)
        kinds = [kind for kind, n in cluster_spec.items() if n]
        counts = {key: dict.fromkeys(cluster_spec, 0) for key in jobs}
        for lease in range(self.leases):
            host.update(now_s=lease * self.lease_s)
            host.decide()
            for name, given in host.running.items():
                kind = kinds[given.option.pool]
                counts[ids[name]][kind] += 1
        return {
            key: {kind: n / self.leases for kind, n in own.items()} for key, own in counts.items()
        }
