"""Rounds of the benchmark set: moments of packaged instances, and generated ones.

What each is for stands in its description, docs/benchmarks/registry.md has the whole set.
"""

from dataclasses import dataclass

from msgspec import structs

from ronda.instances import generate
from ronda.instances.generate import Structure
from ronda.instances.generate.structure import PLAIN
from ronda.instances.instance import Instance
from ronda.instances.round import Round
from ronda.questions.whatif.moment import moment
from ronda.solvers.registry import policy
from tools.recipes.item import Item
from tools.recipes.structured import GENERATED


@dataclass(frozen=True, kw_only=True)
class Made:
    """A generated round: the arguments of `ronda.instances.generate.round`, and words about it."""

    jobs: int
    severity: str
    seed: int
    about: str
    structure: Structure = PLAIN


MADE = {
    "round-tight-64": Made(jobs=64, severity="tight", seed=1, about="one pool of equal nodes"),
    "round-racks-capped": Made(
        jobs=192,
        severity="balanced",
        seed=2,
        structure=Structure(racks=4),
        about="4 racks, each with a power cap of its own",
    ),
    "round-unequal-nodes": Made(
        jobs=160,
        severity="tight",
        seed=3,
        about="nobody runs yet; one pool of nodes of 8 GPUs and as many of 4",
    ),
    "round-racks-256": Made(
        jobs=256,
        severity="balanced",
        seed=5,
        structure=Structure(pods=2, racks=4, gangs=0.1),
        about="2 pods of 4 racks, one job in ten a gang",
    ),
    "round-pools-512": Made(
        jobs=512,
        severity="tight",
        seed=3,
        structure=Structure(types=3, partitions=8),
        about="24 pools: 3 GPU types in each of 8 virtual clusters",
    ),
    "round-balanced-1024": Made(
        jobs=1024, severity="balanced", seed=1, about="one pool of equal nodes"
    ),
    "round-tight-4096": Made(jobs=4096, severity="tight", seed=1, about="one pool of equal nodes"),
}
"""Generated rounds, by name."""

CAPPED = 0.6
"""Cap of a rack as a share of the cluster's power cap, over the number of racks."""


def made(name: str) -> Item:
    """Return a generated round of `MADE`."""
    own = MADE[name]
    found = generate.round(own.jobs, None, own.severity, own.seed, own.structure)
    if name == "round-racks-capped":
        found = _capped(found)
    if name == "round-unequal-nodes":
        found = _unequal(found)
    size = f"{len(found.jobs):,} jobs on {found.cluster.gpus:,} GPUs"
    return Item(
        obj=structs.replace(found, name=name),
        description=f"Generated, {own.severity}, {size}: {own.about}",
        source=GENERATED,
        licence="Apache-2.0",
    )


def _capped(plain: Round) -> Round:
    """Return a round whose racks have power caps besides the cluster's, that of `CAPPED`."""
    cluster = plain.cluster
    assert plain.power_cap_w is not None
    leaves = {group.rack for group in cluster.node_groups}
    cap_w = round(CAPPED * plain.power_cap_w / len(leaves))
    racks = tuple(
        structs.replace(rack, power_cap_w=float(cap_w)) if rack.name in leaves else rack
        for rack in cluster.racks
    )
    source = f"{plain.source}, every rack with a cap of {cap_w} W, nobody runs"
    return _waiting(structs.replace(plain, cluster=structs.replace(cluster, racks=racks)), source)


def _unequal(plain: Round) -> Round:
    """Return a round with as many nodes of 4 GPUs beside those that there are."""
    (group,) = plain.cluster.node_groups
    half = structs.replace(group, name=f"{group.name}-half", gpus_per_node=group.gpus_per_node // 2)
    cluster = structs.replace(plain.cluster, node_groups=(group, half))
    source = f"{plain.source}, as many nodes of 4 GPUs added, nobody runs"
    return _waiting(structs.replace(plain, cluster=cluster), source)


def _waiting(plain: Round, source: str) -> Round:
    """Return a round without those that run."""
    return structs.replace(plain, running=(), source=source)


def busy(instance: Instance, name: str, run_by: str, at_s: float) -> Item:
    """Return the round of a run of an instance by a policy at a time at which many jobs live."""
    found = moment(instance, policy(run_by), at_s=at_s, time_limit_s=None).round
    running = f"{len(found.running)} of {len(found.jobs)} jobs run"
    source = f"{instance.name} under {run_by} at {found.now_s:g} s; {instance.source}"
    return Item(
        obj=structs.replace(found, name=name, source=source),
        description=f"{instance.name} when {running}: {WORDS[name]}",
        source=source,
        licence=instance.licence,
        citation=instance.citation,
    )


WORDS = {
    "round-arrays": "trials of sweeps, some of which share GPUs",
    "round-batches": "batches, clocks and GPUs to choose under a power cap and an energy budget",
    "round-gangs": "jobs of 32 to 64 GPUs on 2 racks",
    "round-pods": "2 GPU types in pods and racks, half of the jobs with deadlines",
    "round-pollux": "measured speed and gradient noise, batches to choose",
    "round-power": "clocks and GPUs to choose under a power cap and an energy budget",
    "round-tenants": "2 virtual clusters, restarts of ten minutes, estimates that are a guess",
    "round-venus": "rigid jobs of a real trace",
}
"""What each moment is like."""
