"""An adapter for AdaptDL's scheduler with the interface of `PolluxPolicy`.

    from ronda.hosts.adapters.pollux import Pollux

    policy = Pollux()  # in place of PolluxPolicy()
    allocations, desired_nodes = policy.optimize(jobs, nodes, base_allocations, node_template)

The policy's original is in adaptdl_sched.policy.pollux. If a host tests for its own class, as the
simulator of Pollux's artifact does, inherit from both (from this one first)::

    class Ronda(Pollux, PolluxPolicy): ...

The adapter serves the policy's own objective (mean JCT by default) with beliefs about sizes, speeds
and noise: see `ronda.hosts.adapters.believing`. The name of a job gives its application unless the
functions of jobs contradict that. Pollux's own objective (Qiao et al., OSDI 2021, as in version
0.2.11) is the sum of the jobs' speed-ups, less 10 % of the speed-ups of jobs whose replicas change.
The policy `ronda.hosts.adapters.speedups.SumOfSpeedups` has this objective and uses no beliefs.

A node first holds the replicas of its jobs that may not be stopped; its other slots are counted in
the most demanding replica of any job. Jobs on several nodes take whole nodes, so no two of them
share a node, which Pollux forbids. The number of nodes follows Pollux's rule: the utility nearest
to one half, unless it is already from 0.35 to 0.65.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ronda.hosts.adapters.believing import ApplicationOf, Believing, HostJob, by_name, now_of
from ronda.hosts.adapters.machines import best_nodes, cluster_of, in_order, most_needed, slots_of
from ronda.hosts.adapters.speedups import SumOfSpeedups
from ronda.instances.arguments import checked
from ronda.instances.base import NonNegative, Positive
from ronda.instances.job import Costs
from ronda.solvers.contract import Policy

GPU = "gpu"

Key = Any
Allocations = dict[Key, list[Key]]


class Pollux:
    """A policy for AdaptDL's scheduler.

    Parameters
    ----------
    policy
        Policy that decides.
    application
        Function from the key of a job to its application; jobs of one application are similar.
    interval_s
        Approximate time between decisions, in seconds.
    restart_s
        Time that a start or a change costs a job, in seconds.
    deadline_s
        Time limit of a decision in seconds.
    beliefs
        Whether beliefs are used in addition to a job's own speed-ups; by default they are, unless
        the policy has Pollux's objective.
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
        """Return the first node with room for a job's fewest replicas, preemptible nodes last."""
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
        """Return the node of each replica of every job, and the desired number of nodes."""
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
                told[name] = HostJob(
                    application=self.application(key),
                    submit_s=max(0.0, since_s),
                    low=low,
                    high=high,
                    speedups={GPU: job.speedup_fn},
                    nodes=held,
                    preemptible=bool(job.preemptible),
                )
        unfit = ids.keys() - told.keys()
        self._host.decide(now_s, told, cluster, names, self.deadline_s, unfit)
        for name, given in self._host.host.running.items():
            decided[ids[name]] = [usable[node] for node, n in given.placement for _ in range(n)]
        sizes = [slots[key] for key in order] + len(nodes) * [slots_of(node_template, need)]
        return decided, best_nodes(jobs.values(), decided.values(), sizes, len(nodes))

    def _clock(self, jobs: Mapping[Key, Any]) -> float:
        """Return the time from the creation times and ages of jobs if given, else our own time."""
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
    """Return the number of replicas per node: those of jobs that stay, and others that fit.

    The others are counted in replicas of the most demanding other job.
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
