"""AdaptDL's scheduler asks ronda: the face of its `PolluxPolicy` (adaptdl_sched.policy.pollux).

    from ronda.hosts.adapters.pollux import Pollux

    policy = Pollux()  # in place of PolluxPolicy()
    allocations, desired_nodes = policy.optimize(jobs, nodes, base_allocations, node_template)

Where a host tests for its own class, as the simulator of Pollux's artifact does, inherit from both
(from this one first)::

    class Ronda(Pollux, PolluxPolicy): ...

It serves the policy's own objective (mean JCT, by default) with what it believes of sizes, speeds
and noise by itself: see `ronda.hosts.adapters.believing`. A job's application is taken from its
name, unless what is known of jobs contradicts that. Pollux's own objective (Qiao et al., OSDI 2021,
as in version 0.2.11), the sum of the jobs' speed-ups less 10 % of those whose replicas change, is
the policy `ronda.hosts.adapters.speedups.SumOfSpeedups`; it believes nothing.

A node has as many slots as it could hold of the most demanding replica of any job, besides the
replicas there of jobs that may not be stopped. Jobs on several nodes take whole ones, so that no
two of them share a node, which Pollux forbids. How many nodes there should be follows Pollux's
rule: the utility nearest to one half, unless it is within 0.35 to 0.65.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ronda.hosts.adapters.believing import ApplicationOf, Believing, HostJob, by_name, now_of
from ronda.hosts.adapters.machines import (
    best_nodes,
    cluster_of,
    in_order,
    most_needed,
    slots_of,
)
from ronda.hosts.adapters.speedups import SumOfSpeedups
from ronda.instances.arguments import checked
from ronda.instances.base import NonNegative, Positive
from ronda.instances.job import Costs
from ronda.solvers.contract import Policy

GPU = "gpu"

Key = Any
Allocations = dict[Key, list[Key]]


class Pollux:
    """Stands where AdaptDL has its own policy.

    Parameters
    ----------
    policy
        Who decides.
    application
        Returns the application of a job by its key: jobs of one are alike.
    interval_s
        Seconds between decisions, about.
    restart_s
        Seconds that a start or a change costs a job.
    deadline_s
        Seconds for a decision.
    beliefs
        False: jobs are known by their own speed-ups alone; None: unless the policy is Pollux's.
    """

    @checked
    def __init__(
        self,
        policy: Policy | str = "prices",
        *,
        application: ApplicationOf = by_name,
        interval_s: Positive = 60.0,
        restart_s: NonNegative = 30.0,
        deadline_s: Positive | None = None,
        beliefs: bool | None = None,
    ) -> None:
        self.application, self.deadline_s = application, deadline_s
        costs = Costs(start_s=restart_s, restart_s=restart_s)
        believes = not isinstance(policy, SumOfSpeedups) if beliefs is None else beliefs
        self._host = Believing(policy, length_s=interval_s, costs=costs, beliefs=believes)
        self._began_s = time.monotonic()
        self._now_s = 0.0

    def allocate_job(self, job_info: Any, nodes: Mapping[Key, Any]) -> list[Key]:
        """Return the first node, preemptible ones last, that holds the fewest replicas of a job."""
        least = max(job_info.min_replicas, 1)
        for key in in_order(nodes):
            if slots_of(nodes[key], job_info.resources) >= least:
                return [key] * least
        return []

    def optimize(
        self,
        jobs: Mapping[Key, Any],
        nodes: Mapping[Key, Any],
        base_allocations: Mapping[Key, Sequence[Key]],
        node_template: Any,
    ) -> tuple[Allocations, int]:
        """Return a node for each replica of every job, and how many nodes there should be."""
        if not jobs:
            return {}, len(nodes)
        order, need = in_order(nodes), most_needed(jobs.values())
        slots = _slots(jobs, nodes, order, base_allocations)
        usable = [key for key in order if slots[key] > 0]
        decided: Allocations = {key: [] for key in jobs}
        if not usable:
            return decided, len(nodes)
        number = {key: k for k, key in enumerate(usable)}
        cluster = cluster_of([(GPU, slots[key]) for key in usable])
        names = [str(key) for key in usable]
        ids = {_id(key): key for key in jobs}
        now_s = self._now_s = max(self._now_s, self._clock(jobs))
        told, room = {}, Counter({number[key]: slots[key] for key in usable})
        for name, key in sorted(ids.items(), key=lambda item: jobs[item[1]].preemptible):
            job, held = jobs[key], [number.get(n, -1) for n in base_allocations.get(key) or ()]
            if -1 in held or any(n > room[k] for k, n in Counter(held).items()):
                held = []
            room.subtract(held)
            low, high = max(job.min_replicas, 1), min(job.max_replicas, sum(slots.values()))
            if held:
                low, high = min(low, len(held)), max(high, len(held))
            if low <= high:
                since_s = now_s - max(0.0, float(getattr(job, "age", 0.0)))
                firm = not job.preemptible
                told[name] = HostJob(
                    application=self.application(key),
                    submit_s=max(0.0, since_s),
                    low=low,
                    high=high,
                    speedups={GPU: job.speedup_fn},
                    nodes=held,
                    preemptible=not firm,
                )
        unfit = ids.keys() - told.keys()
        self._host.decide(now_s, told, cluster, names, self.deadline_s, unfit)
        for name, given in self._host.host.running.items():
            places = [node for node, n in given.placement for _ in range(n)]
            decided[ids[name]] = [usable[node] for node in places]
        sizes = [slots[key] for key in order] + len(nodes) * [slots_of(node_template, need)]
        return decided, best_nodes(jobs.values(), decided.values(), sizes, len(nodes))

    def _clock(self, jobs: Mapping[Key, Any]) -> float:
        """Return the time: of jobs that say when they came, and how old they are, else ours."""
        for job in jobs.values():
            if (told_s := now_of(job)) is not None:
                return told_s
        return time.monotonic() - self._began_s


def _id(key: Key) -> str:
    return "/".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _slots(
    jobs: Mapping[Key, Any],
    nodes: Mapping[Key, Any],
    order: Sequence[Key],
    base: Mapping[Key, Sequence[Key]],
) -> dict[Key, int]:
    """Return how many replicas each node holds: those of jobs that stay, and what fits then.

    What fits then is counted in replicas of the most demanding other job.
    """
    firm = {key for key, job in jobs.items() if not job.preemptible and base.get(key)}
    others = most_needed(job for key, job in jobs.items() if key not in firm)
    there = dict.fromkeys(order, 0)
    used: dict[Key, Counter[str]] = {key: Counter() for key in order}
    for key in firm:
        for node in base[key]:
            if node in there:
                there[node] += 1
                used[node].update(jobs[key].resources)
    return {key: there[key] + max(0, slots_of(nodes[key], others, used[key])) for key in order}
