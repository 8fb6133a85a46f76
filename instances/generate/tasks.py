"""Generated rounds of tasks on nodes, as arrays, of any size."""

from dataclasses import replace
from functools import cache
from typing import Annotated, get_type_hints

import msgspec
import numpy as np

from ronda.instances.arguments import refuse_unfit
from ronda.instances.base import Index, Ints, Mask, Record, Rows
from ronda.instances.errors import InputError
from ronda.instances.files.storage import packaged
from ronda.instances.rules.problem import limits, too_many
from ronda.instances.tasks.arrays import TaskRound
from ronda.instances.tasks.files import decode_tasks

_LOOKED = 8  # nodes among which a running job was placed on the fullest
_WAVE = 1024  # tasks that are placed at once on the fewest nodes
_SHUT = 1 << 62


_Part = Annotated[float, msgspec.Meta(ge=0, le=1)]


class TaskMix(Record, frozen=True, kw_only=True):
    """The kinds of tasks in a generated round, and what runs.

    Attributes
    ----------
    grouped
        Fraction of jobs in groups of equal replicas, 13 on average, which are to be on different
        nodes.
    running
        Fraction of jobs that run now, unless room ends before. Jobs come in random order, and each
        runs on the fullest of eight random nodes that has room for it; if none has, it waits.
    move_cost
        What a move of a running job loses, relative to its value.
    gangs
        Fraction of jobs that are gangs of 2, 4 or 8 whole nodes.
    elastic
        Fraction of jobs with two or three ways to run: once, twice and four times as large, on one
        node.
    most_disrupted
        The most running jobs that may be stopped or moved; by default any number.
    """

    grouped: _Part = 0.3
    running: _Part = 0.0
    move_cost: _Part = 0.03
    gangs: _Part = 0.0
    elastic: _Part = 0.0
    most_disrupted: Index | None = None

    def __post_init__(self) -> None:
        """Refuse parameters that are out of range."""
        for name, hint in get_type_hints(TaskMix, include_extras=True).items():
            refuse_unfit(name, getattr(self, name), hint)
        if self.gangs + self.elastic > 1:
            found = f"{self.elastic:g} beside gangs of {self.gangs:g}"
            raise InputError("elastic", found, "1 together, at most")


_MIX = TaskMix()


def openb_like(
    nodes: int = 1000, tasks: int = 10_000, seed: int = 0, mix: TaskMix = _MIX
) -> TaskRound:
    """Return a round with nodes and tasks as those of Alibaba's openb cluster of 2023 [1]_.

    Kinds of nodes are scaled to their number, and shapes of tasks are drawn as often as pods have
    them. Fractions of a GPU are rounded up to powers of two. Speeds and values are made.

    Parameters
    ----------
    nodes
        Number of nodes.
    tasks
        Number of jobs; each is one task, or several ways to run it.
    seed
        Seed of all random numbers.

    References
    ----------
    .. [1] Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
       Fragmentation Gradient Descent", USENIX ATC 2023.
    """
    return _drawn("openb", nodes, tasks, seed, mix)


def azure_like(
    nodes: int = 1000, tasks: int = 16_000, seed: int = 0, mix: TaskMix = _MIX
) -> TaskRound:
    """Return a round of virtual machines of 1 to 64 cores, a few with GPUs; all of it is made.

    Parameters
    ----------
    nodes
        Number of nodes.
    tasks
        Number of jobs; each is one task, or several ways to run it.
    seed
        Seed of all random numbers.
    """
    return _drawn("azure", nodes, tasks, seed, mix)


def blocks(nodes: int = 1000, tasks: int = 3000, seed: int = 0, mix: TaskMix = _MIX) -> TaskRound:
    """Return a round of tasks of 3, 5 or 6 GPUs, mostly, on nodes of 4 and 8; all of it is made.

    Parameters
    ----------
    nodes
        Number of nodes.
    tasks
        Number of jobs; each is one task, or several ways to run it.
    seed
        Seed of all random numbers.
    """
    return _drawn("blocks", nodes, tasks, seed, mix)


@cache
def _site(like: str) -> TaskRound:
    """Return a packaged round (`tools.task_sites`), of which tasks are drawn with replacement.

    Its gangs are apart from other tasks, and its jobs with three ways are the elastic ones.
    """
    file = f"tasks-{like}.npz"
    return decode_tasks(packaged(file), file)


def _drawn(like: str, nodes: int, tasks: int, seed: int, mix: TaskMix) -> TaskRound:
    """Return a round of a site; each kind of draw has random numbers of its own."""
    for name, number, least in (("nodes", nodes, 1), ("tasks", tasks, 1), ("seed", seed, 0)):
        if number < least:
            raise InputError(name, str(number), f"{least} or more")
        if name != "seed" and too_many(name, name, number):
            raise InputError(name, str(number), limits().at_most(name))
    shapes, sorts, values, groups, held = (np.random.default_rng([seed, k]) for k in range(5))
    site = _scaled(_site(like), nodes)
    assert site.job is not None
    grows = np.bincount(site.job)[site.job] > 1
    often, many = np.bincount(site.shape[~grows], minlength=len(site.slices)), site.slices > 1
    growing = site.shape[grows].reshape(-1, 3)
    shape = _picked(shapes, often * ~many, tasks)
    fate = sorts.random(tasks)
    gang, elastic = fate < mix.gangs, fate >= 1 - mix.elastic
    shape[gang] = _picked(sorts, often * many, int(gang.sum()))
    grown = growing[sorts.integers(len(growing), size=tasks)]
    shape[elastic] = grown[elastic, 0]
    group = _replicas(groups, shape, ~(gang | elastic), int(mix.grouped * tasks))
    # The ways of a job follow each other.
    ways = np.where(elastic, sorts.integers(2, 4, size=tasks), 1)
    job, first = np.repeat(np.arange(tasks), ways), np.cumsum(ways) - ways
    way = np.arange(len(job)) - first[job]
    shape = np.where(way > 0, grown[job, way], shape[job])
    worth, factor = np.zeros(len(often)), np.exp(0.5 * values.standard_normal(tasks))
    worth[site.shape] = site.value
    made = replace(
        site,
        name=f"{like}-{nodes}-{tasks}-{seed}",
        shape=shape,
        value=np.maximum(np.round(worth[shape] * np.round(factor, 6)[job], 6), 1e-6),
        group=group[job],
        job=job if mix.elastic else None,
        move_cost=np.zeros(len(job)),
        most_disrupted=mix.most_disrupted,
    )
    if not mix.running:
        return made
    task, node = _held(made, first, mix.running, held)
    loss = np.zeros(tasks)
    loss[job[task]] = np.round(mix.move_cost * made.value[task], 6)
    return replace(made, held_task=task, held_node=node, move_cost=loss[job])


def _scaled(site: TaskRound, nodes: int) -> TaskRound:
    """Return a site with another number of nodes, and its kinds and pools of which there are some.

    Largest remainders are rounded up.
    """
    count, rest = np.divmod(site.count * nodes, site.nodes)
    count[np.argsort(-rest, kind="stable")[: nodes - count.sum()]] += 1
    there = np.flatnonzero(count)
    pools, pool = np.unique(site.pool[there], return_inverse=True)
    return replace(
        site,
        kinds=tuple(site.kinds[k] for k in there),
        capacity=site.capacity[there],
        count=count[there],
        pool=pool,
        pools=tuple(site.pools[p] for p in pools),
        speed=site.speed.take(pools, axis=1),
    )


def _picked(rng: np.random.Generator, weights: Ints, number: int) -> Rows:
    """Return indices drawn with whole weights, which no rounding of shares affects."""
    until = np.cumsum(weights)
    return np.searchsorted(until, rng.integers(until[-1], size=number), side="right")


def _replicas(rng: np.random.Generator, shape: Rows, plain: Mask, wanted: int) -> Rows:
    """Return the group of each job: services of equal jobs, until so many are in groups."""
    group = np.full(len(shape), -1)
    mixed = rng.permutation(np.flatnonzero(plain))
    mixed = mixed[np.argsort(shape[mixed], kind="stable")]
    starts = np.zeros(len(mixed), dtype=bool)
    ends = np.cumsum(rng.geometric(1 / 12, len(mixed) // 2 + 1) + 1)
    starts[ends[ends < len(mixed)]] = True
    starts[1:] |= shape[mixed][1:] != shape[mixed][:-1]
    service = np.cumsum(starts)
    size = np.bincount(service)
    chosen = rng.permutation(np.flatnonzero(size > 1))
    chosen = chosen[: np.searchsorted(np.cumsum(size[chosen]), wanted, side="right")]
    number = np.full(len(size), -1)
    number[chosen] = np.arange(len(chosen))
    group[mixed] = number[service]
    return group


def _held(
    made: TaskRound, first: Rows, share: float, rng: np.random.Generator
) -> tuple[Rows, Rows]:
    """Return pairs of a task and a node for a share of the jobs, each in its first way."""
    fits = (made.use[:, None, :] <= made.capacity).all(axis=2) & (made.speed[:, made.pool] > 0)
    free = made.capacity[made.node_kind]
    coming = rng.permutation(first)
    gang = made.slices[made.shape[coming]] > 1
    gangs, singles = coming[gang], coming[~gang]
    task, node = _gangs(made, gangs[: round(share * len(gangs))], fits, rng)
    np.subtract.at(free, node, made.use[made.shape[task]])
    more, nodes = _singles(made, singles, round(share * len(singles)), fits, free, rng)
    task, node = np.concatenate([task, more]), np.concatenate([node, nodes])
    order = np.lexsort((node, task))
    return task[order], node[order]


def _gangs(made: TaskRound, gangs: Rows, fits: Mask, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Return the nodes of gangs, which take random empty nodes of a pool while there are enough."""
    at: list[tuple[int, int]] = []
    whole = fits[made.slices > 1].all(axis=0)
    stock = [
        rng.permutation(np.flatnonzero((whole & (made.pool == pool))[made.node_kind])).tolist()
        for pool in range(len(made.pools))
    ]
    for gang in gangs.tolist():
        number = int(made.slices[made.shape[gang]])
        left = next((nodes for nodes in stock if len(nodes) >= number), None)
        if left is not None:
            at += [(gang, left.pop()) for _ in range(number)]
    pairs = np.array(at, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _singles(
    made: TaskRound, queue: Rows, wanted: int, fits: Mask, free: Ints, rng: np.random.Generator
) -> tuple[Rows, Rows]:
    """Return the nodes of tasks, placed in waves of which each node takes one task at most.

    A task whose node goes to another of its wave comes again; one that finds no room waits.
    """
    count, nodes = made.count * fits, len(free)
    until, start = np.cumsum(count, axis=1), np.cumsum(made.count) - made.count
    scale = (1 << 40) // np.maximum(made.capacity, 1)
    queue = queue[until[made.shape[queue], -1] > 0]
    held, at, kept_apart = [queue[:0]], [queue[:0]], queue[:0]
    while wanted > 0 and len(queue):
        wave, queue = np.split(queue, [nodes // 2 + _WAVE])
        s, g = made.shape[wave, None], made.group[wave, None]
        drawn = rng.integers(0, until[s, -1], size=(len(wave), _LOOKED))
        kind = (until[s] <= drawn[..., None]).sum(axis=2)
        node = start[kind] + drawn - (until[s, kind] - count[s, kind])
        after = free[node] - made.use[s]
        room = (after * scale[kind]).sum(axis=2)
        shut = (after < 0).any(axis=2) | ((g >= 0) & np.isin(g * nodes + node, kept_apart))
        room[shut] = _SHUT
        best = room.argmin(axis=1)[:, None]
        node, fine = np.take_along_axis(node, best, 1)[:, 0], (room.min(axis=1) < _SHUT)
        able, node = wave[fine], node[fine]
        _, one = np.unique(node, return_index=True)
        one = np.sort(one)[:wanted]
        task, node = able[one], node[one]
        free[node] -= made.use[made.shape[task]]
        apart = made.group[task] >= 0
        kept_apart = np.append(kept_apart, (made.group[task] * nodes + node)[apart])
        queue, wanted = np.append(queue, np.delete(able, one)), wanted - len(task)
        held, at = [*held, task], [*at, node]
    return np.concatenate(held), np.concatenate(at)
