"""An instance with another energy budget, other power figures or more nodes: points of a sweep."""

from typing import Annotated

import msgspec
import numpy as np
from msgspec.structs import replace

from ronda.formulations.bounds.needs import needs
from ronda.formulations.models.power import job_power_w
from ronda.instances.base import Positive, Record
from ronda.instances.budget import EnergyBudget
from ronda.instances.cluster import Cluster
from ronda.instances.errors import InputError
from ronda.instances.instance import Instance
from ronda.instances.profile import PowerCurve, Profile
from ronda.instances.rules.problem import show


class Variant(Record, frozen=True, kw_only=True):
    """What to change about an instance; the defaults change nothing.

    `sustained_w` are the watts at which the energy budget accrues; its credit is scaled alike,
    and an instance without a budget gets one without credit. The same as a share of `reference_w`
    is `factor`, for tables: it decides nothing. `idle` and `power` are factors on the idle power
    of hosts and GPUs, and on all power curves; `nodes` are added to the first group.
    """

    sustained_w: Positive | None = None
    factor: Positive | None = None
    idle: Positive = 1.0
    power: Positive = 1.0
    nodes: Annotated[int, msgspec.Meta(ge=0, le=2**20)] = 0

    @property
    def change(self) -> str:
        """What differs besides the budget, in words; empty if nothing does."""
        words = [f"{name} ×{getattr(self, name):g}" for name in ("idle", "power")]
        words = [word for word in words if not word.endswith("×1")]
        if self.nodes:
            words.append(f"nodes +{self.nodes}")
        return ", ".join(words)

    @property
    def title(self) -> str:
        """All that differs, in words; empty if nothing does."""
        budget = "" if self.factor is None else f"budget ×{self.factor:g}"
        return ", ".join(filter(None, (budget, self.change)))

    def apply(self, instance: Instance) -> Instance:
        """Return the changed instance; it keeps its name."""
        cluster, profiles, budget = instance.cluster, instance.profiles, instance.budget
        if self.idle != 1.0 or self.nodes:
            cluster = _scaled_cluster(cluster, self.idle, self.nodes)
        if self.power != 1.0:
            profiles = {name: _scaled_profile(p, self.power) for name, p in profiles.items()}
        if self.sustained_w is not None:
            budget = replace(budget, energy=_budget(instance, self.sustained_w))
        return replace(instance, cluster=cluster, profiles=profiles, budget=budget)


UNCHANGED = Variant()
"""The instance as it is."""


def reference_w(instance: Instance) -> float:
    """Return the watts that a budget factor of 1 stands for.

    What the instance's own energy budget sustains; without one, the draw with all nodes awake and
    all GPUs busy at full clock: the mean over jobs as they ask to run, weighted by the fewest
    GPU-seconds that each needs.
    """
    if instance.budget.energy is not None:
        return instance.budget.energy.sustained_w
    topology = instance.cluster.topology
    gpu_s = needs(instance).gpu_s
    total = float(topology.host_idle_w.sum())
    known: dict[tuple[str, str, int, float], float] = {}
    for pool in topology.pools:
        watts, weights = [], []
        for job, weight in zip(instance.jobs, gpu_s.tolist(), strict=True):
            profile = instance.profiles[job.profile]
            if job.partition != pool.partition or pool.gpu_type.name not in profile.throughput:
                continue
            batch = job.batch or profile.base_batch
            key = (job.profile, pool.gpu_type.name, job.gpus, batch)
            if key not in known:
                nodes = -(-job.gpus // pool.gpus_per_node)
                draw = job_power_w(profile, pool.gpu_type, job.gpus, nodes, batch)
                known[key] = draw / job.gpus
            if np.isfinite(known[key]):
                watts.append(known[key])
                weights.append(weight)
        busy_w = float(np.average(watts, weights=weights)) if watts else pool.gpu_type.idle_w
        total += pool.gpus * busy_w
    if not total > 0:
        found = "a cluster that draws 0 W: it has no power data"
        raise InputError(f"instance {show(instance.name)}", found, "one with powers, or a budget")
    return total


def _budget(instance: Instance, sustained_w: float) -> EnergyBudget:
    own = instance.budget.energy
    if own is not None:
        share = sustained_w / own.sustained_w
        if share == 1.0:
            return own  # without rounding: it is the instance itself
        return replace(own, joules=sustained_w * own.horizon_s, credit_j=share * own.credit_j)
    horizon_s = max(3600.0, max(job.submit_s for job in instance.jobs))
    return EnergyBudget(joules=sustained_w * horizon_s, horizon_s=horizon_s)


def _scaled_cluster(cluster: Cluster, idle: float, nodes: int) -> Cluster:
    types = tuple(replace(gpu, idle_w=idle * gpu.idle_w) for gpu in cluster.gpu_types)
    groups = [replace(g, host_idle_w=idle * g.host_idle_w) for g in cluster.node_groups]
    groups[0] = replace(groups[0], count=groups[0].count + nodes)
    return replace(cluster, gpu_types=types, node_groups=tuple(groups))


def _scaled_profile(profile: Profile, factor: float) -> Profile:
    def scaled(curve: PowerCurve) -> PowerCurve:
        sync_w = None if curve.sync_w is None else factor * curve.sync_w
        a_w, b_w, c_w = (factor * watts for watts in (curve.a_w, curve.b_w, curve.c_w))
        return replace(curve, a_w=a_w, b_w=b_w, c_w=c_w, sync_w=sync_w)

    return replace(profile, power={name: scaled(curve) for name, curve in profile.power.items()})
