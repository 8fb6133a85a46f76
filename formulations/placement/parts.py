"""Which GPU, and which slices of it, jobs on parts and fractions of GPUs get.

A part goes to the GPU in use where the largest part that still fits shrinks least, and then to the
fullest; a GPU without a job comes last. Jobs that start have no slices yet: the parts of a GPU are
arranged anew with each one, so that the largest further part stays possible. A job that runs stays
where it is, and is never shifted.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple, Self

from msgspec.structs import replace

from ronda.instances.cluster import NodeGroup, PartProfile, Parts
from ronda.instances.job import Allocation, Option
from ronda.instances.models.parts import arranged, bits, room
from ronda.instances.round import Round
from ronda.instances.violation import ROUNDING

Gpu = tuple[int, int]
"""A node, and the number of a GPU there."""

Places = tuple[tuple[int, int, int], ...]
"""The parts of an allocation: a node, a GPU there, and the first slice."""

ANYWHERE = -1
"""The start of a part that has no slices yet."""


class _Part(NamedTuple):
    what: str | float  # the name of a profile, or a fraction of a GPU
    start: int = ANYWHERE
    stays: bool = False  # whether it has run there


class CutGpus:
    """The jobs on GPUs that are cut or shared, while jobs are placed.

    `fixed` are the nodes whose GPUs are all cut for good.
    """

    def __init__(self, round: Round) -> None:
        topology, groups = round.cluster.topology, round.cluster.node_groups
        ways = {t.name: t.ways for t in round.cluster.gpu_types}
        self._group: list[NodeGroup] = [groups[g] for g in topology.node_group.tolist()]
        self._ways = [ways[group.gpu_type] for group in self._group]
        self._held, self._on = round.held, dict[Gpu, dict[str, _Part]]()
        self._at: dict[str, Gpu] = {}
        size: list[int] = topology.node_gpus.tolist()
        cut = [node for node, group in enumerate(self._group) if group.cut]
        self.fixed = cut
        self._layouts = [(node, gpu) for node in cut for gpu in range(size[node])]

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._on, twin._at = {gpu: dict(jobs) for gpu, jobs in self._on.items()}, dict(self._at)
        return twin

    def best(self, job: str, nodes: Iterable[int], option: Option) -> Gpu | None:
        """Return the best GPU in parts on some nodes for one more job, or None without room.

        A GPU that may be cut only if it is empty is no other place for a job that runs there.
        """
        able, part = set(nodes), _Part(option.part or option.share or 1.0)
        held = self._held.get(job)
        here = held.parts[0][:2] if held is not None and held.parts else None
        keys = [
            (key, gpu)
            for gpu in {*self._on, *self._layouts}
            if gpu[0] in able
            and (gpu != here or self._group[gpu[0]].recut != "empty")
            and (key := self._key(gpu, part)) is not None
        ]
        return min(keys)[1] if keys else None

    def add(self, job: str, given: Allocation) -> bool:
        """Put a job on its GPU, or else on the best one of its node; return whether it is new.

        It goes back to where it runs if that is free. A job without room takes another GPU.
        """
        ((node, _),), option, held = given.placement, given.option, self._held.get(job)
        gpu, part = self.best(job, (node,), option), _Part(option.part or option.share or 1.0)
        if not given.parts and held is not None and given.placement == held.placement:
            given = replace(given, parts=held.parts)
        if given.parts and self.allows(job, given):
            gpu, part = given.parts[0][:2], self._named(job, given)
        if gpu is None:
            every = range(self._group[node].gpus_per_node)
            gpu = node, next((g for g in every if (node, g) not in self._on), 0)
        new = gpu not in self._on and not self._group[node].cut
        self._on.setdefault(gpu, {})[job] = part
        self._at[job] = gpu
        return new

    def remove(self, job: str) -> bool:
        """Take a job off its GPU; return whether the GPU is then whole and free."""
        gpu = self._at.pop(job)
        del self._on[gpu][job]
        if not self._on[gpu]:
            del self._on[gpu]
        return gpu not in self._on and not self._group[gpu[0]].cut

    def allows(self, job: str, given: Allocation) -> bool:
        """Return whether a job may have the slices that it names."""
        gpu, part = given.parts[0][:2], self._named(job, given)
        return self._starts(gpu, [*self._on.get(gpu, {}).values(), part]) is not None

    def joins(self, given: Allocation) -> bool:
        """Return whether other jobs are on the GPU that an allocation names, or it is cut."""
        node, number, _ = given.parts[0]
        return (node, number) in self._on or bool(self._group[node].cut)

    def named(self, job: str, given: Allocation) -> Allocation:
        """Return an allocation with the GPU and the slices that a job would get on its node."""
        self.add(job, given)
        found = replace(given, parts=self.parts(job))
        self.remove(job)
        return found

    def parts(self, job: str) -> Places:
        """Return the node, GPU and first slice of a job; none for a job on whole GPUs."""
        if job not in self._at:
            return ()
        gpu = self._at[job]
        there = self._on[gpu]
        start = there[job].start
        if start == ANYWHERE:
            starts = self._starts(gpu, [*there.values()])
            assert starts is not None, "each part is where it fits"
            start = starts[[*there].index(job)]
        return ((*gpu, start),)

    def _named(self, job: str, given: Allocation) -> _Part:
        option, start = given.option, given.parts[0][2]
        stays = job in self._held and self._held[job].goes_on(given)
        return _Part(option.part or option.share or 1.0, start, stays)

    def _key(self, gpu: Gpu, part: _Part) -> tuple[float, float] | None:
        """Return a key of a GPU for one more part, least for the best one, or None without room."""
        there = [*self._on.get(gpu, {}).values()]
        before, after = self._left(gpu, there), self._left(gpu, [*there, part])
        if before is None or after is None:
            return None
        return before[0] - after[0], after[1]

    def _left(self, gpu: Gpu, there: list[_Part]) -> tuple[float, float] | None:
        """Return the size of the largest further part, and all that is left of a GPU."""
        starts, ways = self._starts(gpu, there), self._ways[gpu[0]]
        if starts is None:
            return None
        if ways is None or any(isinstance(part.what, float) for part in there):
            return 0.0, 1.0 - sum(float(part.what) for part in there)
        taken = sum(
            bits(_profile(ways, part.what), start)
            for part, start in zip(there, starts, strict=True)
        )
        ranked = sorted(ways.profiles, key=lambda p: (-p.memory, -p.compute))
        fits = (p.memory for p, many in zip(ranked, room(ways, taken), strict=True) if many)
        return next(fits, 0), ways.memory - taken.bit_count()

    def _starts(self, gpu: Gpu, there: Sequence[_Part]) -> tuple[int, ...] | None:
        group = self._group[gpu[0]]
        return _starts(self._ways[gpu[0]], group.recut, group.cut, tuple(there))


def _profile(ways: Parts, name: str | float) -> PartProfile:
    return next(p for p in ways.profiles if p.name == name)


@lru_cache(maxsize=1 << 14)
def _starts(
    ways: Parts | None, recut: str, layout: tuple[str, ...], there: tuple[_Part, ...]
) -> tuple[int, ...] | None:
    """Return the first slices of all jobs on one GPU, or None if they may not be there together."""
    shares = [part.what for part in there if isinstance(part.what, float)]
    names = [part.what for part in there if isinstance(part.what, str)]
    if shares:
        fit = not names and sum(shares) <= 1.0 + ROUNDING
        return (0,) * len(there) if fit else None
    if ways is None or not set(names) <= {p.name for p in ways.profiles}:
        return None
    if recut == "empty" and 0 < sum(part.stays for part in there) < len(there):
        return None
    others = Counter(layout)
    if recut == "never":
        others.subtract(names)
    if min(others.values(), default=0) < 0 or (recut == "never" and not layout):
        return None
    on = [(str(part.what), part.start) for part in there if part.start != ANYWHERE]
    free = [str(part.what) for part in there if part.start == ANYWHERE]
    taken = [bits(_profile(ways, name), start) for name, start in on]
    if sum(taken).bit_count() < sum(mask.bit_count() for mask in taken):
        return None
    found = arranged(ways, (*free, *sorted(others.elements())), tuple(on))
    if found is None:
        return None
    new = iter(found)
    return tuple(next(new) if part.start == ANYWHERE else part.start for part in there)
