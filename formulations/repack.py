"""Place all jobs of a pool: in place, else repacked, else the most important ones."""

from collections import Counter

from ronda.formulations.bit_sets import bits
from ronda.formulations.block_packing import Packing
from ronda.formulations.pieces import Request
from ronda.formulations.pool_nodes import PoolNodes
from ronda.formulations.rack_power import RackPower


def pack(nodes: PoolNodes, requests: list[Request], power: RackPower | None = None) -> Packing:
    """Place requests (in order of importance) on the empty nodes of a pool.

    Jobs are admitted by importance as long as their number of GPUs leaves room. They are placed
    with everything that runs kept in place, a few blocks pushed out where they must; or else with
    all blocks placed anew. If neither places all (sizes that do not divide each other, pinned
    jobs, power caps), the longest list of most important jobs that can be placed is, and of the
    others those that fit without a further move.

    Returns
    -------
    Packing
        The best attempt, with the pieces of every placed job.
    """
    ranked = sorted(requests, key=lambda r: (not r.pinned, r.order))
    room = sum(nodes.size[node] for node in bits(nodes.usable))
    admitted: list[Request] = []
    for request in ranked:
        if request.gpus <= room:
            room -= request.gpus
            admitted.append(request)
    packing = _attempt(nodes, admitted, power)
    if not packing.failed:
        return packing
    packing = _attempt(nodes, [], power)
    low, most = 0, len(admitted)
    while most - low > 1:  # `low` jobs can be placed, `most` cannot
        middle = (low + most) // 2
        trial = _attempt(nodes, admitted[:middle], power)
        if trial.failed:
            most = middle
        else:
            low, packing = middle, trial
    for request in admitted[low:]:
        packing.add(request)
    return packing


def _attempt(nodes: PoolNodes, requests: list[Request], power: RackPower | None) -> Packing:
    """Try to place all requests in place, then by a repack of all blocks."""
    packing = Packing(nodes.copy(), power.copy() if power else None)
    packing.run(requests)
    if packing.failed and any(r.held for r in requests):
        repack = Packing(nodes.copy(), power.copy() if power else None)
        repack.run(requests, scratch=True)
        if not repack.failed:
            _match(repack, requests)
            return repack
    return packing


def _match(packing: Packing, requests: list[Request]) -> None:
    """Exchange equal nodes so that many jobs are where they already were.

    Only nodes of one group (hence of one rack) whose jobs are all movable and below a node in
    size are exchanged, greedily by the number of jobs that would stay.
    """
    nodes = packing.nodes
    loose = {r.order: r for r in requests if not r.pinned and len(packing.at[r.order]) == 1}
    tied = {
        node for order, pieces in packing.at.items() if order not in loose for node, _ in pieces
    }
    overlap: Counter[tuple[int, int]] = Counter()
    for order, request in loose.items():
        if len(request.held) != 1:
            continue
        (source, _), (target, _) = request.held[0], packing.at[order][0]
        same_group = nodes.group[source] == nodes.group[target]
        if same_group and not {source, target} & tied and nodes.usable >> source & 1:
            overlap[target, source] += 1
    renamed: dict[int, int] = {}
    for (target, source), _ in sorted(overlap.items(), key=lambda item: (-item[1], item[0])):
        if target not in renamed and source not in renamed.values():
            renamed[target] = source
    # Close the chains: a node whose name is taken gets the name at the chain's open end.
    for end in [source for source in renamed.values() if source not in renamed]:
        back = {source: target for target, source in renamed.items()}
        first = end
        while first in back:
            first = back[first]
        renamed[end] = first
    for order in loose:
        node, gpus = packing.at[order][0]
        packing.at[order] = [(renamed.get(node, node), gpus)]
