"""AdaptDL's scheduler asks ronda: the face of its `PolluxPolicy` (adaptdl_sched.policy.pollux).

    from ronda.solvers.adapters.pollux import Pollux

    policy = Pollux()  # in place of PolluxPolicy()
    allocations, desired_nodes = policy.optimize(jobs, nodes, base_allocations, node_template)

Its objective (Qiao et al., OSDI 2021, as in version 0.2.11): the sum of the jobs' speed-ups, less
10 % of those of jobs whose replicas change. Its search is NSGA-II over replicas on nodes; this is
the price engine over numbers of replicas, with a bound.

A node has as many slots as it could hold of the most demanding replica of any job. Jobs on several
nodes take whole ones, so that no two of them share a node, which Pollux forbids. The cluster's size
follows Pollux's rule: the utility nearest to one half, unless it is within 0.35 to 0.65.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from ronda.solvers.adapters.machines import (
    cluster_of,
    in_order,
    most_needed,
    nearest_size,
    slots_of,
)
from ronda.solvers.adapters.speedups import SumOfSpeedups
from ronda.solvers.contract import Policy
from ronda.solvers.embedding import Embedded

LEAST_UTILITY, MOST_UTILITY = 0.35, 0.65
ROUGHLY = 0.02
"""Gap at which a size of the cluster is judged."""

Key = Any
Allocations = dict[Key, list[Key]]


class Pollux:
    """Stands where AdaptDL has its own policy; decides within `deadline_s` seconds."""

    def __init__(self, deadline_s: float | None = None, *, gap: float = 1e-3) -> None:
        self.deadline_s = deadline_s
        self._policy = cast("Policy", SumOfSpeedups(gap=gap))
        self._roughly = cast("Policy", SumOfSpeedups(gap=max(gap, ROUGHLY)))
        self._tables: dict[tuple[Any, ...], tuple[Any, dict[str, Any]]] = {}  # and whose they are

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
        slots = [slots_of(nodes[key], need) for key in order]
        decided, utility = self._decide(self._policy, jobs, slots, order, base_allocations)
        live = {id(job.speedup_fn) for job in jobs.values()}
        self._tables = {key: table for key, table in self._tables.items() if key[0] in live}
        if LEAST_UTILITY <= utility <= MOST_UTILITY:
            return decided, len(nodes)
        all_slots = slots + len(nodes) * [slots_of(node_template, need)]
        return decided, self._desired(jobs, all_slots, len(nodes), utility)

    def _decide(
        self,
        policy: Policy,
        jobs: Mapping[Key, Any],
        slots: Sequence[int],
        names: Sequence[Key],
        base: Mapping[Key, Sequence[Key]],
    ) -> tuple[Allocations, float]:
        """Return what jobs get on nodes of these slots, and the utility of these."""
        decided: Allocations = {key: [] for key in jobs}
        usable = [k for k, n in enumerate(slots) if n > 0]
        if not usable:
            return decided, 0.0
        number = {names[k]: place for place, k in enumerate(usable)}
        sizes = [slots[k] for k in usable]
        found = Embedded(policy, cluster_of([("gpu", n) for n in sizes]))
        ids = {str(place): key for place, key in enumerate(jobs)}
        held = {i: [number[n] for n in base.get(key, ()) if n in number] for i, key in ids.items()}
        rows = [self._row(i, jobs[key], sizes, held[i]) for i, key in ids.items()]
        found.update(added=[row for row in rows if row is not None])
        found.update(running={i: held[i] for i in found.jobs if held[i]})
        found.decide(self.deadline_s)
        speed, used = 0.0, set[int]()
        for i, given in found.running.items():
            places = [node for node, n in given.placement for _ in range(n)]
            decided[ids[i]] = [names[usable[node]] for node in places]
            used.update(places)
            speed += given.option.rate
        return decided, speed / max(1, sum(sizes[node] for node in used))

    def _row(
        self, name: str, job: Any, sizes: Sequence[int], held: Sequence[int]
    ) -> dict[str, Any] | None:
        """Return a job for the façade; None if it cannot run at all."""
        low, high = max(job.min_replicas, 1), min(job.max_replicas, sum(sizes))
        if held:
            low, high = min(low, len(held)), max(high, len(held))
        if low > high:
            return None
        way = (len(held), len(set(held))) if held else None
        rates = self._table(job.speedup_fn, low, high, max(sizes), way)
        row = {"id": name, "gpus": low, "min_gpus": low, "max_gpus": high, "rates": rates}
        return row | {"preemptible": bool(job.preemptible)}

    def _table(
        self, speedup: Any, low: int, high: int, size: int, held: tuple[int, int] | None
    ) -> dict[str, Any]:
        """Return speed-ups by replicas and nodes: up to one node, whole nodes, and what is held."""
        key = (id(speedup), low, high, size, held)
        if key not in self._tables:
            counts = {n for n in range(low, high + 1) if n <= size or n % size == 0} | {low}
            ways = {(n, -(-n // size)) for n in counts}
            if held is not None:
                ways |= {held, (held[0], -(-held[0] // size))}
            gpus, nodes = np.array(sorted(ways)).T
            rates = speedup(nodes, gpus)
            self._tables[key] = speedup, {"gpus": gpus, "nodes": nodes, "rate": rates}
        return self._tables[key][1]

    def _desired(self, jobs: Mapping[Key, Any], slots: Sequence[int], now: int, of: float) -> int:
        """Return the number of nodes whose utility is nearest to one half, by bisection."""
        wanted = (LEAST_UTILITY + MOST_UTILITY) / 2
        low, high = (now, len(slots)) if of > MOST_UTILITY else (1, now)
        known: dict[int, tuple[float, int]] = {}

        def utility(n: int) -> float:
            if n not in known:
                decided, found = self._decide(self._roughly, jobs, slots[:n], range(n), {})
                known[n] = found, 1 + max((k for a in decided.values() for k in a), default=0)
            return known[n][0]

        best = nearest_size(utility, low, high, wanted)
        return max(1, min(best, known[best][1]))
