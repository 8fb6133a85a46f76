"""The reasons why an option finds no place, as texts about the lack of nodes or racks."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from ronda.formulations.placement.node_reasons import book_of, unfit_nodes
from ronda.formulations.placement.requests import Placed, place
from ronda.instances.check.sharing import distinct
from ronda.instances.cluster import Pool
from ronda.instances.job import Allocation, JobState, Option
from ronda.instances.models.parts import bits
from ronda.instances.round import Round


def why_unplaced(
    round: Round, chosen: Mapping[str, Option], placed: Placed, *, migrate: bool = True
) -> dict[str, str]:
    """Return the reason why each unplaced job has no room in the answer `placed`, per job.

    If running jobs must not move (without `migrate`), each reason says whether moves would make
    room.
    """
    if not placed.unplaced:
        return {}
    there = placed.allocations
    free, book = _free(round, there.values()), book_of(round, there)
    states = {state.job.id: state for state in round.jobs}
    found = {}
    for job in placed.unplaced:
        if chosen[job].share is not None:
            found[job] = _no_part(round, chosen[job], there.values())
        else:
            unfit = unfit_nodes(book, states[job], chosen[job])
            found[job] = _shortage(round, chosen[job], free, unfit)
        if not migrate:
            kept = {i: a.option for i, a in placed.allocations.items()} | {job: chosen[job]}
            found[job] += _with_moves(place(round, kept))
    return found


def lack_of_room(
    round: Round, state: JobState, option: Option, placed: Mapping[str, Allocation]
) -> str | None:
    """Return the lack of nodes or racks for one more job with an option next to placed ones.

    Return None if the pool already has too few free GPUs.
    """
    if option.share is not None:
        return _no_part(round, option, placed.values())
    free, book = _free(round, placed.values()), book_of(round, placed)
    pools = round.cluster.topology.node_pool.tolist()
    left = sum(f for f, p in zip(free, pools, strict=True) if p == option.pool)
    unfit = unfit_nodes(book, state, option)
    return None if option.gpus > left else _shortage(round, option, free, unfit)


def _free(round: Round, placed: Iterable[Allocation]) -> list[int]:
    free: list[int] = round.cluster.topology.node_gpus.tolist()
    for allocation in distinct(placed):
        for node, gpus in allocation.placement:
            free[node] -= gpus
    return free


def _no_part(round: Round, option: Option, placed: Iterable[Allocation]) -> str:
    """Return what is left of the GPU in parts with the most left, and what stands in the way."""
    gpu_type = round.cluster.topology.pools[option.pool].gpu_type
    on: defaultdict[tuple[int, int], list[tuple[Option, int]]] = defaultdict(list)
    for held in placed:
        for node, gpu, start in held.parts if held.option.pool == option.pool else ():
            on[node, gpu].append((held.option, start))
    ways, profile = gpu_type.ways, gpu_type.profile(option.part)
    left = {gpu: 1.0 - sum(o.share or 0.0 for o, _ in there) for gpu, there in on.items()}
    if not left:
        return f"no GPU of type {gpu_type.name} that the job may use is free"
    best = max(left, key=lambda gpu: (left[gpu], gpu))
    where = f"GPU {best[1]} of node {best[0]}"
    if ways is None or profile is None:
        return f"at most {left[best]:.6g} of a GPU is free, on {where}; it needs {option.share:g}"
    slices, blocks = int(left[best] * ways.compute + 0.5), list[str]()
    if profile.compute > slices:
        more = f"at most {slices} compute slices of a GPU are free, on {where}"
        return f"{more}; a {profile.name} needs {profile.compute}"
    for first in profile.starts:
        for other, start in sorted(on[best], key=lambda each: -each[1]):
            its = gpu_type.profile(other.part)
            if its is None or bits(profile, first) & bits(its, start):
                blocks.append(f"{other.part} at {start}")
                break
    places = ", ".join(f"{s}-{s + profile.memory - 1}" for s in profile.starts)
    lacks = f"a {profile.name} finds no room though {slices} compute slices are free on {where}"
    return f"{lacks}: {' and '.join(dict.fromkeys(blocks))} block its places ({places})"


def _shortage(round: Round, option: Option, free: list[int], unfit: str | None) -> str:
    """Return a text with the free GPUs or nodes of the pool, and those that the option needs.

    `unfit` says which nodes have enough free GPUs but no room.
    """
    topology = round.cluster.topology
    pool = topology.pools[option.pool]
    at = [n for n, p in enumerate(topology.node_pool.tolist()) if p == option.pool]
    left = [free[n] for n in at]
    have = f"pool {pool.name} has {sum(left)} GPUs free"
    if option.gpus > sum(left):
        return f"{have}; the job needs {option.gpus}"
    if not _fits(option, pool, left):
        empty = sum(f == pool.gpus_per_node for f in left)
        return (
            f"{have}, at most {max(left)} on one node and {empty} nodes empty; "
            f"the job needs {_shape(option, pool)}"
        )
    if unfit is not None:
        return f"{have}, but {unfit}"
    by_rack: dict[str, list[int]] = {}
    for n in at:
        by_rack.setdefault(topology.racks[int(topology.node_rack[n])], []).append(free[n])
    if option.span == "rack" and not any(_fits(option, pool, f) for f in by_rack.values()):
        # The nearest rack has the most empty nodes, then the most GPUs.
        rack, best = max(
            by_rack.items(), key=lambda item: (item[1].count(pool.gpus_per_node), sum(item[1]))
        )
        return (
            f"{have}, but no rack has {_shape(option, pool)}: rack {rack or '(unnamed)'} "
            f"comes nearest, with {sum(best)} GPUs free, at most {max(best)} on one node and "
            f"{best.count(pool.gpus_per_node)} nodes empty"
        )
    return f"{have}, but racks' power caps leave no room for {_shape(option, pool)}"


def _fits(option: Option, pool: Pool, left: list[int]) -> bool:
    whole, rest = divmod(option.gpus, pool.gpus_per_node)
    empty = left.count(pool.gpus_per_node)
    parts = max((f for f in left if f < pool.gpus_per_node), default=0)
    return empty > whole or (empty == whole and rest <= parts)


def _shape(option: Option, pool: Pool) -> str:
    whole, rest = divmod(option.gpus, pool.gpus_per_node)
    parts = [f"{whole} empty node{'s' * (whole > 1)}"] if whole else []
    if rest:
        parts.append(f"{rest} GPUs on one node")
    reach = f" within one {option.span}" if option.span != "cluster" and parts[1:] else ""
    return " and ".join(parts) + reach


def _with_moves(placed: Placed) -> str:
    if placed.unplaced:
        return "; no moves would make room"
    return (
        f"; it would fit if {len(placed.moved)} running jobs ({placed.moved_gpus} GPUs) moved, "
        "which is forbidden"
    )
