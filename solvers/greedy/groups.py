"""The live jobs of a round that may share GPUs, by class, and their division into arrays."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_fields
from functools import cached_property, lru_cache
from operator import attrgetter

from msgspec.structs import replace

from ronda.formulations.options.application import Application, applications
from ronda.instances.job import Allocation, Estimate, JobState, Option
from ronda.instances.models.configuration import Configuration
from ronda.instances.models.sharing import fastest_mode, may_stop, member, pace, widths
from ronda.instances.models.throughput import fastest_step
from ronda.instances.profile import Mode
from ronda.instances.round import Round
from ronda.solvers.greedy.regroup import fastest_cut


@dataclass(frozen=True)
class Home:
    """A class of jobs in a pool, with the modes, speeds and numbers of jobs that share a GPU."""

    of: Application
    batch: float
    clock: float = 1.0
    cuts: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict, hash=False)

    @cached_property
    def local_batch(self) -> float:
        """The samples per pass of a job on its GPU."""
        gpu_type = self.of.shape.pool.gpu_type
        at = Configuration(1, 1, self.batch, self.clock)
        step = fastest_step(self.of.profile, gpu_type, at)
        return self.batch / max(float(step.passes), 1.0)

    def at(self, clock: float) -> "Home":
        """Return the home at another clock, where larger passes may be fastest."""
        other = home(self.of, self.batch, clock)
        return self if other.local_batch == self.local_batch else other

    @cached_property
    def ways(self) -> tuple[tuple[Mode, float], ...]:
        """The fastest mode, and the pace of each job in it, for 1, 2, … jobs on a GPU."""
        profile, gpu_type = self.of.profile, self.of.shape.pool.gpu_type
        found: list[tuple[Mode, float]] = []
        while way := fastest_mode(profile, gpu_type, len(found) + 1, self.local_batch):
            found.append(way)
        return tuple(found)

    @cached_property
    def best(self) -> int:
        """The smallest number of jobs on a GPU with the highest total speed."""
        together = [round(k * pace, 12) for k, (_, pace) in enumerate(self.ways, 1)]
        return 1 + together.index(max(together))

    def sizes(self, jobs: int, gpus: int) -> tuple[int, ...]:
        """Return the number of jobs on each GPU for the highest total speed."""
        known = self.cuts.get((jobs, gpus))
        if known is None:
            speed = [self.speed(k) for k in range(1, self.best + 1)]
            known = self.cuts[jobs, gpus] = fastest_cut(speed, jobs, gpus)
        return known

    def most(self, mode: Mode) -> int:
        """Return the most jobs that fit a GPU in a mode, or 1 if no two jobs fit."""
        gpu_type = self.of.shape.pool.gpu_type
        return max(widths(self.of.profile, gpu_type, mode, self.local_batch), default=1)

    def speed(self, width: int) -> float:
        """Return the total speed of `width` jobs, relative to one job alone."""
        return width * self.ways[width - 1][1]

    def pace(self, mode: Mode, width: int) -> float:
        """Return the speed of each of `width` jobs in a mode, relative to one job alone."""
        return pace(self.of.profile, self.of.shape.pool.gpu_type.name, mode, width)

    def alone(self, state: JobState, clock: float = 1.0) -> Option | None:
        """Return the option of a job alone on one GPU, or None if there is none."""
        return self.of.option(1, self.batch, state.noise, clock=clock)

    def option(self, alone: Option, width: int, mode: Mode | None = None) -> Option:
        """Return the option of a job in an array, by default in its fastest mode."""
        name = self.of.shape.pool.gpu_type.name
        return member(alone, self.of.profile, name, mode or self.ways[width - 1][0], width)


@lru_cache(maxsize=1024)
def home(of: Application, batch: float, clock: float = 1.0) -> Home:
    """Return the cached home of jobs of a profile and batch in a pool."""
    return Home(of, batch, clock)


@dataclass(frozen=True)
class FusionClass:
    """Live jobs of a round that may share a GPU, in order of submission; homes keyed by pool."""

    key: str
    members: tuple[JobState, ...]
    homes: dict[int, Home]

    @cached_property
    def arrays(self) -> tuple[tuple[Allocation, tuple[JobState, ...]], ...]:
        """The members on each GPU that they hold, with the allocation of the first member."""
        found: dict[object, list[JobState]] = {}
        for state in self.members:
            held = state.allocation
            if held is not None:
                alone = state.job.id if held.array is None else None
                found.setdefault((alone, held.array, held.placement), []).append(state)
        pairs = ((those[0].allocation, tuple(those)) for those in found.values())
        return tuple((held, those) for held, those in pairs if held is not None)

    @property
    def waiting(self) -> tuple[JobState, ...]:
        """The members without an allocation."""
        return tuple(state for state in self.members if state.allocation is None)

    @property
    def pliant(self) -> "FusionClass":
        """The waiting members, and the members of arrays that may be changed together.

        Such arrays are in the most frequent pool and at the most frequent clock. All jobs of such
        an array are members, and may be stopped.
        """
        able = [
            (held.option, states)
            for held, states in self.arrays
            if held.option.pool in self.homes
            and held.option.width == len(states)
            and may_stop(states)
        ]
        for of in (attrgetter("pool"), attrgetter("clock")):
            most = Counter(of(option) for option, _ in able).most_common(1)
            able = [(option, states) for option, states in able if of(option) == most[0][0]]
        stay = {state.job.id for _, states in able for state in states}
        own = (s for s in self.members if s.allocation is None or s.job.id in stay)
        return with_fields(self, members=tuple(own))


def groups(round: Round) -> Iterator[FusionClass]:
    """Yield the classes of a round: one-GPU jobs with equal class, profile, batch and pools."""
    found: dict[tuple[object, ...], list[JobState]] = {}
    for state in sorted(round.jobs, key=lambda state: state.job.submit_s):
        job = state.job
        if job.fusible is not None and job.gpus == 1 and (job.max_gpus or 1) == 1:
            key = (job.fusible, job.profile, job.batch, job.partition, job.gpu_types)
            found.setdefault(key, []).append(state)
    for same, members in found.items():
        homes = {
            of.shape.index: home(of, of.batch(members[0].job))
            for of in applications(round, members[0].job)
            if not of.rigid and of.profile.sharing.get(of.shape.pool.gpu_type.name)
            if of.shape.pool.gpus  # otherwise the whole pool is out of service
        }
        if homes:
            yield FusionClass(" ".join(map(str, ("class", *same))), tuple(members), homes)


def named(ids: list[str], taken: set[str]) -> str:
    """Return a new name for an array of the given jobs, and add it to `taken`."""
    names = (*ids, *(f"{ids[0]}.{k}" for k in range(len(taken) + 1)))
    name = next(name for name in names if name not in taken)
    taken.add(name)
    return name


def longest(
    round: Round, chunk: Sequence[JobState], home: Home | None, mode: Mode | None = None
) -> JobState:
    """Return a job that needs a GPU alone for as long as a whole array needs it."""
    first = chunk[0]
    left = [state.remaining_at(round.now_s) for state in chunk]
    known = [work for work in left if work is not None]
    if home is None or len(chunk) == 1 or len(known) < len(chunk):
        return first
    work = max(known) / home.pace(mode or home.ways[len(chunk) - 1][0], len(chunk))
    return replace(first, done=0.0, job=replace(first.job, estimate=Estimate(work=work)))


def together(
    chunk: Sequence[JobState],
    home: Home | None,
    given: Allocation,
    taken: set[str],
    mode: Mode | None = None,
) -> dict[str, Allocation]:
    """Return a chunk's jobs on the GPU of its first job, or that job alone without a home there."""
    if home is None or len(chunk) == 1 or given.option.pool != home.of.shape.index:
        return {chunk[0].job.id: given}
    array = named([state.job.id for state in chunk], taken)
    found = {}
    for state in chunk:
        alone = home.alone(state, given.option.clock)
        assert alone is not None
        option = home.option(alone, len(chunk), mode)
        found[state.job.id] = replace(given, option=option, array=array)
    return found
