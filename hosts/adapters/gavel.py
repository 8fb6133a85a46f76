"""Gavel asks ronda: the face of its policies (Narayanan et al., OSDI 2020).

    from ronda.hosts.adapters.gavel import Gavel

    scheduler = Scheduler(Gavel("prices"), simulate=True, ...)

Gavel's scheduler turns shares of time into leases of some minutes. Here leases are decided first,
one after another as they would follow if no job came, and a job's share of a worker type is that of
the leases that it had on it. So all shares fit the workers, with jobs as wide as they are. One
lease is what Gavel needs to keep to a decision until a job comes or goes. The workers of a type are
one node: Gavel's shares know no others.

What Gavel hands over follows from a policy's name. Ours begins as that of its finish-time fairness,
which is told the most: importance and the steps that jobs have left; and says that it minds how
fast worker types are (``Perf``), for else Gavel shuffles these.
"""

from collections.abc import Mapping
from typing import Any

from ronda.hosts.adapters.machines import cluster_of
from ronda.hosts.embedding.embedded import Embedded
from ronda.instances.arguments import checked
from ronda.instances.base import Count, Positive
from ronda.instances.errors import InputError
from ronda.solvers.contract import Policy
from ronda.solvers.registry import as_policy

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

    name = "FinishTimeFairness_Perf, in its place ronda"

    @checked
    def __init__(
        self, policy: Policy | str = "prices", *, leases: Count = 1, lease_s: Positive = 360.0
    ) -> None:
        self.policy, self.leases, self.lease_s = as_policy(policy), leases, lease_s

    def get_allocation(
        self,
        unflattened_throughputs: Mapping[Key, Mapping[str, float]],
        scale_factors: Mapping[Key, int],
        *rest: Any,
    ) -> dict[Key, dict[str, float]] | None:
        """Return the share of time of each job on each worker type; None without jobs.

        Parameters
        ----------
        unflattened_throughputs
            Steps per second by job and worker type; 0: it cannot run there.
        scale_factors
            Workers that each job needs.
        rest
            As Gavel hands them over to policies of several names: workers by type, last; importance
            of jobs before, if there are two or four; of four, the steps that jobs have left third.
        """
        if len(rest) not in (1, 2, 4):
            expected = "workers by type, or what Gavel tells a fair policy"
            raise InputError("get_allocation", f"{2 + len(rest)} arguments", expected)
        weights: Mapping[Key, float] = (rest[0] if len(rest) > 1 else None) or {}
        left: Mapping[Key, float] = rest[2] if len(rest) == 4 else {}
        workers = {kind: n for kind, n in rest[-1].items() if n}
        jobs = list(unflattened_throughputs)
        if not jobs:
            return None
        host = Embedded(self.policy, cluster_of(list(workers.items())), length_s=self.lease_s)
        ids = {str(place): key for place, key in enumerate(jobs)}
        rows = []
        for name, key in ids.items():
            width = scale_factors[key]
            speeds = {
                kind: rate
                for kind, rate in unflattened_throughputs[key].items()
                if rate > 0 and workers.get(kind, 0) >= width
            }
            if speeds:
                rates = {"gpus": width, "gpu_type": [*speeds], "rate": [*speeds.values()]}
                row = {"id": name, "gpus": width, "weight": weights.get(key, 1.0), "rates": rates}
                rows.append(row | ({"work": max(1.0, left[key])} if key in left else {}))
        host.update(added=rows)
        kinds, steps = list(workers), {name: left.get(key) for name, key in ids.items()}
        counts = {key: dict.fromkeys(rest[-1], 0) for key in jobs}
        for lease in range(self.leases):
            ended = [name for name in host.jobs if (n := steps[name]) is not None and n <= 0]
            host.update(now_s=lease * self.lease_s, completed=ended if lease else ())
            host.decide()
            for name, given in host.running.items():
                counts[ids[name]][kinds[given.option.pool]] += 1
                before = steps[name]
                if before is not None:
                    steps[name] = before - given.option.rate * self.lease_s
        return {
            key: {kind: n / self.leases for kind, n in own.items()} for key, own in counts.items()
        }
