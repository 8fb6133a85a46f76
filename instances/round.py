"""Rounds, the snapshots of a cluster for a decision."""

from functools import cached_property
from math import inf
from operator import attrgetter
from typing import Literal

from ronda.instances.base import Index, Name, NonNegative, Positive, Record
from ronda.instances.cluster import Cluster
from ronda.instances.job import Allocation, Costs, JobState
from ronda.instances.learning import SweepState
from ronda.instances.profile import Profile
from ronda.instances.site import NO_SITE, Site

_STATED = attrgetter(
    *("tenant", "priority", "limit_s", "min_run_s", "eligible_s", "after", "job_array", "sizes"),
    *("slices", "one_node", "exclusive", "nodes", "features", "neighbourhoods", "needs"),
    *("licences", "part", "share"),
)
"""What a job may say that rules of a site read; all of it is false by default."""


class Round(Record, frozen=True, kw_only=True, dict=True):
    """A snapshot of a cluster for a decision, with exactly what the scheduler can know.

    Attributes
    ----------
    format
        Version of the file format.
    name
        Name of the round.
    source
        Source of the round.
    cluster, profiles, costs
        As in an `Instance`.
    now_s
        Time of the decision.
    length_s
        Seconds for which the decision is expected to hold.
    waiting
        Live jobs that hold no GPUs, in order of submission.
    running
        Live jobs that hold GPUs, in order of submission.
    power_cap_w
        Power that the cluster may draw from now on, including hosts and idle GPUs.
    energy_j
        Energy that the cluster may use in the next `window_s` seconds, including hosts and idle
        GPUs.
    window_s
        Number of seconds that `energy_j` is for.
    banked_j
        Part of `energy_j` that may be used at once. The rest becomes available evenly over the
        window, and `sustained_w` after it. None if all of `energy_j` may be used at once.
    sustained_w
        Power that the energy budget can sustain indefinitely.
    asleep
        Nodes that sleep now, as ascending indices. A node that a plan wakes draws an additional
        ``wake_w`` for ``wake_s`` seconds.
    waking
        Nodes that are still waking, as ascending indices. Their additional power has been
        subtracted from `power_cap_w` and `energy_j`, but not from the caps of racks.
    sweeps
        Hyper-parameter searches whose trials are live jobs, by name.
    energy_price_per_j, carbon_g_per_j
        Present price and carbon intensity per joule; None if the instance has no such series.
    site
        Rules of the site.
    used
        GPUs that each tenant without tenants below it has held in the past, with old use forgotten
        by half in each ``site.usage_half_life_s``.
    leaving
        Nodes that go out of service, as pairs (node, time).
    returning
        Nodes that are out of service or leave, and when they are back, as pairs (node, time).
    """

    format: Literal["ronda/round/2", "ronda/round/1"] = "ronda/round/2"
    name: Name = "round"
    now_s: NonNegative = 0.0
    length_s: Positive = 60.0
    cluster: Cluster
    profiles: dict[str, Profile]
    waiting: tuple[JobState, ...] = ()
    running: tuple[JobState, ...] = ()
    costs: Costs = Costs()
    power_cap_w: NonNegative | None = None
    energy_j: NonNegative | None = None
    window_s: Positive = 3600.0
    banked_j: NonNegative | None = None
    sustained_w: NonNegative | None = None
    asleep: tuple[int, ...] = ()
    waking: tuple[int, ...] = ()
    sweeps: dict[str, SweepState] = {}
    energy_price_per_j: NonNegative | None = None
    carbon_g_per_j: NonNegative | None = None
    site: Site = NO_SITE
    used: dict[str, NonNegative] = {}
    leaving: tuple[tuple[Index, NonNegative], ...] = ()
    returning: tuple[tuple[Index, NonNegative], ...] = ()
    source: str = ""

    @property
    def jobs(self) -> tuple[JobState, ...]:
        """All live jobs: first running jobs, then waiting jobs."""
        return self.running + self.waiting

    @cached_property
    def has_rules(self) -> bool:
        """Whether the site, a node or any job states a rule of a site; computed only once."""
        cut = any(group.cut for group in self.cluster.node_groups)
        blocked = any(state.blocked is not None for state in self.waiting)
        if self.site != NO_SITE or self.leaving or cut or blocked:
            return True
        return any(any(_STATED(state.job)) for state in self.jobs)

    @property
    def held(self) -> dict[str, Allocation]:
        """The allocations of running jobs, by job id."""
        return {s.job.id: s.allocation for s in self.running if s.allocation is not None}

    def may_hold_s(self, state: JobState) -> float:
        """Return the seconds from now after which the site ends a job; infinite if it does not."""
        return state.may_hold_s(self.now_s) if self.site.kills_at_limit else inf

    @property
    def watts(self) -> float | None:
        """The smaller of the power cap and the mean power that `energy_j` allows, or None."""
        if self.energy_j is None:
            return self.power_cap_w
        mean = self.energy_j / self.window_s
        return mean if self.power_cap_w is None else min(self.power_cap_w, mean)

    def _repr_html_(self) -> str:
        from ronda.instances.tables.documents import round_table

        return round_table(self).html()
