"""Two orders in which rigid jobs take free GPUs, each as a published simulator does it.

`consolidate` is the placer of the Helios artifact (SC'21, section 2.2), for FIFO, SJF and SRTF;
`most_free` that of the Pollux artifact (OSDI 2021), for Tiresias and Optimus.
"""

from ronda.formulations.placement.nodes import FreeList, Placement


def consolidate(nodes: FreeList, gpus: int) -> Placement | None:
    """Return the nodes of a job by best fit, or None if it must wait.

    Up to a node: the fullest node that still fits (ties: lowest index). More: completely free
    nodes, lowest indices first, and the remainder on the next node in descending order of free
    GPUs.
    """
    if gpus > nodes.total:
        return None
    if gpus <= nodes.whole:
        fullest = nodes.best_fit(gpus)
        return None if fullest is None else ((nodes.nodes[fullest], gpus),)
    placement, left = [], gpus
    for node, free in nodes.emptiest_first():
        piece = min(left, nodes.whole)
        if free < piece:
            return None
        placement.append((nodes.nodes[node], piece))
        left -= piece
        if not left:
            return tuple(placement)
    return None


def most_free(nodes: FreeList, gpus: int) -> Placement | None:
    """Return the nodes of a job, ascending, the emptiest first (ties: lowest index), or None."""
    if gpus > nodes.total:
        return None
    placement, left = [], gpus
    for node, free in nodes.emptiest_first():
        piece = min(left, free)
        placement.append((nodes.nodes[node], piece))
        left -= piece
        if not left:
            break
    return tuple(sorted(placement))
