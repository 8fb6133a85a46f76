"""An instance: a whole horizon to schedule."""

from typing import Any, Final, Literal

from ronda.instances.base import Name, Positive, Record
from ronda.instances.budget import Budget
from ronda.instances.cluster import Cluster
from ronda.instances.faults import Faults
from ronda.instances.job import Costs, Job
from ronda.instances.learning import Sweep
from ronda.instances.profile import NoiseCurve, Profile

Knowledge = Literal["oracle", "declared", "history", "none"]
"""What policies know of jobs: their true sizes; the estimates of the instance; sizes and speeds
that are learnt from jobs that ran; speeds, and how far live jobs have come, alone."""

DECLARED: Final = "declared"
"""The knowledge of a run that does not say."""

LEARNT: Final = ("history", "none")
"""Levels of knowledge at which nobody tells sizes and speeds: they are learnt."""


class Cadence(Record, frozen=True, kw_only=True):
    """When the driver calls the policy.

    Attributes
    ----------
    period_s
        Seconds from one call to the next while jobs are live; None: never by the clock.
    on_event
        At every submission and completion as well.
    on_report
        Whenever a running trial of a sweep reports its loss, too: at the end of each `Job.epoch`.
    """

    period_s: Positive | None = None
    on_event: bool = True
    on_report: bool = False


class Instance(Record, frozen=True, kw_only=True):
    """A horizon: the cluster, the applications, the jobs with their submit times, limits and costs.

    Attributes
    ----------
    format
        Version of the file format.
    name
        What people, catalogues and results call it.
    description
        What it is, in a sentence.
    source, licence, citation
        Where it comes from, under which terms it may be used, and what to cite.
    cluster
        The machine room.
    jobs
        In order of submission.
    profiles
        Applications that jobs refer to, by name.
    curves
        Developments of the gradient noise that jobs' truths refer to, by name.
    budget
        Limits on power and energy.
    costs
        What starts and restarts cost a job that has no costs of its own.
    cadence
        When to decide.
    faults
        What breaks.
    sweeps
        Searches for hyper-parameters whose trials are jobs, by name.
    reference
        Published or derived values to compare with, by policy and metric.
    made
        How the instance was made (command, seed, filters), for reproduction.
    """

    format: Literal["ronda/instance/1"] = "ronda/instance/1"
    name: Name
    cluster: Cluster
    profiles: dict[str, Profile]
    jobs: tuple[Job, ...]
    curves: dict[str, NoiseCurve] = {}
    budget: Budget = Budget()
    costs: Costs = Costs()
    cadence: Cadence = Cadence()
    faults: Faults = Faults()
    sweeps: dict[str, Sweep] = {}
    description: str = ""
    source: str = ""
    licence: str = ""
    citation: str = ""
    reference: dict[str, dict[str, float]] = {}
    made: dict[str, Any] = {}
