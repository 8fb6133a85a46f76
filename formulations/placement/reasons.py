"""The reasons why an option finds no place, as texts about the lack of nodes or racks."""

from collections.abc import Iterable, Mapping

from ronda.formulations.placement.node_reasons import book_of, unfit_nodes
from ronda.formulations.placement.requests import Placed, place
from ronda.instances.cluster import Pool
from ronda.instances.job import Allocation, JobState, Option
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
    free, book = _free(round, placed.allocations.values()), book_of(round, placed.allocations)
    states = {state.job.id: state for state in round.jobs}
    found = {}
    for job in placed.unplaced:
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
    free, book = _free(round, placed.values()), book_of(round, placed)
    pools = round.cluster.topology.node_pool.tolist()
    left = sum(f for f, p in zip(free, pools, strict=True) if p == option.pool)
    unfit = unfit_nodes(book, state, option)
    return None if option.gpus > left else _shortage(round, option, free, unfit)


def _free(round: Round, placed: Iterable[Allocation]) -> list[int]:
    free: list[int] = round.cluster.topology.node_gpus.tolist()
    for allocation in placed:
        for node, gpus in allocation.placement:
            free[node] -= gpus
    return free


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
