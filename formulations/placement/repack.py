"""Place all jobs of a pool: in place, else repacked, else the most important ones."""

from collections import defaultdict
from itertools import pairwise

from ronda.formulations.bit_sets import bits
from ronda.formulations.placement.fragmentation import at_most
from ronda.formulations.placement.nodes import PoolNodes
from ronda.formulations.placement.packing import Packing
from ronda.formulations.placement.requests import PoolRequest
from ronda.formulations.watts.racks import RackPower

_JOB = 1 << 20
"""What a job that stays counts beside a GPU that stays: more than all GPUs of a node."""


def pack(nodes: PoolNodes, requests: list[PoolRequest], power: RackPower | None = None) -> Packing:
    """Place requests (in order of importance) on the empty nodes of a pool.

    Jobs are admitted by importance as long as their number of GPUs leaves room. They are placed
    with everything that runs kept in place, a few blocks pushed out where they must; or else with
    all blocks placed anew. If neither places all (sizes that do not divide each other, pinned
    jobs, power caps), the longest list of most important jobs that can be placed is, as bisection
    finds it, and of the others those that fit without a further move. Lists that no placement has
    room for (`ronda.formulations.placement.fragmentation`) count as tried.

    Returns
    -------
    Packing
        The best attempt, with the pieces of every placed job.
    """
    ranked = [r for r in requests if r.pinned] + [r for r in requests if not r.pinned]
    room = sum([gpus * (those & nodes.usable).bit_count() for gpus, those in nodes.sized.items()])
    admitted: list[PoolRequest] = []
    for request in ranked:
        if request.gpus <= room:
            room -= request.gpus
            admitted.append(request)
    cannot = _first_in_vain(nodes, admitted)
    packing = _attempt(nodes, admitted, power) if cannot > len(admitted) else None
    if packing is not None:
        return packing
    packing = Packing(nodes.copy(), power.copy() if power else None)
    low, most = 0, len(admitted)
    while most - low > 1:  # `low` jobs can be placed, `most` cannot
        middle = (low + most) // 2
        trial = _attempt(nodes, admitted[:middle], power) if middle < cannot else None
        if trial is None:
            most = middle
        else:
            low, packing = middle, trial
    for request in admitted[low:]:
        packing.add(request)
    return packing


def _first_in_vain(nodes: PoolNodes, requests: list[PoolRequest]) -> int:
    """Return a number of first requests such that so many, or more, cannot be placed.

    Beyond all requests if their sizes divide each other, or the pool's nodes are unequal.
    """
    whole = nodes.whole
    sizes = sorted({r.gpus % whole for r in requests} | {whole})
    divide = all(large % small == 0 for small, large in pairwise(sizes) if small)
    if divide or min(nodes.size) < whole:
        return len(requests) + 1
    return at_most(requests, nodes.usable.bit_count(), whole) + 1


def _attempt(
    nodes: PoolNodes, requests: list[PoolRequest], power: RackPower | None
) -> Packing | None:
    """Place all requests in place, else by a repack of all blocks; None if neither does it."""
    packing = Packing(nodes.copy(), power.copy() if power else None)
    if packing.run(requests):
        return packing
    if not any(r.held for r in requests):
        return None
    repack = Packing(nodes.copy(), power.copy() if power else None)
    if not repack.run(requests, scratch=True):
        return None
    _match(repack, requests)
    return repack


def _match(packing: Packing, requests: list[PoolRequest]) -> None:
    """Exchange equal nodes so that as many jobs as possible are where they already were.

    Only nodes of one group (hence of one rack) whose jobs are all movable and below a node in
    size are exchanged. Who stands where is a linear assignment (Jonker and Volgenant), so the
    number of jobs that stay is the largest for this packing; ties go to more GPUs that stay, then
    to nodes that are awake, then to the fewest exchanges.
    """
    from scipy.optimize import linear_sum_assignment

    nodes = packing.nodes
    loose = {r.order: r for r in requests if not r.pinned and len(packing.at[r.order]) == 1}
    tied = {
        node for order, pieces in packing.at.items() if order not in loose for node, _ in pieces
    }
    stays: defaultdict[tuple[int, int], int] = defaultdict(int)
    filled = set()
    for order, request in loose.items():
        target = packing.at[order][0][0]
        filled.add(target)
        if len(request.held) == 1:
            stays[target, request.held[0][0]] += _JOB + request.gpus
    open_to_all = [n for n in bits(nodes.usable) if n not in tied]
    renamed: dict[int, int] = {}
    for group in {nodes.group[n] for n in open_to_all}:
        members = [n for n in open_to_all if nodes.group[n] == group]
        worth = [
            [
                4 * stays.get((target, source), 0)
                + 2 * (target in filled and nodes.awake >> source & 1)
                + (target == source)
                for source in members
            ]
            for target in members
        ]
        targets, sources = linear_sum_assignment(worth, maximize=True)
        renamed |= {members[t]: members[s] for t, s in zip(targets, sources, strict=True)}
    for order in loose:
        node, gpus = packing.at[order][0]
        packing.at[order] = [(renamed.get(node, node), gpus)]
