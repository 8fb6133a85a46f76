"""An adapter for Rubick's simulator with the interface of `MorphlingPolicy` (MLSys 2025).

    from ronda.hosts.adapters.rubick import Rubick

    policy = Rubick()  # in place of MorphlingPolicy()
    allocations, desired_nodes = policy.optimize(job_infos, node_infos, prev_execution_plan)

The simulator tests for its own class, so inherit from both (from this one first)::

    class Ronda(Rubick, MorphlingPolicy): ...

In Rubick a job may run under several execution plans: data, tensor and pipeline parallelism, ZeRO
with or without offload, gradient accumulation or checkpointing. The host gives the best plan for
some GPUs in one of two forms: ``res_matrix`` has the predicted samples per second and the plan for
GPUs of one node; ``gpu_to_placements`` and ``placements_to_plan`` have the layouts and plans of
large models. In ronda a job may have any of these numbers of GPUs, spread evenly over the fewest
nodes, and gets the host's plan for them. Measured speeds (``throughput``) apply to all jobs of the
model.

A job with a guarantee (``is_sla``) has a higher weight. It gets at least the GPUs that should give
the promised speed (``sla_perf``), or the GPUs that it asked for.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ronda.hosts.adapters.machines import cluster_of
from ronda.hosts.adapters.telling import Hosted, tell
from ronda.instances.arguments import checked
from ronda.instances.base import NonNegative, Positive
from ronda.instances.job import Costs
from ronda.solvers.contract import Policy

GPU = "gpu"
RESOURCES = ("gpu", "cpu", "mem")
OFFLOAD = "zero-offload"
SCALING = 0.7
"""Exponent of speed in the number of GPUs if neither the host nor measurements give the speed."""

Key = Any
Way = tuple[int, int]
"""A pair of numbers: GPUs, and nodes on which they are."""


class Planned(NamedTuple):
    """The execution plan of a job on some GPUs, and its samples per second if predicted."""

    plan: tuple[Any, ...]
    rate: float | None


class Rubick:
    """A policy for Rubick's simulator.

    Parameters
    ----------
    policy
        Policy that decides.
    interval_s
        Approximate time between decisions, in seconds.
    restart_s
        Time that a start or a change costs a job, in seconds.
    guaranteed
        Weight of jobs with a guarantee; other jobs have weight 1.
    deadline_s
        Time limit of a decision in seconds.
    """

    @checked
    def __init__(
        self,
        policy: Policy | str = "prices",
        *,
        interval_s: Positive = 60.0,
        restart_s: NonNegative = 260.0,
        guaranteed: Positive = 4.0,
        deadline_s: Positive | None = None,
    ) -> None:
        self.interval_s, self.deadline_s, self.guaranteed = interval_s, deadline_s, guaranteed
        costs = Costs(start_s=restart_s, restart_s=restart_s)
        self._host = Hosted(policy, costs=costs, length_s=interval_s)
        self._measured: dict[tuple[str, Way], float] = {}  # keyed by model, GPUs and nodes
        self._least: dict[str, int] = {}  # fewest GPUs of live jobs
        self._submit_s: dict[str, float] = {}
        self._now_s = 0.0

    def optimize(
        self,
        job_infos: Mapping[Key, Any],
        node_infos: Mapping[Key, Any],
        prev_execution_plan: Mapping[str, Mapping[Key, Any]],
    ) -> tuple[dict[str, dict[Key, Any]], None]:
        """Return the nodes of the jobs' units of each resource, and plans under ``exec_plan``.

        Each GPU comes with one unit of every other resource. The second result, the desired number
        of nodes, is always None.
        """
        order, sizes = list(node_infos), [int(n.resources[GPU]) for n in node_infos.values()]
        self._host.meet(cluster_of([(GPU, n) for n in sizes]), [str(key) for key in order])
        host = self._host.host
        self._clock(job_infos)
        number, ids = {key: k for k, key in enumerate(order)}, {str(key): key for key in job_infos}
        ways, running, least = {}, {}, dict[str, int]()
        for name, key in ids.items():
            job, on = job_infos[key], prev_execution_plan[GPU].get(key) or ()
            if found := ways_of(job, sizes):
                ways[name] = found
                least[name] = _least(job, found)
            nodes = [number.get(node, -1) for node in on]
            if (way := (len(on), len(set(on)))) in found and -1 not in nodes:
                if len(on) >= least[name]:
                    running[name] = nodes
                if job.throughput > 0:
                    self._measured[job.model_name, way] = float(job.throughput)
        rows = {
            name: self._row(name, job_infos[ids[name]], own, least[name])
            for name, own in ways.items()
        }
        others = [n for n in host.jobs if n in ids and least.get(n) != self._least.get(n)]
        host.update(removed=others)  # some of them are added again below
        self._least = least
        tell(host, rows, running, self._now_s)
        done = {name: job_infos[ids[name]].steps * job_infos[ids[name]].local_bsz for name in rows}
        host.update(progress=done)
        host.decide(self.deadline_s)
        decided: dict[str, dict[Key, Any]] = {r: {key: [] for key in job_infos} for r in RESOURCES}
        decided["exec_plan"] = dict.fromkeys(job_infos, ())
        for name, given in host.running.items():
            units = [order[node] for node, n in sorted(given.placement) for _ in range(n)]
            for resource in RESOURCES:
                decided[resource][ids[name]] = list(units)
            decided["exec_plan"][ids[name]] = ways[name][len(units), len(given.placement)].plan
        return decided, None

    def _clock(self, jobs: Mapping[Key, Any]) -> None:
        """Set the time from the ages of known jobs, or else from the interval."""
        ages = {str(key): float(job.age) for key, job in jobs.items()}
        before = [since + ages[name] for name, since in self._submit_s.items() if name in ages]
        self._now_s = max([self._now_s, *before] if before else [self._now_s + self.interval_s])
        self._submit_s = {
            name: self._submit_s.get(name, max(0.0, self._now_s - age_s))
            for name, age_s in ages.items()
        }

    def _row(self, name: str, job: Any, ways: Mapping[Way, Planned], least: int) -> dict[str, Any]:
        """Return a job's row for the façade; its rates are samples per second.

        They are as measured with any job of the model, or else as predicted. Without either,
        `SCALING` extrapolates from the nearest measured number of GPUs. Before any measurement, the
        largest number of GPUs has the host's highest believed speed.
        """
        measured = {way: self._measured.get((job.model_name, way)) for way in ways}
        near = {gpus: rate for (gpus, _), rate in measured.items() if rate is not None}
        near = near or {max(gpus for gpus, _ in ways): float(job.max_throughput_config[3])}
        rates = []
        for way, planned in ways.items():
            gpus = min(near, key=lambda n: abs(math.log(n / way[0])))
            guess = near[gpus] * (way[0] / gpus) ** SCALING
            rates.append(measured[way] or planned.rate or guess)
        counts, nodes = map(list, zip(*ways, strict=True))
        return {
            "id": name,
            "application": job.model_name,
            "submit_s": self._submit_s[name],
            "gpus": least,
            "min_gpus": least,
            "weight": self.guaranteed if job.is_sla else 1.0,
            "rates": {"gpus": counts, "nodes": nodes, "rate": rates},
        }


def ways_of(job: Any, sizes: Sequence[int]) -> dict[Way, Planned]:
    """Return a job's possible GPUs and nodes, and its plan on each; `sizes` are GPUs per node."""
    found, size, most = dict[Way, Planned](), max(sizes, default=0), sum(sizes)
    if not job.gpu_to_placements:
        for n in range(1, size + 1):
            rate, plan, needs = job.res_matrix[n][1][0]
            if plan is not None:
                found[int(needs[GPU]), 1] = Planned(plan, float(rate))
        return found
    for gpus, layouts in job.gpu_to_placements.items():
        nodes = math.ceil(gpus / size) if gpus <= most else 0
        for layout in layouts:
            if nodes and str(layout) == str(gpus // nodes) * nodes:
                plan = job.placements_to_plan[layout]
                said = ("DDP", "ga", OFFLOAD) if plan == OFFLOAD else (plan, plan, layout)
                found[gpus, nodes] = Planned(said, None)
    return found


def _least(job: Any, ways: Mapping[Way, Planned]) -> int:
    """Return the fewest GPUs that a job may have, which satisfy its guarantee if it has one."""
    counts = sorted(gpus for gpus, _ in ways)
    if not job.is_sla:
        return counts[0]
    fast = {gpus for (gpus, _), of in ways.items() if (of.rate or 0.0) >= job.sla_perf}
    return min(fast | {n for n in counts if n >= job.gpu_demand}, default=counts[-1])
