"""A round: the snapshot of a cluster for a decision."""

from typing import Literal

from ronda.instances.base import Name, NonNegative, Positive, Record
from ronda.instances.cluster import Cluster
from ronda.instances.job import Allocation, Costs, JobState
from ronda.instances.learning import SweepState
from ronda.instances.profile import Profile


class Round(Record, frozen=True, kw_only=True):
    """A snapshot for a decision, with all that the scheduler can know and no more.

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
        Seconds for which the decision is expected to stand.
    waiting
        Live jobs that hold no GPUs, in order of submission.
    running
        Live jobs that hold GPUs, in order of submission.
    power_cap_w
        Power that the cluster may draw from now on, hosts and idle GPUs included.
    energy_j
        Energy that the cluster may use in the next `window_s` seconds, likewise.
    window_s
        Seconds ahead that `energy_j` is for.
    banked_j
        Part of `energy_j` that may be used at once; the rest comes evenly over the window, and
        `sustained_w` after it. None if all of it may.
    sustained_w
        Power that the energy budget can bear indefinitely.
    asleep
        Nodes that sleep now (ascending indices). A plan that wakes one draws its ``wake_w`` for
        ``wake_s`` seconds on top.
    waking
        Nodes that are still waking, likewise. Their power on top of idle power has been taken off
        `power_cap_w` and `energy_j`, not off the caps of racks.
    sweeps
        Searches for hyper-parameters whose trials are live jobs, by name.
    energy_price_per_j, carbon_g_per_j
        Price and carbon intensity of a joule now; None if the instance has no such series.
    """

    format: Literal["ronda/round/1"] = "ronda/round/1"
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
    source: str = ""

    @property
    def jobs(self) -> tuple[JobState, ...]:
        """All live jobs: those that run, then those that wait."""
        return self.running + self.waiting

    @property
    def held(self) -> dict[str, Allocation]:
        """The allocations of running jobs, by job."""
        return {s.job.id: s.allocation for s in self.running if s.allocation is not None}

    @property
    def watts(self) -> float | None:
        """The tighter of the power cap and the mean power that `energy_j` allows, or None."""
        if self.energy_j is None:
            return self.power_cap_w
        mean = self.energy_j / self.window_s
        return mean if self.power_cap_w is None else min(self.power_cap_w, mean)

    def _repr_html_(self) -> str:
        from ronda.instances.tables.documents import round_table

        return round_table(self).html()
