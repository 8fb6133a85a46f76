"""The rows of one job: what it may choose from, and among that what it runs on now.

A job's rows follow from the job, what it runs on, its gradient noise, its profile, the cluster and
whether watts matter, and from nothing else. What it may choose from does not even depend on what
it runs on, unless it may not be stopped.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ronda.formulations.options.current_row import current_rate, with_current
from ronda.formulations.options.menu import Menu, menu
from ronda.formulations.options.menu_section import Request, Section, Terms
from ronda.formulations.options.pools import PoolShape, pool_shapes
from ronda.formulations.remembered import remembered
from ronda.instances.arrays import Floats
from ronda.instances.cluster import Cluster
from ronda.instances.job import Allocation, Job, JobState
from ronda.instances.profile import NoiseScale, Profile
from ronda.instances.round import Round

Offer = tuple[Menu, Floats]
Choice = tuple[Menu, Section, Request]

FULL = (1.0,)  # the clocks of a job that has no choice

NEW, ALLOCATION, NOISE, JOB, PROFILE = (
    "new",
    "allocation changed",
    "noise measured anew",
    "job changed",
    "profile changed",
)
"""Why a job's options are built."""


class JobRows(NamedTuple):
    """The rows of one job, and what they were made from.

    Attributes
    ----------
    job, allocation, noise, profile
        What the rows depend on.
    offers
        What the job may choose from, pool by pool: the menu and its rows, (COLUMNS, K) each.
    blocks
        The rows of the offers with that of what the job runs on; most are shared with other jobs
        and none is ever changed.
    rows
        How many rows in all.
    current
        Which of them the job runs on now; -1: it waits.
    must_run
        Whether the job may not be stopped or changed.
    """

    job: Job
    allocation: Allocation | None
    noise: NoiseScale | None
    profile: Profile
    offers: Sequence[Offer]
    blocks: Sequence[Floats]
    rows: int
    current: int
    must_run: bool

    def same_rows(self, other: "JobRows") -> bool:
        """Tell whether these are another round's rows of the same job, but for the current one."""
        if self is other:
            return True
        if self.job is not other.job or len(self.blocks) != len(other.blocks):
            return False
        return all(mine is its for mine, its in zip(self.blocks, other.blocks, strict=True))

    def outdated(self, state: JobState, profile: Profile) -> str | None:
        """Return why the rows are no longer those of a job; None if they are."""
        if self.job is not state.job and self.job != state.job:
            return JOB
        if self.allocation is not state.allocation and self.allocation != state.allocation:
            return ALLOCATION
        if self.noise is not state.noise and self.noise != state.noise:
            return NOISE
        return PROFILE if self.profile is not profile else None

    def offers_hold(self, state: JobState, profile: Profile) -> bool:
        """Tell whether the job may choose from the same as before, whatever it runs on now."""
        same_job = self.job is state.job or self.job == state.job
        same_noise = self.noise is state.noise or self.noise == state.noise
        return same_job and same_noise and self.profile is profile and state.job.preemptible


def new_rows(
    round: Round, states: Sequence[JobState], *, elastic: bool, prune: bool, mind_power: bool
) -> list[JobRows]:
    """Return the rows of jobs about which nothing is known yet.

    Parameters
    ----------
    round
        The round that they are in.
    states
        The jobs.
    elastic, prune, mind_power
        As in `ronda.formulations.options.table.build`.
    """
    choices = _choices(round, states, elastic, (prune, mind_power))
    _prepare(choices)
    made = []
    for state, of_job in zip(states, choices, strict=True):
        offers = [(m, section.block(request)) for m, section, request in of_job]
        made.append(job_rows(state, round.profiles[state.job.profile], offers, round.cluster))
    return made


def job_rows(
    state: JobState, profile: Profile, offers: Sequence[Offer], cluster: Cluster
) -> JobRows:
    """Return the rows of a job that may choose from some offers."""
    blocks, allocation, current = [block for _, block in offers], state.allocation, -1
    if allocation is not None:
        known = _menu_at(allocation.option.pool, profile, offers, cluster)
        rate = current_rate(state, allocation, known, cluster)
        blocks, current = with_current(blocks, allocation.option, rate)
    rows = sum([block.shape[1] for block in blocks])
    must_run = allocation is not None and not state.job.preemptible
    return JobRows(
        state.job, allocation, state.noise, profile, offers, blocks, rows, current, must_run
    )


def _menu_at(pool: int, profile: Profile, offers: Sequence[Offer], cluster: Cluster) -> Menu | None:
    """Return the menu of a profile in a pool; None if the profile does not cover it."""
    for m, _ in offers:
        if m.shape.index == pool:
            return m
    shape = pool_shapes(cluster)[pool]
    return menu(profile, shape) if shape.pool.gpu_type.name in profile.throughput else None


def _choices(
    round: Round, jobs: Sequence[JobState], elastic: bool, flags: tuple[bool, bool]
) -> list[list[Choice]]:
    """Return what each job may choose from, pool by pool; nothing for jobs that must run on."""
    shapes = pool_shapes(round.cluster)
    menus: dict[tuple[str, str], list[Menu]] = {}
    choices: list[list[Choice]] = []
    for state in jobs:
        job = state.job
        if state.allocation is not None and not job.preemptible:
            choices.append([])
            continue
        key = (job.profile, job.partition)
        if key not in menus:
            menus[key] = _menus(round.profiles[job.profile], job.partition, shapes)
            for known in menus[key]:
                known.trim()
        choices.append(
            [
                _choice(m, state, elastic, flags)
                for m in menus[key]
                if not job.gpu_types or m.shape.pool.gpu_type.name in job.gpu_types
            ]
        )
    return choices


def _menus(profile: Profile, partition: str, shapes: tuple[PoolShape, ...]) -> list[Menu]:
    """Return the menus of a profile in the pools of a partition that can run it."""

    def make() -> list[Menu]:
        return [
            menu(profile, shape)
            for shape in shapes
            if shape.pool.partition == partition and shape.pool.gpu_type.name in profile.throughput
        ]

    return remembered(profile, ("menus", partition, shapes), make)


def _choice(of: Menu, state: JobState, elastic: bool, flags: tuple[bool, bool]) -> Choice:
    """Return what a job may choose from in one pool."""
    job, noise, batches = state.job, state.noise, of.profile.batches
    low = high = job.gpus
    clocks: tuple[float, ...] = FULL
    if elastic and not of.rigid:
        low, high = job.min_gpus or low, job.max_gpus or high
        clocks = of.shape.pool.gpu_type.clocks
    if not elastic or noise is None or not batches or of.rigid:
        batches = (job.batch or of.profile.base_batch,)
    section = of.section(Terms(clocks, batches, *flags))
    return of, section, Request(low, high, job.gpus, noise)


def _prepare(choices: Sequence[Sequence[Choice]]) -> None:
    """Compute all blocks that no menu remembers, those of a section together."""
    missing: dict[Section, dict[Request, None]] = {}
    for of_job in choices:
        for _, section, request in of_job:
            if not section.knows(request):
                missing.setdefault(section, {})[request] = None
    for section, requests in missing.items():
        section.prepare(list(requests))
