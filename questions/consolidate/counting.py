"""What no plan can exceed, by counting GPUs: known at once, however large the round."""

import numpy as np

from ronda.instances.round import Round
from ronda.questions.consolidate.holdings import Saving, worth_of


def most_saved(round: Round, saving: Saving) -> float:
    """Return an upper bound on what moves save in a round without arrays.

    Of each pool, min Σ_n w_n a_n with Σ_n size_n a_n ≥ GPUs held and 0 ≤ a_n ≤ 1 is what the nodes
    in use are worth at least: those of least w per GPU are filled first.
    """
    topology, worth = round.cluster.topology, worth_of(round, saving)
    held = np.zeros(len(worth))
    for allocation in round.held.values():
        for node, gpus in allocation.placement:
            held[node] += gpus
    saved = float(worth[held > 0].sum())
    for pool in range(len(topology.pools)):
        nodes = np.flatnonzero(topology.in_service(pool))
        size, each = topology.node_gpus[nodes], worth[nodes] / topology.node_gpus[nodes]
        order = np.argsort(each, kind="stable")
        filled = np.minimum(size[order].cumsum(), held[nodes].sum())
        saved -= float(np.diff(filled, prepend=0.0) @ each[order])
    return np.floor(saved + 1e-6) if saving == "nodes" else saved
