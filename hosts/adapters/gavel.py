"""An adapter for Gavel with the interface of its policies (Narayanan et al., OSDI 2020).

    from ronda.hosts.adapters.gavel import Gavel

    scheduler = Scheduler(Gavel("prices"), simulate=True, ...)

Gavel's scheduler turns shares of time into leases of a few minutes. This adapter decides the leases
first, one after another as if no job came, and then counts the share of leases that a job has on
each worker type. All shares therefore fit the workers at the jobs' widths. With one lease, Gavel
keeps to a decision until a job comes or goes. The workers of a type are one node, because Gavel's
shares do not distinguish nodes.

The arguments that Gavel passes depend on the name of the policy. Our name begins like that of
finish-time fairness, which gets the most: the weights and the remaining steps of jobs. It also
contains ``Perf``, because Gavel otherwise shuffles the worker types.
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
    """A policy for Gavel.

    Parameters
    ----------
    policy
        Policy that decides each lease. Without known sizes, jobs are ordered by attained service.
    leases
        Number of leases from which shares are computed.
    lease_s
        Length of a lease in seconds.
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
        """Return each job's share of time on each worker type; None without jobs.

        Parameters
        ----------
        unflattened_throughputs
            Steps per second, keyed by job and worker type; 0 if the job cannot run there.
        scale_factors
            Number of workers of each job.
        rest
            Further arguments, which depend on the policy's name in Gavel. The last is the number of
            workers of each type. Of two or four arguments the first is the weights of jobs, and of
            four the third is their remaining steps.
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
