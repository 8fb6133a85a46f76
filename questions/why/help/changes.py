"""What would help the user: the cheapest changes of a request that start its job sooner.

Each change is a question of its own: the earliest start of the job with an edited request. An
amount is lowered as little as makes the job start now, found by bisection, since whoever asks for
less never starts later; if no amount does, as little as makes it start earlier than as asked, and
as makes it start as early as that amount can.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import ceil, inf, log, nextafter
from typing import NamedTuple

from msgspec.structs import replace

from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import MEMORY, SeenJob
from ronda.questions.why.earliest import WaitingJob
from ronda.questions.why.help.differences import differences, work
from ronda.questions.why.outlook import FreeRoom
from ronda.questions.why.words import WATTS

MIB, MILLI, MINUTE = 1 / 1024, 1e-3, 60.0
"""Steps of memory in GiB, of resources that are asked for in fractions, and of time limits."""


@dataclass(frozen=True, slots=True)
class Easing:
    """A change of a request that starts its job sooner.

    Attributes
    ----------
    kinds, cost
        Fields that change, such as ``pieces``, ``gpus``, the name of another resource, ``split``,
        ``limit`` or ``partition``, and what that costs, as in
        `ronda.questions.why.help.differences`.
    text, job, start_s
        The change in words with numbers, the job as it would ask, and its earliest start then.
    less
        Share of the work (GPUs, or pieces of a job without them) that is given up.
    """

    kinds: tuple[str, ...]
    text: str
    job: SeenJob
    start_s: float
    cost: float
    less: float


class Dial(NamedTuple):
    """A way to ask for less in `size` steps, each of which gives up more than the one before.

    No step starts the job later than the one before.
    """

    kind: str
    size: int
    turn: Callable[[SeenJob, int], SeenJob]


StartsNow = Callable[[SeenJob], bool]


def easings(waiting: WaitingJob, starts_now: StartsNow | None = None) -> list[Easing]:
    """Return the cheapest changes that start a job sooner: those that start it now come first.

    Two changes are combined only if none helps alone. Of each kind there is the least change that
    starts the job now, or else the least that starts it earlier than as asked, and the least that
    starts it earliest; what costs no less and starts later than another is left out.

    `starts_now` says whether a job that asks otherwise would start now beside what those before it
    reserve. If the job could start now but for them, such changes are what helps.
    """
    job = replace(waiting.job, least=None)
    if waiting.start() <= waiting.now_s:
        found = [] if starts_now is None else list(_beside(waiting, job, starts_now))
        return _best(found, waiting.now_s)
    found = [one for dial in dials(job, waiting.outlook) for one in _least(waiting, job, dial)]
    if not found:
        pairs = combinations(dials(job, waiting.outlook, splits=6), 2)
        found = [one for pair in pairs for one in _both(waiting, job, *pair)]
    return _best(found, waiting.now_s)


def _beside(waiting: WaitingJob, job: SeenJob, starts_now: StartsNow) -> Iterator[Easing]:
    """Yield the least turn of each dial with which the job starts beside those before it."""
    for dial in dials(job, waiting.outlook):
        edited = partial(dial.turn, job)
        if starts_now(edited(dial.size - 1)):
            yield _easing(waiting, job, edited(_first_step(edited, dial.size, starts_now)))


def _best(found: Iterable[Easing], now_s: float) -> list[Easing]:
    """Return the changes that no other of their kinds, and no earlier one, makes pointless."""
    kept, least = list[Easing](), dict[tuple[str, ...], float]()
    unlike = {one.text: one for one in found}.values()
    for one in sorted(unlike, key=lambda each: (each.start_s, each.cost, each.text)):
        late = kept and one.start_s > kept[0].start_s and one.cost >= min(least.values())
        if not late and one.cost <= least.get(one.kinds, inf):
            least[one.kinds] = one.cost
            kept.append(one)
    return sorted(kept, key=lambda each: (each.start_s > now_s, each.cost, each.start_s))


def _easing(waiting: WaitingJob, asked: SeenJob, edited: SeenJob) -> Easing:
    start_s = WaitingJob(waiting.outlook, edited).start()
    found = list(differences(asked, edited, waiting.outlook.snapshot.system))
    return Easing(
        kinds=tuple(each.kind for each in found),
        text="; ".join(each.text for each in found),
        job=edited,
        start_s=start_s,
        cost=sum(each.cost for each in found),
        less=1 - work(edited) / work(asked),
    )


def _least(waiting: WaitingJob, job: SeenJob, dial: Dial) -> Iterator[Easing]:
    """Yield the least turns of a dial that start the job now, or else earlier and earliest."""
    edited = partial(dial.turn, job)
    earliest_s = WaitingJob(waiting.outlook, edited(dial.size - 1)).start()
    latest_s = {earliest_s} if earliest_s <= waiting.now_s else {earliest_s, _sooner(waiting)}
    for by_s in latest_s if earliest_s < waiting.start() else ():
        yield _easing(waiting, job, edited(_step(waiting, edited, dial.size, by_s)))


def _sooner(waiting: WaitingJob) -> float:
    return nextafter(waiting.start(), -inf)


def _step(waiting: WaitingJob, edited: Callable[[int], SeenJob], size: int, by_s: float) -> int:
    """Return the first step at which the edited job starts by a time, as it does at the last."""

    def early(job: SeenJob) -> bool:
        return WaitingJob(waiting.outlook, job).start() <= by_s

    return _first_step(edited, size, early)


def _first_step(edited: Callable[[int], SeenJob], size: int, does: StartsNow) -> int:
    """Return the first step at which the edited job does something, as it does at the last."""
    return bisect_left(range(size - 1), x=True, key=lambda step: does(edited(step)))


def _both(waiting: WaitingJob, job: SeenJob, first: Dial, second: Dial) -> Iterator[Easing]:
    """Yield turns of two dials that help together: as little as can be of one, then the other."""

    def turned(i: int, j: int) -> SeenJob:
        return second.turn(first.turn(job, i), j)

    def by_second(j: int, i: int) -> SeenJob:
        return turned(i, j)

    last = first.size - 1, second.size - 1
    earliest_s = WaitingJob(waiting.outlook, turned(*last)).start()
    if first.kind == second.kind or earliest_s >= waiting.start():
        return
    by_s = earliest_s if earliest_s <= waiting.now_s else _sooner(waiting)
    i = _step(waiting, partial(by_second, last[1]), first.size, by_s)
    yield _easing(waiting, job, turned(i, _step(waiting, partial(turned, i), second.size, by_s)))
    j = _step(waiting, partial(turned, last[0]), second.size, by_s)
    yield _easing(waiting, job, turned(_step(waiting, partial(by_second, j), first.size, by_s), j))


def dials(job: SeenJob, outlook: FreeRoom, splits: int | None = None) -> list[Dial]:
    """Return the ways in which a job could ask for less, or otherwise; at most so many splits."""
    others = [*_splits(job)[:splits], *_slices(job), *_choices(job, outlook)]
    made = (Dial(kind, 1, partial(_edited, edit)) for kind, edit in others)
    return [dial for dial in (*made, *_amounts(job)) if dial.size > 0]


Edit = Callable[[SeenJob], SeenJob]


def _edited(edit: Edit, job: SeenJob, _k: int) -> SeenJob:
    return edit(job)


def _amounts(job: SeenJob) -> Iterator[Dial]:
    """Yield what may be lowered step by step: pieces, resources of each, time, licences."""
    if job.slices is None or not job.slices.listed:
        size = job.slices.nodes if job.slices is not None else None
        step = size if size is not None and job.count % size == 0 else 1

        def fewer(each: SeenJob, k: int) -> SeenJob:
            return replace(each, count=max(step, each.count - (k + 1) * step))

        yield Dial("pieces", job.count // step - 1, fewer)
    for of, asked in job.per.items():
        if of == WATTS:
            continue  # nobody asks for them: they follow from the GPUs
        unit = MIB if of == MEMORY else 1.0 if asked == round(asked) else MILLI
        steps = ceil(asked / unit - 1e-9)
        yield Dial(of, steps - 1, partial(_lower, of, steps, unit))
    minutes = ceil((job.limit_s or 365 * 86400.0) / MINUTE)  # at most a year is tried

    def shorter(each: SeenJob, k: int) -> SeenJob:
        return replace(each, limit_s=(minutes - 1 - k) * MINUTE)

    yield Dial("limit", minutes - 1, shorter)
    for name, held in job.licences.items():

        def without(each: SeenJob, k: int, name: str = name, held: float = held) -> SeenJob:
            return replace(each, licences={**each.licences, name: ceil(held) - 1.0 - k})

        yield Dial("licences", ceil(held) - 1, without)


def _lower(of: str, steps: int, unit: float, job: SeenJob, k: int) -> SeenJob:
    left = min(job.per[of], (steps - 1 - k) * unit)
    watts = {WATTS: job.per[WATTS] * left / job.per[of]} if of == GPUS and WATTS in job.per else {}
    return replace(job, per=job.per | {of: left} | watts)


def _splits(job: SeenJob) -> list[tuple[str, Edit]]:
    """Return the same work in more or fewer pieces, the most alike first; not of sliced jobs."""
    gpus = job.per.get(GPUS, 0.0)
    if gpus < 1 or gpus != round(gpus) or job.slices is not None:
        return []
    total = job.count * round(gpus)
    counts = [k for k in range(1, total + 1) if total % k == 0 and k != job.count]

    def cut(count: int) -> Edit:
        return lambda each: in_pieces(each, count, each.count / count)

    return [("split", cut(k)) for k in sorted(counts, key=lambda k: abs(log(k / job.count)))]


def in_pieces(job: SeenJob, count: int, by: float) -> SeenJob:
    """Return a job in so many pieces, each with so many times as much of all but pods.

    Whole amounts stay whole (they are rounded up), except for memory.
    """
    per = {of: asked if of == "pods" else asked * by for of, asked in job.per.items()}
    for of, asked in job.per.items():
        if of != MEMORY and asked == round(asked):
            per[of] = float(ceil(per[of] - 1e-9))
    return replace(job, count=count, per=per)


def _slices(job: SeenJob) -> Iterator[tuple[str, Edit]]:
    """Yield other slices: shorter ones that divide the nodes, as few others as can be."""
    slices = job.slices
    if slices is None:
        return
    size = slices.nodes or 0
    found = [replace(slices, nodes=k) for k in range(size - 1, 0, -1) if job.count % k == 0]
    if slices.spread:
        found.append(replace(slices, spread=False))
    if slices.together is not None:
        found.append(replace(slices, together=None))
    for other in (*found, None):
        yield "slices", partial(replace, slices=other)


def _choices(job: SeenJob, outlook: FreeRoom) -> Iterator[tuple[str, Edit]]:
    """Yield requests without a condition, or with another partition, model, tenant or class."""
    seen = outlook.snapshot
    for field in ("exclusive", "own_nodes", "one_node", "nodes", "not_nodes", "gpu_types"):
        if asked := getattr(job, field):
            yield field, partial(replace, **{field: type(asked)()})
    for label in job.features:
        rest = tuple(other for other in job.features if other != label)
        yield "features", partial(replace, features=rest)
    if job.gpu_types:
        models = {node.gpu_type for node in seen.nodes if node.gpu_type is not None}
        for model in sorted(models - set(job.gpu_types)):
            yield "gpu_types", partial(replace, gpu_types=(model,))
    if job.partitions:
        parts = {part for node in seen.nodes for part in node.partitions}
        parts |= {part for group in seen.groups for part in group.partitions}
        for part in sorted(parts - set(job.partitions)):
            yield "partition", partial(replace, partitions=(part,))
    if job.user is not None:
        own = [other for other in seen.jobs if other.user == job.user]
        for field in ("tenant", "priority"):
            others = {getattr(other, field) for other in own} - {getattr(job, field), None}
            for name in sorted(others):
                yield field, partial(replace, **{field: name})
    if any(each.when != "any" for each in job.after):
        after = tuple(replace(each, when="any") for each in job.after)
        never = job.blocked is not None and "depend" in job.blocked.lower()
        yield "after", partial(replace, after=after, blocked=None if never else job.blocked)
