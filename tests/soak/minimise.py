"""The smallest round that still fails: fewer jobs and nodes, and no limit that does not matter.

A failing round of a soak is cut down by itself, as delta debugging does (Zeller and Hildebrandt,
IEEE Trans. Softw. Eng. 28, 2002): parts are left out, large ones first, while what failed fails.
"""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

import ronda
from ronda.instances.cluster import Cluster
from ronda.instances.files.canonical import encode
from ronda.instances.job import JobState
from ronda.instances.rules.validate import validate

Fails = Callable[[ronda.Round], bool]

PATIENCE = 300
"""How many rounds are tried at most."""

LIMITS = ("power_cap_w", "energy_j")


def smallest(round: ronda.Round, fails: Fails, patience: int = PATIENCE) -> ronda.Round:
    """Return a round that fails of which no job, node or limit can be left out, if time is enough.

    All rounds that `fails` is asked about are valid.
    """
    tried = 0
    while True:
        for less in _less(round):
            tried += 1
            if tried > patience:
                return round
            if _valid(less) and fails(less):
                round = less
                break
        else:
            return round


def ask(check: Callable[[ronda.Round], object], round: ronda.Round) -> None:
    """Ask what raises AssertionError of a wrong round; the smallest one that is goes with it."""

    def fails(less: ronda.Round) -> bool:
        try:
            check(less)
        except AssertionError:
            return True
        return False

    try:
        check(round)
    except AssertionError as error:
        error.add_note(f"smallest round: {encode(smallest(round, fails)).decode()}")
        raise


def _valid(round: ronda.Round) -> bool:
    try:
        validate(round)
    except ronda.InputError:
        return False
    return True


def _less(round: ronda.Round) -> Iterator[ronda.Round]:
    """Yield rounds with less: without half of the jobs, a quarter, …, one; nodes; limits."""
    jobs = [state.job.id for state in round.jobs]
    for part in _parts(len(jobs)):
        yield _without_jobs(round, {jobs[k] for k in part})
    nodes = len(round.cluster.topology.node_gpus)
    for part in _parts(nodes) if nodes > 1 else ():
        if len(part) < nodes:
            yield _without_nodes(round, set(part))
    for name in LIMITS:
        if getattr(round, name) is not None:
            bare = {"banked_j": None, "sustained_w": None} if name == "energy_j" else {}
            yield replace(round, **{name: None} | bare)
    if any(rack.power_cap_w is not None for rack in round.cluster.racks):
        racks = tuple(replace(rack, power_cap_w=None) for rack in round.cluster.racks)
        yield replace(round, cluster=replace(round.cluster, racks=racks))


def _parts(count: int) -> Iterator[range]:
    """Yield halves of so many things, quarters, …, and each alone."""
    size = count
    while size > 0:
        for start in range(0, count, size):
            yield range(start, min(start + size, count))
        size = min(size - 1, (size + 1) // 2)


def _without_jobs(round: ronda.Round, gone: set[str]) -> ronda.Round:
    def kept(states: tuple[JobState, ...]) -> tuple[JobState, ...]:
        return tuple(state for state in states if state.job.id not in gone)

    return replace(round, running=kept(round.running), waiting=kept(round.waiting))


def _without_nodes(round: ronda.Round, gone: set[int]) -> ronda.Round:
    """Return the round without nodes, whose jobs wait; the others are numbered anew."""
    groups, first = [], 0
    for group in round.cluster.node_groups:
        left = sum(node not in gone for node in range(first, first + group.count))
        first += group.count
        if left:
            groups.append(replace(group, count=left))
    number = {node: k for k, node in enumerate(n for n in range(first) if n not in gone)}
    out = tuple((number[node], gpus) for node, gpus in round.cluster.out if node in number)
    cluster: Cluster = replace(round.cluster, node_groups=tuple(groups), out=out)
    names = [pool.name for pool in cluster.topology.pools]
    pool = {
        k: names.index(old.name)
        for k, old in enumerate(round.cluster.topology.pools)
        if old.name in names
    }
    running, waiting = [], list(round.waiting)
    for state in round.running:
        held = state.allocation
        if held is None or not number.keys() >= {node for node, _ in held.placement}:
            waiting.append(replace(state, allocation=None, pause_s=None))
            continue
        there = tuple((number[node], gpus) for node, gpus in held.placement)
        option = replace(held.option, pool=pool[held.option.pool])
        running.append(replace(state, allocation=replace(held, option=option, placement=there)))
    return replace(
        round,
        cluster=cluster,
        running=tuple(running),
        waiting=tuple(sorted(waiting, key=lambda state: state.job.submit_s)),
        asleep=tuple(number[node] for node in round.asleep if node in number),
        waking=tuple(number[node] for node in round.waking if node in number),
    )
