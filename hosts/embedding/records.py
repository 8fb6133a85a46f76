"""The settings and the memory of an embedded ronda, as records that can be saved."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from ronda.formulations.prediction.speeds import UNKNOWN
from ronda.formulations.tenants.usage import Past, ended
from ronda.horizon.beliefs import SavedBeliefs as Believed
from ronda.hosts.embedding.changes import node_names
from ronda.hosts.embedding.jobs import SECONDS, UNTOLD
from ronda.hosts.embedding.live import Tracked
from ronda.hosts.embedding.plain import ids_of
from ronda.hosts.embedding.rates import Host, Tables
from ronda.instances.base import NonNegative, Positive
from ronda.instances.cluster import Cluster
from ronda.instances.errors import InputError
from ronda.instances.job import Allocation, Costs
from ronda.instances.plan import Plan
from ronda.instances.profile import Profile, Rigid, Throughput
from ronda.instances.rules.cluster import cluster_problems
from ronda.instances.rules.jobs import cost_problems
from ronda.instances.rules.problem import as_error
from ronda.instances.rules.profile import profile_problems
from ronda.instances.rules.validate import MalformedError, normal
from ronda.instances.site import NO_SITE, Site

FORMAT = "ronda/embedded/1"

Speeds = Literal["given", "learnt"]
"""Whether the speeds of shared models are given, or learnt from measured steps."""


class StepTime(msgspec.Struct, frozen=True, kw_only=True):
    """The measured time of a step of a running job.

    Attributes
    ----------
    compute_s
        Seconds of computation in a pass, at full clock.
    sync_s
        Seconds of synchronisation that do not overlap with computation.
    local_batch
        Samples per GPU in a pass; None means an equal share of the global batch.
    """

    compute_s: Positive
    sync_s: NonNegative = 0.0
    local_batch: Positive | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The settings of an `Embedded`, except for its policy."""

    cluster: Cluster
    profiles: dict[str, Profile]
    costs: Costs
    length_s: float
    node_names: list[str]
    history: bool = True
    speeds: Speeds = "given"
    seed: int = 0
    site: Site = NO_SITE

    @cached_property
    def host(self) -> Host:
        """The data of the cluster for reading tables of rates."""
        return Host(self.cluster)

    @cached_property
    def unrated(self) -> dict[str, Profile]:
        """The profiles of jobs without rates, for any GPU, keyed by name."""
        models: dict[str, Throughput] = {UNTOLD: UNKNOWN, SECONDS: Rigid()}
        kinds = self.cluster.gpu_types
        return {
            name: Profile(name=name, throughput={kind.name: model for kind in kinds})
            for name, model in models.items()
        }

    @cached_property
    def number(self) -> dict[str, int]:
        """The index of each node, keyed by name."""
        return {name: k for k, name in enumerate(self.node_names)}


class State(msgspec.Struct, kw_only=True):
    """The memory of an `Embedded`, which an update replaces as a whole or not at all.

    `alike` holds the rates of each application for its new jobs, `ready_s` the times at which
    waking nodes are awake, `service` the names of nodes that take no new jobs, `leaving` the times
    at which nodes will go out of service, by name, and `past` what tenants have held.
    """

    now_s: float = 0.0
    power_cap_w: float | None = None
    jobs: dict[str, Tracked] = {}
    alike: dict[str, Tables] = {}
    plan: Plan | None = None
    asleep: tuple[int, ...] = ()
    ready_s: dict[int, float] = {}
    service: dict[str, Literal["lost", "drained"]] = {}
    leaving: dict[str, float] = {}
    past: Past = {}

    @property
    def held(self) -> dict[str, Allocation]:
        """The allocations of running jobs, keyed by id."""
        runs = ((job, of.state.allocation) for job, of in self.jobs.items())
        return {job: held for job, held in runs if held is not None}

    @property
    def waking(self) -> tuple[int, ...]:
        """The nodes that are still waking up."""
        return tuple(sorted(node for node, at in self.ready_s.items() if at > self.now_s))


def with_past(before: State, after: State, settings: Settings) -> State:
    """Return the state after a change, with what jobs held until then that hold it no longer."""
    half_life_s = settings.site.usage_half_life_s
    if half_life_s is None:
        return after
    past, pools = dict(before.past), settings.cluster.topology.pools
    for job, of in before.jobs.items():
        held, then = of.state.allocation, after.jobs.get(job)
        goes_on = then is not None and then.state.allocation is not None
        if held is None or (goes_on and then and then.state.held_s == of.state.held_s):
            continue
        span = of.state.held_s, after.now_s
        ended(past, pools, of.state.job, held.option, *span, half_life_s)
    return replace(after, past=past)


class SavedState(msgspec.Struct, frozen=True, kw_only=True):
    """The saved form of an `Embedded`."""

    format: str
    policy: str | None
    settings: Settings
    state: State
    believed: Believed
    told: bool = False  # whether there was a hook for decisions


def settings_of(
    cluster: Cluster,
    profiles: Mapping[str, Profile] | None,
    costs: Costs | None,
    node_names: Sequence[str] | None,
    **rest: Any,
) -> Settings:
    """Return settings from the arguments of a host."""
    names = names_of(cluster, node_names)
    known, usual = dict(profiles or {}), costs or Costs()
    made = Settings(cluster=cluster, profiles=known, costs=usual, node_names=names, **rest)
    return checked_settings(made)


def checked_settings(settings: Settings, before: Settings | None = None) -> Settings:
    """Return settings after checking them; the models in `before` are already checked."""
    cluster, known = settings.cluster, dict[str, Profile]()
    if before is not None and before.cluster.gpu_types == cluster.gpu_types:
        known = before.profiles
    new = {name: each for name, each in settings.profiles.items() if known.get(name) is not each}
    try:
        normal(replace(settings, profiles=new))
    except MalformedError as error:
        raise as_error("Embedded", [error.problem]) from None
    found = [
        *cluster_problems(cluster),
        *cost_problems(settings.costs),
        *profile_problems(new, cluster),
    ]
    if found:
        raise as_error("Embedded", found)
    return settings


def names_of(cluster: Cluster, names: Sequence[str] | None) -> list[str]:
    """Return the names of nodes, without duplicates."""
    if not isinstance(cluster, Cluster):
        raise InputError("cluster", type(cluster).__name__, "a Cluster")
    if names is None:
        return node_names(cluster)
    nodes = sum(group.count for group in cluster.node_groups)
    found = [str(name) for name in ids_of(names, "node_names")]
    if len(found) != nodes or len(set(found)) != nodes:
        raise InputError("node_names", f"{len(set(found))} names", f"{nodes}, one a node")
    return found
