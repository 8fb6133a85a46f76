"""Why a chosen option found no place, in words for a user."""

from collections.abc import Mapping

from ronda.formulations.placement.placer import Placed, place
from ronda.instances.cluster import Pool
from ronda.instances.job import Option
from ronda.instances.round import Round


def why_unplaced(
    round: Round, chosen: Mapping[str, Option], placed: Placed, *, migrate: bool = True
) -> dict[str, str]:
    """Return by job why the answer `placed` has no room for it.

    Where running jobs might not move (`migrate`), each reason says whether that is what hinders.
    """
    if not placed.unplaced:
        return {}
    free = round.cluster.topology.node_gpus.tolist()
    for allocation in placed.allocations.values():
        for node, gpus in allocation.placement:
            free[node] -= gpus
    found = {}
    for job in placed.unplaced:
        found[job] = _shortage(round, chosen[job], free)
        if not migrate:
            kept = {i: a.option for i, a in placed.allocations.items()} | {job: chosen[job]}
            found[job] += _with_moves(place(round, kept))
    return found


def _shortage(round: Round, option: Option, free: list[int]) -> str:
    """Return what the pool has free, and what the option needs."""
    topology = round.cluster.topology
    pool = topology.pools[option.pool]
    left = [f for f, p in zip(free, topology.node_pool.tolist(), strict=True) if p == option.pool]
    have = f"pool {pool.name} has {sum(left)} GPUs free"
    if option.gpus > sum(left):
        return f"{have}; the job needs {option.gpus}"
    most = max(left)
    empty = sum(f == pool.gpus_per_node for f in left)
    whole, rest = divmod(option.gpus, pool.gpus_per_node)
    if empty > whole or (empty == whole and rest <= max(f % pool.gpus_per_node for f in left)):
        return f"{have}, but racks' power caps or the span {option.span!r} leave no room"
    return (
        f"{have}, at most {most} on one node and {empty} nodes empty; "
        f"the job needs {_shape(option, pool)}"
    )


def _shape(option: Option, pool: Pool) -> str:
    """Return the whole nodes and the block that an option consists of."""
    whole, rest = divmod(option.gpus, pool.gpus_per_node)
    parts = [f"{whole} empty node{'s' * (whole > 1)}"] if whole else []
    if rest:
        parts.append(f"{rest} GPUs on one node")
    reach = f" within one {option.span}" if option.span != "cluster" and parts[1:] else ""
    return " and ".join(parts) + reach


def _with_moves(placed: Placed) -> str:
    """Return what would have to move."""
    if placed.unplaced:
        return "; no moves would make room"
    return (
        f"; it would fit if {len(placed.moved)} running jobs ({placed.moved_gpus} GPUs) moved, "
        "which is forbidden"
    )
